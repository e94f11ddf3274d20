"""Noise has the law, the scale and the independence it is accounted for, from every source through every mechanism.

n = 10⁶ coordinates and α = 10⁻⁶ unless a test says otherwise. At that size the variance test sees an error of 0.35 % in
σ (0.7 % of σ², five standard errors of √(2/n)), and the Kolmogorov–Smirnov test 1.1 %, or 0.3 % of the mass misplaced.
"""

import decimal
import functools
import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from fedpcs import _random
from fedpcs.privacy import discrete
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.clipping import clip_rows, clip_update
from fedpcs.privacy.mechanism import RecordMechanism, UpdateMechanism
from fedpcs.privacy.modes.paper import PAPER
from fedpcs.privacy.noise import GRID_PER_STDDEV, FastNoise, noise_source

NUM = 10**6
ALPHA = 1e-6
Z = float(stats.norm.isf(ALPHA / 2))  # 4.89
KS_CRITICAL = 0.0026932  # scipy.stats.kstwo.isf(1e-6, 10**6)
SOURCES = ("fast", "secure", "exact")
MODES = ("paper", "client", "record")
# SPEC 4, with numbers that no other mode's formula turns into the same σ; all near 1, where float16 is fine enough.
STDDEVS = {
    "paper": math.sqrt(2 * 90**2 / (2.0 * 80**2)),  # 2W²/(ρ|D|²)
    "client": math.sqrt(2 * 1.1**2 / 2.5),  # 2W²/ρ
    "record": math.sqrt(2 * 40**2 * 2 / (50**2 * 3.0)),  # 2C²E/(b²ρ)
}


class Wrapped:
    """A source whose draws went through `change`: how a broken source would look to a mechanism."""

    is_replayable, is_guarantee = False, False

    def __init__(self, source, change):
        self.name, self.family, self.units_per_stddev = source.name, source.family, source.units_per_stddev
        self._source, self._change = source, change

    def draw(self, size):
        return self._change(self._source.draw(size))


def zero_release(mode, source):
    if mode == "paper":
        return UpdateMechanism(Rho.of(2.0), PAPER.level, 80).release(clip_update([np.zeros(NUM)], 90.0), source)
    if mode == "client":
        return UpdateMechanism(Rho.of(2.5)).release(clip_update([np.zeros(NUM)], 1.1), source)
    mean = clip_rows(np.zeros((1, NUM)), 40.0, num_records=50)
    return RecordMechanism(Rho.of(3.0), local_epochs=2).release(mean, source)


@functools.cache
def released(mode, name):
    return zero_release(mode, noise_source(name, seed=20260 if name == "fast" else None)).value


def variance_z(noise, stddev):
    """Standard errors between the variance about zero and σ²."""
    return (np.mean(np.square(noise)) / stddev**2 - 1.0) / math.sqrt(2.0 / noise.size)


def ks_distance(noise, stddev):
    expected = special.ndtr(np.sort(noise) / stddev)
    steps = np.arange(noise.size + 1) / noise.size
    return max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))


def has_law(noise, stddev):
    mean_z = np.mean(noise) / stddev * math.sqrt(noise.size)
    return abs(variance_z(noise, stddev)) < Z and abs(mean_z) < Z and ks_distance(noise, stddev) < KS_CRITICAL


# P8: scale and shape.


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("mode", MODES)
def test_noise_is_gaussian_with_the_stddev_of_the_formula_and_with_no_other(mode, name, dtype):
    """As a receiver sees it, in its own dtype. σ is that of SPEC 4, not the mechanism's word; 1 % either way is seen.

    float16 adds steps of up to 2.4e-4 to the distribution function, a tenth of what the shape test allows.
    """
    received = released(mode, name).astype(dtype).astype(np.float64)
    stddev = STDDEVS[mode]
    assert has_law(received, stddev)
    assert variance_z(received, 0.99 * stddev) > Z
    assert variance_z(received, 1.01 * stddev) < -Z


