"""Cohorts under falling privacy caps: τ(t), and how much of each cap a cohort uses (paper, Figs. 7 and 8).

In round t the budgets of a cohort may add up to at most B_t. The paper lets B_t fall evenly from 700 to 300
(Fashion-MNIST, 30 rounds) and from 700 to 400 (Tiny-ImageNet, 20 rounds), for 100 clients; other crowds get caps in
proportion. K_t is the one of least cost, sampling variance included, whose expected budget fits
(`fedpcs.game.sampling_ratio`); cohorts drawn are then cut to fit. Random sampling is shown twice: drawing as many
clients as FedPCS from the same crowd, and from the crowd it would have itself, with cohorts planned for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedpcs import _format, _random
from fedpcs._validate import FloatArray
from fedpcs.exhibits import solved_games as shared
from fedpcs.exhibits.privacy_usage_figures import ratio_figure, usage_figure
from fedpcs.exhibits.profiles import Profile
from fedpcs.exhibits.solved_games import Case, Games
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.game.payoffs import cohort_inclusion
from fedpcs.game.rules import Game
from fedpcs.game.sampling_ratio import CohortPlan, cut_to_cap, solve_with_caps
from fedpcs.report.figures.caps import drawn_usage
from fedpcs.report.page import Drawing, Finding, Page, Table, Verdict
from fedpcs.sampling.designs import pivotal
from fedpcs.studies.paired import PairedDifference, mean_and_std, paired_difference

FEDPCS, SAME, OWN = "FedPCS", "random, same cohorts", "random, its own cohorts"
NUM_DRAWS = 100
_PAPER_CLIENTS = 100
_GRADUAL = 0.9  # share of steps in which a ratio that falls gradually stays or falls


@dataclass(frozen=True)
class Scenario:
    """A path of caps.

    Attributes:
        name: What the paper calls it by.
        first: B_0 for 100 clients.
        last: B_T for 100 clients.
        last_round: T.
    """

    name: str
    first: float
    last: float
    last_round: int

    def caps(self, num_clients: int) -> FloatArray:
        """Return B_0…B_T in even steps, in proportion to the crowd."""
        return np.linspace(self.first, self.last, self.last_round + 1) * num_clients / _PAPER_CLIENTS


SCENARIOS = (Scenario("Fashion-MNIST", 700.0, 300.0, 30), Scenario("Tiny-ImageNet", 700.0, 400.0, 20))


@dataclass(frozen=True)
class Outcome:
    """One population under one path of caps.

    Attributes:
        aware: FedPCS's certified equilibrium with cohorts that fit it.
        plan: Those cohorts.
        blind: The certified equilibrium of the same rewards under random sampling, with cohorts that fit it.
        blind_plan: Those cohorts.
        usage: (rounds,) mean share of the cap that drawn cohorts use, by trial.
    """

    aware: Equilibrium
    plan: CohortPlan
    blind: Equilibrium
    blind_plan: CohortPlan
    usage: Mapping[str, FloatArray]

    @property
    def ratio(self) -> FloatArray:
        """(rounds,) τ(t) of FedPCS."""
        return np.asarray(self.plan.cohort_size / self.aware.game.num_clients)


def make_page(profile: Profile, games: Games | None = None, *, scenarios: Sequence[Scenario] = SCENARIOS) -> Page:
    """Solve every population's game under each path of caps, draw cohorts, and see what they use."""
    games = games or Games()
    outcomes: dict[tuple[str, int], Outcome] = {}

    def solved(seed: int) -> list[Equilibrium]:
        for scenario in scenarios:
            outcomes[scenario.name, seed] = under_caps(games, scenario, seed, plan_again=profile == "paper")
        mine = [outcomes[scenario.name, seed] for scenario in scenarios]
        return [found for one in mine for found in (one.aware, one.blind)]

    seeds, failures = shared.certified_seeds(profile, solved)
    kept = {scenario: [outcomes[scenario.name, seed] for seed in seeds] for scenario in scenarios}
    return page_of(kept, seeds, failures, games, profile)


