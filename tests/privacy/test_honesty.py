"""The server flags noise that was not added, and honest clients no more often than it says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.clipping import clip_update
from fedpcs.privacy.honesty import NoiseClaim, honest_norms
from fedpcs.privacy.mechanism import UpdateMechanism
from fedpcs.privacy.modes.paper import PAPER
from fedpcs.privacy.noise import noise_source

ALPHA = 1e-6
MODEL = 26_010  # parameters of the paper's smallest model
RNG_SEED = 2026


def limits(num_parameters, claim, false_alarm=1e-6):
    """Norms between which a release is plausible; they depend on public numbers alone."""
    return honest_norms(num_parameters, claim, false_alarm)


def is_plausible(release, claim):
    lowest, highest = limits(np.size(release), claim)
    return lowest <= np.linalg.norm(release) <= highest


def simulated_norms(rng, num_parameters, stddev, signal, count):
    """‖x + n‖ for ‖x‖ = signal: noise along x, and a χ² of all that is across."""
    along = signal + stddev * rng.standard_normal(count)
    across = rng.chisquare(num_parameters - 1, count) if num_parameters > 1 else 0.0
    return np.sqrt(np.square(along) + stddev**2 * across)


def flagged_share(norms, limits):
    return np.mean((norms < limits[0]) | (norms > limits[1]))


def at_most(share, count):
    """The greatest share among `count` that a probability of `share` gives, but for α."""
    return stats.binom.isf(ALPHA, count, share) / count


@pytest.mark.parametrize("signal_share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("bound", [0.0, 0.3, 5.0, 300.0, 1e6])
@pytest.mark.parametrize("num_parameters", [1, 50, MODEL])
def test_honest_clients_are_flagged_no_more_often_than_said(num_parameters, bound, signal_share):
    """20,000 honest clients at a false alarm of 0.01: a rate of 0.0145 would be seen at α = 1e-6."""
    rng = np.random.default_rng(RNG_SEED)
    norms = simulated_norms(rng, num_parameters, 1.0, signal_share * bound, 20_000)
    share = flagged_share(norms, limits(num_parameters, NoiseClaim(1.0, bound), 0.01))
    assert share <= at_most(0.01, 20_000)


@pytest.mark.parametrize("name", ["fast", "secure", "exact"])
def test_releases_of_the_mechanisms_are_plausible(name):
    update = clip_update([np.ones(MODEL)], 1.0)
    source = noise_source(name, seed=1)
    for mechanism in (UpdateMechanism(Rho.of(0.1)), UpdateMechanism(Rho.of(0.1), PAPER.level, 600)):
        release = mechanism.release(update, source)
        assert is_plausible(release.value, NoiseClaim(release.noise_stddev, update.l2_bound))


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_tenth_too_little_or_too_much_noise_is_flagged(factor):
    """1,500 cheats of 26,010 parameters: all flagged shows a power above 99 % (0.99¹⁵⁰⁰ < 1e-6)."""
    rng = np.random.default_rng(RNG_SEED)
    found = limits(MODEL, NoiseClaim(1.0, 1.0))
    for signal in (0.0, 1.0):
        assert flagged_share(simulated_norms(rng, MODEL, factor, signal, 1_500), found) == 1.0


def test_no_noise_at_all_is_flagged():
    claim = NoiseClaim(1.0, 1.0)
    assert not is_plausible(np.zeros(MODEL), claim)
    assert not is_plausible(clip_update([np.ones(MODEL)], 1.0).value, claim)


def test_an_update_that_was_not_clipped_is_flagged_where_noise_does_not_hide_it():
    """Ten times the bound: seen at the noise of `paper`, where W is 134 σ; hidden at that of `client`, where it is σ/4.

    ‖x‖² must pass that of the bound by some 4.9·√(2d)·σ², here 1,117 σ²; no test of the norm can do better.
    """
    rng = np.random.default_rng(RNG_SEED)
    direction = rng.standard_normal(MODEL)
    direction *= 10.0 / np.linalg.norm(direction)
    for stddev, is_seen in ((1 / 134, True), (0.05, True), (4.0, False)):
        release = direction + stddev * rng.standard_normal(MODEL)
        assert is_plausible(release, NoiseClaim(stddev, 1.0)) is not is_seen


def adaptive_norms(rng, num_parameters, step_bound, num_steps, count, sign):
    """Each step's signal, of norm C, points along or against what there is so far: the worst a training can do."""
    sums = np.zeros((count, num_parameters))
    for _ in range(num_steps):
        sums += rng.standard_normal((count, num_parameters))
        sums *= 1.0 + sign * step_bound / np.linalg.norm(sums, axis=1, keepdims=True)
    return np.linalg.norm(sums, axis=1)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_steps_that_follow_their_own_noise_are_honest_too(sign):
    """20,000 trainings of 5 steps at a false alarm of 0.01; a claim of independence would flag ten times as many."""
    steps, step_bound, size = 5, 1.5, 40
    rng = np.random.default_rng(RNG_SEED)
    norms = adaptive_norms(rng, size, step_bound, steps, 20_000, sign)
    stddev, bound = math.sqrt(steps), steps * step_bound
    claims = (NoiseClaim(stddev, bound, is_adaptive) for is_adaptive in (True, False))
    adaptive, plain = (flagged_share(norms, limits(size, claim, 0.01)) for claim in claims)
    assert adaptive <= at_most(0.01, 20_000)
    assert plain > 0.1


