"""Where FedPCS's gain comes from, one step at a time: raised budgets, levelled budgets, the draw, the weights.

Each step changes one thing of the step before it, on the same seeds, so that a difference is that thing's doing.
Weights may undo what a draw does, so draw and weights are also changed one without the other. Beside these: FedPCS
under every aggregation rule, and how near each comes to the accuracy the paper prints.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs.exhibits import verdicts
from fedpcs.exhibits.accuracy_cells import (
    CALIBRATED,
    Run,
    Setting,
    changes_of,
    setting_of,
    shrunk,
    split_by_split,
)
from fedpcs.exhibits.calibrated_table import with_calibration
from fedpcs.exhibits.clip_bounds import tune_and_calibrate
from fedpcs.exhibits.paper_numbers import SPLITS, printed_accuracy
from fedpcs.exhibits.profiles import Profile
from fedpcs.report.figures.bars import bars_figure
from fedpcs.report.page import Drawing, Finding, Page, Table
from fedpcs.report.study_page import comparison_page
from fedpcs.report.tables import difference_text, spending_table
from fedpcs.studies.cell_store import Done
from fedpcs.studies.comparison import HEADINGS, MEANINGS, MEASURES, compare
from fedpcs.studies.grid import Cell, make_cells, make_sweep_config
from fedpcs.studies.groups import Series, against, group, has_common_seed, summary
from fedpcs.studies.points import Bar

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
# Draw and weights, one without the other: by draw, where the cells of Hájek's rule and of precision are.
CROSSED = {"at random": ("and levelled", CONTROL), "by budget": ("drawn by budget", "weighed by precision")}
# Rules of aggregation under which FedPCS is looked at: where its cells are.
RULES = {"hajek": "drawn by budget", "precision": "weighed by precision"} | {
    rule: f"rule {rule}" for rule in ("normalised", "paper", "horvitz-thompson")
}
_RATIO = 0.2
_WORDS = {
    "budgets raised": "everyone's first budget, scaled so that the mean is that of FedPCS's equilibrium",
    "and levelled": "the budgets of FedPCS's equilibrium themselves, still drawn at random",
    "drawn by budget": "the draw in proportion to budgets, weighed as before (Hájek)",
    "weighed by precision": "weights that know each client's noise",
}
_TOGETHER = "draw and weights"
# Gains that the steps do not show: a label, and which cells they are the difference of.
_ALONE = {
    "the draw alone": ("weighed by precision", CONTROL),
    _TOGETHER: ("weighed by precision", "and levelled"),
}
_ALONE_WORDS = {
    "the draw alone": "the draw in proportion to budgets, everyone weighed by precision",
    _TOGETHER: "draw and weights together, over FedPCS's clients drawn at random and weighed evenly",
}
_NOT_WIDENED = "Intervals are of 95 % each, here and in what was found above; they are not widened for their number."
_LAST = "the draw where all are weighed by precision; draw and weights over random draws, FedPCS's clients in both."


def cells_of(setting: Setting, clip_norm: float) -> list[Cell]:
    """Return the cells of every step, and of FedPCS under every rule."""
    rules = [
        (label, "fedpcs", {"game.behaviour": "rational", "sampling.rule": rule})
        for rule, label in RULES.items()
        if label == f"rule {rule}"
    ]
    control = (CONTROL, "random", {"game.behaviour": "rational", "sampling.rule": "precision", **_SAME_GAME})
    values = {
        "name": "ablation",
        "base": setting.base,
        "seeds": list(setting.seeds),
        "set": {**changes_of(setting, CALIBRATED), "privacy.clip_norm": clip_norm},
        "grid": {"data.partition": list(SPLITS)},
        "variants": [
            {"label": label, "samplers": [sampler], "set": changes}
            for label, sampler, changes in (*STEPS, control, *rules)
        ],
    }
    return split_by_split(make_cells(make_sweep_config(values)))


def make_page(dataset: str, profile: Profile, run: Run) -> Page:
    """Calibrate W where noise is felt, run every step, and return the page."""
    setting = setting_of(dataset, profile)
    found = tune_and_calibrate(dataset, setting, CALIBRATED, run)
    return with_calibration(page_of(dataset, profile, run(cells_of(setting, found.taken))), dataset, found)


def page_of(dataset: str, profile: Profile, done: Sequence[Done]) -> Page:
    """Return the page of finished cells."""
    groups = group(done)
    parts = []
    for split in SPLITS:
        found = {one.variant: one.series[0] for one in groups if one.point["data.partition"] == split}
        if found:
            parts.append(_Part(dataset, split, found))
    told = [part.headline for part in parts if part.largest is not None]
    return replace(
        comparison_page(
            "ablation",
            done,
            command=f"fedpcs reproduce ablation --dataset {dataset} --profile {profile}",
        ),
        name=f"ablation-{dataset}",
        title=f"Where FedPCS's gain comes from, on {dataset}",
        headline=f"The largest step, in points: {'; '.join(told)}." if told else "Too few steps are done yet.",
        shrunk=shrunk(setting_of(dataset, profile), [CALIBRATED], ["random", "fedpcs"]),
        findings=tuple(finding for part in parts for finding in part.findings),
        claims_heading="What each step should gain, and what it did",
        tables=(
            *(table for part in parts for table in part.tables),
            *_differences(parts),
            *((spending_table(groups),) if groups else ()),
        ),
        drawings=tuple(
            Drawing(f"gain of each step ({part.split})", part.figure) for part in parts if part.largest is not None
        ),
    )


@dataclass(frozen=True)
class _Part:
    """The ablation on one split.

    Attributes:
        dataset: Which was split.
        split: How.
        found: What is done, by label.
    """

    dataset: str
    split: str
    found: Mapping[str, Series]

    @property
    def bars(self) -> list[Bar]:
        """What each step adds to the one before."""
        return gains(self.found)

    @property
    def largest(self) -> Bar | None:
        """The step that gains most."""
        return max(self.bars, key=lambda bar: bar.mean, default=None)

    @property
    def headline(self) -> str:
        """The largest step, and what it comes to together with those it may only repair."""
        largest = "" if self.largest is None else f"{self.largest.label!r}, {_format.points(self.largest.mean)}"
        whole = [f", draw and weights together {difference_text(bar)}" for bar in self.alone if bar.label == _TOGETHER]
        return f"{largest}{''.join(whole)} ({self.split})"

    @property
    def rules(self) -> dict[str, Series]:
        """FedPCS by aggregation rule."""
        return {rule: self.found[label] for rule, label in RULES.items() if label in self.found}

    @property
    def alone(self) -> list[Bar]:
        """What the draw gains where weights are no worse for it, and what FedPCS gains in all."""
        return [
            Bar(words, gained.mean, gained.low, gained.high)
            for words, (with_it, without) in _ALONE.items()
            if with_it in self.found
            and without in self.found
            and has_common_seed(self.found[with_it], self.found[without])
            for gained in [against(self.found[with_it], self.found[without])]
        ]

    @property
    def findings(self) -> list[Finding]:
        """Each gain, and how far the best rule comes."""
        judged = [(_WORDS[bar.label], bar) for bar in self.bars]
        judged += [(_ALONE_WORDS[bar.label], bar) for bar in self.alone]
        return [
            Finding(
                f"{self.split}: FedPCS gains by this: {words}.",
                f"{difference_text(bar)} points.",
                verdicts.on_sign(bar),
            )
            for words, bar in judged
        ] + _best_rule(self.dataset, self.split, self.rules)

    @property
    def tables(self) -> list[Table]:
        """Steps; draw and weights; rules."""
        gained = {bar.label: difference_text(bar) for bar in self.bars}
        labels = [label for label, _, _ in STEPS if label in self.found]
        steps = Table(
            f"Step by step: {self.split}",
            ("step", "accuracy", "gain over the step before, points"),
            tuple(
                (label, _format.share_and_spread(*summary(self.found[label])), gained.get(label, "–"))
                for label in labels
            ),
            _WORDS if self.split == SPLITS[0] else {},
            note=_NOT_WIDENED,
        )
        return [
            steps,
            *_crossed_table(self.split, self.found),
            *_rules_table(self.dataset, self.split, self.rules),
        ]

    def figure(self) -> Figure:
        """Draw what every step gains, and below it draw and weights without what they undo of one another."""
        bars = self.bars
        most = max(bars, key=lambda bar: bar.mean)
        labels = [label for label, _, _ in STEPS]
        lost = [bar for bar in bars if bar.label == labels[labels.index(most.label) - 1] and bar.high < 0.0]
        undone = f", after {lost[0].label!r} lost {-100 * lost[0].mean:.1f}" if lost else ""
        title = (
            f"{most.label[:1].upper()}{most.label[1:]}: the step that gains most, {_format.points(most.mean)} points"
        )
        note = f"{self.dataset}, {self.split}; accuracy minus that of the step before, same seeds. Last: {_LAST}"
        return bars_figure([*bars, *self.alone], f"{title}{undone}", note)


def _differences(parts: Sequence[_Part]) -> list[Table]:
    """Return the three differences of every step to the one before, and of what steps do not show; none without any."""
    steps = [(after, before) for (before, _, _), (after, _, _) in itertools.pairwise(STEPS)]
    rows = tuple(
        (part.split, after, before, *map(found.words, MEASURES), str(found.num_seeds))
        for part in parts
        for after, before in (*steps, *_ALONE.values())
        if after in part.found and before in part.found
        for found in [compare(after, part.found[after].results, before, part.found[before].results)]
    )
    headings = ("split", "step", "against", *HEADINGS.values(), "seeds")
    meanings = {HEADINGS[measure]: words for measure, words in MEANINGS.items()}
    return [Table("The three differences of each step", headings, rows, meanings, note=_NOT_WIDENED)] if rows else []


def gains(series: Mapping[str, Series]) -> list[Bar]:
    """Return what each step adds to the one before, with its interval; steps that are not done are left out."""
    found = []
    for before, after in itertools.pairwise(label for label, _, _ in STEPS):
        if before not in series or after not in series or not has_common_seed(series[before], series[after]):
            continue
        gained = against(series[after], series[before])
        found.append(Bar(after, gained.mean, gained.low, gained.high))
    return found


def _crossed_table(split: str, found: Mapping[str, Series]) -> list[Table]:
    """Return draw by weights, where all four are done."""
    if not all(label in found for labels in CROSSED.values() for label in labels):
        return []
    rows = tuple(
        (draw, *(_format.share_and_spread(*summary(found[label])) for label in labels))
        for draw, labels in CROSSED.items()
    )
    return [
        Table(
            f"Draw and weights, one without the other: {split}",
            ("drawn", "weighed by Hájek's rule", "weighed by precision"),
            rows,
            note="FedPCS's clients in all four. Drawn at random, Hájek's weights are those of federated averaging.",
        )
    ]


def _best_rule(dataset: str, split: str, rules: Mapping[str, Series]) -> list[Finding]:
    """Say which rule brings FedPCS furthest, and whether to what the paper prints for it."""
    printed = printed_accuracy(dataset, _RATIO, split, "fedpcs")
    if not rules or printed is None:
        return []
    best = max(rules, key=lambda rule: summary(rules[rule])[0])
    verdict = verdicts.on_level(rules[best].accuracy, printed.mean / 100.0)
    return [
        Finding(
            f"{split}: FedPCS comes to {printed.mean} %.",
            f"Of {len(rules)} rules of aggregation that were run {best} comes highest: "
            f"{_format.share_and_spread(*summary(rules[best]))}.",
            verdict if len(rules) == len(RULES) or verdict == "agrees" else "cannot say",
        )
    ]


def _rules_table(dataset: str, split: str, rules: Mapping[str, Series]) -> list[Table]:
    """Return FedPCS by aggregation rule, the best first."""
    printed = printed_accuracy(dataset, _RATIO, split, "fedpcs")
    ranked = sorted(rules, key=lambda rule: -summary(rules[rule])[0])
    rows = tuple(
        (
            rule,
            _format.share_and_spread(*summary(rules[rule])),
            "–" if printed is None else _format.points(summary(rules[rule])[0] - printed.mean / 100.0),
        )
        for rule in ranked
    )
    headings = ("rule", "accuracy", "minus the paper's FedPCS, points")
    return [Table(f"FedPCS by aggregation rule: {split}", headings, rows)] if rows else []
