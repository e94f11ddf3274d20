"""What one client keeps on its own disk: its two private numbers, the budgets it agreed to, and its own ledger.

The ledger outlives runs and restarts: what was ever released is in it. Budgets are written before they are told. Both
carry hashes that are checked whenever they are read.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpcs import _validate
from fedpcs._chain import sealed_line, unsealed
from fedpcs.engines.flower.messages import Announcement
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.game.exact import best_response
from fedpcs.game.population import AVERSION_BOUNDS
from fedpcs.learning.protocol import Task, budget_of
from fedpcs.privacy import PrivacyLedger, ReleaseKey
from fedpcs.privacy.budget import NANOS_PER_UNIT, Rho
from fedpcs.privacy.events import Event


@dataclass(frozen=True)
class Preferences:
    """A client's two private numbers.

    Attributes:
        privacy_aversion: ψ in [0.001, 0.999]. It never leaves the client.
        initial_budget: ρ⁰ > 0, in the game's units. The budget it tells for the first round is this one.
    """

    privacy_aversion: float
    initial_budget: float

    def __post_init__(self) -> None:
        low, high = AVERSION_BOUNDS
        _validate.number("privacy_aversion", self.privacy_aversion, low=low, high=high)
        _validate.positive("initial_budget", self.initial_budget)


@dataclass(frozen=True)
class ClientBooks:
    """A client's folder.

    Attributes:
        folder: Where it is.
        preferences: Its private numbers.
        limit: Most ρ it will ever spend, over all runs; None: no limit.
    """

    folder: Path
    preferences: Preferences
    limit: Rho | None = None

    @property
    def ledger(self) -> Path:
        """Its own ledger."""
        return self.folder / "ledger.sqlite"

    def agree(self, announcement: Announcement) -> NDArray[np.int64]:
        """Return the budgets it will spend if drawn, in billionths of ρ: its best response to an announcement.

        The same announcement again is answered as before. One for later rounds starts from where the client stands; if
        it has not heard of the run before, from its initial budget, and earlier rounds are without one.
        """
        plans = self._read()
        before = plans.get(announcement.run, {"budgets": [], "announcements": []})
        told = announcement_key(announcement)
        if before["announcements"] and before["announcements"][-1] == told:
            return np.array(before["budgets"][announcement.first_round :], dtype=np.int64)
        kept = before["budgets"][: announcement.first_round]
        kept += [0] * (announcement.first_round - len(kept))
        unit = announcement.budget_unit
        is_known = len(before["budgets"]) > announcement.first_round > 0
        stands = before["budgets"][announcement.first_round] / NANOS_PER_UNIT / unit if is_known else None
        first = self.preferences.initial_budget if stands is None else stands
        answer = best_response(announcement.terms(), self.preferences.privacy_aversion, first)
        nanos = np.maximum(np.floor(unit * answer.budget * NANOS_PER_UNIT), 1.0).astype(np.int64)
        if stands is not None:
            nanos[0] = before["budgets"][announcement.first_round]
        budgets = [*kept, *(int(one) for one in nanos)]
        plans[announcement.run] = {"budgets": budgets, "announcements": [*before["announcements"], told]}
        self._write(plans)
        return nanos

    def check(self, task: Task) -> None:
        """Refuse a task that names another budget than was agreed.

        Raises:
            InvalidInput: It does, or nothing was agreed for this run and round.
        """
        agreed = self._read().get(task.run, {"budgets": []})["budgets"]
        asked = budget_of(task)
        if not 0 <= task.round_index < len(agreed) or agreed[task.round_index] == 0:
            raise InvalidInput(f"no budget was agreed for round {task.round_index} of run {task.run!r}.")
        if asked.nanos != agreed[task.round_index]:
            raise InvalidInput(
                f"task of round {task.round_index} names {asked}, {Rho(agreed[task.round_index])} was agreed. "
                "Nothing is released."
            )

    def charge(self, task: Task, event: Event[Any]) -> None:
        """Write a release down in the client's own ledger before it is made.

        Raises:
            BudgetExhausted: It would pass the client's limit.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with PrivacyLedger.open(self.ledger) as ledger:
            if self.limit is not None:
                ledger.set_limit("self", self.limit)
            ledger.charge(ReleaseKey(task.run, task.round_index, "self"), event)

    @property
    def _agreed(self) -> Path:
        return self.folder / "agreed.json"

    def _read(self) -> dict[str, Any]:
        if not self._agreed.exists():
            return {}
        try:
            found, _ = unsealed(self._agreed.read_bytes())
            return {
                str(run): {"budgets": list(one["budgets"]), "announcements": list(one["announcements"])}
                for run, one in found.items()
            }
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptFile(f"{self._agreed}: not a client's budgets ({error}). Put back a copy.") from None

    def _write(self, plans: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self._agreed.with_suffix(".new")
        with draft.open("wb") as stream:
            stream.write(sealed_line(plans))
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, self._agreed)


def announcement_key(announcement: Announcement) -> list[Any]:
    """Return what tells one announcement from another, as JSON gives it back."""
    paths = (announcement.reward, announcement.mean_budget, announcement.cohort_size)
    found: list[Any] = json.loads(
        json.dumps([announcement.first_round, announcement.budget_unit, *paths, announcement.selection])
    )
    return found
