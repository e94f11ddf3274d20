"""An update counts once: bit for bit the same one is refused for the rest of the run, whoever sends it."""

import dataclasses

import numpy as np

from fedpcs.learning.admission import Admitted
from fedpcs.learning.aggregate import l2_norm
from fedpcs.learning.hearing import is_new, nothing_seen, remembered, without_repeats
from fedpcs.learning.layout import Layout
from fedpcs.learning.protocol import ClientReport
from fedpcs.learning.server_values import Heard, OpenRound, ServerState

LAYOUT = Layout(("weight",), ((500,),))


def admitted(client, values, is_noisy=True):
    report = ClientReport("toy", 0, client, "nonce", None, 10, LAYOUT, values)
    return Admitted(report, l2_norm(values), is_noisy)


def fresh(seed, size=500):
    return np.random.default_rng(seed).normal(size=size).astype(np.float32)


def heard_of(*pairs, is_noisy=True):
    return Heard(tuple(admitted(client, values, is_noisy) for client, values in pairs), (), ())


def at(round_index):
    """A round, of which the functions look at the number alone."""
    return OpenRound(round_index, 0, None, None, ())


def state_with(seen):
    """A state, of which the functions look at what was seen alone."""
    return ServerState(**{**{item.name: None for item in dataclasses.fields(ServerState)}, "seen": seen})


def two_rounds():
    seen = remembered(nothing_seen(), at(3), heard_of((1, fresh(1)), (4, fresh(4))))
    return state_with(remembered(seen, at(4), heard_of((1, fresh(11)))))


def test_an_update_of_an_earlier_round_is_refused_and_the_reason_names_it():
    found = without_repeats(two_rounds(), at(5), heard_of((1, fresh(1)), (2, fresh(4)), (3, fresh(3))))
    assert found.clients.tolist() == [3]
    assert [(one.client, one.kind, one.round_index) for one in found.refused] == [(1, "repeat", 5), (2, "repeat", 5)]
    assert "client 1 sent in round 3" in found.refused[0].reason
    assert "client 4 sent in round 3" in found.refused[1].reason


def test_of_two_that_are_the_same_in_one_round_neither_counts():
    heard = heard_of((0, fresh(7)), (1, fresh(2)), (2, fresh(7)))
    found = without_repeats(state_with(nothing_seen()), at(0), heard)
    assert found.clients.tolist() == [1]
    assert [one.client for one in found.refused] == [0, 2]


def test_without_noise_what_was_sent_before_counts_and_is_no_new_work():
    zeros = np.zeros(500, np.float32)
    pairs = (1, fresh(1)), (2, fresh(4)), (3, fresh(3)), (4, zeros), (5, zeros), (6, fresh(3))
    heard = heard_of(*pairs, is_noisy=False)
    assert without_repeats(two_rounds(), at(5), heard) == heard
    # Clients 3 and 6 may have the same records.
    assert is_new(two_rounds(), heard).tolist() == [False, False, True, False, False, True]


def test_any_bit_that_differs_makes_another_update():
    """8,000 flipped bits, half of them the lowest of a number, which moves no norm: all are told from the original."""
    values, rng = fresh(0), np.random.default_rng(1)
    known = admitted(0, values).digest
    for number in range(8_000):
        changed = values.copy()
        changed.view(np.uint32)[rng.integers(values.size)] ^= np.uint32(1 << (0 if number % 2 else rng.integers(23)))
        assert admitted(0, changed).digest != known
