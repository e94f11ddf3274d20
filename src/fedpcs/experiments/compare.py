"""`fedpcs compare`: a sweep from its file or flags to its page. Run again, it does what is missing and no more.

SWEEP/sweep.json   cells/…   games/…   report.html   figures/…   cells.csv
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from rich.table import Table

from fedpcs._threads import num_cores
from fedpcs.errors import CorruptFile, FedpcsError, InvalidInput
from fedpcs.experiments import own_code
from fedpcs.experiments.cell_store import CellStore
from fedpcs.experiments.dotted_keys import dotted_keys, read_override, read_value
from fedpcs.experiments.files import disk_errors, read_object, write_json
from fedpcs.experiments.page_export import can_write_parquet, export_csv, export_parquet
from fedpcs.experiments.page_report import write_page
from fedpcs.experiments.presets import preset_names
from fedpcs.experiments.run_config import make_run_config, read_tables
from fedpcs.experiments.run_table import mean_and_spread, print_whole
from fedpcs.experiments.sweep import run_cells, unsolved_games
from fedpcs.experiments.sweep_config import Cell, SweepConfig, make_cells, make_sweep_config
from fedpcs.experiments.sweep_estimate import estimate
from fedpcs.experiments.sweep_page import comparison_page
from fedpcs.experiments.sweep_progress import SweepDisplay, plan_words
from fedpcs.experiments.try_out import try_rules

# Keys that only the file of a sweep has; a file without any of them is a run, to be varied by flags.
_OF_A_SWEEP = ("base", "samplers", "set", "grid", "per_sampler", "variants")

_AGAIN = "Give the `fedpcs compare` that made it again: done cells are reused."
_FEW_CLASSES = 10  # where rules are tried out, any number will do
_SHOWN = {"variant": "variant", "partition": "split", "sampling_ratio": "τ", "rule": "rule", "behaviour": "clients"}


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep is about to do.

    Attributes:
        cells: All of them.
        num_done: How many are there already.
        seconds: By key, what each that is missing will take on one core.
        num_jobs: How many run at a time.
        num_games: How many games must be solved first; `seconds` knows nothing of them.
    """

    cells: tuple[Cell, ...]
    num_done: int
    seconds: dict[str, float]
    num_jobs: int
    num_games: int

    @property
    def estimated_seconds(self) -> float:
        """How long all that is missing will take."""
        return sum(self.seconds.values()) / self.num_jobs

    @property
    def words(self) -> str:
        """The plan in a line."""
        return plan_words(self.cells, self.num_done, self.estimated_seconds, self.num_jobs, self.num_games)

    @property
    def numbers(self) -> dict[str, Any]:
        """The plan for a program."""
        cells = [
            {"cell": cell.key, "words": cell.words, "is_done": cell.key not in self.seconds} for cell in self.cells
        ]
        return {
            "num_cells": len(cells),
            "num_done": self.num_done,
            "num_games": self.num_games,
            "estimated_seconds": self.estimated_seconds,
            "cells": cells,
        }


@dataclass(frozen=True)
class WrittenSweep:
    """A sweep's page.

    Attributes:
        report: The page.
        records: A row for each cell it tells of.
        cells: All of the sweep.
        damaged: By key, why finished cells could not be read.
    """

    report: Path
    records: tuple[Mapping[str, Any], ...]
    cells: tuple[Cell, ...]
    damaged: Mapping[str, str]


