"""fedpcs: privacy-aware client sampling in federated learning.

`fedpcs.game` solves and certifies the Stackelberg game between a server that pays for privacy and clients who spend it.
`fedpcs.privacy` makes the noise to match what they spend, accounts for it, and audits itself. `fedpcs.sampling` draws
and weighs clients, `fedpcs.learning` is the round, `fedpcs.engines` runs it, and `fedpcs.theory` bounds how it goes.
`fedpcs.trial` is one sampler with one seed, `fedpcs.deploy` the same with clients on machines of their own;
`fedpcs.studies` repeats and judges, `fedpcs.report` draws, `fedpcs.exhibits` holds it against the paper.
Rooms are imported when first used, so `import fedpcs` is quick.
"""

from __future__ import annotations

import importlib
from types import ModuleType

_ROOMS = (
    "deploy",
    "engines",
    "errors",
    "exhibits",
    "game",
    "learning",
    "privacy",
    "report",
    "sampling",
    "studies",
    "theory",
    "trial",
)

__all__ = list(_ROOMS)


def __getattr__(name: str) -> ModuleType:
    if name in _ROOMS:
        return importlib.import_module(f"fedpcs.{name}")
    raise AttributeError(f"module 'fedpcs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(_ROOMS)
