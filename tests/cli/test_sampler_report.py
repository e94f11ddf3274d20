"""`fedpcs samplers` says what each sampler reads and promises, and holds a user's own to the same."""

from __future__ import annotations

import json

from command_line import fedpcs, fedpcs_process

from fedpcs.sampling import SAMPLERS

OWN = """'''`mine`: clients in turn.'''
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from fedpcs.sampling import draw_by_size

@dataclass(frozen=True)
class Mine:
    sharpness: float = 2.0
    name: ClassVar[str] = "mine"
    reads: ClassVar[tuple] = ("loss",)
    hears: ClassVar[tuple] = ()
    def draw(self, view, rng):
        return draw_by_size(view, view.need("loss") ** self.sharpness, "pivotal", GENERATOR)
"""


def test_every_sampler_is_described() -> None:
    found = {one["name"]: one for one in json.loads(fedpcs("samplers", "--json").stdout)}
    assert list(found) == list(SAMPLERS)
    assert all(one["draws"] and not one["draws"].startswith("`") for one in found.values())
    private = {"aocs", "delta", "fed-cbs", "oort", "power-of-choice"}
    assert {name for name, one in found.items() if one["private"]} == private
    assert {name for name, one in found.items() if not one["is_unbiased"]} == {"fed-cbs", "oort", "power-of-choice"}
    assert found["aocs"]["settings"]["iterations"] == 4


def test_a_sampler_of_one_s_own_is_checked_where_it_lies(tmp_path) -> None:
    (tmp_path / "mine.py").write_text(OWN.replace("GENERATOR", "rng"), encoding="utf-8")
    done = fedpcs_process("samplers", "mine:Mine", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["draws"] == "clients in turn."
    assert found["settings"] == {"sharpness": 2.0}
    assert found["private"] == ["loss"]


def test_a_broken_promise_is_one_line_and_exit_2(tmp_path) -> None:
    (tmp_path / "mine.py").write_text(OWN.replace("GENERATOR", "np.random.default_rng()"), encoding="utf-8")
    done = fedpcs_process("samplers", "mine:Mine", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fedpcs: mine is not repeatable: two draws from the same generator differ.\n"
