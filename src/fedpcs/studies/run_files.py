"""A run's folder as a report reads it: the configuration, the manifest, and every trial's log and result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.studies.run_shape import check_trial
from fedpcs.trial.config import RunConfig
from fedpcs.trial.run_store import RunStore


@dataclass(frozen=True)
class Track:
    """A number over rounds, where it is known.

    Attributes:
        rounds: (points,) ascending.
        values: (points,).
    """

    rounds: FloatArray
    values: FloatArray

    @property
    def is_empty(self) -> bool:
        """Whether it is known nowhere."""
        return self.rounds.size == 0


@dataclass(frozen=True)
class TrialFiles:
    """One sampler with one seed: the rounds it logged, and its result once it is done."""

    seed: int
    rounds: tuple[dict[str, Any], ...]
    result: dict[str, Any] | None

    def track(self, *path: str) -> Track:
        """Return a number of every round's line, where it is known, such as ("spent", "rho", "maximum")."""
        found = [(line["round"], _at(line, path)) for line in self.rounds]
        known = [(float(index), float(value)) for index, value in found if value is not None]
        table = np.array(known, dtype=np.float64).reshape(-1, 2)
        return Track(table[:, 0], table[:, 1])


@dataclass(frozen=True)
class SamplerFiles:
    """All trials of one sampler, in the order of the seeds."""

    name: str
    trials: tuple[TrialFiles, ...]

    @property
    def done(self) -> list[dict[str, Any]]:
        """The results of trials that are done."""
        return [trial.result for trial in self.trials if trial.result is not None]

    def tracks(self, *path: str) -> list[Track]:
        """Return a number over rounds, for every trial that has it."""
        return _known(trial.track(*path) for trial in self.trials)

    def settled_tracks(self, *path: str) -> list[Track]:
        """Return the tracks to average: those of trials that are done, so that one just begun does not cut them short.

        As long as none is done, those of all.
        """
        return _known(trial.track(*path) for trial in self.trials if trial.result is not None) or self.tracks(*path)


@dataclass(frozen=True)
class RunFiles:
    """All a report needs to know."""

    config: RunConfig
    manifest: dict[str, Any]
    samplers: tuple[SamplerFiles, ...]

    @property
    def num_trials(self) -> int:
        """How many trials the run has."""
        return sum(len(sampler.trials) for sampler in self.samplers)

    @property
    def num_done(self) -> int:
        """How many of them are done."""
        return sum(len(sampler.done) for sampler in self.samplers)


def read_run(store: RunStore) -> RunFiles:
    """Read a run's folder, finished or not.

    Raises:
        CorruptFile: A file is damaged.
    """
    config = store.config()
    samplers = [
        SamplerFiles(name, tuple(read_trial(store, name, seed, config.data.num_clients) for seed in config.seeds))
        for name in config.sampling.samplers
    ]
    return RunFiles(config, store.manifest, tuple(samplers))


def at_common_rounds(tracks: Sequence[Track]) -> FloatArray:
    """Return (1 + tracks, rounds): the rounds all tracks have in the first row, each track's values below."""
    shared = tracks[0].rounds
    for track in tracks[1:]:
        shared = np.intersect1d(shared, track.rounds)
    return np.vstack([shared, *(track.values[np.isin(track.rounds, shared)] for track in tracks)])


def mean_track(tracks: Sequence[Track]) -> Track:
    """Return the mean over tracks at the rounds all have."""
    table = at_common_rounds(tracks)
    return Track(table[0], table[1:].mean(axis=0))


def read_trial(store: RunStore, sampler: str, seed: int, num_clients: int) -> TrialFiles:
    """Read the files of one sampler with one seed.

    Raises:
        CorruptFile: One is damaged.
    """
    trial = store.trial(sampler, seed)
    rounds, result = tuple(trial.rounds()), trial.result
    check_trial(trial.folder, rounds, result, num_clients)
    return TrialFiles(seed, rounds, result)


def _known(tracks: Iterable[Track]) -> list[Track]:
    return [track for track in tracks if not track.is_empty]


def _at(line: Any, path: Sequence[str]) -> Any:
    for name in path:
        line = None if line is None else line.get(name)
    return line
