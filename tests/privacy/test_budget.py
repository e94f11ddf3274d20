"""ρ adds up exactly, reads as it is written, and is rounded only upwards."""

import math
import random
from decimal import Decimal
from fractions import Fraction
from numbers import Integral

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import MOST_NANOS, NANOS_PER_UNIT, Rho, total
from fedpcs.privacy.conversion import to_epsilon, to_rho

# What every numeric argument of `privacy` is handed: the first never are a number of use, the second may be.
NEVER_NUMBERS = (
    *(math.nan, math.inf, -math.inf, np.float32("nan"), np.float64("inf"), -1, -1e-300),
    *(True, np.True_, "1", b"1", None, Decimal("0.5"), 1j, [0.5], np.array(0.5)),
)
ODD_NUMBERS = (-0.0, 0, 1, 5e-324, 1e-310, 1e300, 1e308, np.float32(0.1), np.int64(3), Fraction(1, 3))

thousand = cases(1_000)
nanos = st.integers(0, 10**15)
budgets = nanos.map(Rho)


def answer(call, argument, value):
    """What a call returns; None if it refuses the value by the argument's name and its own."""
    try:
        return call(value)
    except InvalidInput as error:
        refusal = str(error)
    assert argument in refusal
    assert repr(value)[:77] in refusal
    return None


# Reading


def test_a_tenth_and_two_tenths_are_three_tenths():
    assert 0.1 + 0.2 > 0.3
    assert Rho.of(0.1) + Rho.of(0.2) == Rho.of(0.3)


@thousand
@given(nanos)
def test_a_budget_reads_as_it_is_written_in_decimals_and_back(count):
    assert Rho.of(count / NANOS_PER_UNIT) == Rho.of(Fraction(count, NANOS_PER_UNIT)) == Rho(count)
    assert float(Rho(count)) == float(Fraction(count, NANOS_PER_UNIT))


@thousand
@given(st.floats(0.0, 9.2e9))
def test_a_budget_is_rounded_up_by_less_than_a_billionth(value):
    written = Fraction(Decimal(repr(value)))
    assert 0 <= Fraction(Rho.of(value).nanos, NANOS_PER_UNIT) - written < Fraction(1, NANOS_PER_UNIT)


@thousand
@given(st.integers(0, 10**20), st.integers(10**11, 10**20))
def test_a_fraction_is_rounded_up_by_less_than_a_billionth(numerator, denominator):
    value = Fraction(numerator, denominator)
    assert 0 <= Fraction(Rho.of(value).nanos, NANOS_PER_UNIT) - value < Fraction(1, NANOS_PER_UNIT)


@pytest.mark.parametrize("much", [9223372036.854776, 9.3e9, 1e308, 10**10, Fraction(10**30), 10**400])
def test_more_than_a_ledger_holds_is_refused_and_not_cut_down(much):
    with pytest.raises(InvalidInput, match="rho must be a number in"):
        Rho.of(much)


# Adding up


@thousand
@given(budgets, budgets, budgets)
def test_sums_do_not_depend_on_their_order_and_can_be_undone(one, two, three):
    assert one + two == two + one
    assert (one + two) + three == one + (two + three) == total([three, one, two])
    assert one + two - two == one


def test_a_million_small_charges_add_up_exactly():
    assert sum([1e-7] * 10**6) != 0.1
    assert total([Rho.of(1e-7)] * 10**6) == Rho.of(0.1)
    charges = [index / 10**7 for index in range(1000)]
    drawn = random.Random(0).choices(range(1000), k=10**6)
    assert total(Rho.of(charges[index]) for index in drawn[: 10**4]) == Rho.of(Fraction(sum(drawn[: 10**4]), 10**7))
    read = [Rho.of(charge) for charge in charges]
    assert total(read[index] for index in drawn) == Rho.of(Fraction(sum(drawn), 10**7))


@thousand
@given(budgets, st.integers(1, 10**6))
def test_equal_shares_never_exceed_the_whole_and_waste_less_than_one_billionth_each(budget, parts):
    spent = (budget // parts) * parts
    assert spent <= budget
    assert budget.nanos - spent.nanos < parts


def test_taking_more_than_there_is_is_refused():
    with pytest.raises(InvalidInput, match=r"cannot take ρ = 0\.2 from ρ = 0\.1"):
        Rho.of(0.1) - Rho.of(0.2)


@pytest.mark.parametrize(
    "overflowing",
    [
        lambda most: most + Rho(1),
        lambda most: most * 2,
        lambda most: total([most, Rho(1)]),
        lambda most: Rho(np.int64(2**62)) * 4,
        lambda most: Rho(np.int64(2**62)) + Rho(np.int64(2**62)),
    ],
)
def test_a_sum_past_what_a_ledger_holds_is_refused_and_never_wraps(overflowing):
    with pytest.raises(InvalidInput, match="nanos must be a whole number"):
        overflowing(Rho(MOST_NANOS))


def test_small_numpy_integers_do_not_wrap():
    assert Rho(np.uint8(200)) + Rho(np.uint8(100)) == Rho(300)
    assert type(Rho(np.uint8(200)).nanos) is int


@pytest.mark.parametrize("other", [0.1, 1, None, math.nan])
@pytest.mark.parametrize("act", [lambda a, b: a + b, lambda a, b: b + a, lambda a, b: a - b, lambda a, b: a < b])
def test_a_bare_number_is_neither_added_to_a_budget_nor_compared_with_one(act, other):
    with pytest.raises(TypeError):
        act(Rho.of(0.5), other)


# Bad numbers


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("nanos", Rho),
        ("rho", Rho.of),
        ("rho", lambda value: total([Rho(1), value])),
        ("count", lambda value: Rho(1) * value),
        ("parts", lambda value: Rho(1) // value),
    ],
)
def test_what_is_no_number_is_refused_by_name_and_value(argument, call):
    for bad in NEVER_NUMBERS:
        assert answer(call, argument, bad) is None


def test_an_odd_number_is_read_as_it_is_written_or_too_large():
    for odd in ODD_NUMBERS:
        written = Fraction(repr(float(odd))) if isinstance(odd, float | np.floating) else Fraction(odd)
        expected = None if written > 9.2e9 else Rho(math.ceil(written * NANOS_PER_UNIT))
        assert answer(Rho.of, "rho", odd) == expected
        assert answer(lambda value: total([value]), "rho", odd) == expected


def test_only_whole_numbers_count():
    for odd in ODD_NUMBERS:
        whole = int(odd) if isinstance(odd, Integral) else None
        assert answer(Rho, "nanos", odd) == (None if whole is None else Rho(whole))
        assert answer(lambda value: Rho(7) * value, "count", odd) == (None if whole is None else Rho(7 * whole))
        assert answer(lambda value: Rho(7) // value, "parts", odd) == (Rho(7 // whole) if whole else None)


@given(st.floats(1e-6, 20.0))
def test_a_budget_made_from_an_epsilon_does_not_exceed_it(epsilon: float) -> None:
    assert to_epsilon(Rho.at_most(to_rho(epsilon, 1e-5)), 1e-5) <= epsilon


@cases(1_000)
@given(st.one_of(st.floats(0.0, 1e6, exclude_max=True), st.integers(0, 10**15 - 1).map(lambda n: n / 1e9)))
def test_the_quick_reading_of_a_float_is_the_exact_one(value: float) -> None:
    assert Rho.of(value).nanos == math.ceil(Fraction(repr(value)) * NANOS_PER_UNIT)
