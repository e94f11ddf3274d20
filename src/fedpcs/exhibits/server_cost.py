"""The server's cost, accuracy lost and rewards, under each sampler and sampling ratio (paper, Fig. 6).

Cost over the run is Σ_t Σ_i π_i [γa/((t+1)ρ_i) + (1−γ)R_t ρ_i]. FedPCS's server announces the path that is best for it
at each τ. Its rivals ignore budgets and are shown twice: with FedPCS's rewards, so that only the sampler differs, and
with the path that is best for their own server. Under a budget-blind sampler a client's chance K/N only scales what it
earns: budgets and the best path do not depend on τ, and cost is proportional to K. So its own game is solved once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedpcs import _format
from fedpcs.exhibits.claims import CANNOT_SAY, Claim, Judged, interval, mean_interval, on_all_signs, on_level, points
from fedpcs.exhibits.exhibit import Exhibit
from fedpcs.exhibits.games import ONE_GAME, FromGames, Games, GameSpec, lines_drawing, path_of
from fedpcs.game.payoffs import server_cost
from fedpcs.game.schedule import played_budget
from fedpcs.report.page import Drawing, Table, Verdict
from fedpcs.studies.paired import PairedDifference, paired_difference

if TYPE_CHECKING:
    from fedpcs._validate import FloatArray
    from fedpcs.exhibits.registry import Profile
    from fedpcs.game.equilibrium import Equilibrium
    from fedpcs.game.rules import Game

RATIOS = (0.2, 0.5, 0.8)
FEDPCS, BLIND, BLIND_OWN = "FedPCS", "budget-blind, same rewards", "budget-blind, its own rewards"
STATIC, SELFISH = "budget-blind, static clients", "budget-blind, selfish clients"
# What the draw does by itself: the budget-blind game's clients under FedPCS's rewards, drawn by budget.
DRAW = "drawn by budget, budget-blind clients"
RIVALS = (BLIND_OWN, BLIND, STATIC, SELFISH)
_NEARLY_ALL, _HALF = 0.9, 0.5


@dataclass(frozen=True)
class Outcome:
    """What one population costs the server over the run.

    Attributes:
        seed: Of the population.
        cost: (ratios,) by case of who draws and who plays.
        lemma: (ratios,) FedPCS's with the lemma's rewards instead; NaN where that game does not certify.
        equilibria: The games behind them.
    """

    seed: int
    cost: Mapping[str, FloatArray]
    lemma: FloatArray
    equilibria: Mapping[str, Equilibrium]


def solve(games: Games, seed: int, _: Profile = "quick") -> Outcome:
    """Solve a population's games at every ratio and return the server's cost in each case."""
    own = games.solve(GameSpec(seed, "budget-blind"))
    equilibria, lemma = {BLIND_OWN: own}, []
    cost: dict[str, list[float]] = {case: [] for case in (FEDPCS, *RIVALS, DRAW)}
    for ratio in RATIOS:
        aware = games.solve(GameSpec(seed, sampling_ratio=ratio))
        same = games.solve(GameSpec(seed, "budget-blind", ratio, path_of(aware)))
        blind, path = same.game, aware.reward.path
        cost[FEDPCS].append(_total(aware.profile.budget, path, aware.game))
        cost[BLIND].append(_total(same.profile.budget, path, blind))
        cost[DRAW].append(_total(same.profile.budget, path, aware.game))
        at_ratio = replace(own.game, cohort_size=blind.cohort_size)
        cost[BLIND_OWN].append(_total(own.profile.budget, own.reward.path, at_ratio))
        cost[STATIC].append(_total(played_budget(aware, "static"), path, blind))
        cost[SELFISH].append(_total(played_budget(aware, "selfish"), path, blind))
        equilibria |= {f"{FEDPCS}, τ = {ratio:g}": aware, f"{BLIND}, τ = {ratio:g}": same}
    for ratio in RATIOS:
        found = games.solve(GameSpec(seed, sampling_ratio=ratio, reward="per-round"))
        is_certified = found.status == "converged"
        lemma.append(float(found.cost.sum()) if is_certified else np.nan)
        equilibria |= {f"{FEDPCS}, the lemma's rewards, τ = {ratio:g}": found} if is_certified else {}
    return Outcome(seed, {case: np.array(each) for case, each in cost.items()}, np.array(lemma), equilibria)


def _total(budget: FloatArray, reward: FloatArray, game: Game) -> float:
    """Return the server's expected cost over the run."""
    return float(server_cost(budget, reward, game).sum())


