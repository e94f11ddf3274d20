"""A mechanism takes only bounded values, spends no more than its budget, and says whom a release protects."""

import dataclasses
import math

import mpmath
import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.clipping import ClippedMean, ClippedUpdate, bounded_mean, clip_rows, clip_update
from fedpcs.privacy.discrete import discrete_gaussian
from fedpcs.privacy.events import Family, Relation, compose
from fedpcs.privacy.honesty import NoiseClaim, honest_norms
from fedpcs.privacy.mechanism import RecordMechanism, UpdateMechanism, noise_stddev
from fedpcs.privacy.modes.paper import PAPER
from fedpcs.privacy.noise import GRID_PER_STDDEV, ExactNoise, FastNoise, NoiseSource, SecureNoise, noise_source

MODES = ("paper", "client", "record")
RHO = Rho.of(0.5)
UPDATE = clip_update([[0.3, 0.4]], 1.0)
MEAN = clip_rows([[0.3, 0.4], [0.0, 0.1]], 1.0)
SOURCES = {"fast": lambda: FastNoise(0), "secure": SecureNoise, "exact": ExactNoise}
RELEASES = {
    "paper": lambda source: UpdateMechanism(RHO, PAPER.level, 10).release(UPDATE, source),
    "client": lambda source: UpdateMechanism(RHO).release(UPDATE, source),
    "record": lambda source: RecordMechanism(RHO, 2).release(MEAN, source),
}


# What goes in.


@pytest.mark.parametrize("raw", [np.array([0.1, 0.2]), [0.1], 0.1, None, MEAN], ids=lambda raw: type(raw).__name__)
def test_only_a_clipped_update_can_be_released_by_paper_and_client(raw):
    for mechanism in (UpdateMechanism(RHO, PAPER.level, 10), UpdateMechanism(RHO)):
        with pytest.raises(InvalidInput, match="update must be a ClippedUpdate, got"):
            mechanism.release(raw, FastNoise(0))


@pytest.mark.parametrize("raw", [np.array([0.1, 0.2]), [0.1], 0.1, None, UPDATE], ids=lambda raw: type(raw).__name__)
def test_only_a_clipped_mean_can_be_released_by_record(raw):
    with pytest.raises(InvalidInput, match="mean must be a ClippedMean, got"):
        RecordMechanism(RHO).release(raw, FastNoise(0))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "raw", [np.zeros(2), np.random.default_rng(0), "secure", None, 1.0], ids=lambda raw: type(raw).__name__
)
def test_noise_comes_from_a_source_and_not_from_an_array_or_generator(mode, raw):
    with pytest.raises(InvalidInput, match="source must be a NoiseSource"):
        RELEASES[mode](raw)


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_every_source_keeps_the_protocol(make):
    source = make()
    assert isinstance(source, NoiseSource)
    assert noise_source(source.name, seed=0).name == source.name
    assert source.is_guarantee is not source.is_replayable
    assert source.draw(0).shape == (0,)


# What it costs.


@cases(200)
@given(nanos=st.integers(1, 2**63 - 1), epochs=st.integers(1, 40))
def test_all_steps_together_never_cost_more_than_the_budget(nanos, epochs):
    """A record is in one step of each epoch. And no less than the budget, but for the remainder of the division."""
    if nanos < epochs:
        return
    mechanism = RecordMechanism(Rho(nanos), epochs)
    source = FastNoise(0)
    spent = compose(mechanism.release(MEAN, source).event for _ in range(epochs))
    assert Rho(nanos) >= spent == mechanism.step_budget * epochs
    assert nanos - spent.nanos < epochs
    assert mechanism.event(source).rho == Rho(nanos)


