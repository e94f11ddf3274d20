"""Samplers by name: a built-in one, or one of the user's own.

A name with a colon, `package.module:ClassName`, is imported, so a configuration file can name a sampler of the user's
own.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from fedpcs import _validate
from fedpcs._plugins import imported
from fedpcs.errors import InvalidInput
from fedpcs.sampling.sampler import Sampler
from fedpcs.sampling.samplers import SAMPLERS


def make_sampler(name: str, /, **settings: Any) -> Sampler:
    """Return the sampler `name` with the settings given.

    Args:
        name: A key of `SAMPLERS`, or `package.module:ClassName`.
        settings: The fields of that sampler's class.

    Example:
        >>> make_sampler("aocs", design="pivotal").design
        'pivotal'
    """
    if isinstance(name, str) and ":" in name:
        kind = _own(name)
    else:
        kind = SAMPLERS[_validate.choice("sampler", name, SAMPLERS, or_else="package.module:ClassName")]
    allowed = [item.name for item in fields(kind)]
    if unknown := sorted(set(settings) - set(allowed)):
        has = f"it has {', '.join(allowed)}" if allowed else "it has none"
        meant = _validate.did_you_mean(unknown[0], allowed)
        raise InvalidInput(f"Sampler {name!r} has no setting {unknown[0]!r}; {has}. {meant}".strip())
    try:
        sampler: Sampler = kind(**settings)
    except TypeError as error:
        raise InvalidInput(f"sampler {name!r} could not be made: {error}. Give every setting a default.") from error
    return sampler


def _own(name: str) -> type[Any]:
    kind = imported("sampler", name, "It must be package.module:ClassName.")
    if not (isinstance(kind, type) and is_dataclass(kind) and callable(getattr(kind, "draw", None))):
        raise InvalidInput(f"sampler {name!r} must be a dataclass with a method draw(view, rng), got {kind!r}.")
    if missing := [part for part in ("name", "reads", "hears") if not hasattr(kind, part)]:
        raise InvalidInput(f"sampler {name!r} must say its {missing[0]}; see docs/how-to-add-a-sampler.md.")
    if hasattr(kind, "start") != hasattr(kind, "remember"):
        raise InvalidInput(f"sampler {name!r} must have both start and remember to learn, or neither; it has one.")
    return kind
