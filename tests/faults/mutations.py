"""Files made wrong on purpose: trees of values, bytes, and what stands where a file should be."""

from __future__ import annotations

import copy
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

Rng = np.random.Generator


def nested(depth: int, kind: str) -> Any:
    """Return lists or tables that lie `depth` deep."""
    value: Any = 1
    for _ in range(depth):
        value = [value] if kind == "list" else {"a": value}
    return value


# Values that a key may be given; those of a kind of their own are made when they are drawn.
STRANGE: tuple[Any, ...] = (
    *(True, False, 0, -1, 1, 2, 7, 255, 2**31, 2**32, 2**47, 2**53, 2**63 - 1, 2**63, 2**64, 10**13, 10**18),
    *(10**20, -(10**20), 10**400, -(2**63) - 1, 0.0, -0.0, 0.5, 1.0, -0.5, 1e-12, 5e-324, 1e-300, 1e12, 1e300),
    *(1.7e308, math.nan, math.inf, -math.inf, 10.5, "", " ", "x", "x" * 300, "x" * 100_000, "\x00", "\x1b[2J"),
    *("a\nfedpcs: done", "\u202e", "é" * 200, "../../etc/passwd", "a:b", "os:system", "a.b.c", "'\"\\", "nan", "1"),
    *("random", "fedpcs", "record", "none", "/dev/zero", "\ud800", [], [[]], [0], [1.0], ["random"], [0, 1, 2]),
    *([0.5, 0.5], [math.nan], [True], [10**20], [-1], [""], ["x" * 1000], [{}], [None], {}, {"a": 1}, {"": {}}),
    *({"a.b": 1}, {"x" * 500: 1}, {"\x1b[31m": 1}, {"a": {"b": {"c": 1}}}, None),
)
MADE = (
    lambda rng: nested(int(rng.integers(2, 8)), "list"),
    lambda rng: nested(int(rng.integers(2, 8)), "table"),
    lambda rng: nested(90, "list"),
    lambda rng: nested(90, "table"),
    lambda rng: rng.random(int(rng.integers(1, 40))).tolist(),
    lambda rng: [int(one) for one in rng.integers(-3, 50, 20)],
    lambda rng: list(range(20_000)),
    lambda rng: float(np.exp(rng.uniform(-50, 50))),
    lambda rng: int(rng.integers(-100, 100_000)),
)


def strange_value(rng: Rng) -> Any:
    """Draw a value that is probably wrong."""
    if rng.random() < 0.25:
        return MADE[rng.integers(len(MADE))](rng)
    return copy.deepcopy(STRANGE[rng.integers(len(STRANGE))])


def paths_of(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the ways to all values of a tree, the tables and lists themselves among them."""
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    found = [(*path, key) for key in keys]
    return found + [one for key in keys for one in paths_of(tree[key], (*path, key))]


def mutate_tree(tree: Any, rng: Rng) -> tuple[Any, str]:
    """Change one to four places of a tree of tables, lists and values; say what was done."""
    tree, done = copy.deepcopy(tree), []
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        paths = paths_of(tree)
        if not paths:
            break
        path = paths[rng.integers(len(paths))]
        *way, last = path
        holder = tree
        for key in way:
            holder = holder[key]
        how = ("value", "value", "value", "drop", "key", "wrap", "swap", "double")[rng.integers(8)]
        _change(how, tree, holder, last, paths, rng)
        done.append(f"{how} {'.'.join(map(str, path))[:60]!r}")
    return tree, "; ".join(done)


def _change(how: str, tree: Any, holder: Any, last: Any, paths: list[tuple[Any, ...]], rng: Rng) -> None:
    if how == "drop":
        del holder[last]
    elif how == "key" and isinstance(holder, dict):
        holder[("zz", "", "a.b", "x" * 300, "\x1b[2J", "name", "seed", "rounds", "client")[rng.integers(9)]] = (
            holder.pop(last) if rng.random() < 0.5 else strange_value(rng)
        )
    elif how == "wrap":
        holder[last] = [holder[last]] if rng.random() < 0.5 else {"a": holder[last]}
    elif how == "swap":
        other: Any = tree
        for key in paths[rng.integers(len(paths))]:
            other = other[key]
        holder[last] = copy.deepcopy(other)
    elif how == "double" and isinstance(holder[last], list):
        holder[last] = holder[last] * 2
    else:
        holder[last] = strange_value(rng)


def as_toml(tree: dict[str, Any]) -> str:
    """Write a tree as TOML, as wrong as it is."""
    return "".join(f"{_toml_key(key)} = {_toml(value)}\n" for key, value in tree.items())


def _toml_key(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml_key(key)} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, str):
        return json.dumps(value)
    if value is None:
        return "1979-05-27T07:32:00Z"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def mutate_bytes(content: bytes, rng: Rng) -> tuple[bytes, str]:
    """Change the bytes of a file; say how."""
    data, size = bytearray(content), len(content)
    how = ("cut", "flip", "flip", "zero", "insert", "remove", "repeat", "empty", "append", "shuffle")[rng.integers(10)]
    at = int(rng.integers(size)) if size else 0
    span = int(rng.integers(1, 1 + min(64, max(size, 1))))
    if how == "cut":
        del data[at:]
    elif how == "flip" and size:
        for place in rng.integers(size, size=rng.choice([1, 1, 4])):
            data[place] ^= 1 << rng.integers(8)
    elif how == "zero":
        data[at : at + span] = bytes(len(data[at : at + span]))
    elif how == "insert":
        data[at:at] = rng.bytes(span)
    elif how == "remove":
        del data[at : at + span]
    elif how == "repeat":
        data[at:at] = data[at : at + span] * int(rng.choice([1, 100]))
    elif how == "empty":
        data.clear()
    elif how == "append":
        data += (b"\n", b"}", b"garbage\n", b"{}\n", b"[" * 3000 + b"\n", b"\xff\xfe", b"\0" * 5000)[rng.integers(7)]
    elif how == "shuffle" and size > 2 * span:
        data[:span], data[-span:] = data[-span:], data[:span]
    return bytes(data), f"{how} at {at}"


def put_something_else(path: Path, rng: Rng) -> str:
    """Put what is no file of content in a file's place; say what."""
    how = ("gone", "folder", "pipe", "device", "loop", "dangling", "empty-link")[rng.integers(7)]
    put(path, how)
    return how


def put(path: Path, how: str) -> None:
    """Put what is no regular file at a path."""
    path.unlink(missing_ok=True)
    if how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how != "gone":
        path.symlink_to({"device": "/dev/zero", "loop": path, "dangling": "/nowhere/x", "empty-link": "/dev/null"}[how])
