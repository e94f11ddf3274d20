"""What a run promises its clients: whom the noise protects, against what, and whether the promise is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedpcs.privacy.standing import standing_words
from fedpcs.trial.config import PrivacyConfig
from fedpcs.trial.records import TrialResult

_PROTECTED = {
    "client": "The mechanism protects each client: its releases look alike for any two data sets of the same size that "
    "it could hold. The number of its records is public.",
    "record": "The mechanism protects each record: a client's releases look alike when one of its records is replaced. "
    "The number of its records is public.",
    "paper": "The paper speaks of records: a client's releases should look alike when one of them is replaced.",
}


def promise(privacy: PrivacyConfig, results: Sequence[TrialResult | Mapping[str, Any]] = ()) -> str:
    """Return the sentences a report may print about a run's privacy, and no more.

    Args:
        privacy: As configured.
        results: Of the trainings it speaks of.

    Example:
        >>> promise(PrivacyConfig(mode="none"))
        'No privacy: updates leave clients as they are.'
    """
    return " ".join(filter(None, (_PROTECTED.get(privacy.mode), standing(privacy, results))))


def standing(privacy: PrivacyConfig, results: Sequence[TrialResult | Mapping[str, Any]]) -> str:
    """Return what trainings may claim of privacy, in one or two sentences."""
    has_uncharged = any(one.get("disclosure") for one in results)
    return standing_words(privacy.mode, privacy.noise, has_uncharged=has_uncharged)


def paid_for_nothing(results: Sequence[TrialResult | Mapping[str, Any]]) -> str:
    """Return what must be said where clients are paid and none is charged; empty where there is no such result.

    Example:
        >>> paid_for_nothing([{"paid": 1811.0, "spent": {"num_clients": 0}}])
        'Rewards are paid all the same, for budgets that clients announce: no noise is added, and no ε holds.'
    """
    if not any(one["paid"] > 0.0 and one["spent"]["num_clients"] == 0 for one in results):
        return ""
    return "Rewards are paid all the same, for budgets that clients announce: no noise is added, and no ε holds."
