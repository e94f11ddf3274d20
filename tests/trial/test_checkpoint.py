"""A state comes back from its checkpoint to the last bit, whatever its sampler remembers."""

from dataclasses import fields, replace

import numpy as np
import pytest
from tiny_runs import play, prepared, tiny

from fedpcs.learning.server import first_state
from fedpcs.learning.server_values import ServerState
from fedpcs.sampling import SAMPLERS
from fedpcs.sampling.tally import Tally
from fedpcs.trial import checkpoint


def bits(value):
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Tally):
        return [bits(getattr(value, item.name)) for item in fields(Tally)]
    if isinstance(value, dict):
        return {name: bits(np.asarray(inner)) for name, inner in value.items()}
    return type(value), value


def state_bits(state):
    return {item.name: bits(getattr(state, item.name)) for item in fields(ServerState)}


LEARNING = {
    "aocs": {"norms": "last-known"},
    "delta": {"score": "authors-code"},
    "power-of-choice": {"losses": "last-known"},
}
CASES = [(name, {}) for name in SAMPLERS] + list(LEARNING.items())


@pytest.mark.parametrize(("name", "settings"), CASES, ids=[name + "-set" * bool(how) for name, how in CASES])
def test_what_every_sampler_remembers_comes_back(tmp_path, name, settings):
    config = tiny(
        rounds=2,
        sampling={"samplers": [name], "settings": {name: settings}},
        training={"server_momentum": 0.5, "averaging": 0.5},
    )
    finished, store = play(tmp_path, config)
    state, extra, problems = checkpoint.latest(store.checkpoints)
    assert state_bits(state) == state_bits(finished.state)
    assert (extra, problems) == ({}, [])


def make_state(**changes):
    plan, _, _ = prepared(tiny())
    return replace(first_state(plan, np.ones(plan.layout.num_parameters, np.float32)), **changes)


def test_what_the_runner_adds_comes_back(tmp_path):
    extra = {"known": np.array([True, False]), "budget": np.arange(6.0).reshape(2, 3)}
    checkpoint.save(tmp_path, make_state(next_round=1), extra)
    _, found, _ = checkpoint.latest(tmp_path)
    assert {name: bits(value) for name, value in found.items()} == {name: bits(value) for name, value in extra.items()}


@pytest.mark.parametrize("paid", [0.1 + 0.2, 1e-300, 12345678901.000001])
def test_sums_of_money_come_back_exactly(tmp_path, paid):
    checkpoint.save(tmp_path, make_state(paid=paid, next_round=3))
    assert checkpoint.latest(tmp_path)[0].paid == paid


def test_the_newest_three_are_kept_and_the_newest_is_read(tmp_path):
    for number in (1, 2, 3, 10, 99_999):
        checkpoint.save(tmp_path, make_state(next_round=number))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000003.ckpt", "000010.ckpt", "099999.ckpt"]
    assert checkpoint.latest(tmp_path)[0].next_round == 99_999


def test_without_any_there_is_none(tmp_path):
    assert checkpoint.latest(tmp_path) is None
    assert checkpoint.latest(tmp_path / "absent") is None
    (tmp_path / "notes.txt").write_text("hello")
    assert checkpoint.latest(tmp_path) is None


def test_the_same_state_is_the_same_bytes(tmp_path):
    first = checkpoint.save(tmp_path, make_state(next_round=1)).read_bytes()
    assert checkpoint.save(tmp_path, make_state(next_round=1)).read_bytes() == first
