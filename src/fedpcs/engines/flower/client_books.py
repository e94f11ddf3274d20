"""What one client keeps on its own disk: its two private numbers, the budgets it agreed to, and its own ledger.

The ledger outlives runs and restarts: what was ever released is in it. Budgets are written before they are told. Both
carry hashes that are checked whenever they are read. Nobody else on the machine can read any of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedpcs._chain import sealed_line, unsealed
from fedpcs._files import MOST_JSON, private_folder, read_bytes, write_whole
from fedpcs._outside import printable
from fedpcs.engines.flower.announcement import Announcement, announcement_of, announcement_values, refuse_changed
from fedpcs.engines.flower.conditions import Conditions, refuse_outside
from fedpcs.engines.flower.preferences import Preferences
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.learning.protocol import Task, budget_of
from fedpcs.privacy import PrivacyLedger, ReleaseKey
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.events import Event

_MOST_RUNS = 1000  # a server that makes up names of runs does not fill the disk


@dataclass(frozen=True)
class ClientBooks:
    """A client's folder, and what it allows.

    Attributes:
        folder: Where it is.
        preferences: Its private numbers.
        accepted: What it accepts of a run; nothing else is agreed to.
        limit: Most ρ it will ever spend, over all runs, whatever their names.
    """

    folder: Path
    preferences: Preferences
    accepted: Conditions
    limit: Rho

    @property
    def ledger(self) -> Path:
        """Its own ledger."""
        return self.folder / "ledger.sqlite"

    def agree(self, announcement: Announcement) -> NDArray[np.int64]:
        """Return the budgets it will spend if drawn, in billionths of ρ: its best response to an announcement.

        The same announcement again is answered as before. One for later rounds starts from where the client stands; if
        it has not heard of the run before, from its initial budget, and earlier rounds are without one.

        Raises:
            InvalidInput: Its settings do not accept what is announced, or it changes what was agreed to before.
        """
        refuse_outside(announcement.conditions, self.accepted)
        plans, first = self._read(), announcement.first_round
        before, agreed = plans.get(announcement.run, (None, []))
        if before is not None:
            refuse_changed(before, announcement)
        elif len(plans) >= _MOST_RUNS:
            raise InvalidInput(
                f"this client has agreed to {_MOST_RUNS:,} runs. Move its agreed.json away between runs."
            )
        if before == announcement:
            return np.array(agreed[first:], dtype=np.int64)
        stands = agreed[first] if 0 < first < len(agreed) else 0
        nanos = self.preferences.response(announcement, stands)
        kept = (agreed + [0] * first)[:first]
        plans[announcement.run] = announcement, [*kept, *(int(one) for one in nanos)]
        self._write(plans)
        return nanos

    def check(self, task: Task, *, is_perturbed: bool = True) -> None:
        """Refuse a task of another round, or with another budget, than was agreed.

        Raises:
            InvalidInput: It is one, nothing was agreed for this run, or the client accepts its conditions no longer.
        """
        before, agreed = self._read().get(task.run, (None, []))
        if before is None or not 0 <= task.round_index < len(agreed) or agreed[task.round_index] == 0:
            raise InvalidInput(f"no budget was agreed for round {task.round_index} of run {printable(task.run)!r}.")
        refuse_outside(before.conditions, self.accepted)
        if is_perturbed and (asked := budget_of(task)).nanos != agreed[task.round_index]:
            raise InvalidInput(
                f"task of round {task.round_index} names {asked}, {Rho(agreed[task.round_index])} was agreed. "
                "Nothing is released."
            )

    def charge(self, task: Task, event: Event) -> None:
        """Write a release down in the client's own ledger before it is made.

        Raises:
            BudgetExhausted: It would pass the client's limit.
        """
        private_folder(self.folder)
        with PrivacyLedger.open(self.ledger) as ledger:
            ledger.set_limit("self", self.limit)
            ledger.charge(ReleaseKey(task.run, task.round_index, "self"), event)

    @property
    def _agreed(self) -> Path:
        return self.folder / "agreed.json"

    def _read(self) -> dict[str, tuple[Announcement, list[int]]]:
        """Return the last announcement of each run, and the budgets agreed for its rounds; 0: none."""
        if not self._agreed.exists():
            return {}
        try:
            found, _ = unsealed(read_bytes(self._agreed, MOST_JSON))
            return {
                run: (announcement_of(one["announcement"]), [Rho(nanos).nanos for nanos in one["budgets"]])
                for run, one in found.items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptFile(f"{self._agreed}: not a client's budgets ({error}). Put back a copy.") from None

    def _write(self, plans: dict[str, tuple[Announcement, list[int]]]) -> None:
        private_folder(self.folder)
        values = {
            run: {"budgets": budgets, "announcement": announcement_values(one)} for run, (one, budgets) in plans.items()
        }
        write_whole(self._agreed, sealed_line(values))
