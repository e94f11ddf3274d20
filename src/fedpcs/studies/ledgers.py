"""Whether ledgers, logs of rounds and agreed budgets are as they were written, and how many entries they hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fedpcs._chain import unsealed
from fedpcs._files import MOST_JSON, read_bytes
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

    @property
    def is_whole(self) -> bool:
        """Whether every entry is as it was written."""
        return not self.finding


def verify_ledgers(path: Path) -> list[Verdict]:
    """Check a ledger, or every ledger, log of rounds and list of agreed budgets in a folder and below.

    Raises:
        InvalidInput: There is none.
    """
    if path.is_file():
        return [_verdict(path)]
    files = {found for name in _READERS for found in path.rglob(name) if found.is_file()}
    files |= {log.with_name("ledger.sqlite") for log in files if log.name == "rounds.jsonl"}
    if not files:
        raise InvalidInput(
            f"{path}: no ledger there. Give the file of a ledger, a folder that `fedpcs run` printed, or a client's."
        )
    return [_verdict(file) for file in sorted(files)]


def _verdict(path: Path) -> Verdict:
    try:
        return Verdict(str(path), _READERS.get(path.name, _ledger_entries)(path))
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