@cases(200)
@given(nanos=st.integers(1, 10**12), epochs=st.integers(1, 10**4))
def test_a_step_is_paid_for_by_its_noise(nanos, epochs):
    """ρ = Δ²/(2σ²) of one step, in exact arithmetic on the two floats, is at most the step's budget."""
    if nanos < epochs:
        with pytest.raises(InvalidInput, match="budget must be at least 1e-9 for each local epoch"):
            RecordMechanism(Rho(nanos), epochs)
        return
    mechanism = RecordMechanism(Rho(nanos), epochs)
    stddev = mechanism.release(MEAN, FastNoise(0)).noise_stddev
    sensitivity = MEAN.sensitivity
    assert sensitivity**2 / (2 * stddev**2) * (1 + 1e-15) <= float(mechanism.step_budget)
    assert stddev == pytest.approx(math.sqrt(2 * epochs / 2**2 / (nanos * 1e-9)), rel=1e-3 + epochs / nanos)


@pytest.mark.parametrize(
    ("mode", "name", "unit", "relation", "is_proven"),
    [
        ("paper", "paper", "record", Relation.REPLACE_ONE, False),
        ("client", "client", "client", Relation.ANY_TWO, True),
        ("record", "record", "record", Relation.REPLACE_ONE, True),
    ],
)
def test_a_release_says_whom_it_protects_and_whether_that_is_proven(mode, name, unit, relation, is_proven):
    level = RELEASES[mode](FastNoise(0)).event.level
    assert (level.name, level.unit, level.relation, level.is_proven) == (name, unit, relation, is_proven)


def test_the_event_announced_is_the_event_of_the_release():
    for mechanism in (UpdateMechanism(RHO, PAPER.level, 10), UpdateMechanism(RHO)):
        assert mechanism.event(FastNoise(0)) == mechanism.release(UPDATE, FastNoise(0)).event
    step = RELEASES["record"](FastNoise(0)).event
    assert step.rho == RHO // 2


# What the grid costs.


class Silent:
    """A source on a grid of any fineness that adds nothing, so that what was rounded can be seen."""

    name, family, is_replayable, is_guarantee = "silent", Family.DISCRETE_GAUSSIAN, False, False

    def __init__(self, units_per_stddev):
        self.units_per_stddev = units_per_stddev

    def draw(self, size):
        return np.zeros(size)


def check_spends_all_and_no_more(sensitivity, budget, num_parameters, units):
    """ρ recomputed from Δ + u√d, in 60 digits, is at most the budget, and all of it; u = σ/m is the unit."""
    with mpmath.workdps(60):
        exact = mpmath.mpf(budget.nanos) / 10**9
        grid_share = mpmath.sqrt(num_parameters) / units
        if mpmath.sqrt(2 * exact) <= grid_share * (1 + mpmath.mpf(2) ** -40):
            return  # refused, or within rounding of it
        stddev = noise_stddev(sensitivity, budget, num_parameters, Silent(units))
        spent = (mpmath.mpf(sensitivity) / stddev + grid_share) ** 2 / 2
        assert exact * (1 - 1e-11) <= spent <= exact


@cases(300)
@given(
    sensitivity=st.floats(1e-6, 1e6),
    nanos=st.integers(1, 10**11),
    num_parameters=st.integers(1, 10**7),
    units=st.sampled_from([4, 16, 1024, GRID_PER_STDDEV]),
)
def test_noise_pays_for_its_grid_and_for_nothing_else(sensitivity, nanos, num_parameters, units):
    check_spends_all_and_no_more(sensitivity, Rho(nanos), num_parameters, units)


@cases(200)
@given(limit=st.integers(1, 1000), above=st.integers(1, 10**4))
def test_a_budget_that_the_grid_all_but_uses_up_is_not_passed_by_an_ulp(limit, above):
    """32 parameters on a grid of 4 units cost ρ = 1 for the grid alone: here the two square roots cancel."""
    check_spends_all_and_no_more(1.0, Rho(limit * 10**9 + above), 32 * limit, 4)


