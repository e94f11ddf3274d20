"""Do clients' budgets move together? Pearson correlation of budget paths, client by client (paper, Fig. 4).

The paper draws, for each sampler, a map of the correlation between any two clients' strategies ρ_i^t: the Pearson
coefficient of their budget paths over rounds,

    r_ij = Σ_t (ρ_i^t − ρ̄_i)(ρ_j^t − ρ̄_j) / √(Σ_t (ρ_i^t − ρ̄_i)² Σ_t (ρ_j^t − ρ̄_j)²).

It reads a warm map as small divergence between clients. Correlation sees only whether two paths move in the same
direction, not how far apart they are, so the spread between clients is reported beside it. A client whose budget never
moves correlates with nobody: 0/0, left undefined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.exhibits.claims import CANNOT_SAY, Claim, Judged, interval, mean_interval, on_grade
from fedpcs.exhibits.exhibit import Exhibit
from fedpcs.exhibits.games import ONE_GAME, FromGames, Games, GameSpec, lines_drawing, path_of
from fedpcs.exhibits.registry import Profile
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.game.schedule import played_budget
from fedpcs.report import style
from fedpcs.report.page import Drawing, Table, Verdict
from fedpcs.studies.paired import PairedDifference, mean_and_std, paired_difference

FEDPCS, BLIND, BLIND_OWN = "FedPCS", "budget-blind, same rewards", "budget-blind, its own rewards"
STATIC, SELFISH = "static clients", "selfish clients"
# A path that moves by less than this share of its mean stands still; the rest is rounding.
_LEAST_MOVE = 1e-6
_HIGH, _SOME = 0.7, 0.3
# A lead in mean correlation of no more than this counts as none.
_NO_DIFFERENCE = 0.05
_WARM_AND_COLD = LinearSegmentedColormap.from_list("correlation", [style.BLUE, "white", style.VERMILION])


@dataclass(frozen=True)
class Outcome:
    """One population's (rounds, clients) budgets by case of who plays, and the games behind them."""

    seed: int
    budgets: Mapping[str, FloatArray]
    equilibria: Mapping[str, Equilibrium]

    @cached_property
    def correlation(self) -> dict[str, FloatArray]:
        """(clients, clients) correlations of budget paths by case."""
        return {case: path_correlation(budget) for case, budget in self.budgets.items()}

    @cached_property
    def mean(self) -> dict[str, float | None]:
        """The mean correlation of two clients by case; None where nobody's budget moves."""
        return {case: others_mean(found) for case, found in self.correlation.items()}

    def spread(self, case: str, round_index: int = -1) -> float:
        """Return the standard deviation of a round's budgets over clients, exactly zero where all are the same."""
        budget = self.budgets[case][round_index]
        return float(budget.std()) if np.ptp(budget) > 0.0 else 0.0


def solve(games: Games, seed: int, _: Profile = "quick") -> Outcome:
    """Solve a population's games and add clients that do not play."""
    aware = games.solve(GameSpec(seed))
    same = games.solve(GameSpec(seed, "budget-blind", reward=path_of(aware)))
    equilibria = {FEDPCS: aware, BLIND: same, BLIND_OWN: games.solve(GameSpec(seed, "budget-blind"))}
    played = {case: found.profile.budget for case, found in equilibria.items()}
    idle = {STATIC: played_budget(aware, "static"), SELFISH: played_budget(aware, "selfish")}
    return Outcome(seed, {**played, **idle}, equilibria)


def path_correlation(budget: FloatArray) -> FloatArray:
    """Return r_ij of (rounds, clients) budgets: (clients, clients), NaN where either path stands still."""
    centred = budget - budget.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    moves = np.ptp(budget, axis=0) > _LEAST_MOVE * np.abs(budget).mean(axis=0)
    unit = np.divide(centred, length, out=np.full_like(centred, np.nan), where=moves)
    return np.asarray((unit.T @ unit).clip(-1.0, 1.0))


