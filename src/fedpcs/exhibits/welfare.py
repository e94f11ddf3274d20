"""Social welfare under FedPCS and under samplers that ignore budgets, and the price of anarchy (paper, Fig. 5).

Welfare is Σ_t Σ_i (ρ_i^t R_t − ψ_i (ρ_i^t)²), so it counts what clients are paid: trials are compared under the same
rewards, those FedPCS's server announces. The yardstick is the best welfare that budgets within [ρ_L, ρ_H] allow, each
round for itself. The paper's random sampling assumes that everyone sits at ρ_L; a rational client of a random sampler
does not, so both are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.exhibits import solved_games as shared
from fedpcs.exhibits import verdicts
from fedpcs.exhibits.profiles import Profile
from fedpcs.exhibits.solved_games import Case, Games
from fedpcs.exhibits.welfare_figures import round_figure
from fedpcs.game import welfare
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.report.page import Drawing, Finding, Page, Table, Verdict
from fedpcs.studies.paired import PairedDifference, mean_and_std, paired_difference

OPTIMUM, FEDPCS, BLIND = "optimum within bounds", "FedPCS", "budget-blind, rational"
STATIC, LOWEST = "budget-blind, static", "budget-blind, all at the lowest"
UNBOUNDED = "social optimum without bounds"  # which no client may choose
# "Closely approximates" and "significant gap", in shares of the optimum.
_CLOSE, _HALF = 0.9, 0.5
_WIDE = 0.1


@dataclass(frozen=True)
class Outcome:
    """One population's welfare.

    Attributes:
        aware: FedPCS's certified equilibrium.
        blind: The certified equilibrium of the same rewards under a budget-blind sampler.
        worth: Totals over the run.
        price: Prices of anarchy, and the paper's bounds with their premises.
        by_round: (rounds,) welfare of each trial.
    """

    aware: Equilibrium
    blind: Equilibrium
    worth: welfare.Welfare
    price: welfare.PriceOfAnarchy
    by_round: Mapping[str, FloatArray]

    def share(self, trial: str) -> float:
        """Welfare of a trial over the run, as a share of the bounded optimum's."""
        return float(self.by_round[trial].sum() / self.worth.optimum_bounded)


def make_page(profile: Profile, games: Games | None = None) -> Page:
    """Solve both games for every population under FedPCS's rewards and compare welfare."""
    games = games or Games()

    def solved(seed: int) -> tuple[Equilibrium, Equilibrium]:
        aware = games.solve(Case(seed))
        return aware, games.solve(Case(seed, "budget-blind", reward=shared.path_of(aware)))

    seeds, failures = shared.certified_seeds(profile, solved)
    return page_of([assess(*solved(seed)) for seed in seeds], seeds, failures, games, profile)


def assess(aware: Equilibrium, blind: Equilibrium) -> Outcome:
    """Return welfare of an equilibrium and of its yardsticks, all under the first one's rewards."""
    game, path = aware.game, aware.reward.path
    worth, price = welfare.assess(aware.profile.budget, blind.profile.budget, path, game)
    budgets = {
        OPTIMUM: welfare.optimal_budget(path, game),
        FEDPCS: aware.profile.budget,
        BLIND: blind.profile.budget,
        STATIC: shared.behaved(aware, "static"),
        LOWEST: shared.behaved(aware, "selfish"),
    }
    by_round = {
        trial: np.array(
            [welfare.social_welfare(budget[t : t + 1], path[t : t + 1], game) for t in range(game.last_round + 1)]
        )
        for trial, budget in budgets.items()
    }
    return Outcome(aware, blind, worth, price, by_round)


