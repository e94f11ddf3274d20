"""Cohorts under falling privacy caps: τ(t), and how much of each cap a cohort uses (paper, Figs. 7 and 8).

In round t the budgets of a cohort may add up to at most B_t. The paper lets B_t fall evenly from 700 to 300
(Fashion-MNIST, 30 rounds) and from 700 to 400 (Tiny-ImageNet, 20 rounds), for 100 clients; other crowds get caps in
proportion. K_t is the one of least cost, sampling variance included, whose expected budget fits
(`fedpcs.game.sampling_ratio`); cohorts drawn are then cut to fit. Random sampling is shown twice: drawing as many
clients as FedPCS from the same crowd, and from the crowd it would have itself, with cohorts planned for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fedpcs import _format, _random
from fedpcs.exhibits.claims import Claim, Judged, on_all_signs, points, unless
from fedpcs.exhibits.exhibit import Exhibit
from fedpcs.exhibits.games import FromGames, Games, GameSpec, lines_drawing, seeds_of
from fedpcs.game.payoffs import cohort_inclusion
from fedpcs.game.sampling_ratio import CohortPlan, cut_to_cap, solve_with_caps
from fedpcs.report.figures.caps import drawn_usage
from fedpcs.report.page import Drawing, Table, Verdict
from fedpcs.sampling.designs import pivotal
from fedpcs.studies.paired import mean_and_std, paired_difference

if TYPE_CHECKING:
    from fedpcs._validate import FloatArray
    from fedpcs.exhibits.registry import Profile
    from fedpcs.game.equilibrium import Equilibrium
    from fedpcs.game.rules import Game

FEDPCS, SAME, OWN = "FedPCS", "random, same cohorts", "random, its own cohorts"
NUM_DRAWS = 100
_PAPER_CLIENTS = 100
_GRADUAL = 0.9  # share of steps in which a ratio that falls gradually stays or falls


@dataclass(frozen=True)
class Scenario:
    """A path of caps from B_0 to B_T for 100 clients, by what the paper calls it."""

    name: str
    first: float
    last: float
    last_round: int

    @property
    def label(self) -> str:
        """Its name and its ends."""
        return f"{self.name} caps, {_format.amount(self.first)} to {_format.amount(self.last)}"

    def caps(self, num_clients: int) -> FloatArray:
        """Return B_0…B_T in even steps, in proportion to the crowd."""
        return np.linspace(self.first, self.last, self.last_round + 1) * num_clients / _PAPER_CLIENTS


SCENARIOS = (Scenario("Fashion-MNIST", 700.0, 300.0, 30), Scenario("Tiny-ImageNet", 700.0, 400.0, 20))


@dataclass(frozen=True)
class Capped:
    """One population under one path of caps: equilibria with cohorts that fit them, under the same rewards.

    Attributes:
        scenario: The caps.
        seed: Of the population.
        aware: FedPCS's equilibrium.
        plan: Its cohorts.
        blind: Random sampling's equilibrium.
        blind_plan: Its cohorts.
        usage: (rounds,) mean share of the cap that drawn cohorts use, by case of who draws.
    """

    scenario: Scenario
    seed: int
    aware: Equilibrium
    plan: CohortPlan
    blind: Equilibrium
    blind_plan: CohortPlan
    usage: Mapping[str, FloatArray]

    @property
    def equilibria(self) -> dict[str, Equilibrium]:
        """Both games."""
        return {f"{self.scenario.name} caps, FedPCS": self.aware, f"{self.scenario.name} caps, random": self.blind}

    @property
    def ratio(self) -> FloatArray:
        """(rounds,) τ(t) of FedPCS."""
        return np.asarray(self.plan.cohort_size / self.aware.game.num_clients)


def solve(games: Games, key: tuple[Scenario, int], profile: Profile = "quick") -> Capped:
    """Solve a population's game under a path of caps for both samplers, draw cohorts, and see what they use.

    In the paper profile rewards are planned anew for the capped cohorts; otherwise they are those without caps.
    """
    scenario, seed = key
    free = games.solve(GameSpec(seed, last_round=scenario.last_round))
    caps = scenario.caps(free.game.num_clients)
    plans_again = profile == "paper" and isinstance(games.base.reward, str)
    reward = games.base.reward if plans_again else free.reward.path
    tolerance = float(games.base.tolerance)
    games.say(f"solving under caps: {scenario.name}, population {seed} …")
    aware, plan = solve_with_caps(free.game, reward, caps, tolerance=tolerance, throw=False)
    random = replace(free.game, selection="budget-blind")
    blind, blind_plan = solve_with_caps(random, aware.reward.path, caps, tolerance=tolerance, throw=False)
    usage = {
        FEDPCS: usage_by_budget(aware.profile.budget, plan, aware.game),
        SAME: drawn_usage(aware.profile.budget, plan, NUM_DRAWS, budget_aware=False).middle,
        OWN: drawn_usage(blind.profile.budget, blind_plan, NUM_DRAWS, budget_aware=False).middle,
    }
    return Capped(scenario, seed, aware, plan, blind, blind_plan, usage)


def usage_by_budget(budget: FloatArray, plan: CohortPlan, game: Game) -> FloatArray:
    """Return the mean share of each cap that cohorts drawn by budget use, cut to fit: (rounds,).

    Cohorts are drawn with the very chances the plan counts with (`fedpcs.sampling.designs.pivotal`). Drawn one after
    another, large budgets would be drawn less often than planned, and the plan would look worse than it is.
    """
    used = np.empty((plan.budget_cap.size, NUM_DRAWS))
    for t, row in enumerate(budget):
        rng = _random.generator(0, "exhibit-privacy-usage", round_index=t)
        size, cap = int(plan.cohort_size[t]), float(plan.budget_cap[t])
        inclusion = cohort_inclusion(row, float(size), game)
        for draw in range(NUM_DRAWS):
            cohort = rng.permutation(pivotal(inclusion, rng))
            rest = rng.permutation(np.setdiff1d(np.arange(row.size), cohort))
            used[t, draw] = row[cut_to_cap(np.concatenate((cohort, rest)), row, size, cap)].sum() / cap
    return np.asarray(used.mean(axis=1))


def by_scenario(outcomes: Sequence[Capped]) -> list[list[Capped]]:
    """Return all populations under each path of caps."""
    scenarios = dict.fromkeys(one.scenario for one in outcomes)
    return [[one for one in outcomes if one.scenario == scenario] for scenario in scenarios]


def _mean_usage(mine: Sequence[Capped], case: str) -> list[float]:
    return [float(one.usage[case].mean()) for one in mine]


def _ends(mine: Sequence[Capped]) -> tuple[list[float], list[float]]:
    """Return τ(0) and τ(T) of every population."""
    return [float(one.ratio[0]) for one in mine], [float(one.ratio[-1]) for one in mine]


def _headline(outcomes: Sequence[Capped]) -> str:
    mine = by_scenario(outcomes)[0]
    aware, same, own = (mean_and_std(_mean_usage(mine, case))[0] for case in (FEDPCS, SAME, OWN))
    first, last = (mean_and_std(ratios)[0] for ratios in _ends(mine))
    scenario = mine[0].scenario
    return (
        f"As caps fall from {_format.amount(scenario.first)} to {_format.amount(scenario.last)} the sampling ratio "
        f"goes from {first:.2f} to {last:.2f}; FedPCS's cohorts use {_format.share(aware)} of the cap, random ones "
        f"of the same size {_format.share(same)}, random ones planned for themselves {_format.share(own)}."
    )


def falling_share(ratio: FloatArray) -> float:
    """Return the share of steps in which τ(t) stays or falls."""
    return float((np.diff(ratio) <= 0.0).mean())


def _ratio(mine: Sequence[Capped]) -> Judged:
    first, last = (_format.with_spread(ratios, _format.two_decimals) for ratios in _ends(mine))
    least = min(falling_share(one.ratio) for one in mine)
    found = (
        f"τ(t) goes from {first} to {last}; it stays or falls in {_format.share(least)} of steps or more, by "
        f"population (agreeing means {_format.share(_GRADUAL)}). Cohorts are those of least cost, found numerically: "
        "Theorem 7's closed form is no optimum of its own problem at any reward above zero."
    )
    return verdict_on_ratio([one.ratio for one in mine]), found


def verdict_on_ratio(ratios: Sequence[FloatArray]) -> Verdict:
    """Return whether τ(t) ends lower than it began in every population, and falls gradually on the way."""
    if not all(ratio[-1] < ratio[0] for ratio in ratios):
        return "differs"
    return "agrees" if min(falling_share(ratio) for ratio in ratios) >= _GRADUAL else "in part"


def _usage(mine: Sequence[Capped]) -> Judged:
    same, own = (paired_difference(_mean_usage(mine, FEDPCS), _mean_usage(mine, case)) for case in (SAME, OWN))
    higher, lower = (
        float(np.mean([compare(one.usage[FEDPCS], one.usage[SAME]) for one in mine]))
        for compare in (np.greater, np.less)  # equal where everyone is drawn
    )
    found = (
        f"FedPCS less random: with the same clients and cohort sizes {points(same)} (higher in "
        f"{_format.share(higher)} of rounds, lower in {_format.share(lower)}); with cohorts planned for random "
        f"sampling's own clients {points(own)}."
    )
    return unless(lower > 0.0, on_all_signs([same, own])), found  # the claim is of every round


def _table(outcomes: Sequence[Capped]) -> Iterable[Table]:
    rows = []
    for mine in by_scenario(outcomes):
        ends = [_format.with_spread(ratios, _format.two_decimals) for ratios in _ends(mine)]
        usage = [_format.mean_and_spread(_mean_usage(mine, case)) for case in (FEDPCS, SAME, OWN)]
        scenario = mine[0].scenario
        rows.append((f"{scenario.name}, {scenario.first:g} to {scenario.last:g}", *ends, *usage))
    yield Table(
        "Sampling ratio and mean privacy usage, mean ± standard deviation over populations",
        ("caps", "τ(0)", "τ(T)", FEDPCS, SAME, OWN),
        tuple(rows),
        {
            FEDPCS: "share of the cap used by drawn cohorts, mean over rounds",
            SAME: "drawn from FedPCS's clients, as many in each round",
            OWN: "drawn from the clients random sampling would have, as many as fit",
        },
        note=f"{NUM_DRAWS} cohorts are drawn in each round. None passes its cap: draws are cut to fit.",
    )


def _drawings(outcomes: Sequence[Capped]) -> Iterable[Drawing]:
    for mine in by_scenario(outcomes):
        caps = f"{mine[0].scenario.name} caps"
        usage = {case: np.array([100.0 * one.usage[case] for one in mine]) for case in (FEDPCS, SAME, OWN)}
        ratios = {FEDPCS: np.array([one.ratio for one in mine])}
        yield lines_drawing(f"privacy usage, {caps}", usage, "usage Σρ / $B_t$ (%)", level=("the cap", 100.0))
        yield lines_drawing(f"sampling ratio, {caps}", ratios, "sampling ratio τ(t) of least cost", from_zero=True)


def _records(outcomes: Sequence[Capped]) -> Iterable[dict[str, object]]:
    for one in outcomes:
        for t in range(one.scenario.last_round + 1):
            yield {
                "caps": one.scenario.name,
                "seed": one.seed,
                "round": t,
                "cap": float(one.plan.budget_cap[t]),
                "sampling ratio": float(one.ratio[t]),
                **{f"usage, {case}": float(path[t]) for case, path in one.usage.items()},
            }


EXHIBIT = Exhibit(
    title="Privacy usage and sampling ratio under falling caps",
    gather=FromGames(
        solve=solve,
        keys=lambda profile: [(scenario, seed) for scenario in SCENARIOS for seed in seeds_of(profile)],
        facts="τ(t) from the caps",
        quick_note="Rewards are those of the game without caps; the paper profile plans them anew for the capped "
        "cohorts.",
    ),
    headline=_headline,
    claims=(
        Claim(
            lambda mine: (
                f"As the cap falls the server lowers the sampling ratio τ(t), as Theorem 7 says "
                f"({mine[0].scenario.label})."
            ),
            _ratio,
            by_scenario,
        ),
        Claim(
            lambda mine: (
                f"FedPCS uses more of the cap than random sampling, in every round ({mine[0].scenario.label})."
            ),
            _usage,
            by_scenario,
        ),
    ),
    tables=_table,
    drawings=_drawings,
    records=_records,
)