@pytest.mark.parametrize("name", SOURCES)
def test_two_percent_too_much_or_too_little_noise_fails_the_same_check(name):
    """The mutation, inside the source: if this passes unnoticed, the check above is worth nothing."""
    for factor in (0.98, 1.02):
        source = noise_source(name, seed=1 if name == "fast" else None)
        on_grid = np.rint if source.units_per_stddev else np.asarray
        broken = Wrapped(source, lambda draws, factor=factor, on_grid=on_grid: on_grid(draws * factor))
        assert not has_law(zero_release("client", broken).value, STDDEVS["client"])


def test_noise_of_the_right_variance_and_the_wrong_shape_fails_the_same_check():
    """Uniform noise of variance 1: seen by the shape test alone."""
    uniform = np.random.default_rng(0).uniform(-math.sqrt(3), math.sqrt(3), NUM)
    assert abs(variance_z(uniform, 1.0)) < Z
    assert not has_law(uniform, 1.0)


# P9: independence.


def largest_correlation(streams):
    """Over all pairs of rows, of the values and of their squares."""
    matrices = (np.corrcoef(streams), np.corrcoef(np.square(streams)))
    return max(np.abs(matrix[np.triu_indices(len(streams), 1)]).max() for matrix in matrices)


def test_streams_of_rounds_clients_seeds_and_purposes_are_uncorrelated():
    """Seeded, n = 200,000: a correlation of 0.011 would be seen. Cohorts are drawn from uniforms of the same seed."""
    size = 200_000
    noise = [FastNoise(seed, t, i).draw(size) for seed, t, i in itertools.product((0, 1), (0, 1, 2), (0, 1, 2))]
    cohorts = [_random.generator(0, "cohort", t, i).random(size) - 0.5 for t, i in ((0, 0), (1, 0), (0, 1))]
    others = [_random.generator(0, purpose).standard_normal(size) for purpose in ("population", "noise ", "Noise")]
    assert largest_correlation(np.array(noise + cohorts + others)) < 5.0 / math.sqrt(size)


@pytest.mark.parametrize("name", SOURCES)
def test_coordinates_and_streams_are_uncorrelated(name):
    """Eight lags of one stream, and three streams: a correlation of 0.0055 would be seen in 10⁶ pairs."""
    streams = np.array([released(mode, name) / STDDEVS[mode] for mode in MODES])
    if name == "fast":  # the same seed would be the same stream
        streams = np.array([FastNoise(5, 0, client).draw(NUM) for client in range(3)])
    lagged = [np.stack([streams[0][:-lag], streams[0][lag:]]) for lag in (1, 2, 3, 4, 5, 16, 256, 1000)]
    found = [largest_correlation(pair) for pair in [streams, *lagged]]
    limit = float(stats.norm.isf(ALPHA / 2 / (2 * len(found) + 4)))
    assert max(found) < limit / math.sqrt(NUM - 1000)


