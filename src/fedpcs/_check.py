"""What a look at an installation, a run or a node found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Standing = Literal["fine", "note", "wrong"]


@dataclass(frozen=True)
class Check:
    """One thing looked at.

    Attributes:
        subject: What was looked at.
        standing: `wrong` if results cannot be had or trusted.
        found: What was seen.
        remedy: What to do about it; empty if nothing need be done.
    """

    subject: str
    standing: Standing
    found: str
    remedy: str = ""


def noted(subject: str, found: str, remedy: str = "") -> Check:
    """Return a check that is fine unless there is something to be done about it."""
    return Check(subject, "note" if remedy else "fine", found, remedy)
