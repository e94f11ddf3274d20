"""Whether ledgers, logs and agreed budgets are as they were written, and how many entries they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from fedpcs._chain import unsealed
from fedpcs._files import MOST_JSON, read_bytes
from fedpcs._outside import printable
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.privacy import PrivacyLedger
from fedpcs.trial.store import TrialStore


@dataclass(frozen=True)
class Verdict:
    """What was found of one file.

    Attributes:
        path: Which.
        entries: How many it holds, by kind; empty if it is damaged.
        finding: What is wrong; empty if it is whole.
    """

    path: str
    entries: dict[str, int]
    finding: str = ""


def verify(path: Path) -> list[Verdict]:
    """Check a ledger, or every ledger, log of rounds and list of agreed budgets in a folder and below.

    Raises:
        InvalidInput: There is none.
    """
    if path.is_file():
        return [_verdict(path, _READERS.get(path.name, _ledger_entries))]
    files = [found for name in _READERS for found in path.rglob(name) if found.is_file()]
    lost = [log.with_name("ledger.sqlite") for log in files if log.name == "rounds.jsonl"]
    files = sorted({*files, *lost})
    if not files:
        raise InvalidInput(
            f"{path}: no ledger there. Give the file of a ledger, a folder that `fedpcs run` printed, or a client's."
        )
    return [_verdict(file, _READERS[file.name]) for file in files]


def verdicts_object(verdicts: list[Verdict]) -> dict[str, Any]:
    """Return what `--json` prints."""
    files = [{**asdict(one), "is_whole": not one.finding} for one in verdicts]
    return {"is_whole": all(one["is_whole"] for one in files), "files": files}


def print_verdicts(verdicts: list[Verdict], console: Console) -> None:
    """Print a line for each file."""
    for one in verdicts:
        held = ", ".join(f"{n:,} {kind.removesuffix('s') if n == 1 else kind}" for kind, n in one.entries.items())
        said = f"damaged  {one.finding}" if one.finding else f"whole    {printable(one.path, 4096)}: {held}"
        console.print(said, highlight=False, markup=False, soft_wrap=True)


def _verdict(path: Path, read: Callable[[Path], dict[str, int]]) -> Verdict:
    try:
        return Verdict(str(path), read(path))
    except CorruptFile as error:
        return Verdict(str(path), {}, str(error))


def _ledger_entries(path: Path) -> dict[str, int]:
    if not path.is_file() or not path.stat().st_size:  # opened, it would become a new ledger
        raise CorruptFile(f"ledger {path} is not there, or empty. Put back a copy.")
    with PrivacyLedger.open(path) as ledger:
        return ledger.num_rows()


def _log_entries(path: Path) -> dict[str, int]:
    trial = TrialStore(path.parent)
    found, known = len(trial.rounds()), trial.num_rounds_known
    if found < known:
        raise CorruptFile(f"{path}: has {found} of {known} rounds that are done. Put back a copy, or start a new run.")
    return {"rounds": found}


def _agreed_entries(path: Path) -> dict[str, int]:
    try:
        return {"runs": len(unsealed(read_bytes(path, MOST_JSON))[0])}
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptFile(f"{path}: is damaged: {error}. Put back a copy.") from None


_READERS = {"ledger.sqlite": _ledger_entries, "rounds.jsonl": _log_entries, "agreed.json": _agreed_entries}
