"""No data whatever move a clipped value by more than its sensitivity: checked on real neighbours, 10,000 of them (P10).

Each Hypothesis example is a small data set of awkward rows; every row of it is replaced, removed and added in turn, and
each of these pairs counts as one case. The counts are asserted.
"""

from fractions import Fraction

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedpcs.errors import InvalidInput
from fedpcs.privacy.clipping import ClippedMean, ClippedUpdate, bounded_mean, clip_rows, clip_update

ROUNDING = 1.0 + 1e-6
AWKWARD = [0.0, -0.0, 1.0, -3.0, 1e300, -1e300, 1e-300, 5e-324, -5e-324, 1.7e308, 6e-8, 65504.0]
AWKWARD += [np.nan, np.inf, -np.inf]
DTYPES = [np.float64, np.float32, np.float16]
bounds = st.sampled_from([1e-100, 1e-3, 1.0, 7.3, 1e5, 1e100])
entries = st.one_of(st.sampled_from(AWKWARD), st.floats(-10, 10), st.floats())


def cast(values, dtype):
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float64).astype(dtype)


def distance(one, other):
    """Norm of a difference whose squares may overflow."""
    difference = one - other
    largest = np.abs(difference).max()
    return 0.0 if largest == 0.0 else largest * float(np.linalg.norm(difference / largest))


@st.composite
def batches(draw):
    """Rows of one dtype, to begin with, to replace them with and to add."""
    width = draw(st.integers(1, 5))
    rows = st.lists(entries, min_size=width, max_size=width)
    some = draw(st.lists(rows, min_size=2, max_size=5))
    others = draw(st.lists(rows, min_size=4, max_size=4))
    dtype = draw(st.sampled_from(DTYPES))
    return cast(some, dtype), cast(others, dtype)


def test_a_replaced_record_moves_the_mean_by_at_most_its_sensitivity():
    num_cases, some = 0, cases(400)

    @some
    @given(batch=batches(), bound=bounds)
    def check(batch, bound):
        nonlocal num_cases
        rows, others = batch
        before = clip_rows(rows, bound)
        limit = before.sensitivity
        assert limit == pytest.approx(2 * bound / len(rows), rel=1e-12)
        for index in range(len(rows)):
            for other in [*others, rows[index - 1]]:
                neighbour = rows.copy()
                neighbour[index] = other
                assert distance(before.value, clip_rows(neighbour, bound).value) <= limit * ROUNDING
                num_cases += 1

    check()
    assert num_cases >= 10 * some.max_examples


@st.composite
def updates(draw):
    """A model's parameters: several arrays, dtypes mixed, one of them without dimensions."""
    sizes = draw(st.lists(st.integers(0, 4), min_size=0, max_size=3))
    arrays = [cast(draw(st.lists(entries, min_size=n, max_size=n)), draw(st.sampled_from(DTYPES))) for n in sizes]
    scalar = cast(draw(entries), draw(st.sampled_from(DTYPES)))
    return [*arrays, scalar, cast([[draw(entries)]], np.float64)]


def test_any_two_updates_are_at_most_their_sensitivity_apart():
    num_cases, some = 0, cases(600)

    @some
    @given(one=updates(), seed=st.integers(0, 2**32), bound=bounds)
    def check(one, seed, bound):
        nonlocal num_cases
        clipped = clip_update(one, bound)
        assert distance(clipped.value, np.zeros_like(clipped.value)) <= bound
        rng = np.random.default_rng(seed)
        opposite = [-array for array in one]
        others = [[rng.choice(AWKWARD, array.shape) for array in one] for _ in range(4)]
        for other in [opposite, *others]:
            assert distance(clipped.value, clip_update(other, bound).value) <= clipped.sensitivity
            num_cases += 1

    check()
    assert num_cases >= 5 * some.max_examples


def exact_norm_squared(value):
    return sum(Fraction(float(entry)) ** 2 for entry in value)


@cases(200)
@given(
    array=hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e200, 1e200)),
    bound=st.floats(1e-100, 1e100),
)
def test_the_norm_is_within_the_bound_in_exact_arithmetic(array, bound):
    """Not to 1e-6 but without any excess: noise is matched to the bound itself."""
    assert exact_norm_squared(clip_update([array], bound).value) <= Fraction(bound) ** 2