def costs(outcomes: Sequence[Outcome], case: str) -> FloatArray:
    """Return (populations, ratios) costs."""
    return np.array([one.cost[case] for one in outcomes])


def saved(outcomes: Sequence[Outcome], rival: str, case: str = FEDPCS) -> FloatArray:
    """Return (populations, ratios) what a case saves against a rival, as a share of the rival's cost."""
    return np.asarray(1.0 - costs(outcomes, case) / costs(outcomes, rival))


def _at_each(texts: Iterable[str]) -> str:
    return "; ".join(f"τ = {ratio:g}: {text}" for ratio, text in zip(RATIOS, texts, strict=True))


def _headline(outcomes: Sequence[Outcome]) -> str:
    means, alone = saved(outcomes, BLIND_OWN).mean(axis=0), float(saved(outcomes, BLIND, DRAW)[:, 0].mean())
    each = ", ".join(f"{_format.share(mean)} at τ = {ratio:g}" for ratio, mean in zip(RATIOS, means, strict=True))
    return (
        f"FedPCS's server saves {each} against a budget-blind server that announces its own best rewards. Drawing by "
        f"budget saves {_format.share(alone)} at τ = {RATIOS[0]:g} even if clients do not respond to it."
    )


def _lowest(rival: str) -> Callable[[Sequence[Outcome]], Judged]:
    def judge(outcomes: Sequence[Outcome]) -> Judged:
        gaps = [mean_interval(each) for each in saved(outcomes, rival).T]
        each = _at_each(interval(gap, _format.share) for gap in gaps)
        return on_all_signs(gaps), f"Saved, as a share of the rival's cost: {each}."

    return judge


def _growth(outcomes: Sequence[Outcome]) -> Judged:
    """Hold "the gap grows with the cohort" against absolute and relative gaps to the fairest rival."""
    gap, share = costs(outcomes, BLIND_OWN) - costs(outcomes, FEDPCS), saved(outcomes, BLIND_OWN)
    absolute, relative = (paired_difference(each[:, -1], each[:, 0]) for each in (gap, share))
    found = (
        f"From τ = {RATIOS[0]:g} to {RATIOS[-1]:g}, against a budget-blind server with its own rewards, the gap "
        f"changes by {interval(absolute)}, and as a share of cost by {points(relative)}."
    )
    return on_all_signs([absolute, relative]), found


def _draw(outcomes: Sequence[Outcome]) -> Judged:
    """Part the saving into what the draw does and what clients' budgets do, under the same rewards."""
    drawn, whole = (saved(outcomes, BLIND, case) for case in (DRAW, FEDPCS))
    means = zip(drawn.mean(axis=0), whole.mean(axis=0), strict=True)
    found = (
        "Drawing the budget-blind game's own clients by their budgets saves, of the whole saving under the same "
        f"rewards: {_at_each(f'{_format.share(part)} of {_format.share(all_of_it)}' for part, all_of_it in means)}. "
        "The cost counts 1/ρ of drawn clients, and that falls whenever larger budgets are drawn more often, whatever "
        "clients do; it leaves out what unbiased weights would add to the noise."
    )
    return verdict_on_draw(
        [part / share for part, share in zip(drawn.T, whole.T, strict=True) if share.min() > 0.0]
    ), found


def verdict_on_draw(shares: Sequence[FloatArray]) -> Verdict:
    """Return whether incentives explain the saving: surely, if the draw's share is under a half at every ratio.

    Surely not, if it is nine tenths at every ratio; in part, if it is more than half. Shares are by population.
    """
    halves, nearly_all = ([on_level(share, level) for share in shares] for level in (_HALF, _NEARLY_ALL))
    if set(nearly_all) == {"agrees"}:
        return "differs"
    if set(halves) == {"differs"}:
        return "agrees"
    return "in part" if "agrees" in halves else CANNOT_SAY


