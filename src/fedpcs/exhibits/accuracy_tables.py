"""Table II of the paper in its variants, and its non-IID figure: every sampler's accuracy beside the paper's numbers.

`accuracy-table` has W tuned for each sampler; `calibrated-table` the one W at which random sampling comes to what the
paper prints for it; `best-rules` that W and, for each sampler, the rule of aggregation that does best under it: weights
that undo the draw give the noisiest clients the most say (docs/fidelity.md, 11). In `unmoved-clients` baselines'
clients are selfish, as the paper's section on the price of anarchy assumes, or static. `non-iid` shows what label skew
costs each sampler in the tuned table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from fedpcs import _format
from fedpcs.exhibits import clip_bounds, trials
from fedpcs.exhibits.claims import Claim, Judged, on_lead, on_level
from fedpcs.exhibits.exhibit import Exhibit, Gathered, Request, Run
from fedpcs.exhibits.paper_numbers import SAMPLERS, Printed, printed_accuracy
from fedpcs.exhibits.trials import (
    CALIBRATED,
    REFERENCE,
    RULED,
    SELFISH,
    STATIC,
    TUNED,
    UNMOVED,
    Setting,
    Trained,
)
from fedpcs.report.columns import COST, NOISE, Column, accuracy_text
from fedpcs.report.figures.bars import bars_figure
from fedpcs.report.page import Drawing, Table
from fedpcs.report.tables import difference_tables, difference_text, sampler_table, spending_table
from fedpcs.studies.grid import Cell, hajek_or_own
from fedpcs.studies.results import Group, Series, against, compared, has_common_seed, summary

if TYPE_CHECKING:
    from fedpcs.studies.paired import PairedDifference

_ACCURACY = "Mean ± standard deviation over seeds. Bold only where joint 95 % intervals put it above every other."
_CALIBRATION = (
    "W is the same for all. It was sought on random sampling alone, IID, by test records and the mean of the table's "
    "seeds, for the accuracy the paper prints for it; or, where so short a training stays below that, for the same "
    "share of its tuned accuracy as random has of FedPCS in the paper. The nearest found is taken. So random's own row "
    "is chosen: that its seeds stay before the cliff is how W was found, and other samplers had no such choice."
)
_NOTES = {
    TUNED: "W of each sampler is tuned on validation records, as the last table shows. All clients are paid, and "
    "rational. The exhibit calibrated-table has another W, calibrated on random sampling.",
    CALIBRATED: f"{_CALIBRATION} All clients are paid, and rational.",
    RULED: f"{_CALIBRATION} Each sampler has the aggregation rule that did best under this noise on validation "
    "records, three seeds. All clients are paid, and rational.",
    SELFISH: f"{_CALIBRATION} FedPCS's clients are paid and rational; all others give the lowest budget.",
    STATIC: "W as in the table of selfish clients. FedPCS's clients are paid and rational; all others keep their first "
    "budget.",
}
# Rules that are tried: the first is the one that undoes a sampler's draw, and is taken where others do no better.
UNDOES = "undoes the draw"
TRIED = (UNDOES, "normalised", "precision")


def gather_tuned(request: Request) -> Gathered[Trained]:
    """Tune every sampler's W and run the table."""
    setting = trials.setting_of(request.dataset, request.profile)
    tuned = clip_bounds.tune_bounds(setting, request.run, SAMPLERS)
    done = request.run(trials.table_cells(setting, {(TUNED, name): one.taken for name, one in tuned.items()}))
    return trials.trained(request, done, trials.shrunk(setting, [TUNED]), search=[clip_bounds.tuned_table(tuned)])


def gather_calibrated(request: Request, variants: Sequence[str] = (CALIBRATED,)) -> Gathered[Trained]:
    """Calibrate W on random sampling and run the tables of some variants with it."""
    first = SELFISH if SELFISH in variants else CALIBRATED
    setting, found = clip_bounds.tune_and_calibrate(request, first)
    search, rules = [found.table], None
    if RULED in variants:
        tried = tune_rules(setting, found.taken, request.run)
        rules = {name: max(TRIED, key=lambda rule: fmean(each[rule])) for name, each in tried.items()}
        rules = {name: hajek_or_own(name) if rule == UNDOES else rule for name, rule in rules.items()}
        search = [_rules_table(tried, rules), found.table]
    few = {STATIC: trials.STATIC_SAMPLERS} if request.profile == "quick" else {}
    bounds = {(variant, name): found.taken for variant in variants for name in few.get(variant, SAMPLERS)}
    return trials.trained(
        request,
        request.run(trials.table_cells(setting, bounds, rules)),
        trials.shrunk(setting, variants),
        warnings=found.warnings(request.dataset),
        search=search,
    )


