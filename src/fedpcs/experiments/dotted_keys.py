"""Keys such as "training.learning_rate": how flags and files name one value inside nested tables."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from fedpcs.errors import InvalidInput

_MOST_NAMES = 20  # no key of ours has so many


def read_override(override: str) -> dict[str, Any]:
    """Read what `--set` is given, by dotted key; a table is as many keys as it holds.

    Raises:
        InvalidInput: It is not KEY=VALUE.

    Example:
        >>> read_override("rounds=5"), read_override("training={batch_size = 8}")
        ({'rounds': 5}, {'training.batch_size': 8})
    """
    key, sign, text = override.partition("=")
    if not sign or not key.strip():
        raise InvalidInput(f"--set {override!r} must be KEY=VALUE, such as training.learning_rate=0.2.")
    try:
        return dotted_keys({key.strip(): read_value(text)})
    except InvalidInput as error:
        raise InvalidInput(f"--set {override!r}: {error}") from None


def read_value(text: str) -> Any:
    """Read a value as TOML would, or else as a word.

    Example:
        >>> read_value("0.5"), read_value("iid")
        (0.5, 'iid')
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"a value cannot be read as TOML: {error}. It begins {text[:40]!r}.") from None


def dotted_keys(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested tables as one, so that setting its keys leaves alone what they do not name.

    A name at the top may be dotted itself; one with dots of its own, such as a sampler's, is put in quotes.

    Raises:
        InvalidInput: A key is there twice, such as by itself and in a table; or a table is empty.

    Example:
        >>> dotted_keys({"rounds": 5, "training": {"batch_size": 8}})
        {'rounds': 5, 'training.batch_size': 8}
    """
    found: dict[str, Any] = {}
    for path, value in _leaves(tables):
        if len(path) > _MOST_NAMES:
            raise InvalidInput(f"{'.'.join(path[:3])}…: tables may lie {_MOST_NAMES} deep, got {len(path)}.")
        key = ".".join(f'"{name}"' if "." in name else name for name in path)
        if key in found:
            raise InvalidInput(f"{key} is given twice, in two ways of writing it. Keep one of them.")
        found[key] = value
    return found


def _leaves(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give every value that is no table, with the names on the way to it."""
    for key, value in table.items():
        here = (*path, key) if path else _names(key)
        if not isinstance(value, Mapping) or len(here) > _MOST_NAMES:
            yield here, value
        elif value:
            yield from _leaves(value, here)
        else:
            raise InvalidInput(
                f"{'.'.join(here)} is an empty table, which changes nothing. Name keys in it, or take it out."
            )


def _names(key: str) -> tuple[str, ...]:
    """Return the names a dotted key is made of; dots in quotes part nothing."""
    parts = re.split(r'\.(?=(?:[^"]*"[^"]*")*[^"]*$)', key)
    return tuple(part[1:-1] if re.fullmatch(r'"[^"]+"', part) else part for part in parts)


def set_key(values: dict[str, Any], key: str, value: Any) -> None:
    """Set a key such as "training.learning_rate" in nested tables, in place.

    Raises:
        InvalidInput: What should hold the key is no table.
    """
    *path, last = _names(key)
    table = values
    for part in path:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise InvalidInput(f"{key}: {part} is not a table.")
    table[last] = value
