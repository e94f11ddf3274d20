"""Six sabotaged pipelines, and which detector finds which: the table of docs/guarantees.md.

Each sabotage breaks an honest pipeline in one way. An audit of it counts as a detection by

- the attack, if canaries alone contradict the claim;
- the clip bound, if neighbours come out further apart, without noise, than the claim allows;
- the noise law, if releases less what should have gone in are not fresh noise of the σ claimed.

Run: python docs/guarantees/detection_table.py [client|record] [TRIALS]; mode record takes four times as long.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.privacy.audit import AuditResult
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.noise import NoiseSource
from fedpcs.studies.audit.attack import DISTANCE_CHECK, AuditPlan, Silence, audit_scenario
from fedpcs.studies.audit.canaries import make_scenario
from fedpcs.studies.audit.scenario import LAYER_ENDS, NUM_PARAMETERS, Pipeline

DETECTORS = ("attack", "clip bound", "noise law")
RHO = 1.0
NUM_CANARIES = 200
NUM_TRIALS = 50
WEIGHT = 3.0


def without_noise(pipeline: Pipeline, raw: FloatArray) -> FloatArray:
    """Return what an honest pipeline would release of `raw`, but for noise."""
    return pipeline(raw, Silence())


def noise_alone(pipeline: Pipeline, raw: FloatArray, source: NoiseSource) -> FloatArray:
    """Return the noise of an honest release, and nothing else."""
    return pipeline(np.zeros_like(raw), source)


def halve_noise(pipeline: Pipeline) -> Pipeline:
    """Add noise of half the σ."""
    return lambda raw, source: without_noise(pipeline, raw) + 0.5 * noise_alone(pipeline, raw, source)


def skip_clip(pipeline: Pipeline) -> Pipeline:
    """Average what was computed as it is, however long."""
    return lambda raw, source: raw.mean(axis=1) + noise_alone(pipeline, raw, source)


def reuse_noise(pipeline: Pipeline) -> Pipeline:
    """Draw noise for the first release, and add it to every one."""
    drawn: list[FloatArray] = []

    def broken(raw: FloatArray, source: NoiseSource) -> FloatArray:
        if not isinstance(source, Silence) and not drawn:
            drawn.append(noise_alone(pipeline, raw, source))
        return without_noise(pipeline, raw) + (0.0 if isinstance(source, Silence) else drawn[0])

    return broken


def clip_after_noise(pipeline: Pipeline) -> Pipeline:
    """Add noise to what is too long, and clip the sum."""
    return lambda raw, source: without_noise(pipeline, raw + noise_alone(pipeline, raw, source)[:, np.newaxis])


def forget_layer(pipeline: Pipeline) -> Pipeline:
    """Leave one layer without noise: the second, with 24 of 1,000 parameters."""
    is_noisy = np.ones(NUM_PARAMETERS)
    is_noisy[LAYER_ENDS[0] : LAYER_ENDS[1]] = 0.0
    return lambda raw, source: without_noise(pipeline, raw) + is_noisy * noise_alone(pipeline, raw, source)


def weigh_before_noise(pipeline: Pipeline) -> Pipeline:
    """Multiply by the client's weight after clipping, and add noise as if there were none."""
    return lambda raw, source: WEIGHT * without_noise(pipeline, raw) + noise_alone(pipeline, raw, source)


SABOTAGES: dict[str, Callable[[Pipeline], Pipeline]] = {
    "none (honest)": lambda pipeline: pipeline,
    "σ × 0.5": halve_noise,
    "clipping skipped": skip_clip,
    "noise reused": reuse_noise,
    "noise before clipping": clip_after_noise,
    "one layer without noise": forget_layer,
    "client weight 3 before noise": weigh_before_noise,
}


def detections(result: AuditResult) -> tuple[bool, ...]:
    """Return which of DETECTORS found something."""
    failed = {check.name for check in result.checks if not check.is_passed}
    return result.is_attack_contradicting, DISTANCE_CHECK in failed, bool(failed - {DISTANCE_CHECK})


def detection_rates(mode: str, sabotage: str, num_trials: int) -> tuple[FloatArray, float]:
    """Return how often each detector, and any of them, found a sabotage."""
    found = np.array([detections(audit(mode, sabotage, seed)) for seed in range(num_trials)])
    return found.mean(axis=0), float(found.any(axis=1).mean())


def audit(mode: str, sabotage: str, seed: int) -> AuditResult:
    """Audit a freshly sabotaged pipeline."""
    scenario = make_scenario(mode, Rho.of(RHO))
    broken = replace(scenario, pipeline=SABOTAGES[sabotage](scenario.pipeline))
    return audit_scenario(broken, AuditPlan(NUM_CANARIES, seed=seed)).result


def rows(mode: str, num_trials: int) -> Iterator[str]:
    """Yield the table, line by line."""
    yield f"| sabotage | {' | '.join(DETECTORS)} | any of them |"
    yield "| --- | " + " | ".join(["---:"] * (len(DETECTORS) + 1)) + " |"
    for sabotage in SABOTAGES:
        each, either = detection_rates(mode, sabotage, num_trials)
        yield f"| {sabotage} | {' | '.join(f'{100.0 * rate:.0f} %' for rate in (*each, either))} |"


def main() -> None:
    """Print the table."""
    arguments = dict(enumerate(sys.argv))
    for line in rows(arguments.get(1, "client"), int(arguments.get(2, NUM_TRIALS))):
        print(line, flush=True)


if __name__ == "__main__":
    main()