def tune_rules(setting: Setting, bound: float, run: Run) -> dict[str, dict[str, list[float]]]:
    """Return what each rule came to for each sampler on validation records of an IID split; no test record is read.

    Clients train on fewer records while some are held out, and noise is W over their number: W is lowered by as much,
    so that rules are tried under the noise of the table.
    """
    bounds = [bound * (1.0 - clip_bounds.VALIDATION_SHARE)]

    def cells(name: str, rule: str) -> list[Cell]:
        return clip_bounds.validation_cells(setting, name, bounds, {} if rule == UNDOES else {"sampling.rule": rule})

    places = [(name, rule) for name in SAMPLERS for rule in TRIED]
    done = run([cell for place in places for cell in cells(*place)])
    what = "rules are tuned"
    return {
        name: {rule: clip_bounds.accuracies_of(cells(name, rule), done, what) for rule in TRIED} for name in SAMPLERS
    }


def _rules_table(tried: dict[str, dict[str, list[float]]], rules: dict[str, str]) -> Table:
    def accuracies(name: str) -> list[str]:
        return [clip_bounds.accuracy_text(tried[name][rule]) for rule in TRIED]

    return Table(
        "What was tried, on validation records",
        ("sampler", "rule that undoes its draw", *TRIED, "taken"),
        tuple((name, hajek_or_own(name), *accuracies(name), rules[name]) for name in tried),
        note=f"{len(clip_bounds.TUNING_SEEDS)} trainings each, IID, seeds that no table has, W lowered with clients' "
        "records so that noise is the table's; no test record was read.",
    )


@dataclass(frozen=True)
class Place:
    """All samplers at one ratio and split of a data set, beside the paper's."""

    dataset: str
    group: Group

    @property
    def at(self) -> tuple[float, str]:
        """Ratio and split."""
        return float(self.group.point["sampling.sampling_ratio"]), str(self.group.point["data.partition"])

    @property
    def label(self) -> str:
        """Split and ratio."""
        return f"{self.at[1]}, τ = {self.at[0]:g}"

    def printed(self, sampler: str = REFERENCE) -> Printed:
        """Return what the paper prints for a sampler."""
        return printed_accuracy(self.dataset, *self.at, sampler)

    @property
    def claimed_lead(self) -> float:
        """By how many points the paper's FedPCS is above the paper's best baseline."""
        return self.printed().mean - max(self.printed(name).mean for name in SAMPLERS if name != REFERENCE)

    @property
    def rivals(self) -> list[Series]:
        """The baselines that FedPCS can be compared with, the best first; none without the best of all."""
        ours, others = self.group.of(REFERENCE), [one for one in self.group.series if one.sampler != REFERENCE]
        others.sort(key=lambda one: float(one.accuracy.mean()), reverse=True)
        if ours is None or not others or not has_common_seed(ours, others[0]):
            return []
        return [one for one in others if has_common_seed(ours, one)]


def _all_places(results: Trained) -> list[Place]:
    return [Place(results.dataset, one) for one in results.groups]


def _skewed_places(results: Trained) -> list[Place]:
    return [one for one in _all_places(results) if one.at[1] == "dirichlet"]


def _level(place: Place) -> Judged | None:
    ours = place.group.of(REFERENCE)
    if ours is None or not place.rivals:
        return None
    found = f"{place.group.variant}: {_format.share_and_spread(*summary(ours))}."
    return on_level(ours.accuracy, place.printed().mean / 100.0), found


def _lead(place: Place) -> Judged | None:
    ours, rivals = place.group.of(REFERENCE), place.rivals
    if ours is None or not rivals:
        return None
    leads = [against(ours, one, len(rivals)) for one in rivals]
    found = (
        f"{place.group.variant}: {difference_text(leads[0])} points from {rivals[0].sampler}, the best baseline "
        f"({_format.share(float(rivals[0].accuracy.mean()))}); surely ahead of {sum(one.is_above for one in leads)} of "
        f"{len(leads)} baselines. Intervals of all baselines hold together with 95 % confidence."
    )
    return on_lead(leads, leads[0], place.claimed_lead / 100.0), found


def _claims(places: Callable[[Trained], list[Place]]) -> tuple[Claim, ...]:
    lead = "{0.label}: FedPCS is {0.claimed_lead:.1f} points above the best baseline."
    level = Claim(lambda place: f"{place.label}: FedPCS comes to {place.printed().mean} %.", _level, places)
    return level, Claim(lead.format, _lead, places)


def _tables(results: Trained) -> Iterable[Table]:
    yield from difference_tables(results.groups)
    yield from map(_table, _all_places(results))
    yield spending_table(results.groups)
    yield from results.search


