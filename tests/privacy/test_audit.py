"""The audit's statistics: bounds that hold as often as they say, and are as tight as published ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from fedpcs.errors import InvalidInput
from fedpcs.privacy.audit import (
    FALSE_POSITIVE_RATES,
    AuditResult,
    Claim,
    area_under_curve,
    audit_scores,
    lower_bounds,
    registered_ranks,
    roc_curve,
    true_positive_rate,
)
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.conversion import to_epsilon
from fedpcs.privacy.noise_law import check_noise_law

DELTA = 1e-5
# ρ, AUC, TPR at 1 % and 0.1 %, and the lower bounds that auditors in use reach on a correct Gaussian release, at 95 %
# with 1,000 + 1,000 canaries, mean of five.
PUBLISHED = [
    (0.01, 0.540, 0.014, 0.0016, 0.02, 0.05),
    (0.1, 0.624, 0.030, 0.0041, 0.28, 0.88),
    (0.5, 0.760, 0.092, 0.018, 1.21, 3.40),
    (1.0, 0.841, 0.181, 0.047, 2.07, 5.37),
    (2.0, 0.921, 0.372, 0.138, 3.02, 8.47),
    (5.0, 0.987, 0.798, 0.529, 4.24, 15.96),
]


def claim_of(rho: float, delta: float = DELTA) -> Claim:
    return Claim(Rho.of(rho), delta)


def gaussian_scores(distance: float, num_canaries: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(0.5 * distance, 1.0, num_canaries), rng.normal(-0.5 * distance, 1.0, num_canaries)


def most_failures(num_audits: int, probability: float) -> int:
    """Return a count that an event of this probability passes once in a million times."""
    return int(stats.binom.isf(1e-6, num_audits, probability))


@pytest.mark.parametrize(("rho", "auc", "at_one", "at_tenth", "rates", "gaussian"), PUBLISHED)
def test_theory_is_the_published_one(rho, auc, at_one, at_tenth, rates, gaussian):
    claim = claim_of(rho)
    assert claim.auc == pytest.approx(auc, abs=6e-4)
    assert claim.true_positive_rate(FALSE_POSITIVE_RATES) == pytest.approx([at_one, at_tenth], abs=6e-4)
    assert claim.auc == pytest.approx(ndtr(math.sqrt(rho)))
    assert claim.epsilon == to_epsilon(rho, DELTA, "exact")


@pytest.mark.parametrize(("rho", "auc", "at_one", "at_tenth", "rates", "gaussian"), PUBLISHED)
def test_bounds_are_as_tight_as_the_published_ones(rho, auc, at_one, at_tenth, rates, gaussian):
    """Five audits of 1,000 + 1,000 canaries; the standard error of a mean is about 0.1."""
    claim = claim_of(rho)
    found = [lower_bounds(*gaussian_scores(claim.distance, 1000, seed), claim) for seed in range(5)]
    assert np.mean([bound.clopper_pearson for bound in found]) >= rates - 0.03
    assert gaussian <= np.mean([bound.gaussian for bound in found]) < claim.epsilon


@pytest.mark.parametrize("rho", [0.1, pytest.param(0.5, marks=pytest.mark.slow), 2.0])
def test_bounds_are_wrong_no_more_often_than_they_say(rho):
    """400 audits of a mechanism that just keeps its claim: α = 1e-6, and the Gaussian bound is not far too cautious."""
    claim = claim_of(rho)
    found = [lower_bounds(*gaussian_scores(claim.distance, 300, seed), claim) for seed in range(400)]
    assert sum(bound.clopper_pearson > claim.epsilon for bound in found) <= most_failures(400, 0.05)
    num_wrong = sum(bound.gaussian > claim.epsilon for bound in found)
    assert stats.binom.ppf(1e-6, 400, 0.02) <= num_wrong <= most_failures(400, 0.05)


def test_the_bound_that_assumes_nothing_holds_where_nothing_is_gaussian():
    """Randomised response, the worst an ε allows: two scores only, so every threshold is a tie."""
    epsilon = 0.8
    right = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    rng = np.random.default_rng(1)
    found = []
    for _ in range(400):
        held_in = (rng.random(500) < right).astype(float)
        held_out = (rng.random(500) >= right).astype(float)
        found.append(lower_bounds(held_in, held_out, claim_of(0.05), confidence=0.9).clopper_pearson)
    assert sum(bound > epsilon for bound in found) <= most_failures(400, 0.1)
    assert np.mean(found) > 0.3 * epsilon


def test_the_gaussian_bound_holds_for_canaries_of_unequal_difficulty():
    claim = claim_of(0.5)
    found = []
    for seed in range(400):
        held_in, held_out = gaussian_scores(0.0, 300, seed)
        shift = np.where(np.arange(300) % 2 == 0, 0.5, 0.2) * claim.distance
        found.append(lower_bounds(held_in + shift, held_out - shift, claim, confidence=0.8).gaussian)
    assert sum(bound > claim.epsilon for bound in found) <= most_failures(400, 0.2)


def test_a_sound_mechanism_is_not_contradicted():
    claim = claim_of(1.0)
    assert not any(audit_scores(*gaussian_scores(claim.distance, 200, k), claim).is_contradicted for k in range(150))


@pytest.mark.parametrize("rho", [0.1, 0.5, 2.0, 5.0])
def test_half_the_noise_is_contradicted(rho):
    claim = claim_of(rho)
    found = audit_scores(*gaussian_scores(2.0 * claim.distance, 1000, 0), claim)
    assert found.is_attack_contradicting
    assert found.is_contradicted


def test_bounds_agree_with_another_library_s_intervals():
    """SciPy's exact binomial intervals, and the (ε, δ) inequality written out."""
    claim = claim_of(1.0)
    held_in, held_out = gaussian_scores(claim.distance, 400, 3)
    found = lower_bounds(held_in, held_out, claim)
    right = int((held_in > 0.0).sum() + (held_out <= 0.0).sum())
    low = stats.binomtest(right, 800, alternative="greater").proportion_ci(0.95, method="exact").low
    expected = to_epsilon(0.5 * (2.0 * ndtri(low)) ** 2, DELTA, "exact")
    assert found.gaussian == pytest.approx(expected, rel=1e-6)
    assert found.gaussian < expected, "rounded down"

    ranks = registered_ranks(claim, 400, 0.05)
    chance = 0.05 / (2 * len(ranks))
    candidates = []
    for rank in ranks:
        for inside, outside in ((held_in, held_out), (-held_out, -held_in)):
            threshold = sorted(outside, reverse=True)[rank - 1]
            hits, misses = int((inside > threshold).sum()), int((outside > threshold).sum())
            assert misses == rank - 1
            hit_rate = stats.binomtest(hits, 400, alternative="greater").proportion_ci(1.0 - 0.1 * chance).low
            miss_rate = stats.binomtest(misses, 400, alternative="less").proportion_ci(1.0 - 0.9 * chance).high
            candidates.append(math.log((hit_rate - DELTA) / miss_rate))
    assert found.clopper_pearson == pytest.approx(max(candidates), rel=1e-6)
    assert found.clopper_pearson < max(candidates), "rounded down"


