"""Three paired differences and their sentence: SciPy's intervals, no claim without one, never over 25 words."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from made_records import a_result
from scipy import stats

from fedpcs.report.headline import headline
from fedpcs.studies.comparison import (
    MEASURES,
    Comparison,
    Difference,
    Measure,
    compare,
    compare_each,
)
from fedpcs.trial.records import TrialResult

NAMES = ("random", "fedpcs", "aocs", "fed-cbs", "delta", "power-of-choice", "oort", "clustered", "my.module:Mine")
MOST_WORDS = 25


def trial(seed: int, accuracy: float, epsilon: float, paid: float, **more: Any) -> TrialResult:
    """Return what a trial of many clients, paid many times, came to."""
    spread = {"minimum": 0.9 * epsilon, "median": epsilon, "maximum": 1.1 * epsilon}
    many = {"rounds": 100, "num_test": 10_000, "times_drawn": [1000.0] * 100}
    spent = {"rho": spread, "epsilon": spread, "num_clients": more.pop("num_clients", 10_000)}
    return a_result(seed=seed, accuracy=accuracy, spent=spent, paid=paid, **many | more)


def changed(one: TrialResult, **fields: Any) -> TrialResult:
    return one.model_copy(update=fields)


def trials(accuracy: Sequence[float], epsilon: Sequence[float], paid: Sequence[float]) -> list[TrialResult]:
    return [trial(seed, *map(float, values)) for seed, values in enumerate(zip(accuracy, epsilon, paid, strict=True))]


BASE = ([0.78, 0.80, 0.76, 0.79, 0.81], [5.4, 5.7, 5.5, 5.8, 5.3], [15900.0, 15700.0, 15600.0, 15500.0, 16000.0])


def moved(accuracy: float, epsilon: float, paid: float, noise: float) -> list[TrialResult]:
    """Return trials that differ from the base by these, and by noise that seeds bring."""
    rng = np.random.default_rng(7)
    parts = zip(BASE, (accuracy, epsilon, paid), strict=True)
    shifted = []
    for k, (base, shift) in enumerate(parts):
        waves = noise * (rng.permutation(5) - 2.0)
        shifted.append(np.array(base) + shift + waves if k == 0 else np.array(base) * np.exp(shift + waves))
    return trials(*shifted)


def plain(words: str) -> str:
    return words.replace("\N{NO-BREAK SPACE}", " ").replace("−", "-")


def scipy_says(mine: Sequence[TrialResult], theirs: Sequence[TrialResult], level: float) -> dict[str, Any]:
    """Return mean and ends of SciPy's paired interval: of accuracies, and of logarithms of ε and pay taken back."""
    found = {}
    for measure, value in {
        "accuracy": lambda one: one.accuracy,
        "epsilon": lambda one: math.log(one.spent.epsilon.median),
        "paid": lambda one: math.log(one.paid),
    }.items():
        a, b = [value(one) for one in mine], [value(one) for one in theirs]
        interval = stats.ttest_rel(a, b).confidence_interval(level)
        numbers = (float(np.mean(a) - np.mean(b)), interval.low, interval.high)
        found[measure] = numbers if measure == "accuracy" else tuple(math.exp(one) - 1.0 for one in numbers)
    return found


@pytest.mark.parametrize("shifts", list(itertools.product((-0.1, 0.0, 0.1), repeat=3)))
@pytest.mark.parametrize("num_compared", [1, 4])
def test_means_and_intervals_are_scipys_and_sure_is_what_leaves_zero_out(
    shifts: tuple[float, float, float], num_compared: int
) -> None:
    mine, theirs = moved(*shifts, noise=0.01), trials(*BASE)
    twin = scipy_says(mine, theirs, 1.0 - 0.05 / num_compared)
    found = compare("fedpcs", mine, "random", theirs, num_compared)
    for measure, shift in zip(MEASURES, shifts, strict=True):
        told = found.of(measure)
        assert told is not None
        assert (told.mean, told.low, told.high) == pytest.approx(twin[measure], rel=1e-9)
        assert told.is_sure == (not told.low <= 0.0 <= told.high) == (shift != 0.0)
        assert told.verdict == {-0.1: "lower", 0.0: "cannot be told apart", 0.1: "higher"}[shift]
    said = headline([found])
    assert [one.size in said for one in found.differences] == [one.is_sure for one in found.differences]
    assert [found.is_sure(one) for one in found.sure_first] == sorted(map(found.is_sure, MEASURES), reverse=True)