def _table(place: Place) -> Table:
    ours = place.group.of(REFERENCE)
    beside = {one.other: one for one in compared(place.group)}

    def printed(series: Series) -> str:
        mean, std = place.printed(series.sampler)
        return f"{mean:.2f} ± {std:.2f} %".replace(" ", "\N{NO-BREAK SPACE}")

    def lead(series: Series) -> str:
        return "–" if ours is None or series is ours else beside[series.sampler].text("accuracy")

    def printed_lead(series: Series) -> str:
        return (
            "–"
            if ours is None or series is ours
            else f"{place.printed().mean - place.printed(series.sampler).mean:+.1f}"
        )

    columns = (
        Column("accuracy", _ACCURACY, lambda series: accuracy_text(series, ours)),
        Column("paper", "As printed.", printed),
        Column("fedpcs against it", "Ours, the accuracy of the first table.", lead),
        Column("paper's difference", "Of the printed means, in points.", printed_lead),
        NOISE[0],
        Column("rule", "Of aggregation.", lambda series: series.done[0].rounds[-1].rule),
        COST[-1],
    )
    variant = place.group.variant
    return replace(sampler_table([place.group], f"{variant}: {place.label}", columns), note=_NOTES[variant])


def gather_skewed(request: Request) -> Gathered[Trained]:
    """Run the tuned table; only its skewed trials are on the page, beside what skew costs."""
    every = gather_tuned(request)
    if every.results is None:
        return every
    skewed = [one for group in _skewed(every.results) for series in group.series for one in series.done]
    page = trials.trained(request, skewed, every.frame.shrunk).frame
    return Gathered(replace(every.results, page=page), page)


def _skewed(results: Trained) -> list[Group]:
    return [one for one in results.groups if one.point["data.partition"] == "dirichlet"]


def skew_costs(results: Trained) -> dict[str, dict[str, PairedDifference]]:
    """Return each sampler's accuracy under Dirichlet(0.5) minus IID, by setting; those without a pair are left out."""
    found = {}
    for skewed in _skewed(results):
        wanted = {**skewed.point, "data.partition": "iid"}
        even = [one for one in results.groups if one.variant == skewed.variant and dict(one.point) == wanted]
        pairs = [
            (one, other) for group in even for one in skewed.series if (other := group.of(one.sampler)) is not None
        ]
        found[skewed.label] = {one.sampler: against(one, other) for one, other in pairs if has_common_seed(one, other)}
    return {place: costs for place, costs in found.items() if costs}


def _skew_headline(results: Trained) -> str:
    """Say what skew costs. Whose interval leaves zero out is no difference between samplers, so nobody is named."""
    for place, costs in skew_costs(results).items():
        low, high = (100.0 * pick(-cost.mean for cost in costs.values()) for pick in (min, max))
        text = f"{low:.1f} to {high:.1f} points, by sampler".replace("-", "−")
        clear = sum(cost.is_below for cost in costs.values())
        return f"Label skew costs {text}; seeds are sure of it for {clear} of {len(costs)} ({place})."
    return "No pair of IID and skewed trials is done yet."


def _skew_tables(results: Trained) -> Iterable[Table]:
    yield from results.page.tables
    for place, costs in skew_costs(results).items():
        rows = tuple((sampler, difference_text(cost)) for sampler, cost in costs.items())
        yield Table(f"What skew changes: {place}", ("sampler", "Dirichlet minus IID, points"), rows)


def _skew_drawings(results: Trained) -> Iterable[Drawing]:
    title = "Accuracy under Dirichlet(0.5) minus IID"
    for place, costs in skew_costs(results).items():
        yield Drawing(f"cost of skew {place}", partial(bars_figure, costs, title, f"{place}; same seeds."))


def _variant(title: str, gather: Callable[[Request], Gathered[Trained]]) -> Exhibit[Trained]:
    return Exhibit(title=title, gather=gather, claims=_claims(_all_places), tables=_tables)


TUNED_TABLE = _variant("Accuracy table on {dataset}", gather_tuned)
CALIBRATED_TABLE = _variant("Accuracy table with W calibrated, on {dataset}", gather_calibrated)
BEST_RULES = _variant(
    "Every sampler under its best rule of aggregation, on {dataset}", partial(gather_calibrated, variants=[RULED])
)
UNMOVED_CLIENTS = _variant(
    "Clients whom rewards do not move, on {dataset}", partial(gather_calibrated, variants=UNMOVED)
)
NON_IID = Exhibit(
    title="Label skew on {dataset}",
    gather=gather_skewed,
    headline=_skew_headline,
    claims=_claims(_skewed_places),
    tables=_skew_tables,
    drawings=_skew_drawings,
)
