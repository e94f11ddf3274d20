"""Samplers are made by name or by import path, and whatever is wrong with either is said."""

from dataclasses import fields

import numpy as np
import pytest

from fedpcs.errors import InvalidInput
from fedpcs.sampling import SAMPLERS, draw, make_sampler, make_view

OWN_SAMPLER = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpcs.sampling import Draw


@dataclass(frozen=True)
class FirstClients:
    offset: int = 0
    name: ClassVar[str] = "first"
    reads: ClassVar[tuple[str, ...]] = ()
    hears: ClassVar[tuple[str, ...]] = ()

    def draw(self, view, rng):
        clients = self.offset + np.arange(view.cohort_size)
        return Draw(clients, np.full(clients.size, 1 / clients.size), None, None, None, view.cohort_size)


class Plain:
    def draw(self, view, rng):
        return None


@dataclass(frozen=True)
class Idle:
    speed: float = 1.0


NUMBER = 3
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "samplers_of_my_own.py").write_text(OWN_SAMPLER)
    monkeypatch.syspath_prepend(tmp_path)
    return "samplers_of_my_own"


@pytest.mark.parametrize("name", ["fedcbs", "Random", "", None, 3])
def test_an_unknown_name_is_answered_with_the_names_there_are(name):
    with pytest.raises(InvalidInput, match=rf"'random', 'fedpcs', .*'optimal', .* got {name!r}"):
        make_sampler(name)


@pytest.mark.parametrize(
    ("name", "setting", "message"),
    [
        ("aocs", "m", "Sampler 'aocs' has no setting 'm'; it has norms, probabilities, iterations, design"),
        ("random", "design", "Sampler 'random' has no setting 'design'; it has none"),
    ],
)
def test_an_unknown_setting_is_answered_with_the_settings_there_are(name, setting, message):
    with pytest.raises(InvalidInput, match=message):
        make_sampler(name, **{setting: 1})


@pytest.mark.parametrize(
    ("name", "setting"), [(name, item.name) for name, kind in SAMPLERS.items() for item in fields(kind)]
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(name, setting):
    for value in ("no such thing", -1.0, float("nan")):
        with pytest.raises(InvalidInput, match=setting):
            make_sampler(name, **{setting: value})


def test_a_sampler_of_ones_own_is_made_from_its_import_path(own_module):
    sampler = make_sampler(f"{own_module}:FirstClients", offset=1)
    drawn = draw(sampler, make_view(2, [1, 2, 3, 4]), np.random.default_rng(0))
    assert drawn.clients.tolist() == [1, 2]
    with pytest.raises(InvalidInput, match="has no setting 'start'; it has offset"):
        make_sampler(f"{own_module}:FirstClients", start=1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{}:Missing", "'{}:Missing' cannot be imported: .*Missing.*package.module:ClassName"),
        ("{}:", "cannot be imported"),
        ("no_such_module_anywhere:Sampler", "cannot be imported: No module named 'no_such_module_anywhere'"),
        (":Sampler", "cannot be imported"),
        (".relative:Sampler", "cannot be imported"),
        ("{}:Plain", "must be a dataclass with a method draw"),
        ("{}:Idle", "must be a dataclass with a method draw"),
        ("{}:NUMBER", "must be a dataclass with a method draw.* got 3"),
    ],
)
def test_an_import_path_that_leads_nowhere_is_said_to(own_module, name, message):
    with pytest.raises(InvalidInput, match=message.format(own_module)):
        make_sampler(name.format(own_module))


BROKEN = {
    "NoName": ("reads = (); hears = ()", "must say its name"),
    "HalfALearner": ("name = 'x'; reads = (); hears = (); start = print", "must have both start and remember"),
    "Needy": ("speed: float; name = 'x'; reads = (); hears = ()", "could not be made: .*speed"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_class_that_is_no_sampler_is_said_to_lack_what_it_lacks(tmp_path, monkeypatch, name):
    body, message = BROKEN[name]
    lines = [
        "from dataclasses import dataclass",
        "@dataclass",
        f"class {name}:",
        f"  {body}",
        "  def draw(self, view, rng): 0",
    ]
    text = "\n".join(lines)
    (tmp_path / f"broken_{name.lower()}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput, match=message):
        make_sampler(f"broken_{name.lower()}:{name}")


@pytest.mark.parametrize("text", ["def draw(:", "raise RuntimeError('no')", "1 / 0"])
def test_a_module_that_fails_is_said_to(tmp_path, monkeypatch, text):
    (tmp_path / "failing_sampler.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput, match="failing_sampler:Mine' cannot be imported"):
        make_sampler("failing_sampler:Mine")
