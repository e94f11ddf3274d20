"""What a run promises its clients: whom the noise protects, against what, and whether the promise is kept."""

from __future__ import annotations

from collections.abc import Sequence

from fedpcs.privacy.standing import standing_sentence
from fedpcs.trial.config import PrivacyConfig
from fedpcs.trial.records import TrialResult


def promise(privacy: PrivacyConfig, disclosures: Sequence[str] = ()) -> str:
    """Return the sentences a report may print about a run's privacy, and no more.

    Args:
        privacy: As configured.
        disclosures: What the samplers of the trainings it speaks of read of clients without noise; empty if nothing.

    Example:
        >>> promise(PrivacyConfig(mode="none"))
        'No privacy: updates leave clients as they are.'
    """
    return " ".join(filter(None, (privacy.protection.promise, standing(privacy, disclosures))))


def standing(privacy: PrivacyConfig, disclosures: Sequence[str]) -> str:
    """Return what trainings may claim of privacy, in one or two sentences."""
    return standing_sentence(privacy.protection, privacy.noise, has_uncharged=any(disclosures))


def paid_for_nothing(results: Sequence[TrialResult]) -> str:
    """Return what must be said where clients are paid and none is charged; empty where there is no such result."""
    if not any(one.paid > 0.0 and one.spent.num_clients == 0 for one in results):
        return ""
    return "Rewards are paid all the same, for budgets that clients announce: no noise is added, and no ε holds."
