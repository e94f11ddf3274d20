"""TOML from outside: read in bounded time, and refused in words whatever is wrong with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from fedpcs._files import read_text
from fedpcs._outside import printable
from fedpcs.errors import InvalidInput

# No key of ours has so many names; Python's parser takes time that grows with the square of their number.
MOST_NAMES = 20
_NAME = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_NAME}(?:[ \t]*+\.[ \t]*+{_NAME}){{{MOST_NAMES}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text; refuse what is none, is nested too deep, or has too long keys or numbers."""
    if _LONG_KEY.search(text):
        raise InvalidInput(f"cannot be read as TOML: a key may have {MOST_NAMES} names with dots between them.")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"cannot be read as TOML: {printable(error)}.") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        InvalidInput: It cannot be read, or is not TOML; the file is named.
        FileNotFoundError, IsADirectoryError: The caller knows what else was meant.
    """
    try:
        return parse_toml(read_text(path))
    except (FileNotFoundError, IsADirectoryError):
        raise
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    except (OSError, ValueError) as error:  # the latter: no text, or a name that no file can have
        reason = error.strerror if isinstance(error, OSError) else printable(error)
        raise InvalidInput(f"{path}: cannot be read: {reason}.") from None
