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
    ("shown", "text"),
    [
        (_format.rounded_up(0.10201), "0.103"),
        (_format.rounded_up(2.0), "2.00"),
        (_format.rounded_up(9.995), "10.0"),
        (_format.rounded_up(1234.5), "1,240"),
        (_format.rounded_up(3.001e-7), "3.01·10⁻⁷"),
        (_format.rounded_up(0.0), "0"),
        (_format.rounded_up(math.inf), "∞"),
        (_format.rounded_down(0.67499), "0.674"),
        (_format.least_middle_greatest((0.101, 0.2, 0.3001)), "0.101 / 0.200 / 0.301"),
        (_format.amount(5631.4), "5,631"),
        (_format.amount(6.3761), "6.38"),
        (_format.amount(0.0), "0"),
        (_format.amount(1_037_197_875), "1,037.2 million"),
        (_format.amount_and_spread([2.0]), "2"),
        (_format.amount_and_spread([5600.0, 5700.0]), "5,650 ± 71"),
        (_format.amount_and_spread([-3.0, -3.5]), "−3.25 ± 0.35"),
        (_format.amount_and_spread([4e7, 4e7 + 2]), "40.0 ± 0.0 million"),
        (_format.amount_and_spread([3e-7, 5e-7]), "4·10⁻⁷ ± 1.41·10⁻⁷"),
        (_format.share(0.8443), "84.4 %"),
        (_format.share(-0.0123), "−1.2 %"),
        (_format.share(-1e-5), "0.0 %"),
        (_format.share_and_spread(0.5, None), "50.0 %"),
        (_format.mean_and_spread([0.5, 0.6, 0.7]), "60.0 ± 10.0 %"),
        (_format.mean_and_spread([0.123]), "12.3 %"),
        (_format.with_spread([0.5, 0.6, 0.7], _format.two_decimals), "0.60 ± 0.10"),
        (_format.points(-0.0251), "−2.5"),
        (_format.points(0.5), "+50.0"),
        (_format.points(-1e-5), "±0.0"),
        (_format.size(-0.3172), "31.7"),
        (_format.size(12.345), "1,234.5"),
        (_format.size(0.00012), "0.012"),
        (_format.percent(0.473), "47 %"),
        (_format.percent(0.0000031), "0.00031 %"),
        (_format.percent(3e-9), "3·10⁻⁷ %"),
        (_format.percent(1.5), "150 %"),
        (_format.gain(3e-16), "nothing"),
        (_format.gain(0.5), "50 %"),
        (_format.setting(0.2), "0.2"),
        (_format.setting(250_000.0), "250,000"),
        (_format.two_decimals(-0.456), "−0.46"),
        (_format.two_decimals(-1e-5), "0.00"),
        (_format.three_decimals(2.47561), "2.476"),
        (_format.duration(0.0123), "0.012 s"),
        (_format.duration(42.0), "42 s"),
        (_format.duration(300.0), "5 min"),
        (_format.duration(9000.0), "2.5 h"),
    ],
)
def test_every_kind_of_number_has_one_form(shown, text):
    assert shown.replace("\N{NO-BREAK SPACE}", " ") == text


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
