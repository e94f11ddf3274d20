"""Which samplers a deployment can run: those that ask of clients nothing but what clients tell there."""

from __future__ import annotations

from collections.abc import Callable

from fedpcs.errors import InvalidInput
from fedpcs.learning.protocol import MEASURES
from fedpcs.trial.assemble import sampler_of
from fedpcs.trial.config import RunConfig

_ASKED = ("label_counts", "update_norm", "loss")


def check_served(config: RunConfig, say: Callable[[str], None]) -> None:
    """Refuse a sampler that reads what clients of a deployment do not tell; say if it measures what is private.

    Raises:
        InvalidInput: It does.
    """
    sampler = sampler_of(config, config.sampling.samplers[0])
    if private := [name for name in _ASKED if name in sampler.reads]:
        raise InvalidInput(
            f"sampler {sampler.name} reads {', '.join(private)} of every client, which clients of a deployment do not "
            "tell: it is private, and charged to nobody. Take fedpcs, random or clustered, or simulate."
        )
    if measured := [name for name in MEASURES if name in sampler.hears]:
        say(
            f"sampler {sampler.name} hears {', '.join(measured)} of clients that were drawn, which is private and "
            "charged to nobody: only clients whose settings say may_be_asked = true answer it"
        )
