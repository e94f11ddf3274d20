"""What a run may do with a client's privacy: as a server announces it, and as a client's own settings accept it.

A client compares the two on its own machine. What its settings do not accept is refused in words, before anything is
trained or charged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from fedpcs import _validate
from fedpcs.errors import InvalidInput
from fedpcs.game.config import MOST_ROUNDS
from fedpcs.privacy.modes import mode_named
from fedpcs.privacy.modes.mode import Trust
from fedpcs.privacy.noise import NAMES


@dataclass(frozen=True)
class Conditions:
    """What decides how much a run may learn of a client's records.

    Attributes:
        budget_unit: zCDP of one unit of the game's budgets.
        budget_bounds: [ρ_L, ρ_H], in units: no budget of a round lies outside.
        rounds: How many the run has; in a client's settings, the most it accepts.
        mode: What the noise protects: the name of a privacy mode.
        clip_norm: W of an update, or C of a record's gradient, whichever the mode clips.
        noise: Source of the noise; in a client's settings, the weakest it accepts.
        delta: δ that ε is quoted at; in a client's settings, the greatest it accepts.
        trust: Whom a client must trust with its update.
    """

    budget_unit: float
    budget_bounds: tuple[float, float]
    rounds: int
    mode: str
    clip_norm: float
    noise: str
    delta: float
    trust: str = "local"

    def __post_init__(self) -> None:
        unit = _validate.number("budget_unit", self.budget_unit, low=1e-6, high=1e6)
        low, high = _validate.vector("budget_bounds", self.budget_bounds, length=2, low=1e-9)
        if not (low < high and low * unit >= 1e-9 and high * unit <= 1e6):
            raise InvalidInput(
                "budget_bounds must be two numbers that rise, and times budget_unit lie in [1e-9, 1e6], got "
                f"[{low:g}, {high:g}] times {unit:g}."
            )
        _validate.integer("rounds", self.rounds, low=1, high=MOST_ROUNDS)
        mode_named(self.mode)
        _validate.number("clip_norm", self.clip_norm, low=1e-9, high=1e9)
        _validate.choice("noise", self.noise, NAMES)
        if not 0.0 < _validate.number("delta", self.delta) < 1.0:
            raise InvalidInput(f"delta must be a number strictly between 0 and 1, got {self.delta!r}.")
        _validate.choice("trust", self.trust, get_args(Trust))

    @property
    def is_private(self) -> bool:
        """Whether updates carry noise and cost budget."""
        return mode_named(self.mode).level is not None


def refuse_outside(announced: Conditions, accepted: Conditions) -> None:
    """Refuse conditions that a client's own settings do not accept.

    Raises:
        InvalidInput: Names the first that is outside, and what would be accepted.
    """
    (least, most), (low, high) = announced.budget_bounds, accepted.budget_bounds
    enough_noise = NAMES[NAMES.index(accepted.noise) :]
    checks = {
        "budget_unit": (announced.budget_unit == accepted.budget_unit, f"{accepted.budget_unit:g}"),
        "budget_bounds": (low <= least and most <= high, f"within [{low:g}, {high:g}]"),
        "rounds": (announced.rounds <= accepted.rounds, f"at most {accepted.rounds:,}"),
        "mode": (announced.mode == accepted.mode, repr(accepted.mode)),
        "clip_norm": (announced.clip_norm == accepted.clip_norm, f"{accepted.clip_norm:g}"),
        "noise": (not announced.is_private or announced.noise in enough_noise, " or ".join(map(repr, enough_noise))),
        "delta": (announced.delta <= accepted.delta, f"at most {accepted.delta:g}"),
        "trust": (announced.trust == accepted.trust, repr(accepted.trust)),
    }
    for name, (is_accepted, allowed) in checks.items():
        if not is_accepted:
            raise InvalidInput(
                f"{name} must be {allowed} by this client's own settings, got {getattr(announced, name)!r}. "
                "Nothing is trained or charged. Run with what the client accepts, or ask its owner to change [accepts]."
            )
