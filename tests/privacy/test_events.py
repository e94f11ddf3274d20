"""Releases compose by adding, and levels to the weakest."""

import dataclasses
import itertools
from fractions import Fraction

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from test_budget import NEVER_NUMBERS, ODD_NUMBERS, answer

from fedpcs.privacy.budget import NANOS_PER_UNIT, Rho
from fedpcs.privacy.events import (
    CLIENT_LEVEL,
    RECORD_LEVEL,
    Event,
    Family,
    Relation,
    compose,
    weakest,
)
from fedpcs.privacy.modes.paper import PAPER

thousand = cases(1_000)
LEVELS = (CLIENT_LEVEL, RECORD_LEVEL, PAPER.level)  # the strongest first
budgets = st.integers(0, 10**12).map(Rho)


def release(rho, level=None, **changes):
    return Event(rho, CLIENT_LEVEL if level is None else level, "secure", Family.GAUSSIAN, **changes)


# Releases


@thousand
@given(budgets, st.integers(0, 500))
def test_the_same_release_n_times_costs_n_times_as_much(rho, count):
    assert compose([release(rho)] * count) == rho * count


@thousand
@given(st.lists(budgets, max_size=10), st.integers(0, 10))
def test_releases_cost_the_same_in_any_order_and_however_a_history_is_cut(charges, cut):
    exact = sum((Fraction(rho.nanos, NANOS_PER_UNIT) for rho in charges), start=Fraction(0))
    events = [release(rho) for rho in charges]
    assert compose(events) == compose(events[::-1]) == compose(events[cut:]) + compose(events[:cut]) == Rho.of(exact)


def test_a_million_releases_add_up_exactly():
    assert compose(itertools.repeat(release(Rho.of(1e-7)), 10**6)) == Rho.of(0.1)


def test_no_release_costs_nothing():
    assert compose([]) == Rho(0)


# Levels and promises


def test_levels_run_from_the_strongest_to_the_unproven():
    assert [level.name for level in LEVELS] == ["client", "record", "paper"]
    assert [level.is_proven for level in LEVELS] == [True, True, False]
    assert [level.relation for level in LEVELS] == [Relation.ANY_TWO, Relation.REPLACE_ONE, Relation.REPLACE_ONE]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_together_levels_hold_only_as_the_weakest_does(count):
    for mixed in itertools.product(LEVELS, repeat=count):
        assert weakest(mixed) == max(mixed, key=LEVELS.index)


def test_without_levels_there_is_none():
    assert weakest([]) is None


def test_a_promise_is_made_only_for_a_proven_level_and_noise_nobody_can_redraw():
    rho = Rho.of(0.5)
    for level in (CLIENT_LEVEL, RECORD_LEVEL):
        expected = f"guarantee holds: ρ = 0.5 for {level.relation} of a client (noise secure)"
        assert release(rho, level).promise == expected
    for hollow in (release(rho, PAPER.level), release(rho, is_replayable=True)):
        assert "holds" not in hollow.promise
    assert "no guarantee" in release(rho, PAPER.level, is_replayable=True).promise
    assert "no guarantee" in release(rho, is_replayable=True).promise


def test_an_event_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        release(Rho(1)).rho = Rho(0)


# Bad numbers


def test_an_event_takes_no_bare_number_for_its_cost():
    for bad in (*NEVER_NUMBERS, *ODD_NUMBERS):
        assert answer(release, "rho", bad) is None
