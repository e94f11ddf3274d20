"""A client's two private numbers, and the budgets it would spend by them: its best response to an announcement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedpcs import _validate
from fedpcs.engines.flower.announcement import Announcement
from fedpcs.errors import InvalidInput
from fedpcs.game.exact import best_response
from fedpcs.game.population import AVERSION_BOUNDS
from fedpcs.privacy.budget import NANOS_PER_UNIT


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

    def response(self, announcement: Announcement, stands: int) -> NDArray[np.int64]:
        """Return the best response in billionths, from where the client stands, or from its initial budget if at 0."""
        unit = announcement.conditions.budget_unit
        low, high = announcement.conditions.budget_bounds
        first = stands / NANOS_PER_UNIT / unit if stands else self.initial_budget
        if not low <= first <= high:  # said without the number, which is the client's own
            raise InvalidInput(f"budget_bounds must hold what this client would spend first, got [{low:g}, {high:g}].")
        budget = best_response(announcement.terms(), self.privacy_aversion, first).budget
        nanos = np.maximum(np.floor(unit * budget * NANOS_PER_UNIT), 1.0)
        most = np.ceil(unit * high * NANOS_PER_UNIT)
        if not (nanos <= most).all():  # NaN included
            raise InvalidInput(f"no budget of at most {high:g} units answers what is announced. Nothing is agreed to.")
        found: NDArray[np.int64] = nanos.astype(np.int64)
        if stands:
            found[0] = stands
        return found
