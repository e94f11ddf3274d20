"""What a run leaves behind when it is done: each trial's result, and the run's."""

from __future__ import annotations

from fedpcs.game.schedule import Schedule
from fedpcs.learning.server_values import ServerPlan
from fedpcs.sampling import Sampler, disclosure
from fedpcs.trial.assemble import Trial
from fedpcs.trial.config import RunConfig
from fedpcs.trial.loop import Finished
from fedpcs.trial.records import GameSummary, StudyResult, TrialResult
from fedpcs.trial.round_log import finite_or_none
from fedpcs.trial.run_store import RunStore
from fedpcs.trial.schedule import selection_of


def trial_result(
    config: RunConfig,
    trial: Trial,
    sampler: Sampler,
    plan: ServerPlan,
    schedule: Schedule,
    finished: Finished,
    num_tests: int,
    label_counts: list[list[int]] | None = None,
) -> TrialResult:
    """Return what a trial came to."""
    is_listed = plan.num_clients <= 10_000
    tally = finished.state.tally
    return TrialResult(
        sampler=trial.sampler,
        seed=trial.seed,
        accuracy=finished.score.accuracy,
        loss=finite_or_none(finished.score.loss),
        rounds=finished.state.next_round,
        ended_by=finished.ended_by,
        spent=finished.spent,
        delta=float(config.privacy.delta),
        paid=finished.state.paid,
        game=GameSummary(
            standing=schedule.standing,
            behaviour=config.game.behaviour,
            selection=selection_of(config, sampler),
            exploitability=schedule.exploitability,
            settled_by=schedule.settled_by,
            reward=schedule.reward.tolist(),
            mean_budget=schedule.mean_budget.tolist(),
        ),
        num_test=num_tests,
        num_parameters=plan.layout.num_parameters,
        num_left=int(finished.state.has_left.sum()),
        times_designed=tally.designed.tolist() if is_listed else None,
        times_drawn=tally.drawn.tolist() if is_listed else None,
        label_counts=label_counts,
        disclosure=disclosure(sampler).label,
    )


def run_result(store: RunStore, config: RunConfig) -> StudyResult:
    """Return what all trials came to."""
    trials = [store.trial(sampler, seed).result for sampler in config.sampling.samplers for seed in config.seeds]
    found = [trial for trial in trials if trial is not None]
    return StudyResult(name=config.name, trials=found, is_exhausted=all(one.ended_by == "budget" for one in found))
