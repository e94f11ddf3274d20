"""The verb of theory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fedpcs.cli.options import DataDirOption, JsonOption, app
from fedpcs.errors import InvalidInput


@app.command()
def theory(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The folder of a finished run.")] = None,
    quadratic: Annotated[bool, typer.Option("--quadratic", help="A quadratic with known constants instead.")] = False,
    rounds: Annotated[int, typer.Option(min=2, max=10_000, help="Of the quadratic.")] = 300,
    trajectories: Annotated[int, typer.Option(min=2, max=1_000_000, help="Of the quadratic.")] = 1000,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw figures here.")] = None,
    data_dir: DataDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold a run under its bound, and say which of noise, sampling and step length to reduce first.

    The run is made again, in memory, and every step is measured as it is taken.

    Example: fedpcs theory fedpcs-runs/default --figures figures

    Every bound on a problem whose constants are known: fedpcs theory --quadratic
    """
    from rich.console import Console

    from fedpcs.experiments import theory_report

    if (run is None) != quadratic:
        raise InvalidInput("give either RUN or --quadratic. Example: fedpcs theory fedpcs-runs/default")
    talk = Console(stderr=True)
    if figures is not None:
        figures.mkdir(parents=True, exist_ok=True)
    if run is None:
        from fedpcs.experiments.theory_quadratic import assess_quadratic

        with talk.status("Training a quadratic …"):
            known = assess_quadratic(num_rounds=rounds, num_trajectories=trajectories)
        if figures is not None:
            from fedpcs.experiments import figure_style, theory_figures

            figure_style.save(theory_figures.quadratic_figure(known), figures / "quadratic.png")
            talk.print(f"wrote {figures / 'quadratic.png'}")
        if as_json:
            print(json.dumps(theory_report.quadratic_as_dict(known)))
        else:
            theory_report.print_quadratic(known, Console())
        return
    from fedpcs.experiments.theory_run import assess_run

    with talk.status("Making the run again, and measuring its steps …"):
        arms = assess_run(run, data_dir)
    if figures is not None:
        from fedpcs.experiments import figure_style, theory_figures

        for name, draw in (("progress", theory_figures.progress_figure), ("account", theory_figures.account_figure)):
            figure_style.save(draw(arms), figures / f"{name}.png")
            talk.print(f"wrote {figures / f'{name}.png'}")
    if as_json:
        print(json.dumps(theory_report.run_as_dict(arms)))
    else:
        theory_report.print_run(arms, Console())
