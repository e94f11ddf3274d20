"""Social welfare under FedPCS and under samplers that ignore budgets, and the price of anarchy (paper, Fig. 5).

Welfare is Σ_t Σ_i (ρ_i^t R_t − ψ_i (ρ_i^t)²), so it counts what clients are paid: all cases are compared under the same
rewards, those FedPCS's server announces. The yardstick is the best welfare that budgets within [ρ_L, ρ_H] allow, each
round for itself. The paper's random sampling assumes that everyone sits at ρ_L; a rational client of a random sampler
does not, so both are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.exhibits.claims import CANNOT_SAY, Claim, Judged, on_grade, on_lead, points, unless
from fedpcs.exhibits.exhibit import Exhibit
from fedpcs.exhibits.games import FromGames, Games, GameSpec, lines_drawing, path_of
from fedpcs.exhibits.registry import Profile
from fedpcs.game import welfare
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.game.schedule import played_budget
from fedpcs.report.page import Drawing, Table, Verdict
from fedpcs.studies.paired import mean_and_std, paired_difference

OPTIMUM, FEDPCS, BLIND = "optimum within bounds", "FedPCS", "budget-blind, rational"
STATIC, LOWEST = "budget-blind, static", "budget-blind, all at the lowest"
UNBOUNDED = "social optimum without bounds"  # which no client may choose
# "Closely approximates" and "significant gap", in shares of the optimum.
_CLOSE, _HALF = 0.9, 0.5
_WIDE = 0.1


@dataclass(frozen=True)
class Outcome:
    """One population's welfare: its games, totals, prices of anarchy, and (rounds,) welfare by case of who plays."""

    seed: int
    aware: Equilibrium
    blind: Equilibrium
    worth: welfare.Welfare
    price: welfare.PriceOfAnarchy
    by_round: Mapping[str, FloatArray]

    @property
    def equilibria(self) -> dict[str, Equilibrium]:
        """Both games."""
        return {"FedPCS": self.aware, "budget-blind, same rewards": self.blind}

    @property
    def totals(self) -> dict[str, float]:
        """Welfare of the whole run: by case, and of what no client may choose."""
        played = {case: float(path.sum()) for case, path in self.by_round.items()}
        return played | {UNBOUNDED: self.worth.optimum_unbounded}

    def share(self, case: str) -> float:
        """Welfare of a case over the run, as a share of the bounded optimum's."""
        return float(self.by_round[case].sum() / self.worth.optimum_bounded)


def solve(games: Games, seed: int, _: Profile = "quick") -> Outcome:
    """Solve both games of a population under FedPCS's rewards and return their welfare, beside its yardsticks."""
    aware = games.solve(GameSpec(seed))
    return assess(seed, aware, games.solve(GameSpec(seed, "budget-blind", reward=path_of(aware))))


def assess(seed: int, aware: Equilibrium, blind: Equilibrium) -> Outcome:
    """Return welfare of both equilibria and of their yardsticks, all under the first one's rewards."""
    game, path = aware.game, aware.reward.path
    worth, price = welfare.assess(aware.profile.budget, blind.profile.budget, path, game)
    budgets = {
        OPTIMUM: welfare.optimal_budget(path, game),
        FEDPCS: aware.profile.budget,
        BLIND: blind.profile.budget,
        STATIC: played_budget(aware, "static"),
        LOWEST: played_budget(aware, "selfish"),
    }
    rounds = range(game.last_round + 1)
    by_round = {
        case: np.array([welfare.social_welfare(budget[t : t + 1], path[t : t + 1], game) for t in rounds])
        for case, budget in budgets.items()
    }
    return Outcome(seed, aware, blind, worth, price, by_round)


def _shares(outcomes: Sequence[Outcome], case: str) -> list[float]:
    return [one.share(case) for one in outcomes]


def _headline(outcomes: Sequence[Outcome]) -> str:
    aware, blind = (mean_and_std(_shares(outcomes, case))[0] for case in (FEDPCS, BLIND))
    return (
        f"Clients of FedPCS reach {_format.share(aware)} of the best welfare their bounds allow; rational clients of "
        f"a budget-blind sampler, {_format.share(blind)} under the same rewards."
    )


def _closeness(outcomes: Sequence[Outcome]) -> Judged:
    aware = _shares(outcomes, FEDPCS)
    losing = float(np.mean([(one.by_round[FEDPCS] < 0.0).mean() for one in outcomes]))
    why = ": little is paid there, and budgets stay where earlier rewards brought them" if losing else ""
    found = (
        f"It reaches {_format.mean_and_spread(aware)} of the bounded optimum over the run (closely means "
        f"{_format.percent(_CLOSE)}, in part {_format.percent(_HALF)}). In {_format.percent(losing)} of rounds its "
        f"welfare is negative{why}."
    )
    return unless(losing > 0.0, on_grade(aware, _CLOSE, _HALF)), found  # the claim is of every round


def _gap(outcomes: Sequence[Outcome]) -> Judged:
    aware, blind, lowest = (_shares(outcomes, case) for case in (FEDPCS, BLIND, LOWEST))
    gap = paired_difference(aware, blind)
    found = (
        f"Rational clients: FedPCS less budget-blind is {points(gap)} of the optimum. Only if everyone sat at the "
        f"lowest budget, as the paper assumes of random sampling, would it be "
        f"{points(paired_difference(aware, lowest))}; rational clients do not. Significant means "
        f"{100.0 * _WIDE:g} points."
    )
    return on_lead([gap], gap, _WIDE), found


