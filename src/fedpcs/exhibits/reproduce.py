"""`fedpcs reproduce`: one command for each exhibit of the paper. Exhibits share their cells; what is done is reused.

ROOT/EXHIBIT-DATASET-PROFILE/report.html, figures/, records.csv   ROOT/trials/…   ROOT/games/…
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from fedpcs import _format
from fedpcs._files import check_folder, disk_errors, write_text
from fedpcs.errors import InvalidInput, Unfinished
from fedpcs.exhibits.accuracy_cells import Run
from fedpcs.exhibits.profiles import Profile
from fedpcs.exhibits.registry import Wanted, exhibit
from fedpcs.report.export import export_csv
from fedpcs.report.page import Page
from fedpcs.report.render import as_markdown, write_page
from fedpcs.report.warnings import mixed
from fedpcs.studies.cell_store import CellStore, Done
from fedpcs.studies.compare import carry_out, raise_if_damaged, raise_if_failed
from fedpcs.studies.grid import Cell
from fedpcs.studies.plan import plan_sweep
from fedpcs.trial.same_code import code_digest

_RUN = "Give the command without --only-done."


def reproduce(
    name: str,
    dataset: str,
    profile: Profile,
    root: Path,
    data_dir: Path | None = None,
    *,
    num_jobs: int | None = None,
    only_done: bool = False,
    say: Callable[[str], None] = lambda words: None,
) -> Path:
    """Make an exhibit: run what is missing, write its page, its figures and its numbers.

    Args:
        name: Of the exhibit.
        dataset: On what.
        profile: `quick` or `paper`.
        root: Folder of exhibits and of the cells they share.
        data_dir: Where data sets lie.
        num_jobs: Cells at a time; None: one for each core.
        only_done: Run nothing, and write the page from what is done.
        say: Is told which games are being solved; cells show themselves.

    Returns:
        The page.

    Raises:
        FedpcsError: Cells could not be run; the page is there all the same, if it can be.
        CorruptFile: Finished cells could not be read; the page is there all the same, if it can be.
        InvalidInput: Nothing is to be run, and the exhibit is not made of cells; or `root` is a file.
        Unfinished: Nothing is to be run, and what the exhibit shows depends on cells that are not done.
    """
    found = exhibit(name)
    if only_done and not found.has_cells:
        raise InvalidInput(f"--only-done: {name} is not made of cells but made anew each time. Leave it out.")
    check_folder(root, "--out")
    if not found.reads_data:  # such exhibits write nothing before their games are solved, which takes minutes
        with disk_errors(root):
            root.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    code_digest()  # of the files as they are now, when they are loaded
    cells = _Cells({}, {}, {}, {})
    run = _runner(CellStore(root), data_dir, num_jobs, only_done, cells)
    try:
        page = found.make(Wanted(dataset, profile, data_dir, run, say))
    except Unfinished as error:
        cells.raise_if_any()
        raise Unfinished(f"{error} {_RUN}") from None
    if only_done and not page.records:
        cells.raise_if_any()
        raise Unfinished(f"{name}: no cell of it is done. {_RUN}")
    told = _told(page, cells, None if only_done else time.monotonic() - began)
    report = write_exhibit(told, root / folder_name(name, dataset, profile))
    cells.raise_if_any()
    return report


@dataclass(frozen=True)
class _Cells:
    """Cells behind an exhibit, by key, filled as it is made.

    Attributes:
        done: Those it goes by, in its tables or in what was sought for them.
        missing: Those it has to do without.
        failures: Why some could not be run.
        damaged: Why some that are finished could not be read.
    """

    done: dict[str, Done]
    missing: dict[str, Cell]
    failures: dict[str, str]
    damaged: dict[str, str]

    def raise_if_any(self) -> None:
        """Raise if cells could not be read or run."""
        raise_if_damaged(self.damaged, list(self.missing.values()))
        raise_if_failed(self.failures, list(self.missing.values()))


def folder_name(name: str, dataset: str, profile: Profile) -> str:
    """Return where an exhibit is kept; those of the game alone know no data set."""
    about = f"-{dataset}" if exhibit(name).reads_data else ""
    return f"{name}{about}-{profile}"


def write_exhibit(page: Page, folder: Path) -> Path:
    """Write a page, its figures, its numbers and its words as Markdown."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    report = write_page(page, folder)
    if page.records:
        export_csv(page, folder / "records.csv")
    else:
        (folder / "records.csv").unlink(missing_ok=True)
    write_text(folder / "report.md", as_markdown(page))
    return report


def _runner(store: CellStore, data_dir: Path | None, num_jobs: int | None, only_done: bool, behind: _Cells) -> Run:
    """Return what runs an exhibit's cells, and notes in `behind` what became of them."""

    def run(cells: Sequence[Cell]) -> list[Done]:
        if not only_done and not all(store.is_done(cell) for cell in cells):
            behind.failures.update(carry_out(plan_sweep(cells, store, data_dir, num_jobs), store, data_dir))
        for cell in filter(store.is_done, cells):  # another command may have done what failed here
            behind.failures.pop(cell.key, None)
        done, damaged = store.read_all(cells)
        behind.damaged.update(damaged)
        readable = {one.cell.key: one for one in done}
        behind.done.update(readable)
        behind.missing.update({cell.key: cell for cell in cells if cell.key not in readable})
        return done

    return run


def _flags_of(command: str) -> str:
    """Return the flags that a command on a page leaves out; one cell alone has a folder of its own."""
    return "--data-dir" if command.startswith("fedpcs run") else "--out and --data-dir"


def _told(page: Page, behind: _Cells, seconds: float | None) -> Page:
    """Return the page with what is missing and why, and how long it took to make, if anything was run.

    Cells by which something was sought stand in no table; where they were made otherwise than others, that is said too.
    """
    missing, reasons = behind.missing, behind.failures | behind.damaged
    words = [warning for warning in mixed(list(behind.done.values())) if warning not in page.warnings]
    words += [f"{len(missing)} cells are missing, such as {next(iter(missing.values())).words}."] if missing else []
    words += [f"{missing[key].words}: {reason}" for key, reason in list(reasons.items())[:10]]
    versions = {name: version(name) for name in ("fedpcs", "numpy", "scipy", "numba", "torch")}
    made = {**versions, "python": platform.python_version(), "machine": platform.machine(), "code": code_digest()}
    took = {} if seconds is None else {"this command took": _format.duration(seconds)}
    commands = tuple(
        (command, f"{does}; give {_flags_of(command)} as before, if any") for command, does in page.commands
    )
    return replace(
        page,
        warnings=(*page.warnings, *words),
        commands=commands,
        provenance={**made, **page.provenance, **took},
    )
