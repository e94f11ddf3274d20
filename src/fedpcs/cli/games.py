"""Verbs of the game: solve, verify."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedpcs.cli.options import JsonOption, make_folder, verb

if TYPE_CHECKING:
    from fedpcs._validate import FloatArray
    from fedpcs.game.equilibrium import Equilibrium
    from fedpcs.game.equilibrium_file import Verification
    from fedpcs.game.sampling_ratio import CohortPlan
    from fedpcs.game.verify import Certificate


@verb()
def solve(
    game_file: Annotated[Path | None, typer.Argument(metavar="GAME.toml", help="The game; default if absent.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Write budgets and rewards here.")] = None,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw the game's figures here.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve a game, certify the equilibrium, and draw it.

    Exit code 0 if it converged, 2 for bad input, 3 if no equilibrium was found to the tolerance asked for.

    Example: fedpcs solve game.toml --out equilibrium.npz --figures figures
    """
    from fedpcs.game.config import load_game_file

    config = load_game_file(game_file)
    # Numba comes with what follows: keys are checked before.
    from fedpcs.cli.printing import emit, say, status
    from fedpcs.game import assemble, equilibrium_file
    from fedpcs.game.sampling_ratio import solve_file

    game = assemble.game_of_file(config, game_file.parent if game_file else None)
    if out is not None:
        equilibrium_file.check_writable(out)
    if figures is not None:
        make_folder(figures)
    began = time.perf_counter()
    with status("Solving the game …"):
        found, plan = solve_file(game, config)
    seconds = time.perf_counter() - began
    if out is not None:
        equilibrium_file.write_equilibrium(out, found)
        say(f"wrote {out}", to_stderr=True)
    emit(_solution_object(found, plan, seconds), as_json, lambda: _show_solution(found, plan, seconds))
    if figures is not None:
        _draw(found, plan, figures)
    if found.status != "converged":
        raise typer.Exit(3)


def _draw(found: Equilibrium, plan: CohortPlan | None, folder: Path) -> None:
    from fedpcs.cli.printing import say, status
    from fedpcs.report.figures import game as game_figures

    with status("Drawing …"):
        drawn = game_figures.draw_all(found, plan, folder)
    say(f"drew {len(drawn)} figures in {folder}: {', '.join(path.name for path in drawn)}", to_stderr=True)


