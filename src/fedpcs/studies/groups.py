"""Finished cells in order: by place on the grid, then by sampler, then by seed; and what their seeds say together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.studies.cell_store import Done
from fedpcs.studies.comparison import Comparison, compare_each
from fedpcs.studies.grid import set_of
from fedpcs.studies.paired import PairedDifference, joint_confidence, mean_and_std, paired_difference


@dataclass(frozen=True)
class Series:
    """One sampler at one place, over seeds.

    Attributes:
        sampler: Who drew.
        done: Its cells, by seed.
    """

    sampler: str
    done: tuple[Done, ...]

    @property
    def results(self) -> list[dict[str, Any]]:
        """What its cells came to."""
        return [one.result for one in self.done]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of its cells."""
        return tuple(one.cell.seed for one in self.done)

    @property
    def accuracy(self) -> FloatArray:
        """(seeds,) at the end."""
        return np.array([one.result["accuracy"] for one in self.done])

    def number(self, seed: int, *path: str) -> float:
        """Return one seed's number of the results, such as ("spent", "epsilon", "median")."""
        return _at(self.done[self.seeds.index(seed)].result, path)

    def mean(self, *path: str) -> float:
        """Return the mean over seeds of a number of the results."""
        return float(np.mean([_at(one.result, path) for one in self.done]))

    def greatest(self, *path: str) -> float:
        """Return the greatest over seeds of a number of the results."""
        return float(max(_at(one.result, path) for one in self.done))

    def curve(self, *path: str) -> tuple[FloatArray, FloatArray]:
        """Return (rounds,) that were evaluated, counted from 1, and (seeds, rounds) some quantity after each.

        Only the rounds that all seeds have: a trial may end early. The quantity is named as for `number`.
        """
        lines = [
            [(line["round"] + 1, None if line["accuracy"] is None else _at(line, path)) for line in one.rounds]
            for one in self.done
        ]
        kept = [{number: value for number, value in one if value is not None} for one in lines]
        rounds = sorted(set.intersection(*(set(one) for one in kept))) if kept else []
        return np.array(rounds, dtype=float), np.array([[one[number] for number in rounds] for one in kept])


@dataclass(frozen=True)
class Group:
    """All samplers at one place of a sweep: these are compared with one another.

    Attributes:
        variant: Its label; empty without variants.
        point: Its place on the grid, by key.
        series: One for each sampler, in the sweep's order.
    """

    variant: str
    point: Mapping[str, Any]
    series: tuple[Series, ...]

    @property
    def words(self) -> str:
        """What tells it from other groups."""
        place = [f"{_SHORT.get(key, key.rpartition('.')[2])} {_plain(value)}" for key, value in self.point.items()]
        return ", ".join([*([self.variant] if self.variant else []), *place])

    def of(self, sampler: str) -> Series | None:
        """Return one sampler's series."""
        return next((one for one in self.series if one.sampler == sampler), None)


_SHORT = {
    "sampling.sampling_ratio": "τ",
    "data.partition": "split",
    "sampling.rule": "rule",
    "game.behaviour": "clients",
}


def group(done: Sequence[Done]) -> list[Group]:
    """Put cells together that differ by sampler and seed alone."""
    groups: dict[str, list[Done]] = {}
    for one in done:
        groups.setdefault(str((one.cell.variant, sorted(one.cell.point.items()))), []).append(one)
    return [_group(cells) for cells in groups.values()]


def against(
    one: Series, other: Series, num_comparisons: int = 1, of: Sequence[str] = ("accuracy",)
) -> PairedDifference:
    """Return accuracy of one minus that of another, over the seeds both have, with its 95 % interval.

    Args:
        one: A sampler's cells.
        other: Another's, at the same place.
        num_comparisons: So many intervals hold together with 95 % confidence, each being widened (Bonferroni).
        of: Another number of the results instead, named as for `Series.number`.

    Raises:
        InvalidInput: They have no seed in common.
    """
    common = [seed for seed in one.seeds if seed in other.seeds]
    mine, theirs = ([series.number(seed, *of) for seed in common] for series in (one, other))
    resolution = 1.0 / one.done[0].result["num_test"] if tuple(of) == ("accuracy",) else 0.0
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
    return (
        best
        if all(set(best.seeds) & set(other.seeds) and against(best, other, len(rivals)).is_above for other in rivals)
        else None
    )


def summary(series: Series) -> tuple[float, float | None]:
    """Return mean and standard deviation of accuracy over seeds."""
    return mean_and_std(series.accuracy)


def _group(cells: list[Done]) -> Group:
    samplers = list(dict.fromkeys(one.cell.sampler for one in cells))
    first = cells[0].cell
    series = tuple(
        Series(name, tuple(sorted((one for one in cells if one.cell.sampler == name), key=lambda one: one.cell.seed)))
        for name in samplers
    )
    return Group(first.variant, first.point, series)


def is_alike(values: Sequence[Any]) -> bool:
    """Say whether all are equal."""
    return len(set_of(values)) <= 1


def _at(result: Mapping[str, Any], path: Sequence[str]) -> float:
    value: Any = result
    for name in path:
        value = value[name]
    return math.nan if value is None else float(value)  # such as the loss of a model that ran away


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