def others_mean(correlation: FloatArray) -> float | None:
    """Return the mean over pairs of different clients; None where no pair has a correlation.

    Example:
        >>> others_mean(np.array([[1.0, 0.5], [0.5, 1.0]]))
        0.5
    """
    pairs = correlation[~np.eye(len(correlation), dtype=np.bool_)]
    known = pairs[~np.isnan(pairs)]
    return float(known.mean()) if known.size else None


def _means(outcomes: Sequence[Outcome], case: str) -> list[float]:
    return [mean for one in outcomes if (mean := one.mean[case]) is not None]


def _spreads(outcomes: Sequence[Outcome], case: str, round_index: int = -1) -> list[float]:
    return [one.spread(case, round_index) for one in outcomes]


def _headline(outcomes: Sequence[Outcome]) -> str:
    aware, blind = (mean_and_std(_means(outcomes, case))[0] for case in (FEDPCS, BLIND))
    near, far = (mean_and_std(_spreads(outcomes, case))[0] for case in (FEDPCS, BLIND))
    return (
        f"Budget paths of two clients correlate at {_format.two_decimals(aware)} on average under FedPCS and at "
        f"{_format.two_decimals(blind)} under a budget-blind sampler with the same rewards; clients end "
        f"{_format.amount(near)} and {_format.amount(far)} apart (standard deviation)."
    )


def _level(outcomes: Sequence[Outcome]) -> Judged:
    aware = _means(outcomes, FEDPCS)
    level = mean_interval(aware)
    pairs = [one.correlation[FEDPCS][np.triu_indices(len(one.correlation[FEDPCS]), 1)] for one in outcomes]
    opposed = np.mean([(one[~np.isnan(one)] < 0.0).mean() for one in pairs])
    found = (
        f"The mean correlation of two clients is {_format.with_spread(aware, _format.two_decimals)} (95 % interval "
        f"{_format.two_decimals(level.low)} to {_format.two_decimals(level.high)}; highly means {_HIGH}, in part "
        f"{_SOME}), and {_format.percent(float(opposed))} of pairs move against each other: budgets close in on the "
        "mean from above and from below."
    )
    return on_grade(aware, _HIGH, _SOME), found


def _gap(outcomes: Sequence[Outcome]) -> PairedDifference:
    return paired_difference(_means(outcomes, FEDPCS), _means(outcomes, BLIND))


def _lead(outcomes: Sequence[Outcome]) -> Judged:
    gap = _gap(outcomes)
    found = f"FedPCS less budget-blind, same rewards: {interval(gap, _format.two_decimals)}."
    return verdict_on_gap(gap), f"{found} A lead of no more than {_NO_DIFFERENCE} counts as none."


def verdict_on_gap(gap: PairedDifference) -> Verdict:
    """Return whether FedPCS's correlation lies above by more than counts as none: surely, surely not, or neither.

    In part, if it surely lies above and perhaps by no more than that.
    """
    if gap.low > _NO_DIFFERENCE:
        return "agrees"
    if gap.high <= _NO_DIFFERENCE:
        return "differs"
    return "in part" if gap.is_above else CANNOT_SAY


def _divergence(outcomes: Sequence[Outcome]) -> Judged:
    gap, apart = _gap(outcomes), paired_difference(_spreads(outcomes, FEDPCS), _spreads(outcomes, BLIND))
    found = (
        f"The spread between clients in the last round, FedPCS less budget-blind: {interval(apart)}; the mean "
        f"correlation, {interval(gap, _format.two_decimals)}. Paths that move in step can lie any distance apart."
    )
    return verdict_on_divergence(gap, apart), found


def verdict_on_divergence(gap: PairedDifference, apart: PairedDifference) -> Verdict:
    """Return whether the sampler with the higher correlation is the one with the smaller spread."""
    if (gap.is_above and apart.is_below) or (gap.is_below and apart.is_above):
        return "agrees"
    if (gap.is_above and apart.is_above) or (gap.is_below and apart.is_below):
        return "differs"
    return CANNOT_SAY