def under_caps(games: Games, scenario: Scenario, seed: int, *, plan_again: bool) -> Outcome:
    """Solve one population's game under caps for both samplers and draw their cohorts.

    Args:
        games: Where the game without caps comes from.
        scenario: The caps.
        seed: Of the population.
        plan_again: Whether rewards are planned anew for the capped cohorts; otherwise those of the game without caps.
    """
    free = games.solve(Case(seed, last_round=scenario.last_round))
    caps = scenario.caps(free.game.num_clients)
    is_policy = plan_again and isinstance(games.base.reward, str)
    reward = games.base.reward if is_policy else free.reward.path
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
    return Outcome(aware, plan, blind, blind_plan, usage)


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


def page_of(
    outcomes: Mapping[Scenario, Sequence[Outcome]],
    seeds: Sequence[int],
    failures: tuple[Finding, ...],
    games: Games,
    profile: Profile,
) -> Page:
    """Make the page of outcomes by scenario and seed."""
    told = {scenario: mine for scenario, mine in outcomes.items() if mine}
    findings = [finding for scenario, mine in told.items() for finding in _findings(scenario, mine)]
    used = {f"{scenario.name} caps, FedPCS": [one.aware for one in mine] for scenario, mine in told.items()}
    used |= {f"{scenario.name} caps, random": [one.blind for one in mine] for scenario, mine in told.items()}
    held = ("Rewards are those of the game without caps; the paper profile plans them anew for the capped cohorts.",)
    return Page(
        name="privacy-usage",
        title="Privacy usage and sampling ratio under falling caps",
        headline=_headline(told),
        facts=shared.facts(games, profile, ratios="τ(t) from the caps"),
        shrunk=shared.shrunk(profile) + (held if profile == "quick" else ()),
        findings=(*findings, *failures),
        tables=(_table(told),) if told else (),
        drawings=tuple(drawing for scenario, mine in told.items() for drawing in _drawings(scenario, mine)),
        settings={**shared.settings(games, profile), "draws": {"cohorts drawn in each round": str(NUM_DRAWS)}},
        commands=shared.commands("privacy-usage", profile),
        provenance=shared.certificates(used),
        records=tuple(
            {
                "caps": scenario.name,
                "seed": seed,
                "round": t,
                "cap": float(one.plan.budget_cap[t]),
                "sampling ratio": float(one.ratio[t]),
                **{f"usage, {trial}": float(path[t]) for trial, path in one.usage.items()},
            }
            for scenario, mine in told.items()
            for seed, one in zip(seeds, mine, strict=True)
            for t in range(scenario.last_round + 1)
        ),
    )


def _mean_usage(outcomes: Sequence[Outcome], trial: str) -> list[float]:
    return [float(one.usage[trial].mean()) for one in outcomes]


def _headline(told: Mapping[Scenario, Sequence[Outcome]]) -> str:
    if not told:
        return "No population's games all certified under caps, so no usage can be compared."
    scenario, mine = next(iter(told.items()))
    aware, same, own = (mean_and_std(_mean_usage(mine, trial))[0] for trial in (FEDPCS, SAME, OWN))
    first, last = (mean_and_std([float(one.ratio[t]) for one in mine])[0] for t in (0, -1))
    return (
        f"As caps fall from {_format.amount(scenario.first)} to {_format.amount(scenario.last)} the sampling ratio "
        f"goes from {first:.2f} to {last:.2f}; FedPCS's cohorts use {_format.share(aware)} of the cap, random ones "
        f"of the same size {_format.share(same)}, random ones planned for themselves {_format.share(own)}."
    )