def _lemma(outcomes: Sequence[Outcome]) -> Judged:
    """Hold "the lemma's reward is optimal" against the path announced in advance, where the lemma's game certifies."""
    more = np.array([one.lemma for one in outcomes]) / costs(outcomes, FEDPCS) - 1.0
    known = {ratio: each[~np.isnan(each)] for ratio, each in zip(RATIOS, more.T, strict=True)}
    extra = {ratio: mean_interval(each) for ratio, each in known.items() if each.size}
    each = "; ".join(f"τ = {ratio:g}: {interval(found, _format.share)}" for ratio, found in extra.items())
    missing = int(np.isnan(more).sum())
    left_out = f" {missing} games under the lemma's rewards did not certify and are left out." if missing else ""
    found = f"With FedPCS it costs more than the path announced in advance by: {each or 'not known'}.{left_out}"
    return verdict_on_lemma(tuple(extra.values())), found


def verdict_on_lemma(extra: Sequence[PairedDifference]) -> Verdict:
    """Return whether the lemma's rewards cost no more: they clearly do everywhere, somewhere, or it cannot be told."""
    if any(more.is_above for more in extra):
        return "differs" if all(more.is_above for more in extra) else "in part"
    return "agrees" if extra and all(more.is_below for more in extra) else CANNOT_SAY


def _tables(outcomes: Sequence[Outcome]) -> Iterable[Table]:
    ratios = tuple(f"τ = {ratio:g}" for ratio in RATIOS)
    yield Table(
        "The server's cost over the run, mean ± standard deviation over populations",
        ("sampler and clients", *ratios),
        tuple((case, *map(_format.amount_and_spread, costs(outcomes, case).T.tolist())) for case in outcomes[0].cost),
        note="Same rewards: those FedPCS's server announces at that τ; static and selfish clients are paid them too.",
    )
    gaps = {rival: [mean_interval(each) for each in saved(outcomes, rival).T] for rival in RIVALS}
    yield Table(
        "What FedPCS's server saves, as a share of the rival's cost, with 95 % intervals over populations",
        ("against", *ratios),
        tuple((rival, *(interval(gap, _format.share) for gap in each)) for rival, each in gaps.items()),
        bold=frozenset(
            (row, column)
            for row, each in enumerate(gaps.values())
            for column, gap in enumerate(each, start=1)
            if gap.is_above or gap.is_below
        ),
        note="Bold: the interval leaves zero out.",
    )


def _drawings(outcomes: Sequence[Outcome]) -> Iterable[Drawing]:
    drawn = {case: costs(outcomes, case) for case in outcomes[0].cost if case not in (SELFISH, DRAW)}
    shares = {rival: 100.0 * saved(outcomes, rival) for rival in (BLIND_OWN, BLIND)}
    lowest = _format.amount(float(costs(outcomes, SELFISH)[:, 0].mean()))
    note = f"Not drawn: clients that all sit at the lowest budget, {lowest} at τ = {RATIOS[0]:g}."
    look: dict[str, Any] = {"places": RATIOS, "xlabel": "sampling ratio τ"}
    yield lines_drawing(
        "the server's cost by sampling ratio", drawn, "cost over the run", note=note, from_zero=True, **look
    )
    yield lines_drawing("FedPCS's saving by sampling ratio", shares, "saved, % of the rival's cost", **look)


def _records(outcomes: Sequence[Outcome]) -> Iterable[dict[str, object]]:
    for case in outcomes[0].cost:
        for k, ratio in enumerate(RATIOS):
            for one in outcomes:
                yield {"case": case, "sampling ratio": ratio, "seed": one.seed, "cost": float(one.cost[case][k])}


EXHIBIT = Exhibit(
    title="The server's cost by sampler and sampling ratio",
    gather=FromGames(solve=solve, facts="τ = 0.2, 0.5, 0.8"),
    headline=_headline,
    claims=(
        *(
            Claim(
                f"FedPCS's server has the least cost at every sampling ratio. Here, against: {rival}.", _lowest(rival)
            )
            for rival in RIVALS
        ),
        Claim("The gap between FedPCS and the baselines widens as more clients are sampled.", _growth),
        Claim("FedPCS's cost is the lowest because of its optimal reward.", _draw),
        Claim("Random, AOCS, Fed-CBS and DELTA each have a cost of their own.", lambda _: ("differs", ONE_GAME)),
        Claim("The lemma's round-by-round reward minimises the server's cost.", _lemma),
    ),
    tables=_tables,
    drawings=_drawings,
    records=_records,
)
