"""Numbers in words: three digits, never on the wrong side of what is true, and alike everywhere."""

import ast
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedpcs
from fedpcs import _format

SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def read_back(words: str) -> Fraction:
    """Return the number that words say, exactly."""
    mantissa, _, power = words.replace(",", "").partition("·10")
    return Fraction(mantissa) * Fraction(10) ** int(power.translate(SUPERSCRIPT) or 0)


@given(st.floats(0.0, 1e9, allow_subnormal=False))
def test_what_was_spent_is_never_understated_and_within_a_hundredth_of_it(value):
    shown = read_back(_format.rounded_up(value))
    assert Fraction(value) * (1 - Fraction(2, 10**9)) <= shown <= Fraction(value) * Fraction(10101, 10000)


@given(st.floats(0.0, 1e9, allow_subnormal=False))
def test_what_may_be_spent_is_never_overstated_and_within_a_hundredth_of_it(value):
    shown = read_back(_format.rounded_down(value))
    assert Fraction(value) * Fraction(99, 100) <= shown <= Fraction(value) * (1 + Fraction(2, 10**9))


@given(st.integers(100, 999), st.integers(-8, 3))
def test_a_number_of_three_digits_is_shown_as_it_is_despite_what_floats_do_to_it(digits, exponent):
    exact = Fraction(digits) * Fraction(10) ** exponent
    for nearby in (float(exact), math.nextafter(float(exact), math.inf), math.nextafter(float(exact), 0.0)):
        assert read_back(_format.rounded_up(nearby)) == read_back(_format.rounded_down(nearby)) == exact


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.1 + 0.2, "0.300"), (0.102, "0.102"), (0.1021, "0.103"), (9.995, "10.0"), (0.0, "0"), (math.inf, "∞")],
)
def test_what_was_spent_has_three_digits(value, words):
    assert _format.rounded_up(value) == words


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([2.0], "2"),
        ([100.0, 102.0], "101 ± 1"),
        ([0.5, 0.7], "0.6 ± 0.1"),
        ([-3.0, -3.5], "−3.25 ± 0.35"),
        ([4e7, 4e7 + 2], "40.0 ± 0.0 million"),
    ],
)
def test_a_spread_is_written_with_the_mean_s_decimals(values, words):
    assert _format.amount_and_spread(values).replace("\N{NO-BREAK SPACE}", " ") == words


def test_nothing_has_no_sign():
    assert (_format.share(-1e-5), _format.two_decimals(-1e-5)) == ("0.0\N{NO-BREAK SPACE}%", "0.00")
    assert _format.points(-1e-5) == "±0.0"


def test_accuracies_have_the_sample_standard_deviation():
    assert _format.mean_and_spread([0.5, 0.6, 0.7]).replace("\N{NO-BREAK SPACE}", " ") == "60.0 ± 10.0 %"
    assert _format.mean_and_spread([0.123]) == "12.3\N{NO-BREAK SPACE}%"


def test_no_other_module_rounds_to_a_side():
    """A second rule for ρ and ε would show the same number in two ways; `decimal` is what such rules are made of."""
    source = Path(fedpcs.__file__).parent
    rounding = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            if "decimal" in [*names, getattr(node, "module", None)]:
                rounding.add(path.relative_to(source).as_posix())
    assert rounding == {"_format.py", "privacy/discrete.py"}  # the latter draws noise with it
