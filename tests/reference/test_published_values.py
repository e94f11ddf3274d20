"""The default game against values of an independent implementation."""

from __future__ import annotations

import mean_budget_table
import numpy as np
import pytest
import response_table

from fedpcs.game import make_game, solve


@pytest.mark.parametrize("reward", [1.0, 10.0, 20.0])
def test_mean_budgets_match_the_published_ones(reward: float) -> None:
    found = solve(make_game(), reward)
    mean = found.profile.mean_budget[list(mean_budget_table.ROUNDS)]
    np.testing.assert_allclose(mean, mean_budget_table.REFERENCE[reward], atol=0.02)
    assert found.certificate.relative <= 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("reward", response_table.REWARDS)
def test_every_response_mode_is_as_exploitable_as_published(reward: float) -> None:
    measured = np.array(response_table.exploitability(make_game(), reward))
    reference = np.array(response_table.REFERENCE[reward], dtype=float)
    is_published = np.isfinite(reference)
    # Iterations that do not settle end somewhere in a band: a few points is what can be asked of them.
    np.testing.assert_allclose(measured[is_published], reference[is_published], atol=5.0)
    assert measured[-1] <= min(0.01, *measured[:3])