def _findings(scenario: Scenario, mine: Sequence[Outcome]) -> tuple[Finding, ...]:
    same = paired_difference(_mean_usage(mine, FEDPCS), _mean_usage(mine, SAME))
    own = paired_difference(_mean_usage(mine, FEDPCS), _mean_usage(mine, OWN))
    higher, lower = (
        float(np.mean([compare(one.usage[FEDPCS], one.usage[SAME]) for one in mine]))
        for compare in (np.greater, np.less)  # equal where everyone is drawn
    )
    first, last = ([float(one.ratio[t]) for one in mine] for t in (0, -1))
    falls = [falling_share(one.ratio) for one in mine]
    words = f"{scenario.name} caps, {_format.amount(scenario.first)} to {_format.amount(scenario.last)}"
    return (
        Finding(
            f"As the cap falls the server lowers the sampling ratio τ(t), as Theorem 7 says ({words}).",
            f"τ(t) goes from {_format.with_spread(first, _format.two_decimals)} to "
            f"{_format.with_spread(last, _format.two_decimals)}; it stays or falls in {_format.share(min(falls))} of "
            f"steps or more, by population (agreeing means {_format.share(_GRADUAL)}). Cohorts are those of least "
            "cost, found numerically: Theorem 7's closed form is no optimum of its own problem at any reward above "
            "zero.",
            verdict_on_ratio([one.ratio for one in mine]),
        ),
        Finding(
            f"FedPCS uses more of the cap than random sampling, in every round ({words}).",
            f"FedPCS less random: with the same clients and cohort sizes {shared.points(same)} "
            f"(higher in {_format.share(higher)} of rounds, lower in {_format.share(lower)}); with cohorts "
            f"planned for random sampling's own clients {shared.points(own)}.",
            verdict_on_usage(same, own, lower),
        ),
    )


def falling_share(ratio: FloatArray) -> float:
    """Return the share of steps in which τ(t) stays or falls."""
    return float((np.diff(ratio) <= 0.0).mean())


def verdict_on_ratio(ratios: Sequence[FloatArray]) -> Verdict:
    """Return whether τ(t) ends lower than it began in every population, and falls gradually on the way."""
    if not all(ratio[-1] < ratio[0] for ratio in ratios):
        return "differs"
    return "agrees" if min(falling_share(ratio) for ratio in ratios) >= _GRADUAL else "in part"


def verdict_on_usage(same: PairedDifference, own: PairedDifference, lower: float) -> Verdict:
    """Return whether FedPCS uses more in both comparisons, and less in no round; or in one; or surely in neither."""
    if same.is_above and own.is_above:
        return "agrees" if lower == 0.0 else "in part"
    if same.is_above or own.is_above:
        return "in part"
    return "differs" if same.is_below or own.is_below else "cannot say"


def _table(told: Mapping[Scenario, Sequence[Outcome]]) -> Table:
    rows = []
    for scenario, mine in told.items():
        ends = [_format.with_spread([float(one.ratio[t]) for one in mine], _format.two_decimals) for t in (0, -1)]
        usage = [_format.mean_and_spread(_mean_usage(mine, trial)) for trial in (FEDPCS, SAME, OWN)]
        rows.append((f"{scenario.name}, {scenario.first:g} to {scenario.last:g}", *ends, *usage))
    return Table(
        "Sampling ratio and mean privacy usage, mean ± standard deviation over populations",
        ("caps", "τ(0)", "τ(T)", FEDPCS, SAME, OWN),
        tuple(rows),
        {
            FEDPCS: "share of the cap used by drawn cohorts, mean over rounds",
            SAME: "drawn from FedPCS's clients, as many in each round",
            OWN: "drawn from the clients random sampling would have, as many as fit",
        },
        note="No cohort passes its cap: draws are cut to fit.",
    )


def _drawings(scenario: Scenario, mine: Sequence[Outcome]) -> tuple[Drawing, ...]:
    usage = {trial: np.array([one.usage[trial] for one in mine]) for trial in (FEDPCS, SAME, OWN)}
    ratios = np.array([one.ratio for one in mine])
    return (
        Drawing(f"privacy usage, {scenario.name} caps", lambda: usage_figure(usage, scenario.name)),
        Drawing(f"sampling ratio, {scenario.name} caps", lambda: ratio_figure(ratios, mine[0].plan.budget_cap)),
    )
