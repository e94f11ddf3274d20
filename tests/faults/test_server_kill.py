"""F15: a run killed with −9 at any instant and resumed is the run that was never killed, bit for bit."""

import random
import signal

import pytest
from faulty_federation import ENGINES, tiny
from killed_runs import kill_and_finish, left_behind, outcome

from fedpcs.trial.config import as_toml


@pytest.fixture(scope="module", params=ENGINES)
def whole(request, commands):
    """(engine, configuration file, what the run comes to, seconds it takes) of a run that is left alone."""
    engine = request.param
    config = commands.folder / f"{engine}.toml"
    # Two seeds: some kills fall between trials. A limit that some clients reach. Momentum and averaging to restore.
    changes = {
        "seeds": [0, 1],
        "training": {"learning_rate": 0.5, "batch_size": 0, "server_momentum": 0.5, "averaging": 0.5},
        "privacy": {"mode": "client", "clip_norm": 0.5, "limit_epsilon": 2.5},
        "engine": {"kind": engine, "num_workers": 2},
    }
    config.write_text(as_toml(tiny(**changes)))
    for name in ("warming-up", "whole"):
        answer = commands.run("run", config, "--out", commands.folder / f"{engine}-{name}")
        assert answer["status"] == 0, answer
    return engine, config, outcome(commands.folder / f"{engine}-whole"), answer["seconds"]


def moments(seconds, number, seed):
    """Instants spread evenly at random over a run: one in each of `number` equal parts of it."""
    rng = random.Random(seed)
    return [seconds * (part + rng.random()) / number for part in range(number)]


@pytest.mark.slow
def test_a_run_killed_at_random_instants_resumes_to_the_same_bits(commands, whole, tmp_path):
    _, config, expected, seconds = whole
    for number, moment in enumerate(moments(seconds, 3, seed=15)):
        kill_and_finish(commands, tmp_path / str(number), config, expected, signals=[(moment, signal.SIGKILL)])
        assert left_behind(tmp_path / str(number)) == []


@pytest.mark.slow
@pytest.mark.parametrize("whole", ["in-process"], indirect=True)  # writes are the server's own, whatever the engine
def test_a_run_killed_before_a_write_resumes_to_the_same_bits(commands, whole, tmp_path):
    """Right before it would have become lasting: configuration, manifest, a log line, a checkpoint, a result."""
    _, config, expected, _ = whole
    for number in (1, 3, 9, 14):
        assert kill_and_finish(commands, tmp_path / str(number), config, expected, die_at_write=number)[0]


@pytest.mark.slow
def test_a_run_killed_again_and_again_resumes_to_the_same_bits(commands, whole, tmp_path):
    _, config, expected, seconds = whole
    folder = tmp_path / "run"
    killed = commands.run("run", config, "--out", folder, signals=[(0.5 * seconds, signal.SIGKILL)])
    for fraction in (0.3, 0.5):
        if killed["status"] == -signal.SIGKILL and (folder / "manifest.json").exists():
            killed = commands.run("resume", folder, signals=[(fraction * seconds, signal.SIGKILL)])
    if (folder / "manifest.json").exists():
        assert commands.run("resume", folder)["status"] == 0
        assert outcome(folder) == expected


@pytest.mark.slow
def test_a_run_killed_at_a_hundred_random_instants_resumes_to_the_same_bits(commands, whole, tmp_path):
    """F15 in full: 100 instants that strike a running server, for each engine, and the instant before every write."""
    engine, config, expected, seconds = whole
    struck, number, rng = 0, 0, random.Random(150)
    while struck < 100:
        at = [(rng.uniform(0.0, seconds), signal.SIGKILL)]
        has_struck, took = kill_and_finish(commands, tmp_path / f"{number}", config, expected, signals=at)
        struck, number = struck + has_struck, number + 1
        if not has_struck:  # the machine is less busy than it was: instants must fall within a run
            seconds = took
        assert number < 1000, "the instants no longer fall within the run"
    writes = 0
    while kill_and_finish(commands, tmp_path / f"write {writes}", config, expected, die_at_write=writes)[0]:
        writes += 1
    print(f"\n{engine}: killed at {struck} random instants and before each of {writes} writes; all resumed to the bit")
    assert writes > 20