def page_of(
    outcomes: Sequence[Outcome], seeds: Sequence[int], failures: tuple[Finding, ...], games: Games, profile: Profile
) -> Page:
    """Make the page of welfare already assessed, one outcome per seed."""
    is_told = bool(outcomes) and all(one.worth.optimum_bounded > 0.0 for one in outcomes)
    used = {"FedPCS": [one.aware for one in outcomes], "budget-blind, same rewards": [one.blind for one in outcomes]}
    return Page(
        name="welfare",
        title="Social welfare and the price of anarchy",
        headline=_headline(outcomes) if is_told else "No share of the optimum can be told: no equilibrium, no reward.",
        facts=shared.facts(games, profile),
        shrunk=shared.shrunk(profile),
        findings=(*(_findings(outcomes) if is_told else ()), *failures),
        tables=(_table(outcomes), _bounds(outcomes)) if is_told else (),
        drawings=_drawings(outcomes) if is_told else (),
        settings=shared.settings(games, profile),
        commands=shared.commands("welfare", profile),
        provenance=shared.certificates(used),
        records=tuple(
            {
                "seed": seed,
                "trial": trial,
                "welfare": total,
                "share of bounded optimum": total / one.worth.optimum_bounded if is_told else None,
            }
            for seed, one in zip(seeds, outcomes, strict=True)
            for trial, total in _totals(one).items()
        ),
    )


def _totals(one: Outcome) -> dict[str, float]:
    """Return the welfare of the whole run: of those who played, and of what no client may choose."""
    return {trial: float(path.sum()) for trial, path in one.by_round.items()} | {UNBOUNDED: one.worth.optimum_unbounded}


def _shares(outcomes: Sequence[Outcome], trial: str) -> list[float]:
    return [one.share(trial) for one in outcomes]


def _headline(outcomes: Sequence[Outcome]) -> str:
    aware, blind = (mean_and_std(_shares(outcomes, trial))[0] for trial in (FEDPCS, BLIND))
    return (
        f"Clients of FedPCS reach {_format.share(aware)} of the best welfare their bounds allow; rational clients of "
        f"a budget-blind sampler, {_format.share(blind)} under the same rewards."
    )


def _findings(outcomes: Sequence[Outcome]) -> tuple[Finding, ...]:
    aware, blind = _shares(outcomes, FEDPCS), _shares(outcomes, BLIND)
    lowest = _shares(outcomes, LOWEST)
    gap, far = paired_difference(aware, blind), paired_difference(aware, lowest)
    losing = float(np.mean([(one.by_round[FEDPCS] < 0.0).mean() for one in outcomes]))
    why = ": little is paid there, and budgets stay where earlier rewards brought them" if losing else ""
    return (
        Finding(
            "FedPCS closely approximates the socially optimal strategy throughout training.",
            f"It reaches {_format.mean_and_spread(aware)} of the bounded optimum over the run (closely means "
            f"{_format.percent(_CLOSE)}, in part {_format.percent(_HALF)}). In "
            f"{_format.percent(losing)} of rounds its welfare is negative{why}.",
            verdict_on_closeness(aware, losing),
        ),
        Finding(
            "There is a significant gap between FedPCS and random sampling.",
            f"Rational clients: FedPCS less budget-blind is {shared.points(gap)} of the optimum. "
            f"Only if everyone sat at the lowest budget, as the paper assumes of random sampling, would it be "
            f"{shared.points(far)}; rational clients do not. Significant means {100.0 * _WIDE:g} points.",
            verdict_on_gap(gap),
        ),
        _random_bound(outcomes),
        _private_bound(outcomes),
    )


def verdict_on_closeness(shares: Sequence[float], losing_rounds: float) -> Verdict:
    """Return whether welfare is close to the optimum (90 % and more), and in every round rather than in sum."""
    verdict = verdicts.on_grade(shares, _CLOSE, _HALF)
    return "in part" if verdict == "agrees" and losing_rounds > 0.0 else verdict


def verdict_on_gap(rational: PairedDifference) -> Verdict:
    """Return whether FedPCS leads rational clients of random sampling, and by a tenth of the optimum."""
    return verdicts.on_lead([rational], rational, _WIDE)


def _random_bound(outcomes: Sequence[Outcome]) -> Finding:
    bounds = [one.price.paper_random_bound for one in outcomes]
    prices = [_unbounded_price(one) for one in outcomes]
    known = [(price, bound) for price, bound in zip(prices, bounds, strict=True) if price is not None]
    verdict: Verdict = "cannot say"
    if known:
        verdict = "agrees" if all(price >= (1.0 - 1e-9) * bound for price, bound in known) else "differs"
    held = f"{len(known)} of {len(outcomes)} populations"
    return Finding(
        "Proposition 4: with everyone at the lowest budget the price of anarchy is at least ΣR Σ(1/ψ) / (4Nρ_L(T+1)).",
        f"Its premise, positive welfare at the lowest budget, holds for {held}. There the price, against the unbounded "
        f"optimum, is {_format.amount_and_spread([price for price, _ in known]) if known else 'not defined'}; the "
        f"bound is {_format.amount_and_spread(bounds)}.",
        verdict,
    )


