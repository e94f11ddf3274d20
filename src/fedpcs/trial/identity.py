"""Which trial a configuration is: trials whose numbers are equal have equal keys, and share a folder."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from fedpcs.trial.config import RunConfig

# What a trial's numbers do not depend on.
_NO_MATTER: Any = {
    "name": True,
    "tensorboard": True,
    "checkpoint_every": True,
    "engine": {"kind", "num_workers"},
    "federation": True,
}


def alone(config: RunConfig, sampler: str, seed: int) -> RunConfig:
    """Return one trial of a run as a run of its own."""
    settings = {name: one for name, one in config.sampling.settings.items() if name == sampler}
    sampling = config.sampling.model_copy(update={"samplers": [sampler], "settings": settings})
    return config.model_copy(update={"seeds": [seed], "sampling": sampling})


def trial_key(config: RunConfig) -> str:
    """Return the digest of all that a trial's numbers depend on, but data and code."""
    numbers = _as_equal_text(config.model_dump(mode="json", exclude=_NO_MATTER))
    return hashlib.sha256(json.dumps(numbers, sort_keys=True).encode()).hexdigest()[:16]


def trial_folder(config: RunConfig) -> str:
    """Return the name of a trial's folder: readable, and unique by its key."""
    ratio = f"{float(config.sampling.sampling_ratio):g}"
    place = f"{config.data.name}-{config.data.partition}-{ratio}-{config.sampling.samplers[0]}-seed{config.seeds[0]}"
    return f"{place.replace(':', '.')}-{trial_key(config)}"


def _as_equal_text(value: Any) -> Any:
    """Return a tree in which numbers that are equal are written alike: 3.0 as 3."""
    if isinstance(value, dict):
        return {key: _as_equal_text(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_equal_text(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