def test_an_adaptive_claim_still_sees_missing_noise():
    claim = NoiseClaim(1.0, 1.0, is_adaptive=True)
    rng = np.random.default_rng(RNG_SEED)
    assert is_plausible(rng.standard_normal(MODEL), claim)
    for factor in (0.9, 1.1):
        assert not is_plausible(factor * rng.standard_normal(MODEL), claim)


def test_a_signal_beyond_all_noise_leaves_no_lower_limit():
    lowest, _ = limits(10, NoiseClaim(1.0, 1e3, is_adaptive=True))
    assert lowest == 0.0


@pytest.mark.parametrize("num_parameters", [1, 10, MODEL, 1_660_000])
@pytest.mark.parametrize("ratio", [0.0, 1e-200, 1.0, 3e4, 1e6, 1e12, 1e308])
def test_the_upper_limit_is_never_below_the_true_quantile(num_parameters, ratio):
    """At α = 1e-6, from no signal to one that SciPy's noncentral law fails on, where it comes out too low.

    Truth: never below the quantile of a Gaussian along the signal alone, nor of χ² alone; never above their sum.
    """
    _, highest = limits(num_parameters, NoiseClaim(1.0, ratio))
    along = ratio + special.ndtri(1 - 0.5e-6)
    noise_alone = math.sqrt(stats.chi2.isf(0.5e-6, num_parameters))
    assert highest >= max(along, noise_alone) * (1 - 1e-12)
    assert highest <= (ratio + noise_alone) * (1 + 1e-12)


@settings(max_examples=100, deadline=None)
@given(
    num_parameters=st.integers(1, 10**5),
    log_ratio=st.floats(-3, 4.4),
    log_alarm=st.floats(-8, -1),
)
def test_the_upper_limit_is_at_and_near_the_noncentral_quantile(num_parameters, log_ratio, log_alarm):
    """Read back through SciPy's law, where it can be trusted: α/2 lies above at most, more above 3 % less."""
    ratio, false_alarm = 10.0**log_ratio, 10.0**log_alarm
    _, highest = limits(num_parameters, NoiseClaim(1.0, ratio), false_alarm)
    assert stats.ncx2.sf(highest**2, num_parameters, ratio**2) <= (1.0 + 1e-6) * false_alarm / 2
    if num_parameters >= 650:
        closer = highest / 1.03
        assert stats.ncx2.sf(closer**2, num_parameters, ratio**2) >= false_alarm / 2


@pytest.mark.parametrize("bad", [0.0, 1.0, 1])
def test_a_false_alarm_is_strictly_between_none_and_all(bad):
    with pytest.raises(InvalidInput, match="false_alarm must be strictly between 0 and 1"):
        honest_norms(1, NoiseClaim(1.0, 1.0), bad)
