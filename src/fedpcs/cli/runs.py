"""Verbs that train: run, resume."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedpcs.cli import studies
from fedpcs.cli.interrupts import goes_on_by, resume_command
from fedpcs.cli.options import DataDirOption, JsonOption, SetOption, check_study, each_key_once, verb
from fedpcs.errors import InvalidInput
from fedpcs.trial.presets import preset_names

_PRESETS = ", ".join(preset_names())


@verb()
def run(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[CONFIG.toml|PRESET]",
            help=f"What to run: a file, or a preset ({_PRESETS}).",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to keep the run; a new folder.")] = None,
    data_dir: DataDirOption = None,
    overrides: SetOption = None,
    engine: Annotated[
        str | None, typer.Option(metavar="KIND", help="Where clients run: workers, in-process or flower.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train a federation with every sampler and seed asked for, and write a report.

    Exit code 0 when done, 2 for bad input, 3 if a game has no certified equilibrium, 4 if every client has spent its
    limit, 5 if too few clients answer, 130 if interrupted; `fedpcs resume` goes on from there.

    Privacy: The mechanism is proved; with noise fast (seeded) a run is a simulation of it; with secure or exact the
    guarantee holds. Set privacy.noise; the last lines printed say which it was.

    Example: fedpcs run fashion-mnist --set rounds=5 --data-dir data
    """
    from fedpcs import _plugins
    from fedpcs.trial import config as run_config

    chosen = [] if engine is None else [f"engine.kind={engine}"]
    config = run_config.load_run_config(source, each_key_once([*(overrides or []), *chosen]))
    from fedpcs.cli import run_table
    from fedpcs.report.study import write_report_safely
    from fedpcs.trial import progress, run  # torch takes seconds: names and keys are checked before

    _plugins.look_here(*config.named)
    folder = run_table.new_folder(config.name) if out is None else out
    go_on = goes_on_by(resume_command(folder), folder, folder / "manifest.json")
    with go_on, progress.Display(config) as display:
        store = run.start_run(config, folder, data_dir, display)
        write_report_safely(store, display.say)
    run_table.print_run(store, as_json=as_json)
    run.raise_if_exhausted(store)


@verb()
def resume(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run or a sweep that was stopped.")],
    force: Annotated[bool, typer.Option("--force", help="Go on though code, data or configuration differ.")] = False,
    data_dir: DataDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a run or a sweep that was stopped, from its last checkpoints: the result is that of one never stopped.

    Trials of a sweep that other code has begun are begun again; those of a run are refused, or go on with --force.

    Exit code 6 if no checkpoint is whole; otherwise as `fedpcs run`.

    Example: fedpcs resume fedpcs-runs/default
    """
    check_study(folder)
    from fedpcs import _plugins
    from fedpcs.cli import run_table
    from fedpcs.report.study import write_report_safely
    from fedpcs.trial import progress, run, run_store

    if (folder / "sweep.json").is_file():
        if force:
            raise InvalidInput("--force: is for runs. Trials of a sweep that other code has begun are begun again.")
        studies.resume_sweep(folder, data_dir, as_json=as_json)
        return
    config = run_store.open_run(folder).config_as_it_stands()
    _plugins.look_here(*config.named)
    go_on = goes_on_by(resume_command(folder), folder, folder / "manifest.json")
    with go_on, progress.Display(config) as display:
        store = run.resume_run(folder, display, force=force, data_dir=data_dir)
        if not store.report.exists():
            write_report_safely(store, display.say)
    run_table.print_run(store, as_json=as_json)
    run.raise_if_exhausted(store)