def read_sweep(
    source: str | None,
    *,
    samplers: str | None = None,
    seeds: str | None = None,
    grid: Sequence[str] = (),
    overrides: Sequence[str] = (),
) -> SweepConfig:
    """Read what to compare from a sweep's file, a run's file or a preset, and from flags that add to it.

    Args:
        source: A path or a preset; None: the preset `default`.
        samplers: Names parted by commas.
        seeds: Whole numbers parted by commas.
        grid: Such as "data.partition=iid,dirichlet".
        overrides: Such as "rounds=5".

    Raises:
        InvalidInput: A file or flag cannot be read, or does not make a sweep.
    """
    values = _tables(source or "default")
    if samplers is not None:
        values["samplers"] = [name.strip() for name in samplers.split(",") if name.strip()]
        if not values["samplers"]:
            raise InvalidInput(f"--samplers must be names parted by commas, such as fedpcs,random; got {samplers!r}.")
    if seeds is not None:
        try:
            values["seeds"] = [int(part) for part in seeds.split(",")]
        except ValueError:
            raise InvalidInput(
                f"--seeds must be whole numbers parted by commas, such as 0,1,2; got {seeds!r}."
            ) from None
    where = source or "preset default"
    varied = dict(map(_read_grid, grid))
    fixed = {key: value for one in overrides for key, value in read_override(one).items()}
    if twice := [key for key in fixed if key in varied]:
        raise InvalidInput(f"--set {twice[0]} and --grid {twice[0]} give one key twice: keep one of them.")
    _add(values, "grid", varied, where, instead_of="set")
    _add(values, "set", fixed, where, instead_of="grid")
    sweep = make_sweep_config(values, where)
    _refuse_idle_flags(sweep, fixed, where, has_samplers=samplers is not None)
    return sweep


def _read_grid(text: str) -> tuple[str, list[Any]]:
    key, sign, values = text.partition("=")
    if not sign or not key.strip() or not values.strip():
        raise InvalidInput(f"--grid {text!r} must be KEY=VALUE,VALUE,…, such as sampling.sampling_ratio=0.2,0.5.")
    if "[" in values or "{" in values:  # lists and tables have commas of their own
        listed = read_value(f"[{values}]")
        if not isinstance(listed, list):
            raise InvalidInput(f"--grid {text!r}: values must be as TOML writes them, such as [0.01, 12],[1, 2].")
        return key.strip(), listed
    return key.strip(), [read_value(part) for part in values.split(",")]


def _add(values: dict[str, Any], table: str, flags: dict[str, Any], where: str, instead_of: str) -> None:
    """Add what flags give to a table of a sweep's file, in place; the key of a flag overrules the file's.

    It does so wherever the file has it: in that table, or in the one it is taken out of.
    """
    before, other = values.get(table, {}), values.get(instead_of, {})
    if not flags or not isinstance(before, dict) or not isinstance(other, dict):
        return
    try:
        values[table] = {**dotted_keys(before), **flags}
        values[instead_of] = {key: value for key, value in dotted_keys(other).items() if key not in flags}
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None


def _refuse_idle_flags(sweep: SweepConfig, fixed: Mapping[str, Any], where: str, *, has_samplers: bool) -> None:
    """Refuse flags that a table of the file would overrule, all of it or for some samplers."""
    tables = {f"per_sampler.{name}": changed for name, changed in sweep.per_sampler.items()}
    tables |= {f"variants.{one.label}": one.set for one in sweep.variants}
    for words, changed in tables.items():
        if kept := [key for key in fixed if key in changed]:
            raise InvalidInput(
                f"{where}: --set {kept[0]} is overruled by {words}.{kept[0]}: take that out of the file, or leave the "
                "flag out."
            )
    if has_samplers and sweep.variants and all(one.samplers for one in sweep.variants):
        raise InvalidInput(
            f"{where}: --samplers has no effect where every variant lists its own: take samplers out of the variants, "
            "or leave the flag out."
        )


def plan_sweep(
    cells: Sequence[Cell], store: CellStore, data_dir: Path | None, num_jobs: int | None = None
) -> SweepPlan:
    """Return what is to be done, with its time; nothing is run but one client's training, to measure it."""
    wanted = tuple({cell.key: cell for cell in cells}.values())  # one cell may stand at several places of a table
    for cell in wanted:
        own_code.look_here(cell.config.data.name, cell.config.training.model, cell.sampler)
    missing = [cell for cell in wanted if not store.is_done(cell)]
    _try_rules(missing)
    jobs = num_jobs or num_cores()
    num_games = len(unsolved_games(missing, store))
    return SweepPlan(wanted, len(wanted) - len(missing), estimate(missing, data_dir), jobs, num_games)