@pytest.mark.parametrize("num_parameters", [26_010, 200_000, 1_660_000])
def test_a_large_model_is_clipped_within_the_bound_whatever_way_rounding_drifts(num_parameters):
    """Equal entries round alike: a plain running sum of squares drifts by 1e-12 at this size, and lets them over."""
    for share in (0.2786617400583298, 0.40987898092371267, 0.7819559607774623, 0.9694558727056631):
        array = np.full(num_parameters, share)
        array[0] = 1.0
        found = clip_update([array], 1.0).value
        first, rest = (Fraction(float(entry)) for entry in found[:2])
        assert first**2 + (num_parameters - 1) * rest**2 <= 1
        in_columns = np.asfortranarray(np.stack([array, array]))
        assert np.array_equal(clip_rows(in_columns, 1.0, 2).value, found)


def drifting_rows(num_records, bound):
    """Rows that drive two sums apart: one just above 512 and one just below, where floats are twice as fine.

    Of 64 candidates that keep it so, each step takes the one whose rounding widens the gap the most.
    """
    rng = np.random.default_rng(0)
    rows = [512.0 / 520] * 520
    high, low = (sum(rows, first) for first in (bound, -bound))
    for _ in range(num_records - 1 - len(rows)):
        choices = rng.uniform(-0.9, 0.9, 64)
        choices = choices[(high + choices > 512.0) & (low + choices < 512.0)]
        best = float(choices[np.argmax((high + choices) - (low + choices))])
        rows.append(best)
        high, low = high + best, low + best
    return rows


def test_the_sensitivity_covers_what_one_record_does_to_the_rounding_of_the_sum():
    """2C/b alone is passed by one part in 10¹¹ at 2,000 records: a sum of floats is not the sum (Casacuberta 2022)."""
    largest, num_records = 1.0 - 2.0**-43, 2_000  # the longest that clipping to 1 leaves as it is
    rows = drifting_rows(num_records, largest)
    # A second column keeps NumPy from adding the first in pairs, as it would not in a model.
    batches = (np.array([[first, 0.0], *[[row, 0.0] for row in rows]]) for first in (largest, -largest))
    one, other = (clip_rows(batch, 1.0) for batch in batches)
    moved = Fraction(float(one.value[0])) - Fraction(float(other.value[0]))
    assert moved > Fraction(2, num_records) * (1 + Fraction(1, 10**11))
    assert moved <= Fraction(one.sensitivity)


def test_many_equal_rows_are_accepted_though_their_sum_rounds():
    """60,000 long rows: the norm of their mean comes out above the bound by rounding in the sum, which is no lie."""
    for seed in range(10):
        row = np.random.default_rng(seed).uniform(-10, 10, 3)
        found = clip_rows(np.tile(row, (60_000, 1)), 1.0)
        assert np.linalg.norm(found.value) == pytest.approx(1.0, abs=1e-9)


@cases(200)
@given(
    array=hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(-1e6, 1e6)),
    bound=st.floats(1e-3, 1e3),
)
def test_clipping_keeps_the_direction_and_short_values_bit_for_bit(array, bound):
    norm = float(np.linalg.norm(array))
    found = clip_update([array], bound).value
    if norm < bound * (1 - 1e-12):
        assert found.tobytes() == array.tobytes()
    else:
        assert found == pytest.approx(array * (bound / norm), rel=1e-9, abs=1e-300)
        assert np.linalg.norm(found) == pytest.approx(min(bound, norm), rel=1e-9)


@pytest.mark.parametrize("scale", [1e300, 1e-200, 5e-324])
def test_squares_that_overflow_or_vanish_do_not_change_the_result(scale):
    found = clip_update([np.array([3.0, 4.0]) * scale], 1e-100 if scale == 1e300 else 1e-150).value
    if scale == 1e300:
        assert found == pytest.approx([0.6e-100, 0.8e-100], rel=1e-12)
    else:
        assert found.tolist() == (np.array([3.0, 4.0]) * scale).tolist()


