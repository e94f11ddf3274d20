"""Whom trials tell how they go: the terminal (`progress`), TensorBoard (`tensorboard_log`), or nobody."""

from __future__ import annotations

from typing import Protocol

from fedpcs.trial.records import RoundRecord


class Observer(Protocol):
    """Is told how trials go."""

    def say(self, words: str) -> None:
        """Something happened that a user should know."""

    def begin(self, trial: str, num_rounds: int, num_done: int) -> None:
        """A trial begins, with some of its rounds done before."""

    def round_done(self, record: RoundRecord, seconds: float) -> None:
        """A round was saved."""


class Silent:
    """An observer that says nothing."""

    def say(self, words: str) -> None:
        """Say nothing."""

    def begin(self, trial: str, num_rounds: int, num_done: int) -> None:
        """Say nothing."""

    def round_done(self, record: RoundRecord, seconds: float) -> None:
        """Say nothing."""
