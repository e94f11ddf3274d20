"""What trials came to, as values: one trial, one sampler over its seeds, all samplers at one place, a whole study.

Numbers of a round or of a result are named by a function, such as `lambda line: line.spent.epsilon.median`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.errors import Unfinished
from fedpcs.studies.comparison import Comparison, compare_each
from fedpcs.studies.grid import Cell, place_labels, set_of
from fedpcs.studies.paired import PairedDifference, joint_confidence, mean_and_std, paired_difference
from fedpcs.trial.config import RunConfig
from fedpcs.trial.records import Manifest, RoundRecord, TrialResult

OfRound = Callable[[RoundRecord], float | None]
OfResult = Callable[[TrialResult], float | None]


@dataclass(frozen=True)
class Track:
    """A number over rounds, where it is known.

    Attributes:
        rounds: (points,) ascending, counted from 0.
        values: (points,).
    """

    rounds: FloatArray
    values: FloatArray

    @property
    def is_empty(self) -> bool:
        """Whether it is known nowhere."""
        return self.rounds.size == 0


@dataclass(frozen=True)
class TrialData:
    """One trial, finished or not, as its files have it.

    Attributes:
        cell: Which: its configuration, and its place in the study.
        result: What it came to; None while it is not finished.
        rounds: Its log.
        manifest: What it was started with.
        seconds: How long it took; None if that was not kept.
        folder: Where it is kept.
    """

    cell: Cell
    result: TrialResult | None
    rounds: tuple[RoundRecord, ...]
    manifest: Manifest
    seconds: float | None
    folder: Path

    @property
    def seed(self) -> int:
        """Of all draws."""
        return self.cell.seed

    @property
    def is_done(self) -> bool:
        """Whether it is finished."""
        return self.result is not None

    @property
    def outcome(self) -> TrialResult:
        """Its result.

        Raises:
            Unfinished: It is not finished.
        """
        if self.result is None:
            raise Unfinished(f"{self.folder}: is not finished.")
        return self.result

    @property
    def ledger(self) -> Path:
        """What every client was charged and is owed."""
        return self.folder / "ledger.sqlite"

    def track(self, number: OfRound) -> Track:
        """Return a number of its rounds, where it is known."""
        found = [(line.round, number(line)) for line in self.rounds]
        table = np.array([pair for pair in found if pair[1] is not None], dtype=np.float64).reshape(-1, 2)
        return Track(table[:, 0], table[:, 1])


@dataclass(frozen=True)
class Series:
    """One sampler at one place, over seeds.

    Attributes:
        sampler: Who drew.
        trials: In the order of their seeds, finished or not.
    """

    sampler: str
    trials: tuple[TrialData, ...]

    @property
    def done(self) -> tuple[TrialData, ...]:
        """Those that are finished."""
        return tuple(one for one in self.trials if one.is_done)

    @property
    def results(self) -> list[TrialResult]:
        """What finished trials came to."""
        return [one.result for one in self.trials if one.result is not None]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of finished trials."""
        return tuple(one.seed for one in self.done)

    @property
    def accuracy(self) -> FloatArray:
        """(seeds,) at the end."""
        return self.values(lambda one: one.accuracy)

    def values(self, number: OfResult) -> FloatArray:
        """Return (seeds,) a number of the results; NaN where there is none, as of the loss of a model that ran away."""
        return np.array([_or_nan(number(one)) for one in self.results])

    def number(self, seed: int, number: OfResult) -> float:
        """Return one seed's number of the results."""
        return float(self.values(number)[self.seeds.index(seed)])

    def mean(self, number: OfResult) -> float:
        """Return the mean over seeds of a number of the results."""
        return float(np.mean(self.values(number)))

    def greatest(self, number: OfResult) -> float:
        """Return the greatest over seeds of a number of the results."""
        return float(max(self.values(number)))

    def curve(self, number: OfRound) -> tuple[FloatArray, FloatArray]:
        """Return (rounds,) that were evaluated, counted from 1, and (seeds, rounds) a number after each.

        Only the rounds that all finished trials have: a trial may end early.
        """
        kept = [
            {
                line.round + 1: value
                for line in one.rounds
                if line.accuracy is not None and (value := number(line)) is not None
            }
            for one in self.done
        ]
        rounds = sorted(set.intersection(*(set(one) for one in kept))) if kept else []
        return np.array(rounds, dtype=float), np.array([[one[at] for at in rounds] for one in kept])

    def tracks(self, number: OfRound) -> list[Track]:
        """Return a number over rounds, for every trial that has it."""
        return _known(one.track(number) for one in self.trials)

    def settled_tracks(self, number: OfRound) -> list[Track]:
        """Return the tracks to average: those of finished trials, so that one just begun does not cut them short.

        As long as none is finished, those of all.
        """
        return _known(one.track(number) for one in self.done) or self.tracks(number)