def test_dtypes_are_clipped_together_in_float64():
    mixed = [np.array([3], dtype=np.int8), np.array([4.0], dtype=np.float16), np.array([12.0], dtype=np.float32)]
    found = clip_update(mixed, 1.0)
    assert found.value == pytest.approx(np.array([3, 4, 12]) / 13)
    assert found.value.dtype == np.float64


def test_what_is_not_finite_counts_as_zero():
    rows = np.array([[1.0, 0.0], [np.nan, 0.0], [0.0, np.inf], [0.0, 1.0], [-np.inf, np.nan]])
    found = clip_rows(rows, 10.0)
    assert found.value.tolist() == [0.2, 0.2]
    assert found.num_records == 5
    update = clip_update([rows, [1.0]], 10.0)
    assert not update.value.any()


def test_input_is_left_as_it_was_and_output_cannot_be_changed():
    array = np.array([[3.0, 4.0], [np.nan, 1.0]])
    before = array.tobytes()
    row_array = array[0]
    results = [clip_rows(array, 1.0), clip_update([row_array], 100.0), bounded_mean(row_array, 100.0, 2)]
    assert array.tobytes() == before
    assert array.flags.writeable
    for result in results:
        assert not np.shares_memory(result.value, array)
        with pytest.raises(ValueError, match="read-only"):
            result.value[0] = 1e9


def test_no_rows_at_all_are_a_mean_of_zero():
    assert clip_rows(np.empty((0, 3)), 1.0).value.tolist() == [0.0, 0.0, 0.0]
    assert clip_rows(np.empty((0, 3)), 1.0, 8).num_records == 8


def frozen(*entries, dtype=np.float64):
    array = np.array(entries, dtype=dtype)
    array.flags.writeable = False
    return array


LIES = {
    "over the bound": frozen(0.8, 0.8),
    "barely over": frozen(1.0 + 1e-9),
    "NaN": frozen(np.nan, 0.0),
    "infinite": frozen(np.inf),
    "minus infinity": frozen(0.0, -np.inf),
    "not flat": frozen([0.1]),
    "no dimensions": np.asarray(frozen(0.1)[0]),
    "empty": frozen(),
    "float32": frozen(0.1, dtype=np.float32),
    "a list": [0.1],
    "a number": 0.1,
    "still writeable": np.array([0.1]),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_value_that_belies_its_bound_cannot_be_made(lie):
    with pytest.raises(InvalidInput, match="value"):
        ClippedUpdate(LIES[lie], 1.0)
    with pytest.raises(InvalidInput, match="value"):
        ClippedMean(LIES[lie], 1.0, 10)


@pytest.mark.parametrize("total", [[10.0, 10.0], [np.nan, 0.0], [np.inf, 0.0]])
def test_a_sum_that_no_clipped_records_can_have_is_refused(total):
    with pytest.raises(InvalidInput, match="norm"):
        bounded_mean(np.array(total), 1.0, 10)


def test_a_sum_of_clipped_records_becomes_their_mean():
    found = bounded_mean(np.array([3.0, 4.0]), 1.0, 5)
    assert found.value == pytest.approx([0.6, 0.8])
    assert found.num_records == 5


@pytest.mark.parametrize("bad", [[], [[]], [np.empty((0, 2))]])
def test_an_update_without_parameters_is_refused(bad):
    with pytest.raises(InvalidInput, match="at least one parameter"):
        clip_update(bad, 1.0)


@pytest.mark.parametrize("rows", [1.0, [1.0], [[[1.0]]], np.empty((3, 0))])
def test_rows_of_another_shape_are_refused(rows):
    with pytest.raises(InvalidInput, match="rows must be"):
        clip_rows(rows, 1.0)


def test_more_rows_than_announced_are_refused():
    with pytest.raises(InvalidInput, match="num_records must be at least 3"):
        clip_rows(np.ones((3, 1)), 1.0, 2)


@pytest.mark.parametrize("bad", [[True], ["1"], [None], [1j], np.array([b"1"])])
def test_what_is_not_a_real_number_is_refused(bad):
    with pytest.raises(InvalidInput, match="real numbers"):
        clip_update([bad], 1.0)
    with pytest.raises(InvalidInput, match="real numbers"):
        clip_rows([bad], 1.0)
