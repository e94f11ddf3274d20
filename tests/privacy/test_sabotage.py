"""An audit that cannot fail shows nothing: six broken pipelines, each found; an honest one, left alone.

The sabotages are those of docs/guarantees/detection_table.py, which prints how often each detector finds each.
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from fedpcs.privacy.budget import Rho
from fedpcs.studies.audit.attack import AuditPlan, Silence, audit_scenario
from fedpcs.studies.audit.canaries import make_scenario

SCRIPT = Path(__file__).parents[2] / "docs" / "guarantees" / "detection_table.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("detection_table", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


table = load()

HONEST = "none (honest)"
# Which of (attack, clip bound, noise law) must find each sabotage every time, and which cannot.
MUST = {
    "σ × 0.5": (True, False, True),
    "clipping skipped": (True, True, True),
    "noise reused": (False, False, True),
    "noise before clipping": (True, False, True),
    "one layer without noise": (None, False, True),
    "client weight 3 before noise": (True, True, None),
}


@pytest.mark.parametrize("sabotage", MUST)
def test_every_sabotage_is_found_by_the_detectors_made_for_it(sabotage):
    found = table.detections(table.audit("client", sabotage, seed=0))
    assert any(found)
    for is_found, must in zip(found, MUST[sabotage], strict=True):
        assert must is None or is_found == must


@pytest.mark.parametrize("seed", range(3))
def test_an_honest_pipeline_is_left_alone(seed):
    assert not any(table.detections(table.audit("client", HONEST, seed)))


def test_noise_used_again_in_the_next_round_is_seen_by_its_correlation_alone():
    """A client that seeds its noise without the round: each release is noisy, and their difference is not."""
    scenario = make_scenario("client", Rho.of(1.0))
    drawn: list[np.ndarray] = []

    def same_in_both_rounds(raw, source):
        if isinstance(source, Silence):
            return scenario.pipeline(raw, source)
        drawn.append(drawn[-1] if len(drawn) % 2 else table.noise_alone(scenario.pipeline, raw, source))
        return table.without_noise(scenario.pipeline, raw) + drawn[-1]

    found = audit_scenario(
        replace(scenario, pipeline=same_in_both_rounds), AuditPlan(100, noise="fast", num_rounds=2)
    ).result
    assert [check.name for check in found.checks if not check.is_passed] == ["noise across releases"]
    assert not found.is_attack_contradicting
    assert found.is_contradicted


@pytest.mark.slow
@pytest.mark.parametrize("sabotage", [HONEST, *MUST])
def test_every_sabotage_is_found_in_record_mode_too(sabotage):
    found = np.array([table.detections(table.audit("record", sabotage, seed)) for seed in range(3)])
    assert found.any(axis=1).tolist() == [sabotage != HONEST] * 3
