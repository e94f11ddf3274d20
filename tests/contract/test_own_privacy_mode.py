"""A privacy mode of one's own is one object and one call: config, clients, ledger, promise and audit then know it."""

import numpy as np
import pytest

from fedpcs.errors import InvalidInput
from fedpcs.learning.client import ClientPlan
from fedpcs.learning.noise_plan import honest_range, noise_power
from fedpcs.privacy import PrivacyLedger, Rho
from fedpcs.privacy.events import Level, Relation
from fedpcs.privacy.modes import MODES, mode_named, register
from fedpcs.privacy.modes.mode import Canary, Neighbours
from fedpcs.privacy.modes.update_mode import UpdateMode
from fedpcs.studies.audit.attack import run_audit
from fedpcs.studies.promise import promise
from fedpcs.trial.config import RunConfig
from fedpcs.trial.run import start_run


def toy(name, divisor):
    """A mode that perturbs for a sensitivity of 2W/divisor: 1/2 protects pairs of clients, 2 protects nobody."""
    return UpdateMode(
        name,
        Level(name, "client", Relation.ANY_TWO),
        "The mechanism protects each pair of clients.",
        (Canary(name, Neighbours.OPPOSITE_UPDATES),),
        lambda num_samples: np.full(num_samples.shape, divisor),
    )


@pytest.fixture
def pair():
    modes = dict(MODES)
    register(toy("pair", 0.5))
    yield mode_named("pair")
    MODES.clear()
    MODES.update(modes)


def config_of(mode):
    return RunConfig.model_validate(
        {
            "name": "toy",
            "rounds": 3,
            "data": {"num_clients": 12},
            "privacy": {"mode": mode, "noise": "secure"},
            "game": {"behaviour": "static", "reward": 20.0},
            "sampling": {"samplers": ["fedpcs"], "sampling_ratio": 0.5},
            "engine": {"kind": "in-process"},
        }
    )


def test_a_registered_mode_trains_is_charged_and_promised(pair, tmp_path):
    store = start_run(config_of("pair"), tmp_path / "run")
    trial = store.trial("fedpcs", 0)
    rounds = trial.rounds()
    assert [len(line.cohort) for line in rounds] == [6, 6, 6]
    assert not any(line.refused for line in rounds)
    with PrivacyLedger.open(trial.ledger) as ledger:
        charges = list(ledger.charges())
        assert len(charges) == 18
        assert {charge.event.level for charge in charges} == {pair.level}
        assert ledger.spent(charges[0].key.client).level == pair.level
    said = promise(store.config().privacy)
    assert said.startswith("The mechanism protects each pair of clients. The guarantee holds")


def test_its_noise_is_planned_for_and_held_against_reports(pair):
    plan, budget = ClientPlan(mode="pair", clip_norm=1.0), np.array([0.5])
    assert noise_power(plan, budget, np.array([10]), 1000).tolist() == [16_000.0]  # d·(4W)²/(2ρ)
    honest = honest_range(plan, Rho.of(0.5), 10, 1000)
    assert honest.least < np.sqrt(16_000.0) < honest.most


def test_its_audit_finds_a_claim_that_is_kept_and_one_that_is_not(pair):
    kept = run_audit("pair", 1.0, num_canaries=200, noise="fast").result
    assert not kept.is_contradicted
    register(toy("broken", 2.0))
    assert run_audit("broken", 1.0, num_canaries=200, noise="fast").result.is_contradicted


def test_a_name_is_taken_once_and_an_unknown_one_is_refused_with_those_there_are(pair):
    with pytest.raises(InvalidInput, match="'pair' is there already"):
        register(toy("pair", 1.0))
    with pytest.raises(ValueError, match="'none', 'paper', 'client', 'record' or 'pair'"):
        config_of("pear")
