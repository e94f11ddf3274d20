"""A user's own model, data or sampler, named as package.module:name: where it is looked for, and what it was."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path

from fedpcs.experiments.run_config import RunConfig


def look_here(*names: str) -> None:
    """Let Python import from the working folder, as `python -m` does, if a name is one of the user's own."""
    if any(":" in name for name in names) and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def digests(config: RunConfig) -> dict[str, str]:
    """Return the SHA-256 of the source file of every module of the user's own that a run names, not of its imports."""
    names = (config.data.name, config.training.model, *config.sampling.samplers)
    modules = sorted({name.partition(":")[0] for name in names if ":" in name})
    return {module: _digest(module) for module in modules}


def _digest(module: str) -> str:
    try:
        found = importlib.util.find_spec(module)
        return hashlib.sha256(Path(str(found and found.origin)).read_bytes()).hexdigest()
    except (ImportError, OSError, ValueError):  # a module made in memory, or none: it is refused where it is needed
        return "no file"