def _random_bound(outcomes: Sequence[Outcome]) -> Judged:
    held = [one for one in outcomes if one.price.paper_random_premise]
    prices = [one.worth.optimum_unbounded / one.worth.worst_case for one in held]
    is_bounded = all(
        price >= (1.0 - 1e-9) * one.price.paper_random_bound for price, one in zip(prices, held, strict=True)
    )
    found = (
        f"Its premise, positive welfare at the lowest budget, holds for {len(held)} of {len(outcomes)} populations. "
        f"There the price, against the unbounded optimum, is {_prices(prices)}; the bound is "
        f"{_format.amount_and_spread([one.price.paper_random_bound for one in outcomes])}."
    )
    return _if_held(held, is_bounded), found


def _private_bound(outcomes: Sequence[Outcome]) -> Judged:
    held = [one for one in outcomes if one.price.paper_private_premise]
    prices = [one.worth.optimum_unbounded / one.worth.equilibrium for one in outcomes if one.worth.equilibrium > 0.0]
    is_bounded = all(
        0.0 < one.worth.optimum_unbounded <= one.price.paper_private_bound * one.worth.equilibrium for one in held
    )
    found = (
        f"What its proof assumes (mean reward at most the mean aversion, positive welfare at the highest budget) holds "
        f"for {len(held)} of {len(outcomes)} populations, so elsewhere it bounds nothing. The bound would be "
        f"{_format.amount_and_spread([one.price.paper_private_bound for one in outcomes])}; the price against the "
        f"unbounded optimum is {_prices(prices)}."
    )
    return _if_held(held, is_bounded), found


def _prices(prices: Sequence[float]) -> str:
    return _format.amount_and_spread(prices) if prices else "not defined"


def _if_held(held: Sequence[Outcome], is_bounded: bool) -> Verdict:
    return CANNOT_SAY if not held else "agrees" if is_bounded else "differs"


def _tables(outcomes: Sequence[Outcome]) -> Iterable[Table]:
    rows = []
    for case in outcomes[0].totals:
        totals = [one.totals[case] for one in outcomes]
        shares = [total / one.worth.optimum_bounded for total, one in zip(totals, outcomes, strict=True)]
        price = "none: welfare not positive"
        if min(shares) > 0.0:
            price = _format.amount_and_spread([1.0 / share for share in shares])
        price = "–" if case == UNBOUNDED else price  # nobody plays it
        rows.append((case, _format.amount_and_spread(totals), _format.mean_and_spread(shares), price))
    yield Table(
        "Welfare over the run, mean ± standard deviation over populations",
        ("clients", "welfare", "share of the optimum", "price of anarchy"),
        tuple(rows),
        {"price of anarchy": "welfare of the optimum within bounds, divided by this welfare; 1 is best"},
        note="All under the rewards FedPCS's server announces. To a rational client all samplers that do not look at "
        "budgets, random among them, are one game: budget-blind.",
    )
    prices = [one.price for one in outcomes]
    random = _format.amount_and_spread([one.paper_random_bound for one in prices])
    private = _format.amount_and_spread([one.paper_private_bound for one in prices])
    num_random, num_private = (
        f"{sum(held)} of {len(prices)}"
        for held in zip(*((one.paper_random_premise, one.paper_private_premise) for one in prices), strict=True)
    )
    yield Table(
        "The paper's bounds on the price of anarchy, against the unbounded optimum",
        ("bound", "value", "premise holds in"),
        (
            ("Proposition 4, at least (all at the lowest)", random, num_random),
            ("Theorem 6, at most (FedPCS)", private, num_private),
        ),
    )


def _drawings(outcomes: Sequence[Outcome]) -> Iterable[Drawing]:
    paths = {case: np.array([one.by_round[case] for one in outcomes]) for case in outcomes[0].by_round}
    note = "All under the rewards FedPCS's server announces."
    yield lines_drawing("welfare by round", paths, "welfare Σ(ρR − ψρ²) of a round", note=note)


def _records(outcomes: Sequence[Outcome]) -> Iterable[dict[str, object]]:
    for one in outcomes:
        for case, total in one.totals.items():
            share = total / one.worth.optimum_bounded
            yield {"seed": one.seed, "case": case, "welfare": total, "share of bounded optimum": share}


EXHIBIT = Exhibit(
    title="Social welfare and the price of anarchy",
    gather=FromGames(solve=solve),
    headline=_headline,
    claims=(
        Claim("FedPCS closely approximates the socially optimal strategy throughout training.", _closeness),
        Claim("There is a significant gap between FedPCS and random sampling.", _gap),
        Claim(
            "Proposition 4: with everyone at the lowest budget the price of anarchy is at least ΣR Σ(1/ψ) / "
            "(4Nρ_L(T+1)).",
            _random_bound,
        ),
        Claim("Theorem 6: FedPCS's price of anarchy is at most R_max Σ(1/ψ) / (2N).", _private_bound),
    ),
    tables=_tables,
    drawings=_drawings,
    records=_records,
)