@dataclass(frozen=True)
class Group:
    """All samplers at one place of a study: these are compared with one another.

    Attributes:
        variant: Its label; empty without variants.
        point: Its place on the grid, by key.
        series: One for each sampler, in the study's order.
    """

    variant: str
    point: Mapping[str, Any]
    series: tuple[Series, ...]

    @property
    def label(self) -> str:
        """What tells it from other groups."""
        return ", ".join(place_labels(self.variant, self.point))

    def of(self, sampler: str) -> Series | None:
        """Return one sampler's series."""
        return next((one for one in self.series if one.sampler == sampler), None)


@dataclass(frozen=True)
class Study:
    """A folder of `fedpcs run` or `fedpcs compare`, finished or not.

    Attributes:
        name: Of the run or the sweep.
        folder: Where it is kept.
        config: Of a run: as given, with all samplers and seeds; None of a sweep.
        cells: All trials that are wanted.
        trials: Those that have begun and can be read, in that order.
        failures: Why trials could not be run, by key.
        damaged: Why finished trials could not be read, by key.
        command: What completes it, or makes it again.
    """

    name: str
    folder: Path
    config: RunConfig | None
    cells: tuple[Cell, ...]
    trials: tuple[TrialData, ...]
    failures: Mapping[str, str]
    damaged: Mapping[str, str]
    command: str

    @property
    def done(self) -> tuple[TrialData, ...]:
        """The finished trials."""
        return tuple(one for one in self.trials if one.is_done)

    @property
    def groups(self) -> list[Group]:
        """All trials in order, finished or not."""
        return group(self.trials)

    @property
    def missing(self) -> list[Cell]:
        """What is not finished, or cannot be read."""
        readable = {one.cell.key for one in self.done}
        return [cell for cell in self.cells if cell.key not in readable]


def group(trials: Sequence[TrialData]) -> list[Group]:
    """Put trials together that differ by sampler and seed alone."""
    groups: dict[str, list[TrialData]] = {}
    for one in trials:
        groups.setdefault(str((one.cell.variant, sorted(one.cell.point.items()))), []).append(one)
    return [_group(together) for together in groups.values()]


def _group(trials: list[TrialData]) -> Group:
    samplers = dict.fromkeys(one.cell.sampler for one in trials)
    series = tuple(
        Series(name, tuple(sorted((one for one in trials if one.cell.sampler == name), key=lambda one: one.seed)))
        for name in samplers
    )
    return Group(trials[0].cell.variant, trials[0].cell.point, series)


def against(one: Series, other: Series, num_comparisons: int = 1, of: OfResult | None = None) -> PairedDifference:
    """Return accuracy of one minus that of another, over the seeds both have, with its 95 % interval.

    Args:
        one: A sampler's trials.
        other: Another's, at the same place.
        num_comparisons: So many intervals hold together with 95 % confidence, each being widened (Bonferroni).
        of: Another number of the results instead.

    Raises:
        InvalidInput: They have no seed in common.
    """
    number = of or (lambda result: result.accuracy)
    common = [seed for seed in one.seeds if seed in other.seeds]
    mine, theirs = ([series.number(seed, number) for seed in common] for series in (one, other))
    resolution = 1.0 / one.results[0].num_test if of is None else 0.0
    return paired_difference(mine, theirs, joint_confidence(num_comparisons), resolution=resolution)


def compared(found: Group) -> list[Comparison]:
    """Compare FedPCS, or whoever stands in for it, with every other sampler of a group."""
    return compare_each({series.sampler: series.results for series in found.series})


def has_common_seed(one: Series, other: Series) -> bool:
    """Say whether two series can be compared in pairs."""
    return not set(one.seeds).isdisjoint(other.seeds)


def best_of(found: Group) -> Series | None:
    """Return the sampler that is better than every other by paired intervals that hold together; None if none is."""
    if len(found.series) < 2:
        return None
    best = max(found.series, key=lambda series: float(series.accuracy.mean()))
    rivals = [other for other in found.series if other is not best]
    is_best = all(has_common_seed(best, other) and against(best, other, len(rivals)).is_above for other in rivals)
    return best if is_best else None


def summary(series: Series) -> tuple[float, float | None]:
    """Return mean and standard deviation of accuracy over seeds."""
    return mean_and_std(series.accuracy)


def is_alike(values: Sequence[Any]) -> bool:
    """Say whether all are equal."""
    return len(set_of(values)) <= 1


def at_common_rounds(tracks: Sequence[Track]) -> FloatArray:
    """Return (1 + tracks, rounds): the rounds all tracks have in the first row, each track's values below."""
    shared = tracks[0].rounds
    for track in tracks[1:]:
        shared = np.intersect1d(shared, track.rounds)
    return np.vstack([shared, *(track.values[np.isin(track.rounds, shared)] for track in tracks)])


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _known(tracks: Iterable[Track]) -> list[Track]:
    return [track for track in tracks if not track.is_empty]
