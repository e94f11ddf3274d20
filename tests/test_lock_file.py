"""requirements-dev.lock holds all that pyproject.toml asks for, by version and SHA-256, and names no server.

If a test here fails after a change of pyproject.toml: `make lock`.
"""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
PINS = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK, flags=re.MULTILINE))


def asked_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    lines = [*project["build-system"]["requires"], *project["project"]["dependencies"], *extras["dev"]]
    return [Requirement(line) for line in lines]


def test_every_dependency_is_locked_at_a_version_that_is_allowed():
    wanted = {canonicalize_name(one.name): one.specifier for one in asked_for()}
    assert len(wanted) > 25
    assert {name: f"{spec}" for name, spec in wanted.items() if not spec.contains(PINS.get(name, "0"))} == {}


def test_every_pin_has_a_sha256_and_no_line_names_a_server_or_a_folder():
    entries = re.split(r"\n(?=\S)", re.sub(r"^ *#.*\n", "", LOCK, flags=re.MULTILINE).strip())
    assert len(entries) == len(PINS) > 100
    pattern = r"[a-z0-9-]+==\S+(?: ; [^\\\n]+)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+"
    assert [one for one in entries if not re.fullmatch(pattern, one)] == []


def test_torch_is_the_build_that_pulls_no_cuda_packages():
    assert PINS["torch"].endswith("+cpu")
    assert not [name for name in PINS if name.startswith(("nvidia-", "cuda-")) or name == "triton"]
