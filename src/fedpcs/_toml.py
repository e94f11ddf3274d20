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
    """Return the tables of a TOML text.

    Raises:
        InvalidInput: It is not TOML, nested too deep, or has a key of too many names or a number of too many digits.
    """
    if _LONG_KEY.search(text):
        raise InvalidInput(f"cannot be read as TOML: a key may have {MOST_NAMES} names with dots between them.")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"cannot be read as TOML: {printable(error)}.") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        InvalidInput: It cannot be read, or as `parse_toml`; the file is named.
        FileNotFoundError: There is no such file; the caller knows what else was meant.
        IsADirectoryError: It is a folder.
    """
    try:
        return parse_toml(read_text(path))
    except (FileNotFoundError, IsADirectoryError):
        raise
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}.") from None
    except ValueError as error:  # no text, or a name that no file can have
        raise InvalidInput(f"{path}: cannot be read: {printable(error)}.") from None