def test_the_default_runs_sentence() -> None:
    """A saving of 31.7 % that is sure, and two differences that are not: what the default run found."""
    paid = [10763.15, 10642.75, 10768.09, 10841.44, 10757.44], [15955.69, 15684.28, 15650.12, 15481.74, 15991.69]
    epsilon = [5.446, 5.746, 5.530, 5.729, 5.340], [5.597, 5.472, 5.226, 5.593, 5.626]
    accuracy = [0.767, 0.794, 0.761, 0.758, 0.803], [0.639, 0.783, 0.786, 0.781, 0.797]
    mine, theirs = (trials(accuracy[k], epsilon[k], paid[k]) for k in (0, 1))
    (found,) = compare_each({"fedpcs": mine, "random": theirs})
    assert plain(headline([found])) == (
        "fedpcs pays 31.7 % less than random (30.3 to 33.1 %); accuracy and ε cannot be told apart."
    )
    assert found.sure_first == ["paid", "accuracy", "epsilon"]
    assert plain(found.text("paid")) == "31.7 % less (30.3 to 33.1 %)"
    assert plain(found.text("accuracy")).startswith("+1.9 points (-5.")


def test_one_seed_claims_nothing_and_has_no_interval() -> None:
    mine, theirs = trials([0.9], [5.0], [100.0]), trials([0.1], [5.0], [900.0])
    found = compare("fedpcs", mine, "random", theirs)
    assert headline([found]) == "One seed cannot tell fedpcs from random."
    assert not any(found.is_sure(measure) for measure in MEASURES)
    assert plain(found.text("accuracy")) == "+80.0 points, one seed"
    assert [found.numbers[measure]["low"] for measure in MEASURES] == [None] * 3
    assert [found.numbers[measure]["high"] for measure in MEASURES] == [None] * 3


def test_only_seeds_done_with_both_count() -> None:
    mine, theirs = trials(*BASE), moved(0.1, 0.1, 0.1, 0.01)
    found = compare("fedpcs", mine[1:], "random", theirs[:4])
    assert found.num_seeds == 3
    twin = scipy_says(mine[1:4], theirs[1:4], 0.95)
    assert [found.numbers[one]["mean"] for one in MEASURES] == pytest.approx([twin[one][0] for one in MEASURES])
    none = compare("fedpcs", mine[:1], "random", theirs[1:])
    assert headline([none]) == "No seed is done with both fedpcs and random yet."
    assert {none.text(measure) for measure in MEASURES} == {"no seed in common"}


def test_without_noise_or_pay_that_difference_is_left_out_in_words() -> None:
    mine, theirs = ([trial(seed, 0.8 + shift + 0.01 * seed, 0.0, 0.0) for seed in range(3)] for shift in (0.1, 0.0))
    mine[1] = changed(mine[1], accuracy=mine[1].accuracy + 0.001)
    found = compare("fedpcs", mine, "random", theirs)
    assert found.text("epsilon") == "no client spends any ε"
    assert found.text("paid") == "no client is paid"
    assert found.numbers["epsilon"] is found.numbers["paid"] is None
    assert re.fullmatch(
        r"fedpcs is 10.0 points more accurate than random \(9.\d to 10.\d\)\.", plain(headline([found]))
    )
    paid = [changed(one, paid=10.0) for one in theirs]
    alone = compare("fedpcs", mine, "random", paid)
    assert alone.text("paid") == "only random pays"
    assert headline([alone]).endswith("; only random pays.")
    assert compare("fedpcs", mine, "random", [*paid[:2], theirs[2]]).text("paid") == "only random pays"
    mixed = compare("fedpcs", [*paid[:1], *mine[1:]], "random", paid)
    assert mixed.text("paid") == "with some seeds nothing is paid"
    assert "pa" not in headline([mixed]).partition("(")[2]


def test_what_is_equal_with_every_seed_is_called_equal() -> None:
    found = compare("fedpcs", moved(0.0, 0.0, 0.0, 0.0), "random", trials(*BASE))
    assert [found.text(measure) for measure in MEASURES] == ["equal"] * 3
    assert headline([found]) == "No sure difference between fedpcs and random: accuracy, ε and pay are equal."


