"""Where FedPCS's gain comes from, one step at a time: raised budgets, levelled budgets, the draw, the weights.

Each step changes one thing of the step before it, on the same seeds, so that a difference is that thing's doing.
Weights may undo what a draw does, so draw and weights are also changed one without the other. Beside these: FedPCS
under every aggregation rule, and how near each comes to the accuracy the paper prints.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fedpcs import _format
from fedpcs.exhibits import clip_bounds, trials
from fedpcs.exhibits.claims import CANNOT_SAY, Claim, Judged, on_level, on_sign
from fedpcs.exhibits.exhibit import Exhibit, Gathered, Request
from fedpcs.exhibits.paper_numbers import SPLITS, Printed, printed_accuracy
from fedpcs.exhibits.trials import CALIBRATED, Setting, Trained
from fedpcs.report.figures.bars import bars_figure
from fedpcs.report.page import Drawing, Table
from fedpcs.report.tables import difference_text, spending_table
from fedpcs.studies.comparison import HEADINGS, MEANINGS, MEASURES, compare
from fedpcs.studies.grid import Cell, make_cells, make_sweep_config
from fedpcs.studies.results import Series, against, has_common_seed, summary

if TYPE_CHECKING:
    from fedpcs.studies.paired import PairedDifference

# Clients drawn at random play FedPCS's game here, so that one game is behind all steps.
_SAME_GAME = {"game.selection": "budget-aware"}
_UNDO = {"sampling.rule": "hajek"}  # stands for the paper's weights, which undo the draw
# What is changed at each step: its label, the sampler, and keys of the run.
STEPS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("random, first budgets", "random", {"game.behaviour": "static", **_SAME_GAME, **_UNDO}),
    ("budgets raised", "random", {"game.behaviour": "raised", **_SAME_GAME, **_UNDO}),
    ("and levelled", "random", {"game.behaviour": "rational", **_SAME_GAME, **_UNDO}),
    ("drawn by budget", "fedpcs", {"game.behaviour": "rational", **_UNDO}),
    ("weighed by precision", "fedpcs", {"game.behaviour": "rational", "sampling.rule": "precision"}),
)
# The draw that FedPCS's is held against once weights know the noise: FedPCS's clients, drawn at random.
CONTROL = "drawn at random, weighed by precision"
# Draw and weights, one without the other: by draw, where the trials of Hájek's rule and of precision are.
CROSSED = {"at random": ("and levelled", CONTROL), "by budget": ("drawn by budget", "weighed by precision")}
# Rules of aggregation under which FedPCS is looked at: where its trials are.
RULES = {"hajek": "drawn by budget", "precision": "weighed by precision"} | {
    rule: f"rule {rule}" for rule in ("normalised", "paper", "horvitz-thompson")
}
_TOGETHER = "draw and weights"
# Every gain: its label, what it is the difference of, and what it is owed to. The last two are no steps.
GAINS = {
    "budgets raised": "everyone's first budget, scaled so that the mean is that of FedPCS's equilibrium",
    "and levelled": "the budgets of FedPCS's equilibrium themselves, still drawn at random",
    "drawn by budget": "the draw in proportion to budgets, weighed as before (Hájek)",
    "weighed by precision": "weights that know each client's noise",
    "the draw alone": "the draw in proportion to budgets, everyone weighed by precision",
    _TOGETHER: "draw and weights together, over FedPCS's clients drawn at random and weighed evenly",
}
_DIFFERENCES = {after: (after, before) for (before, _, _), (after, _, _) in itertools.pairwise(STEPS)} | {
    "the draw alone": ("weighed by precision", CONTROL),
    _TOGETHER: ("weighed by precision", "and levelled"),
}
_NOT_WIDENED = "Intervals are of 95 % each, here and in what was found above; they are not widened for their number."


def cells_of(setting: Setting, clip_norm: float) -> list[Cell]:
    """Return the cells of every step, and of FedPCS under every rule."""
    rules = [
        (label, "fedpcs", {"game.behaviour": "rational", "sampling.rule": rule})
        for rule, label in RULES.items()
        if label == f"rule {rule}"
    ]
    control = (CONTROL, "random", {"game.behaviour": "rational", "sampling.rule": "precision", **_SAME_GAME})
    sweep = {
        "name": "ablation",
        "base": setting.base,
        "seeds": list(setting.seeds),
        "set": {**trials.changes_of(setting, CALIBRATED), "privacy.clip_norm": clip_norm},
        "grid": {"data.partition": list(SPLITS)},
        "variants": [
            {"label": label, "samplers": [sampler], "set": changes}
            for label, sampler, changes in (*STEPS, control, *rules)
        ],
    }
    return trials.split_by_split(make_cells(make_sweep_config(sweep)))


def gather(request: Request) -> Gathered[Trained]:
    """Calibrate W where noise is felt, and run every step."""
    setting, found = clip_bounds.tune_and_calibrate(request, CALIBRATED)
    return trials.trained(
        request,
        request.run(cells_of(setting, found.taken)),
        trials.shrunk(setting, [CALIBRATED], ["random", "fedpcs"]),
        warnings=found.warnings(request.dataset),
        search=[found.table],
    )


@dataclass(frozen=True)
class Part:
    """The ablation on one split of a data set: what is done, by label."""

    dataset: str
    split: str
    found: Mapping[str, Series]

    @property
    def printed(self) -> Printed:
        """What the paper prints for FedPCS."""
        return printed_accuracy(self.dataset, 0.2, self.split, "fedpcs")

    @property
    def rules(self) -> dict[str, Series]:
        """FedPCS by aggregation rule, the best first."""
        found = {rule: self.found[label] for rule, label in RULES.items() if label in self.found}
        return dict(sorted(found.items(), key=lambda item: -summary(item[1])[0]))

    @property
    def gains(self) -> dict[str, PairedDifference]:
        """Every gain with its interval, by label, as far as its trials are done."""
        pairs = {
            label: (self.found[after], self.found[before])
            for label, (after, before) in _DIFFERENCES.items()
            if after in self.found and before in self.found
        }
        return {label: against(*pair) for label, pair in pairs.items() if has_common_seed(*pair)}

    @property
    def largest(self) -> str | None:
        """The step that gains most."""
        steps = {step[0]: gain for step in STEPS if (gain := self.gains.get(step[0])) is not None}
        return max(steps, key=lambda label: steps[label].mean, default=None)


def parts_of(results: Trained) -> list[Part]:
    """Return the ablation by split."""
    found: dict[str, dict[str, Series]] = {split: {} for split in SPLITS}
    for one in results.groups:
        found[one.point["data.partition"]][one.variant] = one.series[0]
    return [Part(results.dataset, split, series) for split, series in found.items() if series]


def _headline(results: Trained) -> str:
    steps = []
    for part in parts_of(results):
        if part.largest is not None:
            whole = part.gains.get(_TOGETHER)
            together = "" if whole is None else f", draw and weights together {difference_text(whole)}"
            gain = _format.points(part.gains[part.largest].mean)
            steps.append(f"{part.largest!r}, {gain}{together} ({part.split})")
    return f"The largest step, in points: {'; '.join(steps)}." if steps else "Too few steps are done yet."


def _gain_claim(label: str) -> Claim:
    def judge(part: Part) -> Judged | None:
        gain = part.gains.get(label)
        return None if gain is None else (on_sign(gain), f"{difference_text(gain)} points.")

    return Claim(lambda part: f"{part.split}: FedPCS gains by this: {GAINS[label]}.", judge, parts_of)


def _best_rule(part: Part) -> Judged | None:
    """Say which rule brings FedPCS furthest, and whether to what the paper prints for it."""
    if not part.rules:
        return None
    best, series = next(iter(part.rules.items()))
    verdict = on_level(series.accuracy, part.printed.mean / 100.0)
    found = (
        f"Of {len(part.rules)} rules of aggregation that were run {best} comes highest: "
        f"{_format.share_and_spread(*summary(series))}."
    )
    return verdict if len(part.rules) == len(RULES) or verdict == "agrees" else CANNOT_SAY, found


def _tables(results: Trained) -> Iterable[Table]:
    parts = parts_of(results)
    for part in parts:
        yield from _tables_of(part)
    rows = tuple(
        (part.split, after, before, *map(found.text, MEASURES), str(found.num_seeds))
        for part in parts
        for after, before in _DIFFERENCES.values()
        if after in part.found and before in part.found
        for found in [compare(after, part.found[after].results, before, part.found[before].results)]
    )
    headings = ("split", "step", "against", *HEADINGS.values(), "seeds")
    meanings = {HEADINGS[measure]: text for measure, text in MEANINGS.items()}
    if rows:
        yield Table("The three differences of each step", headings, rows, meanings, note=_NOT_WIDENED)
    yield spending_table(results.groups)
    yield from results.search


def _tables_of(part: Part) -> Iterable[Table]:
    """Return steps, draw and weights where all four are done, and rules."""

    def accuracy(label: str) -> str:
        return _format.share_and_spread(*summary(part.found[label]))

    gained = {label: difference_text(gain) for label, gain in part.gains.items()}
    yield Table(
        f"Step by step: {part.split}",
        ("step", "accuracy", "gain over the step before, points"),
        tuple((label, accuracy(label), gained.get(label, "–")) for label, _, _ in STEPS if label in part.found),
        {label: text for label, text in GAINS.items() if label in part.found} if part.split == SPLITS[0] else {},
        note=_NOT_WIDENED,
    )
    if all(label in part.found for labels in CROSSED.values() for label in labels):
        yield Table(
            f"Draw and weights, one without the other: {part.split}",
            ("drawn", "weighed by Hájek's rule", "weighed by precision"),
            tuple((draw, *map(accuracy, labels)) for draw, labels in CROSSED.items()),
            note="FedPCS's clients in all four. Drawn at random, Hájek's weights are those of federated averaging.",
        )
    if part.rules:
        rows = tuple(
            (
                rule,
                _format.share_and_spread(*summary(series)),
                _format.points(summary(series)[0] - part.printed.mean / 100.0),
            )
            for rule, series in part.rules.items()
        )
        headings = ("rule", "accuracy", "minus the paper's FedPCS, points")
        yield Table(f"FedPCS by aggregation rule: {part.split}", headings, rows)


def _drawings(results: Trained) -> Iterable[Drawing]:
    last = "the draw where all are weighed by precision; draw and weights over random draws, FedPCS's clients in both."
    for part in parts_of(results):
        if part.gains:
            note = f"{part.dataset}, {part.split}; accuracy minus that of the step before, same seeds. Last: {last}"
            topic = f"gain of each step ({part.split})"
            yield Drawing(topic, partial(bars_figure, part.gains, "What each step gains in accuracy", note))


EXHIBIT = Exhibit(
    title="Where FedPCS's gain comes from, on {dataset}",
    gather=gather,
    headline=_headline,
    claims=(
        *map(_gain_claim, GAINS),
        Claim("{0.split}: FedPCS comes to {0.printed.mean} %.".format, _best_rule, parts_of),
    ),
    claims_heading="What each step should gain, and what it did",
    tables=_tables,
    drawings=_drawings,
)
