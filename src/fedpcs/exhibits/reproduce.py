"""`fedpcs reproduce`: one command for each exhibit of the paper. Exhibits share their trials; what is done is reused.

ROOT/EXHIBIT-DATASET-PROFILE/report.html, report.md, figures/, records.csv   ROOT/trials/…   ROOT/games/…
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from fedpcs import _format
from fedpcs._files import check_folder, disk_errors, write_text
from fedpcs.errors import InvalidInput, Unfinished
from fedpcs.exhibits import exhibit, registry
from fedpcs.report.export import export_csv
from fedpcs.report.render import as_markdown, write_page
from fedpcs.report.warnings import mixed
from fedpcs.studies.cell_store import CellStore
from fedpcs.studies.compare import carry_out, raise_if_damaged, raise_if_failed
from fedpcs.studies.plan import plan_sweep
from fedpcs.trial.same_code import code_digest

if TYPE_CHECKING:
    from fedpcs.report.page import Page
    from fedpcs.studies.grid import Cell
    from fedpcs.studies.results import TrialData

_RUN = "Give the command without --only-done."


def reproduce(
    name: str,
    dataset: str,
    profile: registry.Profile,
    root: Path,
    data_dir: Path | None = None,
    *,
    num_jobs: int | None = None,
    only_done: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Path:
    """Make an exhibit: run what is missing, write its page, its figures and its numbers; return the page.

    Args:
        name: Of the exhibit.
        dataset: On what.
        profile: `quick` or `paper`.
        root: Folder of exhibits and of the trials they share.
        data_dir: Where data sets lie.
        num_jobs: Trials at a time; None: one for each core.
        only_done: Run nothing, and write the page from what is done.
        say: Is told which games are being solved; trials show themselves.

    Raises:
        FedpcsError: Trials could not be run; or read (CorruptFile). The page is there all the same, if it can be.
        InvalidInput: Nothing is to be run, and the exhibit is not made of trials; or `root` is a file.
        Unfinished: Nothing is to be run, and what the exhibit shows depends on trials that are not done.
    """
    listed = registry.listed(name)
    if only_done and listed.made_of != "trials":
        raise InvalidInput(f"--only-done: {name} is not made of trials but made anew each time. Leave it out.")
    registry.check_dataset(name, dataset)
    check_folder(root, "--out")
    if not listed.reads_data:  # nothing is written before the games are solved, which takes minutes
        with disk_errors(root):
            root.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    code_digest()  # of the files as they are now, when they are loaded
    trials = _Trials(CellStore(root), data_dir, num_jobs, only_done)
    request = exhibit.Request(name, profile, dataset, data_dir, trials.run, say)
    declared = exhibit.declaration(name)
    try:
        page = exhibit.build(declared, request, declared.gather(request))
    except Unfinished as error:
        trials.raise_if_any()
        raise Unfinished(f"{error} {_RUN}") from None
    if only_done and not page.records:
        trials.raise_if_any()
        raise Unfinished(f"{name}: no trial of it is done. {_RUN}")
    about = f"-{dataset}" if listed.reads_data else ""
    page = _finished(page, trials, None if only_done else time.monotonic() - began)
    report = write_exhibit(page, root / f"{name}{about}-{profile}")
    trials.raise_if_any()
    return report


@dataclass(frozen=True)
class _Trials:
    """Runs and reads an exhibit's trials, and remembers by key which were read, which not, and why."""

    store: CellStore
    data_dir: Path | None
    num_jobs: int | None
    only_done: bool
    done: dict[str, TrialData] = field(default_factory=dict)
    missing: dict[str, Cell] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)

    def run(self, cells: Sequence[Cell]) -> list[TrialData]:
        """Run what is missing, unless nothing is to be run, and return what is done."""
        store = self.store
        if not self.only_done and not all(store.is_done(cell) for cell in cells):
            self.failures.update(
                carry_out(plan_sweep(cells, store, self.data_dir, self.num_jobs), store, self.data_dir)
            )
        for cell in filter(store.is_done, cells):  # another command may have done what failed here
            self.failures.pop(cell.key, None)
        done, damaged = store.read_all(cells)
        self.damaged.update(damaged)
        self.done.update({one.cell.key: one for one in done})
        self.missing.update({cell.key: cell for cell in cells if cell.key not in self.done})
        return done

    def raise_if_any(self) -> None:
        """Raise if trials could not be read or run."""
        raise_if_damaged(self.damaged, list(self.missing.values()))
        raise_if_failed(self.failures, list(self.missing.values()))

    def warnings(self) -> list[str]:
        """Say what was not made like the rest, and what is missing and why."""
        warnings = list(mixed(list(self.done.values())))
        if self.missing:
            warnings.append(
                f"{len(self.missing)} trials are missing, such as {next(iter(self.missing.values())).label}."
            )
        reasons = self.failures | self.damaged
        return warnings + [f"{self.missing[key].label}: {reason}" for key, reason in list(reasons.items())[:10]]


def write_exhibit(page: Page, folder: Path) -> Path:
    """Write a page, its figures, its numbers and its text as Markdown."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    report = write_page(page, folder)
    if page.records:
        export_csv(page, folder / "records.csv")
    else:
        (folder / "records.csv").unlink(missing_ok=True)
    write_text(folder / "report.md", as_markdown(page))
    return report


def _finished(page: Page, trials: _Trials, seconds: float | None) -> Page:
    """Return the page with what is missing and why, what made it, and how long that took, if anything was run."""
    versions = {name: version(name) for name in ("fedpcs", "numpy", "scipy", "numba", "torch")}
    made = {**versions, "python": platform.python_version(), "machine": platform.machine(), "code": code_digest()}
    took = {} if seconds is None else {"this command took": _format.duration(seconds)}
    return replace(
        page,
        warnings=tuple(dict.fromkeys((*page.warnings, *trials.warnings()))),
        provenance={**made, **page.provenance, **took},
    )
