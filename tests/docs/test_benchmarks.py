"""The benchmarks run: their small paths here, so that a change of the library cannot leave them behind."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from fedpcs.game import make_game, solve, uniform
from fedpcs.sampling import SAMPLERS

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch):
    """Import a script by name, as `python benchmarks/NAME.py` would see it."""

    def by_name(name: str) -> ModuleType:
        monkeypatch.syspath_prepend(str(FOLDER))
        return importlib.import_module(name)

    return by_name


@pytest.fixture
def small_game():
    return make_game(uniform(20, seed=0), last_round=4)


def test_a_table_is_markdown(load) -> None:
    text = load("timing").table("Title", ["N", "s"], [["10", "0.1"]])
    assert text.splitlines() == ["", "**Title**", "", "| N | s |", "| --- | ---: |", "| 10 | 0.1 |"]


def test_measuring_a_solve_reports_the_certificate_of_that_solve(load, small_game) -> None:
    found = load("solver_scale").measure(small_game, 5.0, 1)
    assert found.exploitability == solve(small_game, 5.0).certificate.relative
    assert found.ratio > 1.0
    assert 0.01 < found.peak_gib < 64.0


@pytest.mark.slow
def test_every_part_of_the_scale_benchmark_makes_its_rows(load, small_game) -> None:
    scale = load("solver_scale")
    assert [len(row) for row in scale.warm_rows(small_game, (1.0, 5.0), repeats=1)] == [9, 9]
    assert [row[0] for row in scale.histogram_rows((100, 1_000), 5.0, repeats=1)] == ["100", "1,000"]
    assert len(scale.response_row(small_game, 5.0)) == 3
    assert len(scale.individual_row(scale.measure(small_game, 5.0, 1))) == 9


@pytest.mark.slow
def test_a_population_is_measured_in_a_process_of_its_own(load) -> None:
    assert load("solver_scale").measure_apart(30, 5.0).num_clients == 30


def test_growth_recovers_a_known_exponent(load) -> None:
    scale = load("solver_scale")
    sizes = (100, 10_000, 100_000, 1_000_000)
    found = [scale.Measured(n, 3.0 * n**0.8, 0.0, 1.0, 0.1, 1, 0.0) for n in sizes]
    assert scale.growth(found) == pytest.approx(0.8)
    assert scale.growth(found[:2]) is None


def test_the_twin_comes_as_close_to_the_best_utility_as_its_grid_is_fine(load, small_game) -> None:
    twin = load("response_twin")
    answers, best = twin.compare(small_game, 5.0, ((11, 6), (101, 51)), num_asked=6, repeats=1)
    exact, coarse, fine = (found.shortfall(best).mean() for found in answers)
    assert exact <= 1e-6
    assert exact <= fine < coarse < 0.05
    assert np.all(best >= answers[0].utility - 1e-9)
    assert len(twin.rows(answers, best)) == 3
    assert "times as long" in twin.headline(answers, best)


def test_the_accounts_of_both_sides_agree(load) -> None:
    rows = load("privacy_accounting").rows(50, repeats=1)
    assert len(rows) == 5
    assert float(rows[0][3]) == pytest.approx(float(rows[1][3]), rel=1e-3)


def test_every_source_of_noise_is_timed(load) -> None:
    rows = load("noise_sources").rows(1000, repeats=1)
    assert [row[0] for row in rows] == ["torch.randn", "fast", "secure", "exact", "raw ChaCha12 words"]


@pytest.mark.parametrize("way", ["opacus", "opacus ghost", "fedpcs"])
def test_every_way_of_clipping_computes_the_same_gradient(load, way: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert load("per_sample_clipping").measure(way, "tanh-cnn", 4, 1)["error"] < 1e-6


@pytest.mark.slow
def test_the_peer_benchmark_runs() -> None:
    pytest.importorskip("mfglib")
    command = [sys.executable, str(FOLDER / "mfglib_peer.py"), "--seconds", "0.1"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.count("ours: sweeps in order") == 4


def test_every_sampler_and_design_is_timed(load) -> None:
    script = load("cohort_draws")
    assert {script.sampler_of(way).name for way in script.WAYS} == set(SAMPLERS)
    for way in script.WAYS:
        found = script.measure_here(way, num_clients=200, repeats=1)
        assert found.seconds > 0.0
        assert found.peak_mib >= found.inputs_mib
