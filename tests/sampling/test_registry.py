"""Samplers are made by name or by import path, and whatever is wrong with either is said."""

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


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_name_makes_its_sampler(name):
    assert type(make_sampler(name)) is SAMPLERS[name]
    assert make_sampler(name) == make_sampler(name)


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
    ("name", "settings", "message"),
    [
        ("fedpcs", {"design": "luck"}, "design must be one of 'pivotal', .* got 'luck'"),
        ("fedpcs", {"floor": 1.5}, r"floor must be a number in \[0, 1\], got 1.5"),
        ("aocs", {"design": "gumbel"}, "design must be one of 'pivotal', 'systematic', 'poisson', got 'gumbel'"),
        ("aocs", {"norms": "old"}, "norms must be .* got 'old'"),
        ("aocs", {"probabilities": "approximate"}, "probabilities must be"),
        ("aocs", {"iterations": -1}, "iterations must be .* got -1"),
        ("aocs", {"floor": -0.1}, "floor must be .* got -0.1"),
        ("fed-cbs", {"last_exponent": 0.5}, "last_exponent must be .* got 0.5"),
        ("fed-cbs", {"exploration": -1.0}, "exploration must be .* got -1.0"),
        ("fed-cbs", {"exploration": float("nan")}, "exploration must be .* got nan"),
        ("fed-cbs", {"first_pick": "best"}, "first_pick must be"),
        ("fed-cbs", {"restarts": 0}, "restarts must be .* got 0"),
        ("fed-cbs", {"num_candidates": 0}, "num_candidates must be .* got 0"),
        ("delta", {"information": "full"}, "information must be"),
        ("delta", {"score": "luck"}, "score must be"),
        ("delta", {"information": "ideal", "score": "authors-code"}, "score must be one of 'formula', got"),
        ("delta", {"mode": "fast"}, "mode must be"),
        ("delta", {"variance_ratio": -1.0}, "variance_ratio must be .* got -1.0"),
        ("delta", {"distance_share": 2.0}, "distance_share must be .* got 2.0"),
        ("delta", {"floor": float("nan")}, "floor must be .* got nan"),
        ("power-of-choice", {"num_candidates": 0}, "num_candidates must be .* got 0"),
        ("power-of-choice", {"losses": "old"}, "losses must be"),
        ("power-of-choice", {"weights": "own"}, "weights must be"),
        ("oort", {"exploration": (0.9, 0.98)}, "exploration must have 3 entries, got 2"),
        ("oort", {"exploration": (0.9, 0.98, 1.3)}, r"exploration\[2\] must be .* got 1.3"),
        ("oort", {"clip_percentile": 101.0}, "clip_percentile must be .* got 101"),
        ("oort", {"cutoff": 1.5}, "cutoff must be .* got 1.5"),
        ("oort", {"slowness_exponent": -1.0}, "slowness_exponent must be"),
        ("oort", {"duration_percentile": -5.0}, "duration_percentile must be"),
        ("oort", {"pacer_rounds": 0}, "pacer_rounds must be .* got 0"),
        ("oort", {"most_rounds": 0}, "most_rounds must be .* got 0"),
        ("clustered", {"strata": "two"}, "strata must be one of 'independent', 'systematic', 'none', got 'two'"),
        ("optimal", {"initial_norm": 0.0}, "initial_norm must be a number above 0, got 0.0"),
        ("optimal", {"norms": "old"}, "norms must be"),
        ("optimal", {"floor": 2.0}, "floor must be"),
    ],
)
def test_a_bad_setting_is_refused_by_name_and_value(name, settings, message):
    with pytest.raises(InvalidInput, match=message):
        make_sampler(name, **settings)


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
