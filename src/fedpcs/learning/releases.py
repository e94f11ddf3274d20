"""What a release costs whoever makes it: the same event in the server's ledger and in the client's own."""

from __future__ import annotations

from fedpcs.learning.client import ClientPlan
from fedpcs.learning.protocol import Task, budget_of
from fedpcs.privacy.events import Event
from fedpcs.privacy.noise import NoiseSource, noise_source


def is_replayable(plan: ClientPlan) -> bool:
    """Say whether a release made again is the same, bit for bit: its noise comes from a seed."""
    return plan.noise == "fast"


def source_of(plan: ClientPlan) -> NoiseSource:
    """Return a source of the kind a plan's noise comes from, to describe releases with."""
    return noise_source(plan.noise, seed=0 if is_replayable(plan) else None)


def release_event(plan: ClientPlan, task: Task, num_samples: int, source: NoiseSource) -> Event:
    """Return what answering a task costs.

    Args:
        plan: How clients protect themselves.
        task: What was asked.
        num_samples: |D_i|.
        source: Of the noise.
    """
    return plan.protection.mechanism(plan, budget_of(task), num_samples).event(source)
