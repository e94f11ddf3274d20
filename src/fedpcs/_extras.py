"""What extras need, in words that are true wherever fedpcs came from: a checkout cannot be had by name."""

from __future__ import annotations

from importlib.metadata import requires


def pip_install(*extras: str) -> str:
    """Return the command that installs what extras of fedpcs need.

    Example:
        >>> pip_install("parquet")
        "pip install 'pyarrow>=17'"
    """
    asked = [f"extra == '{extra}'" for extra in extras]
    needed = [line.replace('"', "'") for line in requires("fedpcs") or []]
    parts = [(package.strip(), extra.strip()) for package, _, extra in (line.partition(";") for line in needed)]
    return " ".join(["pip install", *(f"'{package}'" for package, extra in parts if extra in asked)])
