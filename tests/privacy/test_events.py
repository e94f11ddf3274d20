"""Releases compose by adding; steps on disjoint batches cost each record what its own batches cost."""

import dataclasses
import itertools
from fractions import Fraction
from numbers import Integral

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from test_budget import NEVER_NUMBERS, ODD_NUMBERS, answer

from fedpcs.privacy.budget import NANOS_PER_UNIT, Rho
from fedpcs.privacy.events import (
    CLIENT_LEVEL,
    RECORD_LEVEL,
    Batch,
    Event,
    Family,
    Relation,
    Step,
    compose,
    compose_steps,
    weakest,
)
from fedpcs.privacy.modes.paper import PAPER

thousand = cases(1_000)
LEVELS = (CLIENT_LEVEL, RECORD_LEVEL, PAPER.level)  # the strongest first
budgets = st.integers(0, 10**12).map(Rho)


def release(rho, level=None, **changes):
    return Event(rho, CLIENT_LEVEL if level is None else level, "secure", Family.GAUSSIAN, **changes)


def step(rho, epoch, index):
    return Step(release(rho, RECORD_LEVEL), Batch(epoch, index))


def drawn_step(number):
    """One of 4 × 4 batches and a cost, from a single number: lists of them are drawn faster."""
    return step(Rho(number // 16), number % 4, number // 4 % 4)


trainings = st.lists(st.integers(0, 10**9).map(drawn_step), max_size=12)


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
    assert compose([]) == compose_steps([]) == Rho(0)


# Steps of one local training


def dearest_record(steps):
    """Slow twin: every way a record can be dealt to one batch of each epoch, and what its own steps cost it."""
    epochs = sorted({each.batch.epoch for each in steps})
    batches = [sorted({each.batch.index for each in steps if each.batch.epoch == epoch}) for epoch in epochs]
    costs = []
    for dealt in itertools.product(*batches):
        seen = dict(zip(epochs, dealt, strict=True))
        costs.append(sum(each.event.rho.nanos for each in steps if seen[each.batch.epoch] == each.batch.index))
    return Rho(max(costs))


@thousand
@given(trainings)
def test_a_training_costs_what_it_costs_the_record_worst_placed_whatever_the_order(steps):
    assert compose_steps(steps) == compose_steps(steps[::-1]) == dearest_record(steps)
    assert compose_steps(steps) <= compose(each.event for each in steps)


def test_batches_share_an_epoch_but_epochs_and_repeats_add_up():
    rho = Rho.of(0.25)
    assert compose_steps([step(rho, 0, index) for index in range(8)]) == rho
    assert compose_steps([step(rho, epoch, 0) for epoch in range(8)]) == 8 * rho
    assert compose_steps([step(rho, 0, 0)] * 8) == 8 * rho


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


@pytest.mark.parametrize(("field", "other"), [("epoch", "index"), ("index", "epoch")])
def test_a_batch_is_numbered_by_whole_numbers_only(field, other):
    for number in (*NEVER_NUMBERS, *ODD_NUMBERS):
        is_number = isinstance(number, Integral) and not isinstance(number, bool) and number >= 0
        found = answer(lambda value: Batch(**{field: value, other: 0}), field, number)
        assert found == (Batch(**{field: int(number), other: 0}) if is_number else None)
