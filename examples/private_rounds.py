"""Ten rounds of private averaging: draw by budget, perturb, correct for drop-outs, weigh, report.

Forty clients each hold a vector; the server wants their mean, weighed by data. Budgets differ a hundredfold, and one in
ten does not answer. The same cohorts are weighed by four rules. (Budgets of 20 to 2,000 protect nobody: with 40 clients
and 200 parameters that is what it takes for an average to be visible at all under client-level noise.)
"""

import numpy as np

from fedpcs.privacy import Rho, UpdateMechanism, clip_update, noise_source
from fedpcs.sampling import (
    arrived,
    count,
    disclosure,
    draw,
    estimate_drift,
    make_sampler,
    make_view,
    report_round,
    start_tally,
    weigh,
)

NUM_CLIENTS, NUM_PARAMETERS, COHORT_SIZE, NUM_ROUNDS = 40, 200, 12, 10
RULES = ("horvitz-thompson", "hajek", "normalised", "precision")

rng = np.random.default_rng(0)
num_samples = rng.integers(100, 1_000, NUM_CLIENTS)
budget = np.exp(rng.uniform(np.log(20.0), np.log(2_000.0), NUM_CLIENTS)).round(3)
truth = rng.normal(0.0, 0.05, NUM_PARAMETERS) + rng.normal(0.0, 0.03, (NUM_CLIENTS, NUM_PARAMETERS))
mechanisms = [UpdateMechanism(Rho.of(float(rho))) for rho in budget]

sampler = make_sampler("fedpcs")
tally = start_tally(NUM_CLIENTS)
errors: dict[str, list[float]] = {rule: [] for rule in RULES}
for t in range(NUM_ROUNDS):
    view = make_view(COHORT_SIZE, num_samples, round_index=t, budget=budget)
    drawn = draw(sampler, view, np.random.default_rng([0, t]))
    came = rng.random(drawn.clients.size) < 0.9
    heard = arrived(drawn, came, survival_probability=0.9)
    releases = [
        mechanisms[i].release(
            clip_update([truth[i]], l2_bound=1.0), noise_source("fast", seed=1, round_index=t, client=i)
        )
        for i in heard.clients.tolist()
    ]
    updates = np.stack([release.value for release in releases])
    noise_power = np.array([NUM_PARAMETERS * release.noise_stddev**2 for release in releases])
    drift = estimate_drift(updates, noise_power)
    for rule in RULES:
        weights = weigh(rule, heard, view, noise_power=noise_power, drift=drift)
        errors[rule].append(float(np.sum((weights @ updates - view.data_weight @ truth) ** 2)))
    tally = count(tally, drawn, heard.clients)

print("last round:", report_round(tally, drawn, weights))
print("label:", disclosure(sampler).label or "nothing private is read to select clients")
for rule, squared in errors.items():
    print(f"{rule:17s} mean-squared error {np.mean(squared):.3f}")
