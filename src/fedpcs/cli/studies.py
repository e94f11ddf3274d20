"""Verbs of many trials: compare, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedpcs import _files
from fedpcs.cli.interrupts import command_line, goes_on_by, resume_command
from fedpcs.cli.options import DataDirOption, JsonOption, SetOption, check_study, each_key_once, verb
from fedpcs.errors import InvalidInput

if TYPE_CHECKING:
    from fedpcs.studies.cell_store import CellStore
    from fedpcs.studies.plan import SweepPlan

ParquetOption = Annotated[bool, typer.Option("--parquet", help="Write a sweep's cells.parquet beside cells.csv.")]


@verb()
def compare(
    source: Annotated[
        str | None,
        typer.Argument(metavar="[SWEEP.toml|RUN.toml|PRESET]", help="What to vary: a sweep, a run, or a preset."),
    ] = None,
    samplers: Annotated[str | None, typer.Option(metavar="A,B,…", help="Which samplers.")] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="0,1,…", help="Which seeds; three or more tell something.")
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=A,B,…", help="Try every value, with those of other grids.", callback=each_key_once),
    ] = None,
    overrides: SetOption = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The sweep's folder; goes on if it is there.")] = None,
    cells: Annotated[Path | None, typer.Option(metavar="DIR", help="Share finished cells with other sweeps.")] = None,
    data_dir: DataDirOption = None,
    jobs: Annotated[int | None, typer.Option(min=1, max=1024, help="Cells at a time; one a core if absent.")] = None,
    plan_only: Annotated[bool, typer.Option("--plan", help="Say what would be run and how long; run nothing.")] = False,
    with_parquet: ParquetOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run samplers side by side over settings and seeds, and write one page with tables and figures.

    Cells that are done are reused: stop it at any time and give the same command again. Exit code 1 if some cells
    could not be run, 2 for bad input, 6 if finished cells are damaged, 130 if interrupted.

    Example: fedpcs compare --samplers fedpcs,random,delta --seeds 0,1,2 --grid data.partition=iid,dirichlet
    """
    from fedpcs.studies import flags as sweep_flags
    from fedpcs.studies import grid as sweep_config

    sweep = sweep_flags.read_sweep(source, samplers=samplers, seeds=seeds, grid=grid or [], overrides=overrides or [])
    wanted = sweep_config.make_cells(sweep, where=source)
    from fedpcs.report import export
    from fedpcs.studies import cell_store, compare  # torch: names are checked before
    from fedpcs.studies import plan as sweep_plan

    if with_parquet:
        export.check_parquet()  # before hours of training, not after
    folder = Path("fedpcs-runs") / f"compare-{sweep.name}" if out is None else out
    _files.check_folder(folder, "--out")
    compare.check_free(folder, sweep.name)
    if cells is not None:
        _files.check_folder(cells, "--cells")
    store = cell_store.CellStore(folder if cells is None else cells)
    plan = sweep_plan.plan_sweep(wanted, store, data_dir, jobs)
    if plan_only:
        print(json.dumps(plan.numbers) if as_json else plan.text)
        return
    with goes_on_by(command_line(), folder, folder / "sweep.json"):
        compare.remember_sweep(folder, sweep, cells, command_line(), data_dir)
    _carry_out(folder, plan, store, data_dir, command_line(), with_parquet=with_parquet, as_json=as_json)


def resume_sweep(folder: Path, data_dir: Path | None, *, as_json: bool) -> None:
    """Do what is missing of a sweep, and write its page."""
    from fedpcs.studies import compare
    from fedpcs.studies import plan as sweep_plan

    kept = compare.read_sweep(folder / "sweep.json")
    lies_in = kept.data_dir if data_dir is None else data_dir
    plan = sweep_plan.plan_sweep(kept.cells, kept.store, lies_in)
    _carry_out(folder, plan, kept.store, lies_in, resume_command(folder), as_json=as_json)


def _carry_out(
    folder: Path,
    plan: SweepPlan,
    store: CellStore,
    data_dir: Path | None,
    command: str,
    *,
    with_parquet: bool = False,
    as_json: bool,
) -> None:
    """Run what a plan says, write the page and print what it came to; `command` goes on with it."""
    from fedpcs.cli import study_table
    from fedpcs.report import study
    from fedpcs.studies import compare

    with goes_on_by(command, folder, folder / "sweep.json"):
        failures = compare.carry_out(plan, store, data_dir)
        written = study.write_study(folder, with_parquet=with_parquet)
    study_table.print_sweep(written, as_json=as_json)
    compare.raise_if_damaged(written.study.damaged, plan.cells)
    compare.raise_if_failed(failures, plan.cells)


@verb()
def report(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs or sweeps.")],
    with_parquet: ParquetOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write reports again, from files alone: of runs, of sweeps, finished or not.

    Exit code 6 if files are damaged; a sweep's page is written without such cells, and names them.

    Example: fedpcs report fedpcs-runs/default
    """
    check_study(folders[0])
    from fedpcs.report import study
    from fedpcs.studies import compare

    written: list[study.WrittenStudy] = []
    try:
        for one in folders:
            check_study(one)
            if with_parquet and not compare.is_sweep(one):
                raise InvalidInput(f"--parquet: {one} is a run's folder, and only a sweep has a table of cells.")
            written.append(study.write_study(one, with_parquet=with_parquet))
            if not as_json:
                print(written[-1].report)  # at once: a folder further on may be refused
    finally:
        if as_json:
            print(json.dumps({"reports": [str(found.report) for found in written]}))
    for found in written:
        compare.raise_if_damaged(found.study.damaged, found.study.cells)
