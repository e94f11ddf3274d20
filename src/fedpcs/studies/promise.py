"""What a run promises its clients: whom the noise protects, against what, and whether the promise is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedpcs.privacy.standing import standing_sentence
from fedpcs.trial.config import PrivacyConfig
from fedpcs.trial.records import TrialResult


def promise(privacy: PrivacyConfig, results: Sequence[TrialResult | Mapping[str, Any]] = ()) -> str:
    """Return the sentences a report may print about a run's privacy, and no more.

    Args:
        privacy: As configured.
        results: Of the trainings it speaks of.

    Example:
        >>> promise(PrivacyConfig(mode="none"))
        'No privacy: updates leave clients as they are.'
    """
    return " ".join(filter(None, (privacy.protection.promise, standing(privacy, results))))


def standing(privacy: PrivacyConfig, results: Sequence[TrialResult | Mapping[str, Any]]) -> str:
    """Return what trainings may claim of privacy, in one or two sentences."""
    has_uncharged = any(one.get("disclosure") for one in results)
    return standing_sentence(privacy.protection, privacy.noise, has_uncharged=has_uncharged)


def paid_for_nothing(results: Sequence[TrialResult | Mapping[str, Any]]) -> str:
    """Return what must be said where clients are paid and none is charged; empty where there is no such result.

    Example:
        >>> paid_for_nothing([{"paid": 1811.0, "spent": {"num_clients": 0}}])
        'Rewards are paid all the same, for budgets that clients announce: no noise is added, and no ε holds.'
    """
    if not any(one["paid"] > 0.0 and one["spent"]["num_clients"] == 0 for one in results):
        return ""
    return "Rewards are paid all the same, for budgets that clients announce: no noise is added, and no ε holds."