def _try_rules(cells: Sequence[Cell]) -> None:
    """Refuse a sweep of which a sampler cannot be weighed by its rule, before any cell of it is run."""
    tried: set[str] = set()
    for cell in cells:
        config = cell.config
        asked = json.dumps([config.sampling.model_dump(mode="json"), config.data.num_clients])
        if asked not in tried:
            tried.add(asked)
            try_rules(config, _FEW_CLASSES)


def carry_out(plan: SweepPlan, store: CellStore, data_dir: Path | None) -> dict[str, str]:
    """Run what is missing and show how it goes; return why cells could not be run, by key."""
    with SweepDisplay(plan.cells, plan.seconds) as display:
        display.say(plan.words)
        return run_cells(plan.cells, store, data_dir, num_jobs=plan.num_jobs, watcher=display)


def remember_sweep(folder: Path, sweep: SweepConfig, cells_folder: Path | None, command: str) -> None:
    """Write down what a folder's page is made of."""
    for made in (*([] if cells_folder is None else [cells_folder]), folder):
        with disk_errors(made):
            made.mkdir(parents=True, exist_ok=True)
    kept = None if cells_folder is None else str(cells_folder.resolve())
    base = read_tables(sweep.base)  # a page is made of what was run, whatever becomes of the file
    written = {"sweep": sweep.model_dump(mode="json"), "base": base, "cells": kept, "command": command}
    write_json(folder / "sweep.json", written)


def check_free(folder: Path) -> None:
    """Refuse a folder whose files a sweep would replace: it may hold a sweep, or nothing but cells.

    Raises:
        InvalidInput: It holds a run, an exhibit, or anything else.
    """
    if not folder.is_dir() or is_sweep(folder):
        return
    if (folder / "config.toml").is_file():
        raise InvalidInput(f"--out {folder}: a run is kept there, and its report would be lost. Give another folder.")
    if strange := sorted(path.name for path in folder.iterdir() if path.name not in ("cells", "games")):
        raise InvalidInput(
            f"--out {folder}: holds {strange[0]!r}, and is no sweep's folder: files could be lost. Give another folder."
        )


def is_sweep(folder: Path) -> bool:
    """Say whether a folder holds a sweep."""
    return (folder / "sweep.json").is_file()


def write_sweep(folder: Path, *, with_parquet: bool = False) -> WrittenSweep:
    """Write a sweep's page and table from what its cells came to, done or not.

    A `cells.parquet` that is there already is written again, asked for or not, so that it never tells of older cells.

    Raises:
        CorruptFile: The sweep's own file is damaged, or none of the cells that an earlier page told of is there. Of a
            cell that is damaged, the page and the answer say so.
        InvalidInput: The table is wanted as Parquet too, and pyarrow is not installed.
    """
    kept = _read_kept(folder / "sweep.json")
    done, damaged = kept.store.read_all(kept.cells)
    readable = {one.cell.key for one in done}
    missing = [cell for cell in kept.cells if cell.key not in readable]
    failures = {cell.key: reason for cell in missing if (reason := kept.store.failure_of(cell))} | damaged
    table, typed = folder / "cells.csv", folder / "cells.parquet"
    if not done and not failures and table.exists():
        raise CorruptFile(
            f"{folder}: none of the {len(kept.cells)} cells its page tells of is in {kept.store.folder}; "
            f"the page is left as it is. Put them back. Or: {_AGAIN}"
        )
    page = comparison_page(kept.name, done, failures, missing=missing, command=kept.command)
    written = write_page(page, folder)  # before the tables: whatever keeps one from being written, the page is there
    wants_typed = with_parquet or (typed.exists() and can_write_parquet())
    if page.records:
        export_csv(page, table)
    if page.records and wants_typed:
        export_parquet(page, typed)
    for path, is_new in ((table, True), (typed, wants_typed)):
        if not (page.records and is_new):
            path.unlink(missing_ok=True)
    return WrittenSweep(written, page.records, tuple(kept.cells), damaged)