def spent_on(one, other, stddev, units):
    """ρ of telling two rounded values apart, exactly: ‖k₁ − k₂‖²/(2m²) in units of the grid."""
    steps = [np.rint(value / (stddev / units)) for value in (one, other)]
    return sum(int(a - b) ** 2 for a, b in zip(*steps, strict=True)) / (2 * units**2)


@cases(200)
@given(
    pair=st.integers(1, 6).flatmap(
        lambda size: st.tuples(*[st.lists(st.floats(-10, 10), min_size=size, max_size=size)] * 2)
    ),
    rho=st.floats(1.0, 100.0),
    units=st.sampled_from([4, 16, 64]),
)
def test_any_two_updates_stay_within_the_budget_after_rounding(pair, rho, units):
    """On grids so coarse that the rounding is a large part of the sensitivity."""
    mechanism, source = UpdateMechanism(Rho.of(rho)), Silent(units)
    one, other = (mechanism.release(clip_update([values], 3.0), source) for values in pair)
    assert spent_on(one.value, other.value, one.noise_stddev, units) <= float(mechanism.budget)


@pytest.mark.parametrize("num_parameters", [1, 4, 25, 10_000])
@pytest.mark.parametrize("half_steps", [0, 3, 12])
def test_the_worst_neighbours_after_rounding_spend_the_whole_budget(num_parameters, half_steps):
    """±(j + ½)u in each coordinate round away from each other: 2j + 2 steps apart, at a norm of just W.

    This is what Δ + u√d allows and no less: without the allowance they would spend up to four times the budget.
    """
    units = 64
    budget = Rho.of(num_parameters * (2 * half_steps + 2) ** 2 / (2 * units**2) * (1 + 1e-3))
    stddev = noise_stddev(2.0, budget, num_parameters, Silent(units))
    value = np.full(num_parameters, (half_steps + 0.5 + 1e-9) * stddev / units)
    one, other = (
        UpdateMechanism(budget).release(clip_update([sign * value], 1.0), Silent(units)).value for sign in (1, -1)
    )
    assert 0.998 * float(budget) < spent_on(one, other, stddev, units) <= float(budget)


@cases(150)
@given(
    rows=st.lists(st.lists(st.floats(-9, 9), min_size=3, max_size=3), min_size=2, max_size=6),
    rho=st.floats(0.5, 50.0),
    units=st.sampled_from([8, 64]),
    epochs=st.integers(1, 3),
)
def test_a_replaced_record_stays_within_its_step_after_rounding(rows, rho, units, epochs):
    mechanism, source = RecordMechanism(Rho.of(rho), epochs), Silent(units)
    batches = rows[:-1], [rows[-1], *rows[1:-1]]
    one, other = (mechanism.release(clip_rows(batch, 2.0), source) for batch in batches)
    assert spent_on(one.value, other.value, one.noise_stddev, units) <= float(mechanism.step_budget)


# What comes out.


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("mode", MODES)
def test_a_release_cannot_be_changed_and_leaves_its_input_alone(mode, make):
    before = UPDATE.value.tobytes(), MEAN.value.tobytes()
    release = RELEASES[mode](make())
    assert (UPDATE.value.tobytes(), MEAN.value.tobytes()) == before
    assert release.value.dtype == np.float64
    assert np.isfinite(release.value).all()
    with pytest.raises(ValueError, match="read-only"):
        release.value[0] = 0.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.noise_stddev = 0.0


def test_the_signal_is_in_the_release_once():
    """The same noise on x and on 0 differs by x; on the grid by x to within half a unit."""
    zero = clip_update([[0.0, 0.0]], 1.0)
    one, none = (UpdateMechanism(RHO).release(update, FastNoise(7)) for update in (UPDATE, zero))
    assert one.value - none.value == pytest.approx([0.3, 0.4], abs=1e-14)


