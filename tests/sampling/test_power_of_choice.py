"""`power-of-choice` keeps the K largest losses among d candidates drawn by data, and asks nobody else."""

import numpy as np
import pytest

from fedpcs.errors import InvalidInput
from fedpcs.sampling import biased_draw, draw, make_feedback, make_sampler, make_view, remember

LOSS = np.array([0.3, 2.0, 0.1, 1.5, 0.9, 1.1])


def test_with_everyone_a_candidate_it_is_greedy():
    view = make_view(3, [9, 1, 9, 1, 5, 5], loss=LOSS)
    rng = np.random.default_rng(0)
    for _ in range(10):
        drawn = draw(make_sampler("power-of-choice", num_candidates=6), view, rng)
        assert drawn.clients.tolist() == [1, 3, 5]
        assert drawn.weights == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize(("num_candidates", "asked_for"), [(None, 4), (2, 2), (5, 5), (99, 6)])
def test_a_loss_is_asked_of_the_candidates_once_and_of_nobody_else(num_candidates, asked_for):
    asked = []

    def answer(clients):
        asked.append(clients.copy())
        return LOSS[clients]

    view = make_view(2, np.ones(6), loss=answer)
    drawn = draw(make_sampler("power-of-choice", num_candidates=num_candidates), view, np.random.default_rng(0))
    assert [len(set(clients.tolist())) for clients in asked] == [asked_for]
    best = asked[0][np.argsort(-LOSS[asked[0]])[:2]]
    assert drawn.clients.tolist() == sorted(best.tolist())


def test_weights_are_equal_or_by_data():
    view = make_view(2, [10, 30, 10, 50, 10, 10], loss=LOSS)
    equal, by_data = (
        draw(make_sampler("power-of-choice", num_candidates=6, weights=weights), view, np.random.default_rng(0))
        for weights in ("equal", "normalised")
    )
    assert equal.clients.tolist() == by_data.clients.tolist() == [1, 3]
    assert equal.weights == pytest.approx([0.5, 0.5])
    assert by_data.weights == pytest.approx([0.375, 0.625])


def test_last_known_losses_put_clients_never_heard_first():
    sampler = make_sampler("power-of-choice", losses="last-known", num_candidates=6)
    view = make_view(3, np.ones(6))
    drawn = biased_draw(np.array([0, 2, 3, 5]), np.ones(4))
    heard = make_feedback(drawn.clients, loss=[0.5, 9.0, -1.0, 4.0])
    memory = remember(sampler, view, drawn, heard)
    assert memory["loss"].tolist() == [0.5, np.inf, 9.0, -1.0, np.inf, 4.0]
    after = draw(sampler, make_view(3, np.ones(6), memory=memory), np.random.default_rng(0))
    assert after.clients.tolist() == [1, 2, 4]


def test_fewer_candidates_than_places_are_refused():
    with pytest.raises(InvalidInput, match="num_candidates must be at least the cohort size 2, got 1"):
        draw(make_sampler("power-of-choice", num_candidates=1), make_view(2, np.ones(6), loss=LOSS), None)
