"""What a cap allows: a relative slack of 1e-9, so that a cap met exactly is met.

27 budgets of 6 add up to 162 only to the last digit, and a cap of 162 must not lose a client to that digit. Every
comparison of a cohort's budgets with its cap goes through here. Privacy limits have no slack: a ledger counts exactly.
"""

from __future__ import annotations

from typing import TypeVar

from fedpcs._validate import FloatArray

Amount = TypeVar("Amount", float, FloatArray)

SLACK = 1e-9


def allowance(cap: Amount) -> Amount:
    """Return the most that may be spent under a cap: the cap, and the slack."""
    return cap * (1.0 + SLACK)


def largest_count(cap: float, each: float, most: int) -> int:
    """Return ⌊cap/each⌋, how many clients who spend `each` fit under a cap, at most `most`.

    Example:
        >>> largest_count(0.3, 0.1, 10), 0.3 // 0.1
        (3, 2.0)
    """
    return int(min(float(most), allowance(cap) / each))