def test_seeds_that_agree_by_chance_are_believed_to_one_step_and_no_further() -> None:
    """One record of a thousand, one payment of twenty, one place among eleven clients: two seeds are sure of none."""

    def made(seed: int, accuracy: float, epsilon: float, paid: float) -> TrialResult:
        return trial(seed, accuracy, epsilon, paid, num_test=1000, times_drawn=[4.0] * 5, num_clients=11)

    mine = [made(0, 0.501, 5.1, 105.0), made(1, 0.601, 5.1, 105.0)]
    theirs = [made(0, 0.5, 5.0, 100.0), made(1, 0.6, 5.0, 100.0)]
    found, reach = compare("fedpcs", mine, "random", theirs), stats.t.ppf(0.975, 1) / math.sqrt(2.0)
    steps = {"accuracy": 0.001, "epsilon": 0.2 / 10, "paid": 1 / 20}
    for measure in MEASURES:
        told = found.of(measure)
        assert told is not None
        low, high = (told.low, told.high) if measure == "accuracy" else (math.log1p(told.low), math.log1p(told.high))
        assert high - low == pytest.approx(2.0 * reach * steps[measure], rel=1e-6)
        assert not told.is_sure
    same_for_all = [changed(one, times_drawn=[10_000.0] * 100) for one in (*mine, *theirs)]
    assert compare("fedpcs", same_for_all[:2], "random", same_for_all[2:]).is_sure("paid")


def test_one_sampler_is_compared_with_each_of_the_others_and_intervals_hold_together() -> None:
    results = {name: moved(0.0, 0.01 * k, 0.0, 0.01) for k, name in enumerate(("aocs", "random", "fedpcs", "delta"))}
    found = compare_each(results)
    assert [(one.sampler, one.other) for one in found] == [
        ("fedpcs", "aocs"),
        ("fedpcs", "random"),
        ("fedpcs", "delta"),
    ]
    assert found == [
        compare("fedpcs", results["fedpcs"], name, results[name], 3) for name in ("aocs", "random", "delta")
    ]
    assert [(one.sampler, one.other) for one in compare_each({"random": [], "aocs": []})] == [("aocs", "random")]
    assert compare_each({"random": trials(*BASE)}) == compare_each({}) == []


VERDICTS = ("higher", "lower", "equal", "cannot be told apart")


def invented(measure: Measure, verdict: str, num_seeds: int) -> Difference:
    ends = {"higher": (0.0123, 1234.5), "lower": (-0.9876, -0.0123)}.get(verdict, (-0.9876, 1234.5))
    return Difference(measure, 0.3171, *ends, verdict == "equal", num_seeds)


def invented_comparison(rng: np.random.Generator, other: str) -> Comparison:
    num_seeds = int(rng.choice([0, 1, 2, 5], p=[0.05, 0.05, 0.4, 0.5]))
    measures = [one for one in MEASURES if one == "accuracy" or rng.random() < 0.9] if num_seeds else []
    told = tuple(invented(one, VERDICTS[rng.integers(4)], num_seeds) for one in measures)
    why = ["no client is paid", "only fedpcs spends ε"][rng.integers(2)]
    left_out = {one: why for one in MEASURES if one not in measures}
    return Comparison("fedpcs", other, told, left_out, num_seeds)


def test_no_sentence_has_more_than_25_words() -> None:
    """Every verdict of one pair, and two thousand mixtures of up to eight others in up to nine settings."""
    for verdicts in itertools.product(VERDICTS, repeat=3):
        told = tuple(invented(measure, verdict, 5) for measure, verdict in zip(MEASURES, verdicts, strict=True))
        for many in (1, 2, 8):
            said = headline([Comparison("my.module:Mine", name, told, {}, 5) for name in NAMES[:many]])
            assert len(said.split()) <= MOST_WORDS, said
    rng = np.random.default_rng(0)
    for _ in range(2000):
        others = rng.permutation([name for name in NAMES if name != "fedpcs"])[: rng.integers(1, 9)]
        num_settings = int(rng.choice([1, 1, 2, 9]))
        found = [invented_comparison(rng, str(name)) for _ in range(num_settings) for name in others]
        said = headline(found, num_settings)
        assert len(said.split()) <= MOST_WORDS, said
        assert said.endswith(".")
        assert said.count(".") == 1 + len(re.findall(r"\d\.\d", said)) + said.count("my.module")
        is_claim = any(word in said for word in (" less", " more", "lower ", "higher "))
        assert is_claim == any(one.is_sure(measure) for one in found for measure in MEASURES), said


def test_of_several_others_it_is_told_how_many() -> None:
    def among(*verdicts: tuple[str, str, str]) -> str:
        found = [
            Comparison(
                "fedpcs",
                name,
                tuple(invented(measure, verdict, 5) for measure, verdict in zip(MEASURES, three, strict=True)),
                {},
                5,
            )
            for name, three in zip(("random", "aocs", "delta", "oort"), verdicts, strict=False)
        ]
        return headline(found)

    apart, less, better = "cannot be told apart", "lower", "higher"
    assert among((apart, apart, less), (apart,) * 3, (apart, "equal", less)).startswith("fedpcs pays less than 2 of 3 ")
    assert among((better, less, less), (less, apart, less)) == (
        "fedpcs against 2 others: lower accuracy (1), higher accuracy (1), lower ε (1), lower pay (all)."
    )
