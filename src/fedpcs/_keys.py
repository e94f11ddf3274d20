"""Keys such as "training.learning_rate": how flags and files name one value, and the words for one that is wrong."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from fedpcs._outside import shown
from fedpcs._toml import MOST_NAMES, parse_toml
from fedpcs._validate import did_you_mean, nearest
from fedpcs.errors import InvalidInput

Tree = TypeVar("Tree", bound=BaseModel)
# Names that people try, and are too far from ours to be taken for a slip.
_OTHER_NAMES = {
    "dataset": "data.name",
    "epsilon": "privacy.limit_epsilon",
    "lr": "training.learning_rate",
    "ratio": "sampling.sampling_ratio",
}


def read_override(override: str) -> dict[str, Any]:
    """Read what `--set` is given, by dotted key; a table is as many keys as it holds.

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
    """Read a value as TOML would, or else as a word."""
    try:
        return parse_toml(f"value = {text}")["value"]
    except InvalidInput as error:
        if isinstance(error.__cause__, tomllib.TOMLDecodeError):
            return text.strip()
        raise InvalidInput(f"a value {error} It begins {text[:40]!r}.") from None


def dotted_keys(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested tables as one, so that setting its keys leaves alone what they do not name.

    A name at the top may be dotted itself; one with dots of its own, such as a sampler's, is put in quotes.

    Example:
        >>> dotted_keys({"rounds": 5, "training": {"batch_size": 8}})
        {'rounds': 5, 'training.batch_size': 8}
    """
    found: dict[str, Any] = {}
    for path, value in _leaves(tables):
        if len(path) > MOST_NAMES:
            raise InvalidInput(f"{'.'.join(path[:3])}…: tables may lie {MOST_NAMES} deep, got {len(path)}.")
        key = ".".join(f'"{name}"' if "." in name else name for name in path)
        if key in found:
            raise InvalidInput(f"{key} is given twice, in two ways of writing it. Keep one of them.")
        found[key] = value
    return found


def _leaves(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give every value that is no table, with the names on the way to it."""
    for key, value in table.items():
        here = (*path, key) if path else _names(key)
        if not isinstance(value, Mapping) or len(here) > MOST_NAMES:
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
    """Set a key such as "training.learning_rate" in nested tables, in place."""
    *path, last = _names(key)
    table = values
    for part in path:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise InvalidInput(f"{key}: {part} is not a table.")
    table[last] = value


def checked(tree: type[Tree], values: Any, where: str = "") -> Tree:
    """Return values from outside as a checked tree; an error's message begins with `where`."""
    try:
        return tree.model_validate(values)
    except ValidationError as error:
        raise InvalidInput(f"{where}: {first_problem(error, tree)}".removeprefix(": ")) from None


def first_problem(error: ValidationError, tree: type[BaseModel]) -> str:
    """Put pydantic's first complaint into one line with the key, the value, what is allowed and what was meant."""
    first: Any = next((detail for detail in error.errors() if detail["type"] == "extra_forbidden"), error.errors()[0])
    path = tuple(part for part in first["loc"] if not _is_label(part))
    key = ".".join(map(str, path))
    if first["type"] == "extra_forbidden":
        there = sorted(_fields_at(tree, path[:-1]))
        return f"unknown key {shown(key)}. {_meant(tree, path, there)}Keys there: {', '.join(there)}."
    if first["type"] == "value_error":
        words = str(first["ctx"]["error"])
        words = words if words.startswith(key) else f"{key}.{words}"  # a table's own check need not know where it is
        return words if words.endswith((".", "?")) else f"{words}."
    if first["type"] == "missing":
        return f"{key} must be given."
    same_key = [detail for detail in error.errors() if detail["loc"][: len(path)] == path]
    kinds = list(dict.fromkeys(_wanted(detail) for detail in same_key))
    if {"a number", "a finite number"} & set(kinds):  # of which a whole one is none of another kind
        kinds = [kind for kind in kinds if kind != "a whole number"]
    wanted = " or ".join(kinds)
    remedy = " Add what is missing, or leave it out." if first["type"] == "too_short" else ""
    meant = did_you_mean(first["input"], re.findall("'([^']+)'", wanted))
    return f"{key} must be {wanted}, got {shown(first['input'])}.{remedy} {meant}".strip()


def _wanted(detail: Any) -> str:
    """Put what pydantic allows into our words."""
    limits = detail.get("ctx", {})
    named = {
        "too_short": f"a list with at least {limits.get('min_length')} in it",
        "too_long": f"a list with at most {limits.get('max_length')} in it",
        "string_pattern_mismatch": "letters, digits, '.', '_' and '-', at most 64, a letter or digit first",
        "string_too_short": f"at least {limits.get('min_length')} letter long",
        "string_too_long": f"at most {limits.get('max_length')} letters long",
        "model_type": "a table",
        "list_type": "a list, such as [1, 2]",
        "float_parsing": "a number",
        "int_parsing": "a whole number",
        "multiple_of": "a whole number"
        if limits.get("multiple_of") == 1
        else f"a multiple of {limits.get('multiple_of')}",
    }
    words: str = detail["msg"].removeprefix("Input should be ").replace("a valid integer", "a whole number")
    return named.get(detail["type"], words.replace("a valid ", "a "))


def _meant(tree: type[BaseModel], path: tuple[Any, ...], there: list[str]) -> str:
    """Return a question with the key that an unknown one was meant to be, and a blank; empty if none is near."""
    *tables, last = map(str, path)
    known = {key.rpartition(".")[2]: key for key in _all_keys(tree)}
    named, beside = _OTHER_NAMES.get(last.lower(), ""), nearest(last, there)
    if named in known.values():
        found = named
    elif last in known or beside is None:  # it is there in another table, or something like it may be
        found = known.get(nearest(last, known) or "", "")
    else:
        found = ".".join((*tables, beside))
    return f"Did you mean '{found}'? " if found else ""


def _all_keys(tree: Any, prefix: str = "") -> Iterator[str]:
    """Give every key of a configuration, dotted."""
    for name, field in tree.model_fields.items():
        yield f"{prefix}{name}"
        if _is_table(field.annotation):
            yield from _all_keys(field.annotation, f"{prefix}{name}.")


def _fields_at(tree: type[BaseModel], path: tuple[Any, ...]) -> list[str]:
    """Return the keys of the table at a path; a number in it is a place in a list of tables."""
    kind: Any = tree
    for part in path:
        if isinstance(part, str):
            kind = kind.model_fields[part].annotation
        kind = kind if _is_table(kind) else next(filter(_is_table, get_args(kind)), kind)  # X of list[X], of X | None
    return list(kind.model_fields)


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _is_label(part: object) -> bool:
    """Say whether a part of pydantic's path is no key but its name for one of the types that are allowed."""
    begins = ("list[", "literal[", "function-after[")
    return isinstance(part, str) and (part in {"int", "float", "str"} or part.startswith(begins))