@pytest.mark.parametrize("name", ["secure", "exact"])
def test_a_budget_too_small_for_the_grid_is_refused_with_the_one_that_would_do(name):
    """10⁸ parameters cost ρ = 1.8e-7 for the grid alone."""
    with pytest.raises(InvalidInput, match=r"budget must exceed 1\.78e-07 for 100,000,000 parameters.*Spend more"):
        noise_stddev(1.0, Rho.of(1e-7), 10**8, noise_source(name))
    assert noise_stddev(1.0, Rho.of(2e-7), 10**8, noise_source(name)) > noise_stddev(1.0, Rho.of(2e-7), 1, FastNoise(0))


@pytest.mark.parametrize("name", ["secure", "exact"])
def test_noise_too_small_for_whole_numbers_of_its_grid_is_refused(name):
    """Beyond 2⁵³ units the sum would round by the size of the signal: the tell that the grid is there to remove."""
    mechanism = UpdateMechanism(Rho.of(1e9), PAPER.level, 10**6)
    with pytest.raises(InvalidInput, match=r"budget must leave noise of at least 3\.73e-09 .*Spend less"):
        mechanism.release(UPDATE, noise_source(name))
    assert mechanism.release(UPDATE, FastNoise(0)).value == pytest.approx(UPDATE.value)


@pytest.mark.parametrize("bad", [None, 0.5, 1, Rho(0), "ρ", True], ids=repr)
def test_a_budget_is_a_rho_above_zero(bad):
    for make in (UpdateMechanism, lambda budget: UpdateMechanism(budget, PAPER.level, 1), RecordMechanism):
        with pytest.raises(InvalidInput, match="budget must be a Rho above 0, got"):
            make(bad)
    with pytest.raises(InvalidInput, match="budget must be a Rho above 0, got"):
        noise_stddev(1.0, bad, 1, FastNoise(0))


# P7: bad numbers anywhere.

BAD = [math.nan, math.inf, -math.inf, -1, -0.0, 0, True, "1", None, 5e-324, 1e308]


def sends(mechanism, clipped):
    """The release is finite and its σ an ordinary number."""
    release = mechanism.release(clipped, SecureNoise())
    return bool(np.isfinite(release.value).all()) and 1e-300 < release.noise_stddev < 1e300


def is_plausible_to(release, claim, false_alarm=1e-6):
    lowest, highest = honest_norms(release.size, claim, false_alarm)
    return lowest <= math.hypot(*release) <= highest


def scale_one(size):
    return discrete_gaussian(lambda count: np.zeros(count, dtype=np.uint64), 1, size)


