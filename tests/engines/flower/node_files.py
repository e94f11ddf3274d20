"""Settings files of nodes, and announcements, as tests need them: honest but for what a test changes."""

import json
from dataclasses import replace

from fedpcs.engines.flower.announcement import Announcement
from fedpcs.engines.flower.client_books import ClientBooks
from fedpcs.engines.flower.conditions import Conditions
from fedpcs.engines.flower.preferences import Preferences
from fedpcs.privacy.budget import Rho

CONDITIONS = Conditions(0.01, (0.01, 12.0), 100, "record", 1.0, "secure", 1e-5)
PLENTY = Rho.of(1000.0)


def make_books(folder, aversion=0.5, budget=5.0, limit=PLENTY, **accepted):
    return ClientBooks(folder, Preferences(aversion, budget), replace(CONDITIONS, **accepted), limit)


def announcement(rounds=2, cohort=2, clients=3, reward=7.0, mean=6.0, run="run", **conditions):
    """Return what an honest server announces: one reward, one mean and one cohort size for all rounds."""
    told = replace(CONDITIONS, rounds=rounds, **conditions)
    paths = (reward,) * rounds, (mean,) * rounds, (cohort,) * rounds
    return Announcement(run, 0, *paths, clients, "budget-aware", told)


def write_settings(path, accepts=None, mode=0o600, **settings):
    """Write a node's settings file, and return it; a value of None leaves a key out."""
    honest = {"partition_id": 0, "num_partitions": 3, "privacy_aversion": 0.4, "initial_budget": 5.0, "state_dir": "."}
    accepted = {"budget_unit": 0.01, **(accepts or {})}
    text = lines({**honest, **settings}) + "[accepts]\n" + lines(accepted)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch()
    path.chmod(mode)
    path.write_text(text)
    return path


def lines(values):
    texts = {name: json.dumps(value).replace("NaN", "nan") for name, value in values.items() if value is not None}
    return "".join(f"{name} = {text}\n" for name, text in texts.items())
