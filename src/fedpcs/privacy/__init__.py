"""Privacy that holds: budgets that add up, noise matched to bounds, a ledger, an audit.

Every release is charged to the client's budget (`PrivacyLedger.charge`), then clipped (`clip_update`), then perturbed
by a mechanism, in this order. The mechanism adds the noise that bound and budget call for, and returns the value with
the event that accounts for it. `private_sgd` does the same at every local step, record by record.

Example:
    >>> from fedpcs.privacy import Rho, UpdateMechanism, clip_update, noise_source, to_epsilon
    >>> mechanism = UpdateMechanism(Rho.of(0.5))
    >>> release = mechanism.release(clip_update([[3.0, 4.0]], l2_bound=1.0), noise_source("secure"))
    >>> release.event.level.unit, round(release.noise_stddev, 4)
    ('client', 2.0)
    >>> round(to_epsilon(release.event.rho, delta=1e-5, method="exact"), 4)
    4.3772
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedpcs.privacy.budget import Rho as Rho
    from fedpcs.privacy.clipping import ClippedMean as ClippedMean
    from fedpcs.privacy.clipping import ClippedUpdate as ClippedUpdate
    from fedpcs.privacy.clipping import clip_rows as clip_rows
    from fedpcs.privacy.clipping import clip_update as clip_update
    from fedpcs.privacy.conversion import to_delta as to_delta
    from fedpcs.privacy.conversion import to_epsilon as to_epsilon
    from fedpcs.privacy.conversion import to_rho as to_rho
    from fedpcs.privacy.events import Event as Event
    from fedpcs.privacy.events import Level as Level
    from fedpcs.privacy.events import compose as compose
    from fedpcs.privacy.honesty import NoiseClaim as NoiseClaim
    from fedpcs.privacy.honesty import honest_norms as honest_norms
    from fedpcs.privacy.ledger import PrivacyLedger as PrivacyLedger
    from fedpcs.privacy.ledger import ReleaseKey as ReleaseKey
    from fedpcs.privacy.mechanism import RecordMechanism as RecordMechanism
    from fedpcs.privacy.mechanism import Release as Release
    from fedpcs.privacy.mechanism import UpdateMechanism as UpdateMechanism
    from fedpcs.privacy.noise import noise_source as noise_source
    from fedpcs.privacy.per_sample import per_sample_gradient as per_sample_gradient
    from fedpcs.privacy.private_training import LocalPlan as LocalPlan
    from fedpcs.privacy.private_training import private_sgd as private_sgd

# Imported when first used: SciPy and torch take a second, and a client that charges and perturbs does without.
_NAMES = {
    "budget": ("Rho",),
    "clipping": ("ClippedMean", "ClippedUpdate", "clip_rows", "clip_update"),
    "conversion": ("to_delta", "to_epsilon", "to_rho"),
    "events": ("Event", "Level", "compose"),
    "honesty": ("NoiseClaim", "honest_norms"),
    "ledger": ("PrivacyLedger", "ReleaseKey"),
    "mechanism": ("RecordMechanism", "Release", "UpdateMechanism"),
    "noise": ("noise_source",),
    "per_sample": ("per_sample_gradient",),
    "private_training": ("LocalPlan", "private_sgd"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"fedpcs.privacy.{_HOME[name]}"), name)
    raise AttributeError(f"module 'fedpcs.privacy' has no attribute {name!r}")