def test_no_float_is_ever_drawn_twice():
    draws = np.concatenate([FastNoise(3, t, i).draw(NUM // 4) for t in (0, 1) for i in (0, 1)])
    assert np.unique(draws).size == NUM


@pytest.mark.parametrize("name", ["secure", "exact"])
def test_whole_numbers_repeat_only_as_often_as_chance_has_it(name):
    """Two draws agree with probability 1/(2√π·2²⁴): 8,406 pairs among 10⁶, ± 92. A stream that loops has far more."""
    draws = noise_source(name).draw(NUM)
    _, counts = np.unique(draws, return_counts=True)
    pairs, expected = np.sum(counts * (counts - 1) / 2), NUM**2 / 2 / (2 * math.sqrt(math.pi) * GRID_PER_STDDEV)
    assert abs(pairs - expected) < Z * math.sqrt(expected)


def test_seeded_noise_is_a_function_of_seed_round_and_client_alone():
    keys = list(itertools.product((0, 1, 2**40), (0, 1, 50), (0, 1, 1000)))
    draws = [tuple(FastNoise(*key).draw(4)) for key in keys]
    assert draws == [tuple(FastNoise(*key).draw(4)) for key in keys]
    assert len(set(draws)) == len(keys)
    parts = FastNoise(1, 2, 3)
    assert [*parts.draw(3), *parts.draw(5)] == FastNoise(1, 2, 3).draw(8).tolist()


# P13: what low-order bits tell.


@functools.cache
def small_outputs(name, signal, seed):
    """Releases near zero, of 2²⁰ coordinates that are all 1 or all 0, and the unit of their grid; σ = 1.

    W = 1100 leaves a vector of ones (norm 1024) as it is; ρ = 2W² makes σ = 1.
    """
    size, bound = 2**20, 1100.0
    source = noise_source(name, seed=seed if name == "fast" else None)
    found = UpdateMechanism(Rho.of(2 * bound**2)).release(clip_update([np.full(size, signal)], bound), source)
    assert abs(found.noise_stddev - 1.0) < 1e-6
    return found.value[np.abs(found.value) < 2.0**-6], found.noise_stddev / GRID_PER_STDDEV


def share_of_multiples(values, step):
    return np.mean(np.rint(values / step) * step == values)


def standard_errors_apart(one, other, sizes):
    pooled = (one * sizes[0] + other * sizes[1]) / sum(sizes)
    return abs(one - other) / math.sqrt(max(pooled * (1 - pooled), 1e-12) * (1 / sizes[0] + 1 / sizes[1]))


def test_low_order_bits_of_fast_noise_tell_the_signal():
    """Documented failure: every small output of x = 1 is a multiple of 2⁻⁵³, and 1 in 100 of x = 0. Hence the grid."""
    ones, zeros = (small_outputs("fast", signal, seed=int(signal))[0] for signal in (1.0, 0.0))
    assert share_of_multiples(ones, 2.0**-53) == 1.0
    assert share_of_multiples(zeros, 2.0**-53) < 0.02


@pytest.mark.parametrize("name", ["secure", "exact"])
def test_low_order_bits_on_a_grid_tell_nothing(name):
    """Shares among some 8,000 and 13,000 small outputs: 0.4 % of them would be seen; fast noise differs by 99 %."""
    (ones, unit), (zeros, _) = (small_outputs(name, signal, seed=None) for signal in (1.0, 0.0))
    assert share_of_multiples(ones, unit) == share_of_multiples(zeros, unit) == 1.0
    sizes = ones.size, zeros.size
    tells = [(np.float64, 2.0**-53), (np.float64, 2.0**-55), (np.float32, 2.0**-24), (np.float32, 2.0**-28)]
    tells += [(np.float64, unit * 2**power) for power in (1, 2, 5)]
    for dtype, step in tells:
        shares = [share_of_multiples(sent.astype(dtype).astype(np.float64), step) for sent in (ones, zeros)]
        assert standard_errors_apart(*shares, sizes) < 5.0, (dtype, step, shares)


# P14: the discrete Gaussian.


def seeded_words(seed):
    generator = np.random.Generator(np.random.Philox(seed))
    return lambda count: generator.integers(0, 2**64, count, dtype=np.uint64)


def pmf(scale):
    reach = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + 1)
    weights = np.exp(-np.square(reach / scale) / 2)
    return reach, weights / weights.sum()


def chi_squared_p(draws, scale):
    """Against the exact law, tails put together where fewer than ten are expected."""
    reach, probability = pmf(scale)
    expected = probability * draws.size
    last = int(reach[expected >= 10][-1])
    observed = np.bincount(np.clip(draws, -last, last) + last, minlength=2 * last + 1)
    merged = np.bincount(np.clip(reach, -last, last) + last, weights=expected)
    return stats.chi2.sf(np.sum((observed - merged) ** 2 / merged), 2 * last)


@functools.cache
def discrete_draws(scale):
    return discrete.discrete_gaussian(seeded_words(scale), scale, NUM)


@pytest.mark.parametrize("scale", [1, 3, 50])
def test_the_discrete_gaussian_has_its_law(scale):
    """χ² against the exact probabilities, n = 10⁶; a scale off by 2 % is seen."""
    draws = discrete_draws(scale)
    assert chi_squared_p(draws, scale) > ALPHA
    assert chi_squared_p(draws, 1.02 * scale) < ALPHA
    assert chi_squared_p(draws, scale / 1.02) < ALPHA


def test_decisions_taken_in_decimals_are_those_taken_in_floats(monkeypatch):
    """With an error so large that floats prove nothing, every decision is refined, and none changes."""
    by_floats = {s: discrete.discrete_gaussian(seeded_words(s), s, 150) for s in (1, 3, 50, 2**24)}
    asked = []
    for question in ("floor_of", "exceeds"):
        answer = getattr(discrete._Refined, question)
        monkeypatch.setattr(
            discrete._Refined, question, lambda self, *given, answer=answer: asked.append(1) or answer(self, *given)
        )
    monkeypatch.setattr(discrete, "_LOG_ERROR", 1e12)
    for scale, expected in by_floats.items():
        assert np.array_equal(discrete.discrete_gaussian(seeded_words(scale), scale, 150), expected)
    assert len(asked) > 4 * 2 * 150


WORDS = [0, 1, 2, 12345, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1, 0x9E3779B97F4A7C15]


@pytest.mark.parametrize("precision", [3, 28])
@pytest.mark.parametrize("num_reads", [0, 1, 3])
@pytest.mark.parametrize("word", WORDS)
def test_what_is_known_of_an_exponential_contains_the_truth_and_little_else(word, num_reads, precision):
    """Whatever precision the caller's decimals have: the interval is compared with mpmath in 200 digits."""
    with decimal.localcontext(prec=precision), mpmath.workdps(200):
        refined = discrete._Refined(word, lambda count: np.full(count, 0xABCDEF0123456789, dtype=np.uint64))
        for _ in range(num_reads):
            refined._read_more()
        low, high = refined._interval()
        one = mpmath.mpf(2) ** refined._num_bits
        least = -mpmath.log((refined._bits + 1) / one)
        assert 0 <= as_mpf(low) <= least <= as_mpf(low) + mpmath.mpf(10) ** -50
        if refined._bits == 0:
            assert high is None
        else:
            most = -mpmath.log(refined._bits / one)
            assert most <= as_mpf(high) <= most + mpmath.mpf(10) ** -50


def as_mpf(number):
    return mpmath.mpf(number.numerator) / mpmath.mpf(number.denominator)


@pytest.mark.parametrize("word", WORDS)
def test_refined_answers_are_those_of_many_digits(word):
    """Questions asked next to the truth, where 64 bits leave the answer open and more must be read."""
    tail = 0x5555555555555555
    with mpmath.workdps(120):
        bits = mpmath.mpf((((word << 64) + tail) << 128) + (tail << 64) + tail) / mpmath.mpf(2) ** 256
        truth = -mpmath.log(bits)

        def fresh():
            return discrete._Refined(word, lambda count: np.full(count, tail, dtype=np.uint64))

        for scale in (1, 3, 2**24):
            assert fresh().floor_of(scale) == int(mpmath.floor(truth * scale))
        denominator = 10**30
        nearest = int(mpmath.floor(truth * denominator))
        assert fresh().exceeds(nearest, denominator)
        assert not fresh().exceeds(nearest + 1, denominator)


def test_an_exponential_of_which_only_zeros_were_read_has_no_upper_end():
    """64 zero bits mean E > 44.4 and no more: floats must not decide that it stays below 100."""

    def zeros(count):
        return np.zeros(count, dtype=np.uint64)

    assert discrete._exceeds(zeros, np.array([100.0]), np.array([200]), 14).tolist() == [True]
