"""Samplers by name: a dictionary, and nothing that needs explaining.

A name with a colon, `package.module:ClassName`, is imported, so a configuration file can name a sampler of the user's
own.
"""

from __future__ import annotations

import importlib
from dataclasses import fields
from typing import Any

from fedpcs.errors import InvalidInput
from fedpcs.sampling.aocs import AOCSSampler
from fedpcs.sampling.clustered import ClusteredSampler
from fedpcs.sampling.delta import DeltaSampler
from fedpcs.sampling.fed_cbs import FedCBSSampler
from fedpcs.sampling.fedpcs import FedPCSSampler
from fedpcs.sampling.oort import OortSampler
from fedpcs.sampling.optimal import OptimalSampler
from fedpcs.sampling.power_of_choice import PowerOfChoiceSampler
from fedpcs.sampling.random import RandomSampler
from fedpcs.sampling.sampler import Sampler

SAMPLERS: dict[str, type[Any]] = {
    kind.name: kind
    for kind in (
        RandomSampler,
        FedPCSSampler,
        AOCSSampler,
        FedCBSSampler,
        DeltaSampler,
        PowerOfChoiceSampler,
        OortSampler,
        ClusteredSampler,
        OptimalSampler,
    )
}


def make_sampler(name: str, **settings: Any) -> Sampler:
    """Return the sampler `name` with the settings given.

    Args:
        name: A key of `SAMPLERS`, or `package.module:ClassName`.
        settings: The fields of that sampler's class.

    Example:
        >>> make_sampler("aocs", design="pivotal").design
        'pivotal'
    """
    kind = _imported(name) if isinstance(name, str) and ":" in name else SAMPLERS.get(name)
    if kind is None:
        names = ", ".join(map(repr, SAMPLERS))
        raise InvalidInput(f"sampler must be one of {names}, or package.module:ClassName, got {name!r}.")
    allowed = [item.name for item in fields(kind)]
    if unknown := sorted(set(settings) - set(allowed)):
        has = f"it has {', '.join(allowed)}" if allowed else "it has none"
        raise InvalidInput(f"Sampler {name!r} has no setting {unknown[0]!r}; {has}.")
    sampler: Sampler = kind(**settings)
    return sampler


def _imported(name: str) -> type[Any]:
    module_name, _, class_name = name.partition(":")
    try:
        kind = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"sampler {name!r} could not be imported: {error}. It must be package.module:ClassName."
        ) from error
    if not (isinstance(kind, type) and hasattr(kind, "__dataclass_fields__") and callable(getattr(kind, "draw", None))):
        raise InvalidInput(f"sampler {name!r} must be a dataclass with a method draw(view, rng), got {kind!r}.")
    return kind