def _unbounded_price(one: Outcome) -> float | None:
    return one.worth.optimum_unbounded / one.worth.worst_case if one.price.paper_random_premise else None


def _private_bound(outcomes: Sequence[Outcome]) -> Finding:
    held = [one for one in outcomes if one.price.paper_private_premise]
    bounds = [one.price.paper_private_bound for one in outcomes]
    prices = [one.worth.optimum_unbounded / one.worth.equilibrium for one in outcomes if one.worth.equilibrium > 0.0]
    verdict: Verdict = "cannot say"
    if held:
        is_bounded = all(
            0.0 < one.worth.optimum_unbounded <= one.price.paper_private_bound * one.worth.equilibrium for one in held
        )
        verdict = "agrees" if is_bounded else "differs"
    return Finding(
        "Theorem 6: FedPCS's price of anarchy is at most R_max Σ(1/ψ) / (2N).",
        f"What its proof assumes (mean reward at most the mean aversion, positive welfare at the highest budget) holds "
        f"for {len(held)} of {len(outcomes)} populations, so elsewhere it bounds nothing. The bound would be "
        f"{_format.amount_and_spread(bounds)}; the price against the unbounded optimum is "
        f"{_format.amount_and_spread(prices) if prices else 'not defined'}.",
        verdict,
    )


def _table(outcomes: Sequence[Outcome]) -> Table:
    rows = []
    for trial in _totals(outcomes[0]):
        totals = [_totals(one)[trial] for one in outcomes]
        shares = [total / one.worth.optimum_bounded for total, one in zip(totals, outcomes, strict=True)]
        prices = [1.0 / share for share in shares if share > 0.0]
        price = _format.amount_and_spread(prices) if len(prices) == len(shares) else "none: welfare not positive"
        told = "–" if trial == UNBOUNDED else price  # nobody plays it
        rows.append((trial, _format.amount_and_spread(totals), _format.mean_and_spread(shares), told))
    return Table(
        "Welfare over the run, mean ± standard deviation over populations",
        ("clients", "welfare", "share of the optimum", "price of anarchy"),
        tuple(rows),
        {"price of anarchy": "welfare of the optimum within bounds, divided by this welfare; 1 is best"},
        note="All under the rewards FedPCS's server announces. To a rational client all samplers that do not look at "
        "budgets, random among them, are one game: budget-blind.",
    )


def _bounds(outcomes: Sequence[Outcome]) -> Table:
    num = len(outcomes)
    random = sum(one.price.paper_random_premise for one in outcomes)
    private = sum(one.price.paper_private_premise for one in outcomes)
    return Table(
        "The paper's bounds on the price of anarchy, against the unbounded optimum",
        ("bound", "value", "premise holds in"),
        (
            (
                "Proposition 4, at least (all at the lowest)",
                _format.amount_and_spread([one.price.paper_random_bound for one in outcomes]),
                f"{random} of {num}",
            ),
            (
                "Theorem 6, at most (FedPCS)",
                _format.amount_and_spread([one.price.paper_private_bound for one in outcomes]),
                f"{private} of {num}",
            ),
        ),
    )


def _drawings(outcomes: Sequence[Outcome]) -> tuple[Drawing, ...]:
    aware, blind = (mean_and_std(_shares(outcomes, trial))[0] for trial in (FEDPCS, BLIND))
    title = (
        f"Over the run FedPCS reaches {_format.share(aware)} of the best welfare, a budget-blind sampler with "
        f"rational clients {_format.share(blind)}"
    )
    caption = f"Welfare by round, mean of {len(outcomes)} populations"
    paths = {trial: np.mean([one.by_round[trial] for one in outcomes], axis=0) for trial in outcomes[0].by_round}
    return (Drawing("welfare by round", lambda: round_figure(paths, title, caption)),)
