"""What a bound is: named terms that add up, and the premises it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedpcs._validate import FloatArray

Version = Literal["paper", "valid"]


@dataclass(frozen=True)
class Premise:
    """Something a bound takes for granted, and whether it is so here."""

    statement: str
    holds: bool


@dataclass(frozen=True)
class Bound:
    """An upper bound, unless its name says lower.

    Attributes:
        version: As the paper prints it, or as it can be proved.
        terms: What is added up, by name; arrays of one shape, over rounds where a bound is.
        premises: What must be so for the proof to go through.
    """

    version: Version
    terms: Mapping[str, FloatArray]
    premises: tuple[Premise, ...] = ()

    @property
    def value(self) -> FloatArray:
        """The bound itself."""
        return np.asarray(np.sum(np.stack(list(self.terms.values())), axis=0))

    @property
    def has_premises(self) -> bool:
        """Whether all premises hold."""
        return all(premise.holds for premise in self.premises)

    @property
    def missing(self) -> tuple[str, ...]:
        """The premises that do not hold."""
        return tuple(premise.statement for premise in self.premises if not premise.holds)

    def dominating(self, round_index: int = -1) -> str:
        """Return the name of the largest term at the end, or at some round."""
        return max(self.terms, key=lambda name: float(np.atleast_1d(self.terms[name])[round_index]))
