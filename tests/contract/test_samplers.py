"""Every sampler keeps the same promises: size, reproducibility, indifference to labels, no NaN, a faithful memory."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sampler_zoo import (
    CASES,
    bits,
    experience,
    feedback_of,
    make_world,
    memory_bits,
    play,
    size_promise,
    view_of,
)

from fedpcs.errors import InvalidInput
from fedpcs.sampling import DESIGNS, SAMPLERS, check_sampler, draw, make_feedback, make_sampler, remember, start
from fedpcs.sampling.feedback import overheard

every_case = pytest.mark.parametrize("case", CASES, ids=str)


def test_every_registered_sampler_is_put_through_the_contract():
    assert {case.name for case in CASES} == set(SAMPLERS)
    assert {case.settings.get("design") for case in CASES if case.name == "fedpcs"} >= set(DESIGNS)
    for name, kind in SAMPLERS.items():
        assert make_sampler(name).name == name == kind.name


@every_case
def test_every_setting_keeps_the_promises_that_users_can_check(case):
    check_sampler(case.make(), num_draws=400)


def scores(sample, expected):
    """How many standard errors the mean of each column is from what was expected; a constant column must equal it."""
    error = sample.std(axis=0, ddof=1) / np.sqrt(len(sample))
    difference = sample.mean(axis=0) - expected
    return np.where(np.abs(difference) < 1e-12, 0.0, difference / np.maximum(error, 1e-12))


def assert_on_average(sample, expected):
    """Each column and all of them together; the bounds are passed by chance once in 10⁵ times."""
    found = scores(sample, expected)
    assert np.abs(found).max() < 4.7, found
    assert np.mean(found**2) < 3.8 if found.size > 10 else np.mean(found**2) < 20.0, found


BIASED = ("fed-cbs", "power-of-choice", "oort")
# The authors of DELTA draw by known probabilities and have weights of their own, which are biased.
KNOWN = [case for case in CASES if case.name not in BIASED]
UNBIASED = [case for case in KNOWN if case.settings.get("mode") != "paper"]


@pytest.mark.parametrize("num_draws", [500, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", UNBIASED, ids=str)
def test_clients_come_up_as_often_as_designed_and_weigh_their_share_on_average(case, num_draws):
    """E[1{i drawn}] = π_i and E[1{i drawn}·weight_i] = θ_i, client by client, by a sampler with some experience."""
    world = make_world()
    view = view_of(case, world, memory=experience(case), round_index=7)
    sampler, rng = case.make(), np.random.default_rng(5)
    is_in, weight, own = np.zeros((3, num_draws, view.num_clients))
    for row in range(num_draws):
        drawn = draw(sampler, view, rng)
        is_in[row, drawn.clients] = 1.0
        weight[row, drawn.clients] = view.data_weight[drawn.clients] * drawn.expansion
        own[row, drawn.clients] = drawn.weights
    assert np.allclose(own, weight, rtol=1e-12, atol=0.0)
    assert_on_average(weight, view.data_weight)
    assert_on_average(weight.sum(axis=1, keepdims=True), 1.0)
    if design_of(case) == "gumbel":  # its inclusion is Rosén's approximation, coarse for 12 clients
        assert is_in.mean(axis=0) == pytest.approx(drawn.inclusion, abs=0.06 if num_draws < 1_000 else 0.03)
    else:
        assert_on_average(is_in, drawn.inclusion)
        assert_on_average(is_in.sum(axis=1, keepdims=True), drawn.inclusion.sum())


def design_of(case):
    """The design a case draws by; the authors' DELTA draws successively."""
    return "gumbel" if case.settings.get("mode") == "paper" else case.settings.get("design")


@every_case
def test_biased_samplers_have_weights_that_add_up_to_one_and_claim_no_inclusion(case):
    drawn = play(case, make_world(), range(3))[0][-1][1]
    assert (drawn.expansion is None) == (case not in UNBIASED)
    assert (drawn.inclusion is None) == (drawn.draw_probability is None) == (case not in KNOWN)
    if case not in KNOWN:
        assert drawn.weights.sum() == pytest.approx(1.0, rel=1e-12)


