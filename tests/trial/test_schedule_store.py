"""Solved games are read back as they were, and a game that differs in anything is another game."""

import subprocess
import sys

import numpy as np
import pytest

from fedpcs.sampling import make_sampler
from fedpcs.trial import same_code, schedule
from fedpcs.trial.config import make_run_config
from fedpcs.trial.schedule import make_schedule, remembered_schedule, schedule_key, schedule_path

SMALL = {"rounds": 3, "data": {"num_clients": 6}, "game": {"reward": 20.0}}


def changed(**tables):
    return make_run_config({**SMALL, **{name: {**SMALL.get(name, {}), **table} for name, table in tables.items()}})


def test_a_schedule_is_read_back_as_it_was_solved(tmp_path, monkeypatch):
    config, sampler = make_run_config(SMALL), make_sampler("fedpcs")
    solved = remembered_schedule(tmp_path, config, sampler)
    monkeypatch.setattr(schedule, "make_schedule", lambda *_: pytest.fail("was solved again"))
    read = remembered_schedule(tmp_path, config, sampler)
    for name in ("reward", "budget", "pay", "mean_budget", "cohort_size"):
        first, second = getattr(solved, name), getattr(read, name)
        assert first.dtype == second.dtype
        assert np.array_equal(first, second)
    assert (solved.standing, solved.exploitability, solved.settled_by) == (
        read.standing,
        read.exploitability,
        read.settled_by,
    )


def test_a_damaged_file_is_solved_again(tmp_path):
    config, sampler = make_run_config(SMALL), make_sampler("random")
    remembered_schedule(tmp_path, config, sampler)
    path = schedule_path(tmp_path, config, sampler)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    found = remembered_schedule(tmp_path, config, sampler)
    assert np.array_equal(found.budget, make_schedule(config, sampler).budget)


def test_all_that_a_game_depends_on_is_in_its_key():
    base, sampler = make_run_config(SMALL), make_sampler("random")
    others = [
        changed(game={"reward": 10.0}),
        changed(game={"behaviour": "static"}),
        changed(game={"budget_unit": 0.5}),
        changed(game={"population_seed": 1}),
        changed(data={"num_clients": 7}),
        changed(sampling={"sampling_ratio": 0.5}),
        changed(privacy={"mode": "none"}),
        make_run_config({**SMALL, "rounds": 4}),
    ]
    keys = {schedule_key(one, sampler) for one in [base, *others]} | {schedule_key(base, make_sampler("fedpcs"))}
    assert len(keys) == len(others) + 2
    assert schedule_key(changed(training={"learning_rate": 0.7}), sampler) == schedule_key(base, sampler)
    assert schedule_key(base, make_sampler("delta")) == schedule_key(base, sampler)


def test_a_game_solved_by_other_code_or_libraries_is_another_game(monkeypatch):
    config, sampler = make_run_config(SMALL), make_sampler("random")
    here = schedule_key(config, sampler)
    solver_digest = same_code.solver_digest.__wrapped__
    assert solver_digest() == same_code.solver_digest()
    monkeypatch.setattr(same_code, "version", lambda name: "0")
    assert solver_digest() != same_code.solver_digest()
    monkeypatch.setattr(schedule, "solver_digest", lambda: "other")
    assert schedule_key(config, sampler) != here


def test_cells_know_their_solver_before_they_are_forked():
    """Files may change while a sweep runs; what was loaded is what solves."""
    script = "\n".join(
        [
            "import fedpcs.studies.cell_process",
            "from fedpcs.trial.same_code import solver_digest",
            "print(solver_digest.cache_info().currsize)",
        ]
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "1"