# Argument → (call, those of BAD that are allowed, as printed, and what then holds of the result).
ZERO = {"0": lambda found: True}
ARGUMENTS = {
    "clip_update l2_bound": (lambda bad: clip_update([[1.0, 2.0]], bad), {}),
    "clip_rows l2_bound": (lambda bad: clip_rows([[1.0, 2.0]], bad), {}),
    "clip_rows num_records": (lambda bad: clip_rows([[1.0]], 1.0, bad), {"None": lambda mean: mean.num_records == 1}),
    "bounded_mean l2_bound": (lambda bad: bounded_mean(np.zeros(1), bad, 1), {}),
    "bounded_mean num_records": (lambda bad: bounded_mean(np.zeros(1), 1.0, bad), {}),
    "ClippedUpdate l2_bound": (lambda bad: ClippedUpdate(UPDATE.value, bad), {}),
    "ClippedMean l2_bound": (lambda bad: ClippedMean(UPDATE.value, bad, 1), {}),
    "ClippedMean num_records": (lambda bad: ClippedMean(UPDATE.value, 1.0, bad), {}),
    "FastNoise seed": (lambda bad: FastNoise(bad), ZERO),
    "FastNoise round_index": (lambda bad: FastNoise(0, bad), ZERO),
    "FastNoise client": (lambda bad: FastNoise(0, 0, bad), ZERO),
    "noise_source seed": (lambda bad: noise_source("fast", seed=bad), ZERO),
    "noise_source round_index": (lambda bad: noise_source("fast", seed=0, round_index=bad), ZERO),
    "noise_source client": (lambda bad: noise_source("fast", seed=0, client=bad), ZERO),
    "FastNoise.draw size": (lambda bad: FastNoise(0).draw(bad), ZERO),
    "SecureNoise.draw size": (lambda bad: SecureNoise().draw(bad), ZERO),
    "ExactNoise.draw size": (lambda bad: ExactNoise().draw(bad), ZERO),
    "discrete_gaussian size": (scale_one, ZERO),
    "discrete_gaussian scale": (lambda bad: discrete_gaussian(lambda count: np.zeros(count, np.uint64), bad, 1), {}),
    "UpdateMechanism divisor": (lambda bad: UpdateMechanism(RHO, PAPER.level, bad), {}),
    "RecordMechanism local_epochs": (lambda bad: RecordMechanism(RHO, bad), {}),
    "noise_stddev sensitivity": (lambda bad: noise_stddev(bad, RHO, 1, SecureNoise()), {}),
    "noise_stddev num_parameters": (lambda bad: noise_stddev(1.0, RHO, bad, SecureNoise()), {}),
    "NoiseClaim noise_stddev": (
        lambda bad: NoiseClaim(bad, 1.0),
        # No noise to speak of: the norm is that of the signal. Noise without end: a norm of 1 is too little.
        {
            "5e-324": lambda claim: is_plausible_to(np.ones(1), claim) and not is_plausible_to(np.full(1, 2.0), claim),
            "1e+308": lambda claim: not is_plausible_to(np.ones(100), claim),
        },
    ),
    "NoiseClaim signal_bound": (
        lambda bad: NoiseClaim(1.0, bad),
        {
            "0": lambda claim: not is_plausible_to(np.full(1, 9.0), claim),
            "-0.0": lambda claim: not is_plausible_to(np.full(1, 9.0), claim),
            "5e-324": lambda claim: not is_plausible_to(np.full(1, 9.0), claim),
            "1e+308": lambda claim: is_plausible_to(np.full(1, 1e300), claim),
        },
    ),
    "honest_norms false_alarm": (
        lambda bad: honest_norms(3, NoiseClaim(1.0, 1.0), bad),
        {"5e-324": lambda norms: norms[0] <= math.sqrt(3.0) <= norms[1]},
    ),
}


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_a_bad_number_is_refused_by_name_or_gives_a_correct_result(argument, bad):
    call, allowed = ARGUMENTS[argument]
    if repr(bad) in allowed:
        assert allowed[repr(bad)](call(bad))
        return
    with pytest.raises(InvalidInput, match=rf"{argument.split()[-1]}\b.*got") as refusal:
        call(bad)
    assert (repr(bad) in str(refusal.value)) or "dtype" in str(refusal.value)


@pytest.mark.parametrize("bound", [1e-150, 1e150])
@pytest.mark.parametrize("nanos", [10**3, 2**63 - 1])
def test_the_ends_of_what_is_allowed_give_ordinary_noise(bound, nanos):
    """No overflow, no denormal unit, from the least bound to the greatest."""
    rows = np.array([[3.0, 4.0], [0.0, 1e300]])
    assert sends(UpdateMechanism(Rho(nanos)), clip_update([rows], bound))
    assert sends(UpdateMechanism(Rho(nanos), PAPER.level, 1000), clip_update([rows], bound))
    assert sends(RecordMechanism(Rho(nanos)), clip_rows(rows, bound))


def test_fast_noise_without_a_seed_is_refused():
    with pytest.raises(InvalidInput, match="seed must be given for noise 'fast'"):
        noise_source("fast")


@pytest.mark.parametrize("bad", ["", "Fast", "gaussian", None, 1], ids=repr)
def test_an_unknown_source_is_refused_with_those_there_are(bad):
    with pytest.raises(InvalidInput, match="noise must be one of 'fast', 'secure', 'exact'"):
        noise_source(bad)
