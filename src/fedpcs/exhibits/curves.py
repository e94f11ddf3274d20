"""The paper's curves: accuracy and loss over rounds, for every sampler and ratio, of the accuracy table's trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.exhibits.accuracy_tables import gather_tuned
from fedpcs.exhibits.claims import CANNOT_SAY, Claim, Judged, on_count
from fedpcs.exhibits.exhibit import Exhibit
from fedpcs.exhibits.trials import Trained
from fedpcs.report.study_page import REFERENCE
from fedpcs.studies.paired import PairedDifference, joint_confidence, paired_difference
from fedpcs.studies.results import Group, Series

_RATIO = "sampling.sampling_ratio"


def comparable(results: Trained) -> list[Group]:
    """Return the groups in which FedPCS meets others."""
    return [one for one in results.groups if one.of(REFERENCE) is not None and len(one.series) > 1]


def throughout(quantity: str) -> Callable[[Group], Judged]:
    """Judge "better than the baselines throughout" in one group, round by round, by paired intervals.

    One round can speak for the claim or against it, so the intervals of all rounds and baselines hold together.
    """

    def judge(found: Group) -> Judged:
        ours, *others = _ours_first(found)
        pairs = [_pairs(ours, one, quantity) for one in others]
        rounds = set.intersection(*(set(one) for one in pairs))
        confidence = joint_confidence(len(others) * max(len(rounds), 1))
        resolution = 1.0 / ours.results[0].num_test if quantity == "accuracy" else 0.0
        leads = [{now: lead(*one[now], confidence, resolution) for now in rounds} for one in pairs]
        ahead = sum(all(one[now].is_above for one in leads) for now in rounds)
        behind = sum(any(one[now].is_below for one in leads) for now in rounds)
        text = (
            f"{found.label}: clearly ahead of every baseline in {ahead} of {len(rounds)} rounds that were scored, "
            f"clearly behind one in {behind}. Intervals of all rounds and baselines hold together."
        )
        return on_count(ahead, behind, len(rounds)), text

    return judge


def _pairs(ours: Series, other: Series, quantity: str) -> dict[float, tuple[FloatArray, FloatArray]]:
    """Return what both came to after each round, more being better, over the seeds both have; nothing without any."""
    sign = 1.0 if quantity == "accuracy" else -1.0
    seeds = [seed for seed in ours.seeds if seed in other.seeds]
    if not seeds:
        return {}
    mine, theirs = (_by_round(series, seeds, quantity) for series in (ours, other))
    return {now: (sign * mine[now], sign * theirs[now]) for now in mine if now in theirs}


def _by_round(series: Series, seeds: Sequence[int], quantity: str) -> dict[float, FloatArray]:
    rounds, values = series.curve(attrgetter(quantity))
    rows = [series.seeds.index(seed) for seed in seeds]
    return {now: values[rows, k] for k, now in enumerate(rounds.tolist())}


def lead(mine: FloatArray, theirs: FloatArray, confidence: float, resolution: float) -> PairedDifference:
    """Return a paired difference; a model that ran away, whose loss is no number, is behind one that did not.

    That is sure only where one side's models all ran away, with more than one seed, and none of the other's. Where
    only some did, the lead has no size that could be averaged, and nothing can be told.
    """
    mine_hold, theirs_hold = np.isfinite(mine), np.isfinite(theirs)
    if mine_hold.all() and theirs_hold.all():
        return paired_difference(mine, theirs, confidence, resolution=resolution)
    sides = mine_hold.astype(float) - theirs_hold.astype(float)
    is_sure = sides.size > 1 and abs(sides.sum()) == sides.size
    low, high = (sides[0], sides[0]) if is_sure else (-np.inf, np.inf)
    return PairedDifference(float(sides.mean()), float(low), float(high), sides.size)


def growth(groups: Sequence[Group]) -> Judged:
    """Judge "the lead grows with the ratio" by the lead over the best baseline, at the least and greatest ratio.

    One setting can speak for the claim or against it, so the intervals of all settings hold together.
    """
    settings: dict[str, dict[float, Group]] = {}
    for one in groups:
        place = {key: value for key, value in one.point.items() if key != _RATIO}
        settings.setdefault(f"{one.variant} {place}", {})[float(one.point[_RATIO])] = one
    ends = [(by_ratio[min(by_ratio)], by_ratio[max(by_ratio)]) for by_ratio in settings.values() if len(by_ratio) > 1]
    confidence = joint_confidence(max(len(ends), 1))
    known = [grown for low, high in ends if (grown := _growth(low, high, confidence)) is not None]
    if not known:
        return CANNOT_SAY, "One sampling ratio was run."
    more, less = sum(one.is_above for one in known), sum(one.is_below for one in known)
    mean = sum(one.mean for one in known) / len(known)
    text = (
        f"From the lowest ratio to the highest the lead over the best baseline clearly grows in {more} of {len(known)} "
        f"settings, clearly falls in {less}, by {_format.points(mean)} points on average."
    )
    return on_count(more, less, len(known)), text


def _growth(low: Group, high: Group, confidence: float) -> PairedDifference | None:
    """Return by how much the lead over the best baseline is larger in one group than in another, seed by seed."""
    first, last = _lead_by_seed(low), _lead_by_seed(high)
    seeds = [seed for seed in first if seed in last]
    grown = [last[seed] for seed in seeds], [first[seed] for seed in seeds]
    return paired_difference(*grown, confidence) if seeds else None


def _lead_by_seed(found: Group) -> dict[int, float]:
    """Return FedPCS's accuracy at the end, less that of the baseline whose mean is highest."""
    ours, *others = _ours_first(found)
    best = max(others, key=lambda series: float(series.accuracy.mean()))
    theirs = dict(zip(best.seeds, best.accuracy.tolist(), strict=True))
    mine = zip(ours.seeds, ours.accuracy.tolist(), strict=True)
    return {seed: accuracy - theirs[seed] for seed, accuracy in mine if seed in theirs}


def _ours_first(found: Group) -> list[Series]:
    return sorted(found.series, key=lambda series: series.sampler != REFERENCE)


EXHIBIT = Exhibit(
    title="Accuracy and loss over rounds on {dataset}",
    gather=gather_tuned,
    claims=(
        Claim("FedPCS's accuracy surpasses the baselines' throughout training.", throughout("accuracy"), comparable),
        Claim("FedPCS's loss falls faster than the baselines' and stays lower.", throughout("loss"), comparable),
        Claim(
            "The more clients are sampled, the larger is FedPCS's lead in accuracy.",
            lambda results: growth(comparable(results)),
        ),
    ),
)