def _table(outcomes: Sequence[Outcome]) -> Iterable[Table]:
    rows = []
    for case in outcomes[0].budgets:
        known = _means(outcomes, case)
        moving = np.mean([np.mean(~np.isnan(np.diag(one.correlation[case]))) for one in outcomes])
        rows.append(
            (
                case,
                _format.with_spread(known, _format.two_decimals) if known else "undefined",
                _format.percent(float(moving)),
                _format.amount_and_spread(_spreads(outcomes, case, 0)),
                _format.amount_and_spread(_spreads(outcomes, case)),
            )
        )
    yield Table(
        "Correlation of budget paths and spread between clients, mean ± standard deviation over populations",
        ("clients", "mean correlation of two", "clients that move", "spread, first round", "spread, last round"),
        tuple(rows),
        {"spread, last round": "standard deviation of budgets over clients"},
        note="Undefined: no client's budget moves.",
    )


def _drawings(outcomes: Sequence[Outcome]) -> Iterable[Drawing]:
    first = outcomes[0]
    order = np.argsort(first.budgets[FEDPCS][0], kind="stable")
    maps = {case: first.correlation[case][np.ix_(order, order)] for case in (FEDPCS, BLIND)}
    spreads = {case: np.array([one.budgets[case].std(axis=1) for one in outcomes]) for case in (FEDPCS, BLIND, STATIC)}
    yield Drawing(
        "correlation of budget paths",
        lambda: maps_figure(
            maps,
            "Correlation of any two clients' budget paths, in one population",
            "client, by initial budget",
            "Pearson correlation over rounds",
            "Clients from the smallest initial budget to the largest. Grey: a budget that never moves has none.",
        ),
    )
    note = "Standard deviation over clients."
    yield lines_drawing("spread of budgets between clients", spreads, "spread, ρ of zCDP", note=note, from_zero=True)


def maps_figure(maps: Mapping[str, FloatArray], title: str, axis_label: str, scale_label: str, note: str) -> Figure:
    """Draw square maps of values in [−1, 1] side by side, warm for +1 and cold for −1, grey where undefined."""
    figure, panels = style.new_figure(title, note=note, height_inches=5.4, num_columns=len(maps))
    figure.set_layout_engine("compressed")
    colours = _WARM_AND_COLD.with_extremes(bad=style.PALE)
    for axes, (name, table) in zip(panels, maps.items(), strict=True):
        image = axes.imshow(table, cmap=colours, vmin=-1.0, vmax=1.0, origin="lower", interpolation="nearest")
        axes.grid(visible=False)
        axes.set_xlabel(axis_label)
        axes.tick_params(labelleft=axes is panels[0])
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        style.caption(axes, name)
    panels[0].set_ylabel(axis_label)
    scale = figure.colorbar(image, ax=panels, location="bottom", pad=0.03, fraction=0.05, aspect=40, shrink=0.8)
    scale.outline.set_visible(False)
    scale.set_label(scale_label)
    return figure


def _records(outcomes: Sequence[Outcome]) -> Iterable[dict[str, object]]:
    for case in outcomes[0].budgets:
        for one in outcomes:
            mean, spread = one.mean[case], one.spread(case)
            yield {"case": case, "seed": one.seed, "mean correlation": mean, "spread, last round": spread}


_IDLE = (
    "Clients that keep their first budget, or sit at the lowest, never move; a path that does not move has no "
    "correlation with any other, so for static and selfish clients there is nothing to draw."
)
EXHIBIT = Exhibit(
    title="Whether clients' budgets move together",
    gather=FromGames(solve=solve),
    headline=_headline,
    claims=(
        Claim(
            "Under FedPCS the budgets of different clients are highly correlated: the map is warm throughout.", _level
        ),
        Claim("Under the baselines a client correlates with itself and less with others than under FedPCS.", _lead),
        Claim("A warmer map means smaller divergence between clients' strategies.", _divergence),
        Claim("Random, Fed-CBS and DELTA each have a map of their own.", lambda _: ("differs", ONE_GAME)),
        Claim("Egocentric clients show as a map that is warm on its diagonal alone.", lambda _: (CANNOT_SAY, _IDLE)),
    ),
    tables=_table,
    drawings=_drawings,
    records=_records,
)