@dataclass(frozen=True)
class _Kept:
    """What `sweep.json` says: a sweep's name, its cells and where they are, and the command that runs it again."""

    name: str
    cells: list[Cell]
    store: CellStore
    command: str


def _read_kept(path: Path) -> _Kept:
    kept = read_object(path, "sweep", "cells", "command", remedy=_AGAIN)
    shapes = {"sweep": (dict,), "base": (dict, NoneType), "cells": (str, NoneType), "command": (str,)}
    if wrong := [key for key, kinds in shapes.items() if not isinstance(kept.get(key), kinds)]:
        raise CorruptFile(f"{path}: {wrong[0]} must not be {kept[wrong[0]]!r}. {_AGAIN}")
    try:
        sweep = make_sweep_config(kept["sweep"], str(path))
        cells = make_cells(sweep, kept.get("base"), str(path))
    except InvalidInput as error:
        raise CorruptFile(f"{error} {_AGAIN}") from None
    place = path.parent if kept["cells"] is None else Path(kept["cells"])
    if not place.is_dir():
        raise CorruptFile(f"{path}: its cells are in {place}, which is not there. Put it back. Or: {_AGAIN}")
    return _Kept(sweep.name, cells, CellStore(place), kept["command"])


def print_sweep(written: WrittenSweep, *, as_json: bool) -> None:
    """Print what a sweep came to: its tables, or one JSON object."""
    rows = written.records
    if as_json:
        print(json.dumps({"report": str(written.report), "cells": list(rows)}))
        return
    of_grid = {name: name.rpartition(".")[2] for name in (rows[0] if rows else {}) if name.startswith("set.")}
    of_grid |= {name: name for name in ("data", "mode", "clip_norm") if len({row[name] for row in rows}) > 1}
    columns = {**_SHOWN, **of_grid, "sampler": "sampler"}
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(str(row[name]) for name in columns), []).append(row["accuracy"])
    table = Table(box=None, padding=(0, 1, 0, 0))
    for name in (*columns.values(), "accuracy", "seeds"):
        table.add_column(name, no_wrap=True)
    for place, accuracy in groups.items():
        table.add_row(*place, mean_and_spread(accuracy), str(len(accuracy)))
    print_whole(table)
    print(written.report)


def raise_if_damaged(damaged: Mapping[str, str], cells: Sequence[Cell]) -> None:
    """Raise if some finished cells could not be read; the page is there all the same.

    Raises:
        CorruptFile: Some could not.
    """
    if damaged:
        words = {cell.key: cell.words for cell in cells}
        first = next(iter(damaged))
        raise CorruptFile(
            f"{len(damaged)} finished cells cannot be read and are left out, such as {words[first]}: {damaged[first]}"
        )


def raise_if_failed(failures: dict[str, str], cells: Sequence[Cell]) -> None:
    """Raise if some cells could not be run; the page is there all the same."""
    if failures:
        words = {cell.key: cell.words for cell in cells}
        first = next(iter(failures))
        raise FedpcsError(f"{len(failures)} cells could not be run, such as {words[first]}: {failures[first]}")


def _tables(source: str) -> dict[str, Any]:
    if source in preset_names():
        return _of_run(source)
    values = read_tables(source)
    if not any(key in values for key in _OF_A_SWEEP):
        return _of_run(source)
    base = values.get("base")
    if isinstance(base, str) and base and base not in preset_names():
        values["base"] = str(Path(source).parent / base)  # a path is written down as seen from its file
    return values


def _of_run(source: str) -> dict[str, Any]:
    """Return the sweep a run is by itself: its own samplers and seeds."""
    config = make_run_config(read_tables(source), source)
    name = config.name
    return {"name": name, "base": source, "samplers": list(config.sampling.samplers), "seeds": list(config.seeds)}
