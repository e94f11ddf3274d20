"""Run canaries through a real pipeline and say whether it keeps its claim.

Every canary is a client of its own: a direction, a background, a stream of noise. The auditor knows both neighbours and
scores a run by how far its releases lie towards the one with the canary: Σ⟨y − (a + b)/2, a − b⟩ / (σ√Σ‖a − b‖²) over
all steps of all rounds, with a and b what either neighbour releases but for noise. With Gaussian noise no score tells
more (Neyman and Pearson), and it is N(±μ/2, 1) if the pipeline keeps a claim of μ = √(2ρ): zero lies midway.

Beside the attack: neighbours are sent through without noise, to measure how far apart they come out; and releases less
what went in are tested for being fresh noise of the σ claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedpcs import _format, _random, _validate
from fedpcs._validate import FloatArray
from fedpcs.privacy.audit import AuditResult, Claim, audit_scores, checked_confidence
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.events import Family
from fedpcs.privacy.noise import NAMES, noise_source
from fedpcs.privacy.noise_law import FALSE_ALARM, Check, check_noise_law
from fedpcs.studies.audit.canaries import canary_direction, make_scenario
from fedpcs.studies.audit.scenario import NUM_PARAMETERS, Scenario

DISTANCE_CHECK = "distance of neighbours"
_LEAST_CANARIES = 10
# Releases whose noise is looked at: with 1,000 parameters each, an error of 0.4 % in σ shows.
_MOST_RESIDUALS = 1024
_SILENT_CANARIES = 64
_ROUNDING = 1.0 + 1e-6


@dataclass(frozen=True)
class AuditPlan:
    """How an audit is run.

    Attributes:
        num_canaries: Runs with the canary, and as many without.
        noise: Name of the noise source.
        seed: Of canaries and backgrounds; of the noise too if it is "fast".
        delta: The δ at which ε is quoted.
        confidence: Of the lower bounds that are reported.
        num_rounds: Rounds each canary takes part in; ρ adds up.
    """

    num_canaries: int = 1000
    noise: str = "secure"
    seed: int = 0
    delta: float = 1e-5
    confidence: float = 0.95
    num_rounds: int = 1

    def __post_init__(self) -> None:
        _validate.integer("num_canaries", self.num_canaries, low=_LEAST_CANARIES, remedy="Take 1000.")
        _validate.integer("num_rounds", self.num_rounds, low=1)
        _validate.integer("seed", self.seed, low=0)
        _validate.choice("noise", self.noise, NAMES)
        checked_confidence(self.confidence)


@dataclass(frozen=True)
class Audit:
    """An audit's result, and what was audited.

    Attributes:
        scenario: Pipeline, claim for one round and neighbours.
        plan: How it was run; the result's claim is for all its rounds.
        is_guarantee: Whether noise from this source may be called a guarantee.
        result: What was found.
    """

    scenario: Scenario
    plan: AuditPlan
    is_guarantee: bool
    result: AuditResult


@dataclass(frozen=True)
class Silence:
    """A noise source that adds nothing: what a pipeline releases then is what it would hide."""

    name: ClassVar[str] = "silence"
    family: ClassVar[Family] = Family.GAUSSIAN
    is_replayable: ClassVar[bool] = True
    is_guarantee: ClassVar[bool] = False
    units_per_stddev: ClassVar[int | None] = None

    def draw(self, size: int) -> FloatArray:
        """Return zeros."""
        return np.zeros(size)


def run_audit(mode: str, rho: Rho | float, **plan: Any) -> Audit:
    """Audit the pipeline of a privacy mode.

    Args:
        mode: Of an audit, as `audit_named` knows it.
        rho: Budget of one round.
        plan: Fields of `AuditPlan`.

    Example:
        >>> found = run_audit("client", 1.0, num_canaries=100, noise="fast").result
        >>> found.is_contradicted, found.bounds.gaussian < found.claim.epsilon
        (False, True)
    """
    checked = AuditPlan(**plan)
    return audit_scenario(make_scenario(mode, Rho.of(rho)), checked)


def audit_scenario(scenario: Scenario, plan: AuditPlan) -> Audit:
    """Audit any pipeline on a scenario's neighbours."""
    source = noise_source(plan.noise, seed=plan.seed)
    claim = Claim(plan.num_rounds * scenario.budget, plan.delta, source.family)
    stddev = scenario.noise_stddev(source.units_per_stddev)
    trials = [_run_trial(scenario, plan, stddev, index) for index in range(2 * plan.num_canaries)]
    scores = np.array([score for score, _ in trials])
    residuals = np.concatenate([kept for _, kept in trials])[:_MOST_RESIDUALS]
    # The attack and the noise share the chance of a false alarm; measuring distances leaves none.
    chance = 0.5 * FALSE_ALARM
    checks = (_check_distance(scenario, plan, stddev), *check_noise_law(residuals, false_alarm=chance))
    result = audit_scores(
        scores[::2], scores[1::2], claim, confidence=plan.confidence, false_alarm=chance, checks=checks
    )
    return Audit(scenario, plan, source.is_guarantee, result)


def _run_trial(scenario: Scenario, plan: AuditPlan, stddev: float, index: int) -> tuple[float, FloatArray]:
    """Return a canary's score, and the noise its releases held if it is among those looked at. Even ones are in."""
    rng = _random.generator(plan.seed, "audit-canary", client=index)
    direction = canary_direction(rng, index // 2)
    product, squared_gap, residuals = 0.0, 0.0, []
    for t in range(plan.num_rounds):
        pair = scenario.make_neighbours(rng, direction)
        is_held_in = index % 2 == 0
        source = noise_source(plan.noise, seed=plan.seed, round_index=t, client=index)
        released = scenario.pipeline(pair.held_in if is_held_in else pair.held_out, source)
        gap = pair.expected_in - pair.expected_out
        product += float(np.vdot(released - 0.5 * (pair.expected_in + pair.expected_out), gap))
        squared_gap += float(np.vdot(gap, gap))
        residuals.append((released - (pair.expected_in if is_held_in else pair.expected_out)) / stddev)
    kept = np.concatenate(residuals) if index < _MOST_RESIDUALS else np.empty((0, NUM_PARAMETERS))
    return product / (stddev * math.sqrt(squared_gap)), kept


def _check_distance(scenario: Scenario, plan: AuditPlan, stddev: float) -> Check:
    """Measure how far apart neighbours come out without noise; the claim allows √(2ρ) standard deviations."""
    farthest = 0.0
    for index in range(min(plan.num_canaries, _SILENT_CANARIES)):
        rng = _random.generator(plan.seed, "audit-canary", client=index)
        pair = scenario.make_neighbours(rng, canary_direction(rng, index))
        gap = scenario.pipeline(pair.held_in, Silence()) - scenario.pipeline(pair.held_out, Silence())
        farthest = max(farthest, float(np.linalg.norm(gap)) / stddev)
    allowed = math.sqrt(2.0 * float(scenario.budget))
    seen, limit = map(_format.three_decimals, (farthest, allowed))
    return Check(
        DISTANCE_CHECK,
        farthest <= allowed * _ROUNDING,
        f"{seen} standard deviations of noise apart, allowed {limit}",
    )
