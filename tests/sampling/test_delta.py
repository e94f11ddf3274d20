"""`delta` draws by distance and scatter: formulas by hand, mass that is only shared out anew, and units that cancel."""

import numpy as np
import pytest

from fedpcs.sampling import biased_draw, draw, make_feedback, make_sampler, make_view, remember

SIZES = np.array([50.0, 30.0, 20.0, 100.0])


def learnt(sampler, probability, clients, sizes=SIZES, **feedback):
    """p after one round in which `clients` took part."""
    view = make_view(2, sizes, memory={"probability": np.array(probability, dtype=float)})
    drawn = biased_draw(np.array(clients), np.ones(len(clients)))
    told = {"noise_power": np.zeros(len(clients)), "local_steps": np.ones(len(clients)), **feedback}
    return remember(sampler, view, drawn, make_feedback(np.array(clients), **told))["probability"]


@pytest.mark.parametrize(
    ("settings_given", "steps", "variance"),
    [
        ({}, [1, 1, 1], [64.0, 16.0, 256.0]),
        ({}, [4, 1, 8], [256.0, 16.0, 2048.0]),
        ({"variance_ratio": 2.0}, None, [8.0, 2.0, 32.0]),
    ],
)
def test_the_ideal_formula(settings_given, steps, variance):
    """√(9 + 16), √(0 + 4) and √(36 + 64): 5, 2 and 10 of 17."""
    known = {"gradient_distance": [3.0, 0.0, 6.0], "gradient_variance": variance, "local_steps": steps}
    view = make_view(1, SIZES[:3], **known)
    sampler = make_sampler("delta", information="ideal", floor=0.0, **settings_given)
    drawn = draw(sampler, view, np.random.default_rng(0))
    assert drawn.draw_probability == pytest.approx(np.array([5, 2, 10]) / 17, rel=1e-12)
    assert drawn.inclusion == pytest.approx(np.array([5, 2, 10]) / 17, rel=1e-12)
    assert drawn.weights == pytest.approx(SIZES[:3][drawn.clients] / 100 / drawn.inclusion[drawn.clients])


def test_the_mass_of_participants_is_shared_by_score_and_others_keep_theirs():
    """After 4 steps and after 8: √(9 + 256/16) = 5 and √(36 + 2048/32) = 10 share 0.3 + 0.1."""
    found = learnt(
        make_sampler("delta"),
        [0.3, 0.4, 0.1, 0.2],
        [0, 2],
        gradient_distance=[3.0, 6.0],
        gradient_noise_power=[0.0, 0.0],
        gradient_variance=[256.0, 2048.0],
        local_steps=[4, 8],
    )
    assert found == pytest.approx([0.4 / 3, 0.4, 0.8 / 3, 0.2], rel=1e-12)


def test_noise_draws_the_noisy_and_subtracting_it_undoes_that():
    """Ten clients at the same distance, half of them with noise of norm 6.3 and half of 0.2."""
    rng = np.random.default_rng(0)
    num_parameters, rounds = 4_000, 40
    noise_power = np.array([40.0] * 5 + [0.04] * 5)
    shape = (10, num_parameters)
    found = {}
    for subtract_noise in (False, True):
        sampler = make_sampler("delta", variance_ratio=0.0, subtract_noise=subtract_noise)
        total = np.zeros(10)
        for _ in range(rounds):
            signal = rng.standard_normal(shape) * 3.0 / np.sqrt(num_parameters)
            noise = rng.standard_normal(shape) * np.sqrt(noise_power / num_parameters)[:, None]
            total += learnt(
                sampler, np.full(10, 0.1), range(10), np.ones(10), updates=signal + noise, noise_power=noise_power
            )
        found[subtract_noise] = total[:5].sum() / total[5:].sum()
    # E‖u_i − ū‖² = 9·0.9 + 0.8·v_i + Σv/100
    expected = np.sqrt((8.1 + 32.0 + 2.002) / (8.1 + 0.032 + 2.002))
    assert found[False] == pytest.approx(expected, rel=0.02)
    assert found[True] == pytest.approx(1.0, abs=0.03)


def test_the_authors_score_by_hand():
    """θ̃ of {0, 2} is (5/7, 2/7); scores 5/7·(0.75·4 + 0.25·2) = 2.5 and 2/7·(0.75·8 + 0.25·4) = 2."""
    sampler = make_sampler("delta", score="authors-code", distance_share=0.25)
    found = learnt(sampler, [0.25] * 4, [0, 2], update_norm=[4.0, 8.0], update_distance=[2.0, 4.0], learning_rate=0.1)
    assert found == pytest.approx([0.5 * 2.5 / 4.5, 0.25, 0.5 * 2 / 4.5, 0.25])


def test_the_authors_weights_by_hand():
    """L_i/(N·p_i) over the ΣL of the cohort, with the p it was drawn by."""
    memory = {"probability": np.array([0.3, 0.4, 0.1, 0.2])}
    view = make_view(4, SIZES, memory=memory)
    drawn = draw(make_sampler("delta", mode="paper", floor=0.0), view, np.random.default_rng(0))
    assert drawn.weights == pytest.approx(SIZES / (4 * memory["probability"]) / 200)
    two = draw(make_sampler("delta", mode="paper"), make_view(2, SIZES, memory=memory), np.random.default_rng(1))
    p = 0.95 * memory["probability"] + 0.05 / 4
    held = SIZES[two.clients]
    assert two.weights == pytest.approx(held / (4 * p[two.clients]) / held.sum())


def test_the_authors_weights_are_biased_and_sound_ones_are_not():
    memory = {"probability": np.array([0.55, 0.25, 0.15, 0.05])}
    view = make_view(2, SIZES, memory=memory)
    num_draws, worst = 600, {}
    for mode in ("paper", "sound"):
        rng, weight = np.random.default_rng(0), np.zeros((num_draws, 4))
        for row in weight:
            drawn = draw(make_sampler("delta", mode=mode), view, rng)
            row[drawn.clients] = drawn.weights
        error = np.maximum(weight.std(axis=0) / np.sqrt(num_draws), 1e-12)
        worst[mode] = np.abs((weight.mean(axis=0) - SIZES / 200) / error).max()
    assert worst["sound"] < 4.5
    assert worst["paper"] > 10.0