@verb()
def verify(
    equilibrium_path: Annotated[Path, typer.Argument(metavar="FILE.npz", help="Written by `fedpcs solve --out`.")],
    game_file: Annotated[
        Path | None, typer.Option("--game", metavar="GAME.toml", help="The game it claims to solve; default if absent.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute an equilibrium's certificate from the file alone.

    Exit code 0 if it is an equilibrium to the game's tolerance, 3 if it is not, 2 for bad input, 6 if the file is
    damaged.

    Example: fedpcs verify equilibrium.npz --game game.toml
    """
    from fedpcs.game.config import load_game_file

    config = load_game_file(game_file)
    from fedpcs.cli.printing import emit, status
    from fedpcs.game import assemble, equilibrium_file

    game = assemble.game_of_file(config, game_file.parent if game_file else None)
    stored = equilibrium_file.read_equilibrium(equilibrium_path)
    tolerance = float(config.tolerance)
    with status("Checking …"):
        checked = equilibrium_file.verify_stored(stored, game, config)
    emit(_verification_object(checked, tolerance), as_json, lambda: _show_verification(checked, tolerance))
    if not checked.is_equilibrium:
        raise typer.Exit(3)


def _solution_object(found: Equilibrium, plan: CohortPlan | None, seconds: float) -> dict[str, Any]:
    welfare, price = found.welfare()
    reward = found.reward
    result = {
        "status": found.status,
        "iterations": found.iterations,
        "residual": found.residual,
        "settled_by": found.settled_by,
        "reward": reward.path,
        "reward_policy": {
            "name": reward.policy,
            "is_settled": reward.is_settled,
            "interior_rounds": None if reward.is_interior is None else reward.is_interior.sum(),
            "equilibria_computed": reward.evaluations,
        },
        "mean_budget": found.profile.mean_budget,
        "exploitability": _exploitability(found.certificate),
        "server_cost": {"total": found.cost.sum(), "per_round": found.cost},
        "welfare": welfare,
        "price_of_anarchy": price,
        "cohort_size": found.game.cohort_size.astype(int),
    }
    caps = {} if plan is None else {"budget_cap": {"cap": plan.budget_cap, "usage": plan.usage}}
    return {**result, **caps, "seconds": seconds}


def _verification_object(checked: Verification, tolerance: float) -> dict[str, Any]:
    return {
        "status": checked.verdict(tolerance),
        "tolerance": tolerance,
        "exploitability": _exploitability(checked.certificate),
        "inconsistency": checked.certificate.inconsistency,
        "mean_budget_error": checked.mean_budget_error,
        "server_cost": {"total": checked.server_cost.sum(), "per_round": checked.server_cost},
        "server": checked.server,
    }


def _show_solution(found: Equilibrium, plan: CohortPlan | None, seconds: float) -> None:
    from fedpcs.cli.printing import print_facts, say
    from fedpcs.game.equilibrium import STATUS_MEANING

    welfare, price = found.welfare()
    how = "" if found.settled_by != "search" else ", by search: sweeps alone do not come to rest"
    facts = {
        "status": f"{found.status} after {found.iterations} sweeps, {seconds:.1f} s{how}",
        "exploitability": _gain(found.certificate),
        "rewards": f"{found.reward.policy}: {_trace(found.reward.path)}",
        "mean budget": _trace(found.profile.mean_budget),
        "server cost": f"{found.cost.sum():,.0f} over {found.cost.size} rounds",
        "welfare": f"{welfare.equilibrium:,.0f} here · {welfare.budget_blind:,.0f} under a budget-blind sampler · "
        f"{welfare.optimum_bounded:,.0f} at best",
        "price of anarchy": "welfare is not positive" if price.equilibrium is None else f"{price.equilibrium:.3f}",
    }
    if plan is not None:
        size = plan.cohort_size.astype(int)
        usage = f"usage {plan.usage.min():.0%}–{plan.usage.max():.0%}"
        facts["cohort under caps"] = f"{size[0]} → {size[-1]} clients, {usage}"
    print_facts(facts, "FedPCS game")
    if found.status != "converged":
        say(STATUS_MEANING[found.status])


def _show_verification(checked: Verification, tolerance: float) -> None:
    from fedpcs.cli.printing import print_facts

    verdicts = {
        "equilibrium": "an equilibrium",
        "not-resolved": "cannot be shown to be an equilibrium: gain and resolution together are above the tolerance,",
        "not-an-equilibrium": "NOT an equilibrium",
    }
    facts = {
        "verdict": f"{verdicts[checked.verdict(tolerance)]} to tolerance {tolerance:g}",
        "exploitability": _gain(checked.certificate),
        "dynamics": f"off by at most {checked.certificate.inconsistency:.1e}",
        "server cost": f"{checked.server_cost.sum():,.0f}",
    }
    if (server := checked.server) is not None:
        facts["server's alternatives"] = (
            f"best constant {server.best_constant:,.0f} (R = {server.best_constant_reward:.2f}) · "
            f"per-round {server.per_round:,.0f} · the best alternative saves {server.improvement:.2%}"
        )
    print_facts(facts, "Certificate")


def _exploitability(certificate: Certificate) -> dict[str, float]:
    return {name: getattr(certificate, name) for name in ("mean", "max", "relative", "resolution")}


def _gain(certificate: Certificate) -> str:
    return (
        f"{certificate.relative:.2e} of the best utility on average, at most {certificate.resolution:.1e} more unseen; "
        f"largest gain {certificate.max:.2e}"
    )


def _trace(path: FloatArray) -> str:
    return f"{path[0]:.2f} → {path[path.size // 2]:.2f} → {path[-1]:.2f} (rounds 0, {path.size // 2}, {path.size - 1})"
