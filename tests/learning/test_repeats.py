"""An update counts once: bit for bit the same one is refused for the rest of the run, whoever sends it."""

import dataclasses

import numpy as np
import pytest

from fedpcs.learning.admission import Admitted
from fedpcs.learning.aggregate import l2_norm
from fedpcs.learning.client import MODES, ClientPlan
from fedpcs.learning.layout import Layout
from fedpcs.learning.protocol import ClientReport
from fedpcs.learning.repeats import nothing_seen, remembered, without_repeats
from fedpcs.learning.server_values import Heard, OpenRound, ServerPlan, ServerState

NOISY = tuple(mode for mode in MODES if mode != "none")
LAYOUT = Layout(("weight",), ((500,),))


def admitted(client, values):
    report = ClientReport("toy", 0, client, "nonce", None, 10, LAYOUT, values)
    return Admitted(report, l2_norm(values))


def fresh(seed, size=500):
    return np.random.default_rng(seed).normal(size=size).astype(np.float32)


def heard_of(*pairs):
    return Heard(tuple(admitted(client, values) for client, values in pairs), (), ())


def at(round_index):
    """What the functions look at of a round, a state and a plan; the rest of those is another file's."""
    return dataclasses.replace(OpenRound(0, 0, None, None, ()), round_index=round_index)


def sifted(mode, seen, round_index, heard):
    blank = {item.name: None for item in dataclasses.fields(ServerPlan)}
    plan = ServerPlan(**{**blank, "client": ClientPlan(mode=mode)})
    state = ServerState(**{**{item.name: None for item in dataclasses.fields(ServerState)}, "seen": seen})
    return without_repeats(plan, state, at(round_index), heard)


@pytest.mark.parametrize("mode", MODES)
def test_an_update_of_an_earlier_round_is_refused_and_the_reason_names_it(mode):
    seen = remembered(nothing_seen(), at(3), heard_of((1, fresh(1)), (4, fresh(4))))
    seen = remembered(seen, at(4), heard_of((1, fresh(11))))
    found = sifted(mode, seen, 5, heard_of((1, fresh(1)), (2, fresh(4)), (3, fresh(3))))
    assert found.clients.tolist() == [3]
    assert [(one.client, one.kind, one.round_index) for one in found.refused] == [(1, "repeat", 5), (2, "repeat", 5)]
    assert "client 1 sent in round 3" in found.refused[0].reason
    assert "client 4 sent in round 3" in found.refused[1].reason


@pytest.mark.parametrize("mode", NOISY)
def test_of_two_that_are_the_same_in_one_round_neither_counts(mode):
    found = sifted(mode, nothing_seen(), 0, heard_of((0, fresh(7)), (1, fresh(2)), (2, fresh(7))))
    assert found.clients.tolist() == [1]
    assert [one.client for one in found.refused] == [0, 2]


def test_without_noise_clients_with_the_same_records_are_honest():
    found = sifted("none", nothing_seen(), 0, heard_of((0, fresh(7)), (2, fresh(7))))
    assert found.clients.tolist() == [0, 2]


def test_updates_of_zeros_are_no_copies_of_one_another():
    zeros = np.zeros(500, np.float32)
    seen = remembered(nothing_seen(), at(0), heard_of((0, zeros)))
    assert seen.size == 0
    assert sifted("none", seen, 1, heard_of((0, zeros), (1, zeros))).clients.tolist() == [0, 1]


def test_any_bit_that_differs_makes_another_update():
    """8,000 flipped bits, half of them the lowest of a number, which moves no norm: all are told from the original."""
    values, rng = fresh(0), np.random.default_rng(1)
    known = admitted(0, values).digest
    for number in range(8_000):
        changed = values.copy()
        changed.view(np.uint32)[rng.integers(values.size)] ^= np.uint32(1 << (0 if number % 2 else rng.integers(23)))
        assert admitted(0, changed).digest != known


def test_honest_updates_never_look_alike():
    """20,000 of 3 numbers: 2·10⁸ pairs, one of which has 64 bits in common with a chance of 10⁻¹¹."""
    rows = np.random.default_rng(2).normal(size=(20_000, 3)).astype(np.float32)
    assert len({admitted(0, row).digest for row in rows}) == 20_000


def test_sixteen_bytes_are_kept_of_each():
    seen = remembered(nothing_seen(), at(0), heard_of(*((client, fresh(client)) for client in range(100))))
    assert seen.nbytes == 1600
