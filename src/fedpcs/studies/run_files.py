"""A run's folder as its report reads it still; `fedpcs.studies.results.Study` is what comes after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fedpcs.studies.results import Track as Track
from fedpcs.studies.results import TrialData
from fedpcs.studies.results import at_common_rounds as at_common_rounds
from fedpcs.studies.results import mean_track as mean_track
from fedpcs.studies.study import read_study
from fedpcs.trial.config import RunConfig
from fedpcs.trial.records import Manifest, TrialResult
from fedpcs.trial.run_store import RunStore

TrialFiles = TrialData


@dataclass(frozen=True)
class SamplerFiles:
    """All trials of one sampler, in the order of the seeds."""

    name: str
    trials: tuple[TrialData, ...]

    @property
    def done(self) -> list[TrialResult]:
        """The results of trials that are done."""
        return [trial.result for trial in self.trials if trial.result is not None]

    def tracks(self, *path: str) -> list[Track]:
        """Return a number over rounds, for every trial that has it."""
        return _known(trial.track(".".join(path)) for trial in self.trials)

    def settled_tracks(self, *path: str) -> list[Track]:
        """Return the tracks to average: those of trials that are done, so that one just begun does not cut them short.

        As long as none is done, those of all.
        """
        return _known(trial.track(".".join(path)) for trial in self.trials if trial.result is not None) or self.tracks(
            *path
        )


@dataclass(frozen=True)
class RunFiles:
    """All a report needs to know."""

    config: RunConfig
    manifest: Manifest
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
    study = read_study(store.folder)
    config = store.config()
    samplers = [
        SamplerFiles(name, tuple(one for one in study.trials if one.cell.sampler == name))
        for name in config.sampling.samplers
    ]
    return RunFiles(config, store.manifest, tuple(samplers))


def _known(tracks: Iterable[Track]) -> list[Track]:
    return [track for track in tracks if not track.is_empty]
