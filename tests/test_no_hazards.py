"""No line of fedpcs can run what it reads: the syntax trees are searched for the calls that would."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fedpcs

SOURCE = Path(fedpcs.__file__).parent
BUILT_IN = {"eval", "exec", "compile", "__import__"}
# Whole modules that read code with data, or take a command as text. Writing a pickle is harmless; reading one is not.
MODULES = {"cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "shelve", "xml", "yaml"}
CALLS = {
    *(f"pickle.{name}" for name in ("load", "loads", "Unpickler")),
    *(f"os.{name}" for name in ("system", "popen")),
    *(f"subprocess.{name}" for name in ("getoutput", "getstatusoutput")),
    "ssl._create_unverified_context",
    "tempfile.mktemp",
    "torch.hub.load",
}
# What has to be said at every call: the default has changed between versions, or is the wrong one.
SAID = {"torch.load": ("weights_only", True), "numpy.load": ("allow_pickle", False)}
NEVER = {"shell": True, "allow_pickle": True, "verify": False}
WORLD_MAY_WRITE = 0o002


def names_of(tree: ast.AST) -> dict[str, str]:
    """What a module calls things → what they are."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            whole = [(one.asname or one.name.split(".")[0], one.name) for one in node.names]
            found |= {ours: name if ours != name.split(".")[0] else ours for ours, name in whole}
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def hazards(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    names = names_of(tree)
    yield from (f"imports {name}" for name in names.values() if name.split(".")[0] in MODULES)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        root, _, rest = ast.unparse(call.func).partition(".")
        name = ".".join(part for part in (names.get(root, root), rest) if part)
        given = {one.arg: one.value.value for one in call.keywords if isinstance(one.value, ast.Constant)}
        if name in BUILT_IN | CALLS:
            yield f"line {call.lineno}: {name}"
        if name in SAID and given.get(SAID[name][0]) is not SAID[name][1]:
            yield f"line {call.lineno}: {name} without {SAID[name][0]}={SAID[name][1]}"
        yield from (f"line {call.lineno}: {key}={bad}" for key, bad in NEVER.items() if given.get(key) is bad)
        if name.startswith("subprocess.") and call.args and isinstance(call.args[0], ast.Constant | ast.JoinedStr):
            yield f"line {call.lineno}: {name} of a text"
        if name.rpartition(".")[2] in {"open", "chmod", "fchmod", "mkdir", "makedirs", "mkfifo"}:
            values = [one.value for one in (*call.args, *(word.value for word in call.keywords)) if is_number(one)]
            yield from (f"line {call.lineno}: mode {mode:o}" for mode in values if mode & WORLD_MAY_WRITE)


def is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def test_no_call_could_run_what_was_read():
    sources = {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    assert {name: found for name, source in sources.items() if (found := list(hazards(source)))} == {}
    assert len(sources) > 100


@pytest.mark.parametrize(
    "line",
    [
        "import pickle; pickle.loads(b'')",
        "from pickle import loads as read; read(b'')",
        "import marshal",
        "from yaml import load",
        "import xml.etree.ElementTree as tree",
        "eval('1')",
        "exec('x = 1')",
        "import os; os.system('ls')",
        "import subprocess; subprocess.run('ls -l')",
        "import subprocess as sub; sub.run(['ls'], shell=True)",
        "from subprocess import Popen; Popen(f'ls {x}')",
        "import tempfile; tempfile.mktemp()",
        "import torch; torch.load(path)",
        "import torch; torch.load(path, weights_only=False)",
        "import numpy as np; np.load(path)",
        "import numpy as np; np.savez(path, allow_pickle=True)",
        "import requests; requests.get(url, verify=False)",
        "import os; os.open(path, os.O_CREAT, 0o666)",
        "path.chmod(mode=0o777)",
    ],
)
def test_such_a_call_would_be_found(line):
    assert list(hazards(line))


def test_what_is_harmless_is_left_alone():
    lines = (
        "import numpy as np, os, pickle, re, subprocess",
        "re.compile('x'); model.eval(); pickle.dumps(1); subprocess.run(['ls', '-l'])",
        "os.open(path, os.O_CREAT, 0o644); np.load(path, allow_pickle=False)",
    )
    assert list(hazards("\n".join(lines))) == []