def infinite_scores() -> AuditResult:
    return audit_scores(np.full(100, math.inf), np.full(100, -math.inf), claim_of(0.5))


def test_infinite_scores_are_certainty():
    found = infinite_scores()
    assert found.auc == 1.0
    assert found.true_positive_rates == (1.0, 1.0)
    assert found.bounds.gaussian == found.bounds.ceiling
    assert found.roc.tolist() == [[0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    assert found.is_contradicted


@pytest.mark.parametrize("score", [math.inf, -math.inf, 0.0, 1e308])
def test_scores_that_are_all_alike_say_nothing(score):
    found = audit_scores(np.full(50, score), np.full(50, score), claim_of(0.5))
    assert found.auc == 0.5
    assert (found.bounds.clopper_pearson, found.bounds.gaussian) == (0.0, 0.0)
    assert not found.is_contradicted


@pytest.mark.parametrize("rounding", [8, 1, 0])
def test_the_area_is_mann_and_whitney_s(rounding):
    held_in, held_out = (np.round(scores, rounding) for scores in gaussian_scores(1.0, 300, 2))
    held_in[:3], held_out[:2] = math.inf, -math.inf
    expected = stats.mannwhitneyu(held_in, held_out).statistic / 300**2
    assert area_under_curve(held_in, held_out) == pytest.approx(expected)
    false, true = roc_curve(held_in, held_out)
    assert np.trapezoid(true, false) == pytest.approx(expected)


def test_the_curve_is_what_counting_gives():
    held_in, held_out = (np.round(scores, 1) for scores in gaussian_scores(1.0, 40, 0))
    expected = [(0.0, 0.0)] + [
        (sum(held_out >= t) / 40, sum(held_in >= t) / 40) for t in sorted({*held_in, *held_out}, reverse=True)
    ]
    np.testing.assert_allclose(roc_curve(held_in, held_out).T, expected)


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.013, 0.05, 0.5])
def test_the_rate_of_false_alarms_is_kept(rate):
    held_in, held_out = (np.round(scores, 1) for scores in gaussian_scores(1.0, 200, 0))
    thresholds = [t for t in (*held_out, math.inf) if (held_out > t).mean() <= rate]
    assert true_positive_rate(held_in, held_out, rate) == max((held_in > t).mean() for t in thresholds)


def test_a_score_at_the_threshold_is_a_guess_of_out():
    claim = claim_of(0.5)
    assert (
        lower_bounds(np.ones(50), np.zeros(50), claim).gaussian
        == lower_bounds(np.ones(50), -np.ones(50), claim).ceiling
    )
    assert lower_bounds(np.zeros(50), -np.ones(50), claim).gaussian == 0.0
    moved = lower_bounds(np.full(50, 3.0), np.full(50, 2.0), claim, threshold=2.5)
    assert moved.gaussian == moved.ceiling


