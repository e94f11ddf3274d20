"""What blocks a resume: code that can change a number of a run, all of it, and nothing else."""

import ast
from pathlib import Path

import pytest

import fedpcs
from fedpcs.trial.same_code import ROOMS, code_of, hashed_files

SOURCE = Path(fedpcs.__file__).parent


def modules_imported(path):
    """Return the files of fedpcs that a file imports, by whatever form of import."""
    names = set()
    for node in ast.walk(ast.parse((SOURCE / path).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fedpcs"):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.startswith("fedpcs.")}
    for name in names:
        place = Path(*name.split(".")[1:])
        for one in (place.with_suffix(".py"), place / "__init__.py") if place.parts else ():
            if (SOURCE / one).is_file():
                yield one


def test_these_rooms_and_the_helpers_are_hashed():
    assert ROOMS == ("game", "sampling", "privacy", "learning", "engines", "trial")
    rooms = {path.parts[0] for path in hashed_files() if len(path.parts) > 1}
    helpers = {path.name for path in hashed_files() if len(path.parts) == 1}
    assert rooms == set(ROOMS)
    assert {"_random.py", "_inclusion.py", "_validate.py", "errors.py"} <= helpers
    assert not helpers & {"__init__.py", "_format.py"}


def test_nothing_that_hashed_code_imports_is_left_out():
    hashed = set(hashed_files())
    left_out = {one for path in hashed for one in modules_imported(path)} - hashed
    assert left_out == {Path("_format.py")}  # words for people


@pytest.mark.parametrize(
    "other",
    ["x = 1  # why", "'What it is.'\nx = 1", "\n\nx   =   1\n", "x = (1)"],
)
def test_comments_docstrings_and_white_space_are_no_code(other):
    assert code_of(other) == code_of("x = 1")


@pytest.mark.parametrize("other", ["x = 2", "x = 1.0", "y = 1", "x = 1; y = 2", "x = 'What it is.'"])
def test_every_other_change_is(other):
    assert code_of(other) != code_of("x = 1")


def test_docstrings_of_functions_and_classes_are_no_code():
    plain = "class A:\n def f(self):\n  return 'kept'"
    documented = "class A:\n 'One.'\n def f(self):\n  'Two.'\n  return 'kept'"
    assert code_of(documented) == code_of(plain) != code_of(plain.replace("kept", "changed"))