@every_case
def test_what_a_sampler_did_not_declare_does_not_move_it(case):
    """With everything in sight and with the declared fields alone it draws and learns the same."""
    world, sampler = make_world(), case.make()
    memory = experience(case)
    view = view_of(case, world, memory=memory, round_index=9)
    drawn = draw(sampler, view, np.random.default_rng(3))
    assert bits(replace(sampler.draw(view, np.random.default_rng(3)), label=drawn.label)) == bits(drawn)
    needless = set(world) - {"cohort_size", "num_samples", *sampler.reads}
    bare = view_of(
        case, {name: None if name in needless else value for name, value in world.items()}, memory=memory, round_index=9
    )
    assert bits(draw(sampler, bare, np.random.default_rng(3))) == bits(drawn)
    feedback = feedback_of(case, world, drawn.clients, np.random.default_rng(4))
    learnt = remember(sampler, view, drawn, feedback)
    if hasattr(sampler, "remember"):
        assert memory_bits(sampler.remember(view, drawn, feedback)) == memory_bits(learnt)
    assert memory_bits(remember(sampler, view, drawn, overheard(feedback, sampler.hears))) == memory_bits(learnt)


@every_case
def test_without_a_field_it_declared_it_says_so(case):
    world, sampler = make_world(), case.make()
    view = view_of(case, world)
    drawn = bits(draw(sampler, view, np.random.default_rng(3)))
    for name in sampler.reads:
        lacking = replace(view, **{name: None})
        with pytest.raises(InvalidInput, match=name):
            draw(sampler, lacking, np.random.default_rng(3))
        changed = np.random.default_rng(8).permutation(world[name])
        if name != "loss":
            other = replace(view, **{name: changed})
            seeds = range(5)
            moved = [bits(draw(sampler, other, np.random.default_rng(seed))) for seed in seeds]
            assert moved != [bits(draw(sampler, view, np.random.default_rng(seed))) for seed in seeds]
    assert drawn == bits(draw(sampler, view, np.random.default_rng(3)))


def zeroed(world):
    zeros = np.zeros(world["num_samples"].size)
    names = ("noise_power", "update_norm", "gradient_distance", "gradient_variance", "loss")
    return {**world, **dict.fromkeys(names, zeros)}


def with_one_left(world):
    return {**zeroed(world), **{name: np.eye(1, 12)[0] for name in ("update_norm", "loss")}}


def scaled(world, factor):
    names = ("budget", "update_norm", "gradient_distance", "loss")
    squares = ("noise_power", "gradient_variance")
    found = {**world, **{name: world[name] * factor for name in names}}
    return {**found, **{name: world[name] * factor**2 for name in squares}}


def far_apart(world):
    factor = np.where(np.arange(world["num_samples"].size) % 3, 1e-75, 1e75)
    return scaled(world, factor)


def balanced(world):
    counts = world["label_counts"].copy()
    counts[3] = 7.0
    return {**world, "label_counts": counts}


def all_balanced(world):
    return {**world, "label_counts": np.full((12, 5), 7.0)}


def masked(world, num_here):
    return {**world, "is_available": np.arange(world["num_samples"].size) >= world["num_samples"].size - num_here}


EDGES = {
    "nothing but zeros": lambda: zeroed(make_world()),
    "one client that is not zero": lambda: with_one_left(make_world()),
    "one client": lambda: make_world(1, 1),
    "one client of zeros": lambda: zeroed(make_world(1, 1)),
    "two clients": lambda: make_world(2, 1),
    "everyone": lambda: make_world(12, 12),
    "everyone, all zeros": lambda: zeroed(make_world(12, 12)),
    "everyone but one": lambda: make_world(12, 11),
    "one available": lambda: masked(make_world(), 1),
    "fewer available than wanted": lambda: masked(make_world(), 3),
    "a balanced client": lambda: balanced(make_world()),
    "only balanced clients": lambda: all_balanced(make_world()),
    "eighty of a hundred": lambda: make_world(100, 80),
    "tiny": lambda: scaled(make_world(), 1e-150),
    "huge": lambda: scaled(make_world(), 1e150),
    "tiny and huge": lambda: far_apart(make_world()),
    "one huge data set": lambda: {**make_world(), "num_samples": np.where(np.arange(12) == 5, 1e12, 1.0)},
}


