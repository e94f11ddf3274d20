"""The verb of theory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedpcs.cli.options import DataDirOption, JsonOption, make_folder, verb
from fedpcs.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console


@verb()
def theory(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The folder of a finished run.")] = None,
    quadratic: Annotated[bool, typer.Option("--quadratic", help="A quadratic with known constants instead.")] = False,
    rounds: Annotated[int | None, typer.Option(min=2, max=10_000, help="Of the quadratic; 300 if absent.")] = None,
    trajectories: Annotated[
        int | None, typer.Option(min=2, max=1_000_000, help="Of the quadratic; 1,000 if absent.")
    ] = None,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw figures here.")] = None,
    data_dir: DataDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold a run under its bound, and say what to reduce first: noise, sampling, overshoot or drift.

    The run is made again, in a temporary folder, and every step is measured as it is taken.

    Example: fedpcs theory fedpcs-runs/default --figures figures

    Every bound on a problem whose constants are known: fedpcs theory --quadratic
    """
    if (run is None) != quadratic:
        raise InvalidInput("give either RUN or --quadratic. Example: fedpcs theory fedpcs-runs/default")
    if figures is not None:
        make_folder(figures)
    if run is None:
        _of_quadratic(rounds or 300, trajectories or 1000, figures, as_json)
        return
    if rounds is not None or trajectories is not None:
        raise InvalidInput("--rounds and --trajectories are of --quadratic; a run has its own. Leave them out.")
    _of_run(run, data_dir, figures, as_json)


def _of_quadratic(rounds: int, trajectories: int, figures: Path | None, as_json: bool) -> None:
    from rich.console import Console

    from fedpcs.cli import theory_report
    from fedpcs.studies.theory_quadratic import assess_quadratic

    talk = Console(stderr=True)
    with talk.status("Training a quadratic …"):
        found = assess_quadratic(num_rounds=rounds, num_trajectories=trajectories)
    if figures is not None:
        from fedpcs.report.figures.theory import quadratic_figure

        _save(figures / "quadratic.png", quadratic_figure(found), talk)
    if as_json:
        print(json.dumps(theory_report.quadratic_as_dict(found)))
    else:
        theory_report.print_quadratic(found, Console())


def _of_run(run: Path, data_dir: Path | None, figures: Path | None, as_json: bool) -> None:
    from rich.console import Console

    from fedpcs.cli import theory_report
    from fedpcs.studies.theory_run import assess_run

    talk = Console(stderr=True)
    with talk.status("Making the run again, and measuring its steps …"):
        trials = assess_run(run, data_dir)
    if figures is not None:
        from fedpcs.report.figures.theory import account_figure, progress_figure

        _save(figures / "progress.png", progress_figure(trials), talk)
        _save(figures / "account.png", account_figure(trials), talk)
    if as_json:
        print(json.dumps(theory_report.run_as_dict(trials)))
    else:
        theory_report.print_run(trials, Console())


def _save(path: Path, figure: Figure, talk: Console) -> None:
    from fedpcs.report import style as figure_style

    figure_style.save(figure, path)
    talk.print(f"wrote {path}")
