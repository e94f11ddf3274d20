"""What "the same code" means: a digest of the syntax trees of all rooms that can change a number of a run.

Comments, docstrings and white space are no part of it, nor are rooms that choose, judge or show runs.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import fedpcs

ROOMS = ("game", "sampling", "privacy", "learning", "engines", "trial")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_ROOT = Path(fedpcs.__file__).parent


@cache
def code_digest() -> str:
    """Return the SHA-256 of fedpcs's own code that makes the numbers of a run.

    Files are read at the first call; what becomes of them later is not what this process runs.
    """
    return _digest(hashed_files())


@cache
def solver_digest() -> str:
    """Return the digest of the code that solves games and makes schedules, and of the libraries it computes with."""
    libraries = "".join(f"{name} {version(name)}\0" for name in ("numpy", "scipy", "numba"))
    return hashlib.sha256((libraries + _digest(_files("game", "trial/schedule.py"))).encode()).hexdigest()


def hashed_files() -> list[Path]:
    """Return the files whose code is hashed, relative to the package: the rooms, and the helpers below them."""
    return _files(*ROOMS)


def _files(*parts: str) -> list[Path]:
    helpers = {*_ROOT.glob("_[a-z]*.py"), _ROOT / "errors.py"} - {_ROOT / "_format.py"}  # which writes for people
    rooms = {path for part in parts for path in (_ROOT / part).rglob("*.py")}
    single = {_ROOT / part for part in parts if part.endswith(".py")}
    return sorted(path.relative_to(_ROOT) for path in helpers | rooms | single)


def _digest(files: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in files:
        tree = code_of((_ROOT / path).read_text(encoding="utf-8"))
        total.update(path.as_posix().encode() + b"\0" + tree.encode() + b"\0")
    return total.hexdigest()


def code_of(source: str) -> str:
    r"""Return the syntax tree of a file as text, without docstrings: equal for files that do the same.

    Example:
        >>> code_of("x = 1  # one") == code_of("'What x is.'\nx = 1")
        True
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