FEW_POSITIVE = ("one client that is not zero",)


@cache
def world_at(edge):
    return EDGES[edge]()


@pytest.mark.parametrize("edge", EDGES)
@every_case
def test_nothing_is_nan_at_the_edges(case, edge):
    """Four rounds that learn from the edge itself; warnings are errors, so a NaN has nowhere to hide."""
    world = dict(world_at(edge))
    if case.name == "power-of-choice" and case.settings.get("num_candidates", 99) < world["cohort_size"]:
        with pytest.raises(InvalidInput, match="num_candidates must be at least the cohort size"):
            draw(case.make(), view_of(case, world), np.random.default_rng(0))
        return
    mask = world.pop("is_available", np.ones(world["num_samples"].size, dtype=bool))
    sampler, rng = case.make(), np.random.default_rng(0)
    memory = start(sampler, mask.size)
    for t in range(4):
        view = view_of(case, world, is_available=mask, memory=memory, round_index=t)
        drawn = draw(sampler, view, rng)
        most = min(view.cohort_size, np.count_nonzero(mask))
        assert drawn.clients.size <= (mask.sum() if size_promise(case) == "average" else most)
        assert mask[drawn.clients].all()
        if size_promise(case) == "exact" and not (edge in FEW_POSITIVE and case.name == "aocs"):
            assert drawn.clients.size == most
        for name in ("weights", "inclusion", "expansion", "draw_probability"):
            value = getattr(drawn, name)
            assert value is None or np.isfinite(value).all(), name
        memory = remember(sampler, view, drawn, feedback_of(case, world, drawn.clients, rng))


def test_a_budget_of_zero_is_refused_by_name_unless_a_floor_makes_up_for_it():
    world = make_world()
    world["budget"][3] = 0.0
    for case in CASES:
        if case.name != "fedpcs":
            continue
        view = view_of(case, world)
        if "floor" in case.settings:
            assert draw(case.make(), view, np.random.default_rng(0)).inclusion[3] > 0.0
            continue
        with pytest.raises(InvalidInput, match=r"budget\[3\] must be above 0, got 0"):
            draw(case.make(), view, np.random.default_rng(0))
        without = view_of(case, world, is_available=np.arange(12) != 3)
        assert 3 not in draw(case.make(), without, np.random.default_rng(0)).clients


LEARNERS = [
    case for case in CASES if case.make().hears or (case.name == "fed-cbs" and "exploration" not in case.settings)
]


@pytest.mark.parametrize("case", LEARNERS, ids=str)
def test_what_is_remembered_is_used(case):
    """A memory that nobody reads would pass any test of resuming."""
    world = make_world()
    sampler, fresh = case.make(), play(case, world, range(0))[1]
    learnt = experience(case)
    assert memory_bits(fresh) != memory_bits(learnt)
    one, other = (view_of(case, world, memory=memory, round_index=9) for memory in (fresh, learnt))
    pairs = ([draw(sampler, view, np.random.default_rng(seed)) for view in (one, other)] for seed in range(200))
    assert any(bits(before) != bits(after) for before, after in pairs)


@every_case
def test_a_round_nobody_answers_is_survived_and_teaches_nothing_about_clients(case):
    world, sampler = make_world(), case.make()
    memory = experience(case)
    view = view_of(case, world, memory=memory, round_index=9)
    drawn = draw(sampler, view, np.random.default_rng(0))
    after = remember(sampler, view, drawn, make_feedback(np.array([], dtype=np.int64)))
    of_clients = [name for name, value in memory.items() if value.shape == (12,)]
    assert all(np.array_equal(after[name], memory[name], equal_nan=True) for name in of_clients)
    assert after.keys() == memory.keys()
    draw(sampler, view_of(case, world, memory=after, round_index=10), np.random.default_rng(0))
