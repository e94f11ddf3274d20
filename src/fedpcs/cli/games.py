"""Verbs of the game: solve, verify."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from fedpcs.cli.options import JsonOption, make_folder, verb


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
    from fedpcs.game import config

    settings = config.load_game_file(game_file)
    from rich.console import Console

    from fedpcs.cli import solve_report
    from fedpcs.game import (
        assemble,
        equilibrium,
        equilibrium_file,  # Numba: keys are checked before
        sampling_ratio,
    )

    game = assemble.game_of_file(settings, game_file.parent if game_file else None)
    if out is not None:
        equilibrium_file.check_writable(out)
    if figures is not None:
        make_folder(figures)
    talk = Console(stderr=True)
    began = time.perf_counter()
    plan = None
    with talk.status("Solving the game …"):
        if settings.budget_cap is None:
            found = equilibrium.solve(
                game, settings.reward, response=settings.response, tolerance=settings.tolerance, throw=False
            )
        else:
            found, plan = sampling_ratio.solve_with_caps(
                game,
                settings.reward,
                settings.budget_cap,
                response=settings.response,
                tolerance=settings.tolerance,
                throw=False,
            )
        seconds = time.perf_counter() - began
    if out is not None:
        equilibrium_file.write_equilibrium(out, found)
        talk.print(f"wrote {out}")
    if as_json:
        print(json.dumps(solve_report.solve_object(found, plan, seconds)))
    else:
        solve_report.print_solution(found, plan, seconds, Console())
    if figures is not None:
        from fedpcs.report.figures import game as game_figures

        with talk.status("Drawing …"):
            drawn = game_figures.draw_all(found, plan, figures)
        talk.print(f"drew {len(drawn)} figures in {figures}: {', '.join(path.name for path in drawn)}")
    if found.status != "converged":
        raise typer.Exit(3)


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
    from fedpcs.game import config

    settings = config.load_game_file(game_file)
    from rich.console import Console

    from fedpcs.cli import solve_report
    from fedpcs.game import assemble, equilibrium_file

    game = assemble.game_of_file(settings, game_file.parent if game_file else None)
    stored = equilibrium_file.read_equilibrium(equilibrium_path)
    if settings.budget_cap is not None and stored.cohort_size is not None:
        game = game.with_cohort(stored.cohort_size)
    with Console(stderr=True).status("Checking …"):
        checked = solve_report.verify_stored(stored, game, settings)
    if as_json:
        print(json.dumps(solve_report.verify_object(checked, float(settings.tolerance))))
    else:
        solve_report.print_verification(checked, float(settings.tolerance), Console())
    if not checked.is_equilibrium:
        raise typer.Exit(3)
