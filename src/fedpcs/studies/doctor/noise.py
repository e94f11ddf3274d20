"""The noise that `fedpcs doctor` expects: of the median client, and of a whole cohort."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedpcs import _random
from fedpcs.learning.noise_plan import noise_power
from fedpcs.sampling import draw, make_view, start, weigh
from fedpcs.trial.assemble import client_plan, counts_of, sampler_of

if TYPE_CHECKING:
    from fedpcs.game.schedule import Schedule
    from fedpcs.learning.client_data import PartitionedData
    from fedpcs.studies.doctor.norms import Norms
    from fedpcs.trial.config import RunConfig

_DRAWS = 100


def median_noise(config: RunConfig, schedule: Schedule, data: PartitionedData, norms: Norms) -> tuple[float, float]:
    """Return the norm of the median client's noise, in the first round and in the last."""
    plan = client_plan(config, config.seeds[0])
    first, last = (
        float(np.median(np.sqrt(noise_power(plan, budget, data.num_samples, norms.num_parameters))))
        for budget in (schedule.budget[0], schedule.budget[-1])
    )
    return first, last


def aggregated_noise(
    sampler: str, rule: str, config: RunConfig, schedule: Schedule, data: PartitionedData, norms: Norms
) -> float:
    """Return the norm of the noise in the weighted sum of a cohort's updates, root mean square over draws and rounds.

    Draws are those of a sampler that has not heard anybody yet, from clients whose updates are alike. Budgets settle
    early: four rounds are looked at, those between are interpolated.
    """
    last, weighing = schedule.cohort_size.size - 1, config.sampling
    rounds = sorted({0, min(1, last), last // 2, last})
    num_draws = max(3, min(_DRAWS, 1_000_000 // data.num_samples.size))
    made, plan = sampler_of(config, sampler), client_plan(config, config.seeds[0])
    power = []
    for now in rounds:
        noise = noise_power(plan, schedule.budget[now], data.num_samples, norms.num_parameters)
        view = make_view(
            int(schedule.cohort_size[now]),
            data.num_samples,
            round_index=now,
            budget=schedule.budget[now],
            noise_power=noise,
            update_norm=np.ones(noise.size),
            loss=np.ones(noise.size),
            label_counts=counts_of(data) if "label_counts" in made.reads else None,
            memory=start(made, noise.size),
            local_steps=plan.local_steps(data.num_samples),
        )
        found = []
        for attempt in range(num_draws):
            cohort = draw(made, view, _random.generator(config.seeds[0], "doctor", now, attempt))
            by_design = weighing.by_design and rule == "precision"
            weights = weigh(rule, cohort, view, drift=norms.drift, by_design=by_design, cap=weighing.weight_cap)
            found.append(float(weights**2 @ noise[cohort.clients]))
        power.append(float(np.mean(found)))
    return float(np.sqrt(np.interp(np.arange(last + 1), rounds, power).mean()))
