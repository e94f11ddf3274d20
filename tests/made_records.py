"""Records of trials made up for tests: all that a test does not name has some value that is allowed."""

from __future__ import annotations

from typing import Any

from fedpcs.trial.config import RunConfig
from fedpcs.trial.records import Manifest, RoundRecord, TrialResult
from fedpcs.trial.same_code import code_digest

_SPREAD = {"minimum": 1.0, "median": 2.0, "maximum": 3.0}
_SPENT = {"rho": _SPREAD, "epsilon": _SPREAD, "num_clients": 10}


def a_round(number: int, **fields: Any) -> RoundRecord:
    """A line of a log."""
    attempt = {"attempt": 0, "cohort": [0], "heard": [0], "failures": {}, "refusals": {}}
    draw = {"cohort_size": 1, "num_heard": 1, "expected_cohort_size": 1.0, "effective_sample_size": 1.0}
    draw |= {"largest_weight": 1.0, "weight_sum": 1.0, "inclusion_gap": 0.0, "inclusion_score": 1.0}
    draw |= {"answer_score": None, "evenness": 1.0, "label": ""}
    budgets = dict.fromkeys(("mean_budget", "reward", "realised_mean_budget", "cohort_budget", "paid"), 1.0)
    norms = {"update_norm": _SPREAD, "noise_norm": _SPREAD, "step_norm": 1.0}
    made = {"round": number, "rule": "hajek", "draw": draw, "drift": None, "num_capped": None, "left": []}
    made |= {**attempt, **budgets, **norms, "paid_so_far": 1.0 + number, "accuracy": 0.5, "loss": 1.0, "spent": _SPENT}
    made["step_parts"] = {"signal": 1.0, "spread": 1.0, "noise": 1.0}
    return RoundRecord.model_validate(made | fields)


def a_result(**fields: Any) -> TrialResult:
    """What a trial came to."""
    game = {"exploitability": 1e-5, "standing": "converged", "behaviour": "rational", "selection": "budget-aware"}
    game |= {"settled_by": "iteration", "reward": [1.0], "mean_budget": [1.0]}
    made = {"sampler": "fedpcs", "seed": 0, "accuracy": 0.5, "loss": 1.0, "rounds": 1, "ended_by": "rounds"}
    made |= {"spent": _SPENT, "delta": 1e-5, "paid": 1.0, "game": game | fields.pop("game", {})}
    made |= {"num_test": 100, "num_parameters": 10, "num_left": 0, "disclosure": ""}
    return TrialResult.model_validate(made | fields)


def a_manifest(config: RunConfig | None = None, **fields: Any) -> Manifest:
    """What a trial was started with."""
    data = {"name": "digits", "checksum": "c" * 64, "num_train": 100, "num_test": 100, "evaluated_on": "test records"}
    libraries = {"fedpcs": "0", "torch": "2.6", "numpy": "2"}
    made = {"config": (config or RunConfig()).model_dump(mode="json"), "data": data, "code": code_digest()}
    made |= {"own_code": {}, "libraries": libraries, "python": "3.11", "machine": "x86_64", "started": "now"}
    return Manifest.model_validate(made | fields)