@pytest.mark.parametrize(
    "bad", [[math.nan, 1.0], [], [[1.0, 2.0]], [True, False], ["a", "b"], [1j, 2.0], None, 3.0, [1.0, 2.0, 3.0]]
)
def test_bad_scores_are_refused(bad):
    good = [0.5, -0.5]
    with pytest.raises(InvalidInput, match="held_in"):
        audit_scores(bad, good, claim_of(0.5))
    with pytest.raises(InvalidInput, match="held_out"):
        audit_scores(good, bad, claim_of(0.5))


def test_a_nan_is_refused_by_its_place():
    with pytest.raises(InvalidInput, match=r"held_out\[1\] must be a number or ±inf, got nan"):
        audit_scores([1.0, 2.0], [1.0, math.nan], claim_of(0.5))


def judged(**settings):
    return audit_scores([1.0, 2.0], [0.0, 1.0], claim_of(0.5), **settings)


NOT_SHARES = (math.nan, math.inf, -1, 2, True, "0.5", None)
ARGUMENTS = {
    "confidence": (lambda bad: judged(confidence=bad), (*NOT_SHARES, 0, 0.5, 1, 1.0)),
    "threshold": (lambda bad: judged(threshold=bad), (math.nan, math.inf, True, "0", None)),
    "false_alarm": (lambda bad: judged(false_alarm=bad), (*NOT_SHARES, 0, 0.0, 0.5, 1)),
    "false_alarm of the law": (lambda bad: check_noise_law(np.zeros((3, 3)), false_alarm=bad), (*NOT_SHARES, 0, 0.5)),
    "delta": (lambda bad: claim_of(0.5, bad), (*NOT_SHARES, 0, 1)),
    "rho": (lambda bad: Claim(bad, DELTA), (0.5, math.nan, None, "1")),
    "false_positive_rate": (lambda bad: claim_of(1.0).true_positive_rate(bad), (*NOT_SHARES, -1.0, 1.5, 10**400)),
}


@pytest.mark.parametrize(
    ("argument", "bad"), [(name, bad) for name, (_, all_bad) in ARGUMENTS.items() for bad in all_bad]
)
def test_a_bad_number_is_refused_by_name(argument, bad):
    with pytest.raises(InvalidInput, match=argument.split()[0]):
        ARGUMENTS[argument][0](bad)


def test_extreme_claims_have_bounds_too():
    for rho in (0.0, 1e-9, 1e3, 9e9):
        found = audit_scores(*gaussian_scores(1.0, 20, 0), claim_of(rho))
        assert all(math.isfinite(b) for b in (found.bounds.clopper_pearson, found.bounds.gaussian))


def noise(num_releases: int = 1000, num_parameters: int = 1000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((num_releases, num_parameters))


def failures(residuals: np.ndarray) -> set[str]:
    return {check.name for check in check_noise_law(residuals) if not check.is_passed}


def test_sound_noise_passes():
    assert failures(noise()) == set()


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_a_hundredth_of_sigma_is_seen(factor):
    """A million draws at α = 1e-6: an error of 0.4 % is the least that shows."""
    assert "noise scale" in failures(factor * noise())


@pytest.mark.parametrize("factor", [0.0, 0.8, 1.2])
def test_one_parameter_with_other_noise_is_seen(factor):
    residuals = noise()
    residuals[:, 17] *= factor
    assert failures(residuals) == {"noise in each parameter"}


def test_another_shape_of_the_same_variance_is_seen():
    rng = np.random.default_rng(0)
    flat = rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), (300, 300))
    assert failures(flat) == {"noise shape"}
    assert "noise shape" in failures(rng.laplace(0.0, math.sqrt(0.5), (300, 300)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_noise_used_twice_is_seen(sign):
    residuals = noise()
    residuals[412] = sign * residuals[7]
    assert failures(residuals) == {"noise across releases"}
    assert failures(residuals.T.copy()) == {"noise across parameters"}


def test_no_noise_is_seen_and_divides_by_nothing():
    assert {"noise scale", "noise in each parameter", "noise shape"} <= failures(np.zeros((10, 10)))


def test_sound_noise_fails_no_more_often_than_asked():
    num_failed = sum(
        not all(check.is_passed for check in check_noise_law(noise(20, 30, seed), false_alarm=0.1))
        for seed in range(300)
    )
    assert 1 <= num_failed <= most_failures(300, 0.1)


@pytest.mark.parametrize("bad", [np.zeros(5), np.zeros((1, 5)), np.zeros((5, 1)), np.full((3, 3), math.nan)])
def test_bad_residuals_are_refused(bad):
    with pytest.raises(InvalidInput, match="residuals"):
        check_noise_law(bad)
