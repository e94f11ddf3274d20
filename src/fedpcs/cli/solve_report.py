"""What `fedpcs solve` and `fedpcs verify` say: one JSON object, or a short table for people."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from fedpcs import _validate
from fedpcs._caps import allowance
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.game.config import GameFile
from fedpcs.game.equilibrium import STATUS_MEANING, Equilibrium
from fedpcs.game.equilibrium_file import StoredEquilibrium
from fedpcs.game.payoffs import Profile, server_cost
from fedpcs.game.rules import Game
from fedpcs.game.sampling_ratio import CohortPlan, cap_path, expected_spend
from fedpcs.game.server_check import ServerCheck, check_server
from fedpcs.game.verify import Certificate, certify, check_profile

# A committed path may leave this share of its cost to be saved; its search stops at small steps in the cost.
MOST_SERVER_IMPROVEMENT = 0.005


@dataclass(frozen=True)
class Verification:
    """A file's certificate, recomputed.

    Attributes:
        certificate: The clients' half.
        server: The leader's half, for rewards that claim to be a commitment.
        server_cost: (rounds,) the server's expected cost.
        mean_budget_error: Largest distance between the mean budgets the file states and those its budgets have.
        is_equilibrium: Whether all of it holds to the tolerance asked for.
    """

    certificate: Certificate
    server: ServerCheck | None
    server_cost: FloatArray
    mean_budget_error: float
    is_equilibrium: bool


def verify_stored(stored: StoredEquilibrium, game: Game, config: GameFile) -> Verification:
    """Recompute the certificate of a stored profile under `game`, from the file's arrays alone.

    Raises:
        InvalidInput: The arrays are not a profile of this game.
    """
    _check_same_game(stored, game, config)
    profile = Profile(stored.budget, stored.retention, stored.mean_budget)
    check_profile(profile, game)
    tolerance = float(config.tolerance)
    certificate = certify(profile, stored.reward, game, tolerance=tolerance)
    server = check_server(game, stored.reward) if config.reward == "commitment" else None
    leads = server is None or server.improvement <= MOST_SERVER_IMPROVEMENT
    error = float(np.abs(stored.budget @ game.population.weight - stored.mean_budget).max())
    return Verification(
        certificate,
        server,
        server_cost(stored.budget, stored.reward, game),
        error,
        certificate.is_equilibrium(tolerance) and error <= 1e-6 * float(stored.mean_budget.min()) and leads,
    )


def _check_same_game(stored: StoredEquilibrium, game: Game, config: GameFile) -> None:
    rounds = game.last_round + 1
    for name, array in (("reward", stored.reward), ("mean_budget", stored.mean_budget)):
        if array.shape != (rounds,) or not np.isfinite(array).all():
            raise InvalidInput(f"{name} in the file must be {rounds} finite numbers, got shape {array.shape}.")
    _validate.vector("reward in the file", stored.reward, low=0.0, high=game.reward_max)
    if config.budget_cap is not None:
        _check_caps(stored, game, config.budget_cap)
    crowd = game.population
    stated = {"privacy_aversion": crowd.privacy_aversion, "initial_budget": crowd.initial_budget}
    stated |= {"weight": crowd.weight, "num_samples": crowd.num_samples, "cohort_size": game.cohort_size}
    for name, ours in stated.items():
        theirs = getattr(stored, name)
        if theirs is None:
            continue
        if theirs.shape != ours.shape or not np.allclose(theirs, ours, rtol=0.0, atol=1e-9):
            meant = "another population, seed, num_clients or cohort"
            raise InvalidInput(f"{name} in the file is not this game's: {meant}? Give the game it was solved for.")
    if isinstance(config.reward, str):
        return
    if not np.allclose(stored.reward, game.reward_path(config.reward), rtol=0.0, atol=1e-9):
        raise InvalidInput(
            "reward in the file is not the one this game fixes. Check that file and game belong together."
        )


def _check_caps(stored: StoredEquilibrium, game: Game, budget_cap: float | list[float]) -> None:
    spent = expected_spend(stored.budget, game.cohort_size, game)
    over = np.flatnonzero(spent > allowance(cap_path(budget_cap, game)))
    if over.size:
        t = int(over[0])
        raise InvalidInput(
            f"the file's cohort of round {t} is expected to spend {spent[t]:.4g}, above budget_cap. Solve again."
        )


def solve_object(found: Equilibrium, plan: CohortPlan | None, seconds: float) -> dict[str, Any]:
    """Return the JSON object of `fedpcs solve`."""
    welfare, price = found.welfare()
    result: dict[str, Any] = {
        "status": found.status,
        "iterations": found.iterations,
        "residual": found.residual,
        "settled_by": found.settled_by,
        "reward": found.reward.path.tolist(),
        "reward_policy": {
            "name": found.reward.policy,
            "is_settled": found.reward.is_settled,
            "interior_rounds": None if found.reward.is_interior is None else int(found.reward.is_interior.sum()),
            "equilibria_computed": found.reward.evaluations,
        },
        "mean_budget": found.profile.mean_budget.tolist(),
        "exploitability": _exploitability(found.certificate),
        "server_cost": {"total": float(found.cost.sum()), "per_round": found.cost.tolist()},
        "welfare": asdict(welfare),
        "price_of_anarchy": asdict(price),
        "cohort_size": found.game.cohort_size.astype(int).tolist(),
    }
    if plan is not None:
        result["budget_cap"] = {"cap": plan.budget_cap.tolist(), "usage": plan.usage.tolist()}
    return _finite({**result, "seconds": seconds})


def verify_object(checked: Verification, tolerance: float) -> dict[str, Any]:
    """Return the JSON object of `fedpcs verify`."""
    return _finite(
        {
            "status": _verdict(checked, tolerance)[0],
            "tolerance": tolerance,
            "exploitability": _exploitability(checked.certificate),
            "inconsistency": checked.certificate.inconsistency,
            "mean_budget_error": checked.mean_budget_error,
            "server_cost": {"total": float(checked.server_cost.sum()), "per_round": checked.server_cost.tolist()},
            "server": None if checked.server is None else asdict(checked.server),
        }
    )


def print_solution(found: Equilibrium, plan: CohortPlan | None, seconds: float, console: Console) -> None:
    """Print the short table of `fedpcs solve`."""
    welfare, price = found.welfare()
    mean, path = found.profile.mean_budget, found.reward.path
    table = Table(title="FedPCS game", title_justify="left", show_header=False)
    how = "" if found.settled_by != "search" else ", by search: sweeps alone do not come to rest"
    table.add_row("status", f"{found.status} after {found.iterations} sweeps, {seconds:.1f} s{how}")
    table.add_row("exploitability", _gain_words(found.certificate))
    table.add_row("rewards", f"{found.reward.policy}: {_trace(path)}")
    table.add_row("mean budget", _trace(mean))
    table.add_row("server cost", f"{found.cost.sum():,.0f} over {mean.size} rounds")
    table.add_row(
        "welfare",
        f"{welfare.equilibrium:,.0f} here · {welfare.budget_blind:,.0f} under a budget-blind sampler · "
        f"{welfare.optimum_bounded:,.0f} at best",
    )
    table.add_row(
        "price of anarchy", "welfare is not positive" if price.equilibrium is None else f"{price.equilibrium:.3f}"
    )
    if plan is not None:
        size = plan.cohort_size.astype(int)
        table.add_row(
            "cohort under caps", f"{size[0]} → {size[-1]} clients, usage {plan.usage.min():.0%}–{plan.usage.max():.0%}"
        )
    console.print(table)
    if found.status != "converged":
        console.print(STATUS_MEANING[found.status])


def print_verification(checked: Verification, tolerance: float, console: Console) -> None:
    """Print the short table of `fedpcs verify`."""
    table = Table(title="Certificate", title_justify="left", show_header=False)
    table.add_row("verdict", f"{_verdict(checked, tolerance)[1]} to tolerance {tolerance:g}")
    table.add_row("exploitability", _gain_words(checked.certificate))
    table.add_row("dynamics", f"off by at most {checked.certificate.inconsistency:.1e}")
    table.add_row("server cost", f"{checked.server_cost.sum():,.0f}")
    if checked.server is not None:
        table.add_row(
            "server's alternatives",
            f"best constant {checked.server.best_constant:,.0f} (R = {checked.server.best_constant_reward:.2f}) · "
            f"per-round {checked.server.per_round:,.0f} · the best alternative saves {checked.server.improvement:.2%}",
        )
    console.print(table)


def _verdict(checked: Verification, tolerance: float) -> tuple[str, str]:
    if checked.is_equilibrium:
        return "equilibrium", "an equilibrium"
    if checked.certificate.is_too_coarse_for(tolerance):
        return (
            "not-resolved",
            "cannot be shown to be an equilibrium: gain and resolution together are above the tolerance,",
        )
    return "not-an-equilibrium", "NOT an equilibrium"


def _exploitability(certificate: Certificate) -> dict[str, float]:
    names = ("mean", "max", "relative", "resolution")
    return {name: float(getattr(certificate, name)) for name in names}


def _gain_words(certificate: Certificate) -> str:
    return (
        f"{certificate.relative:.2e} of the best utility on average, at most {certificate.resolution:.1e} more unseen; "
        f"largest gain {certificate.max:.2e}"
    )


def _trace(path: FloatArray) -> str:
    return f"{path[0]:.2f} → {path[path.size // 2]:.2f} → {path[-1]:.2f} (rounds 0, {path.size // 2}, {path.size - 1})"


def _finite(value: dict[str, Any]) -> dict[str, Any]:
    """Return the object with what JSON cannot say (NaN, inf) replaced by null."""
    return {key: _finite_value(item) for key, item in value.items()}


def _finite_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _finite(value)
    if isinstance(value, list):
        return [_finite_value(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
