"""Your own clients, or only a histogram of them: the same game, a million clients, no more work."""

import numpy as np

from fedpcs.game import histogram, individuals, make_game, solve

# Three hospitals that care about privacy and two companies that care less.
few = individuals(
    privacy_aversion=[0.9, 0.85, 0.8, 0.3, 0.2],
    initial_budget=[1.0, 1.5, 2.0, 8.0, 10.0],
    num_samples=[4_000, 2_500, 3_000, 20_000, 50_000],
)
found = solve(make_game(few, last_round=10, cohort_size=2), 6.0)
print("five clients:   mean budgets", found.profile.mean_budget.round(2)[[0, 1, 5, 10]])

# A million clients of whom only the shares of three kinds are known.
many = histogram(
    privacy_aversion=np.array([0.9, 0.5, 0.2]),
    initial_budget=np.array([1.0, 5.0, 10.0]),
    weight=[0.2, 0.5, 0.3],
    num_clients=1_000_000,
)
found = solve(make_game(many, last_round=10, cohort_size=1_000), 6.0)
print("a million:      mean budgets", found.profile.mean_budget.round(2)[[0, 1, 5, 10]])
print("exploitability:", f"{found.certificate.relative:.1e}")
