"""Code that is named and not shipped: a user's own `package.module:name`, and packages that an extra needs."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path
from typing import Any

from fedpcs.errors import FedpcsError, InvalidInput


def look_here(*names: str) -> None:
    """Let Python import from the working folder, as `python -m` does, if a name is one of the user's own."""
    if any(":" in name for name in names) and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def imported(what: str, name: str, remedy: str) -> Any:
    """Return what `package.module:name` names.

    Args:
        what: What the caller takes it for, such as "sampler".
        name: Of the user's own.
        remedy: What it must be.

    Raises:
        InvalidInput: There is no such module, it fails while it is imported, or it has no such name.
    """
    module_name, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except FedpcsError:  # it says what is wrong, and better than we could
        raise
    except Exception as error:  # a user's module may fail in any way
        raise InvalidInput(f"{what} {name!r} cannot be imported: {error}. {remedy}") from error


def digests(names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of the source file of every module of the user's own that is named, not of its imports."""
    modules = sorted({name.partition(":")[0] for name in names if ":" in name})
    return {module: _digest(module) for module in modules}


def _digest(module: str) -> str:
    try:
        found = importlib.util.find_spec(module)
        return hashlib.sha256(Path(str(found and found.origin)).read_bytes()).hexdigest()
    except (ImportError, OSError, ValueError):  # a module made in memory, or none: it is refused where it is needed
        return "no file"


def pip_install(*extras: str) -> str:
    """Return the command that installs what extras of fedpcs need: a checkout cannot be had by name."""
    asked = [f"extra == '{extra}'" for extra in extras]
    needed = [line.replace('"', "'") for line in requires("fedpcs") or []]
    parts = [(package.strip(), extra.strip()) for package, _, extra in (line.partition(";") for line in needed)]
    return " ".join(["pip install", *(f"'{package}'" for package, extra in parts if extra in asked)])
