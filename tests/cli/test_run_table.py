"""The table at the end: every number of the result is on it, and none is understated."""

import io
import json

import numpy as np
import pytest
from made_records import a_result
from rich.console import Console
from scipy import stats

from fedpcs.cli import run_table
from fedpcs.cli.run_table import new_folder, print_run
from fedpcs.trial.config import as_toml, load_run_config
from fedpcs.trial.records import StudyResult
from fedpcs.trial.run_store import RunStore


def trial(sampler, seed, accuracy=0.5, rho=(0.101, 0.2, 0.3), epsilon=(1.0, 2.0, 3.001), gain=0.004, paid=1234.5):
    return a_result(
        **{
            "sampler": sampler,
            "seed": seed,
            "accuracy": accuracy,
            "spent": {
                "rho": dict(zip(("minimum", "median", "maximum"), rho, strict=True)),
                "epsilon": dict(zip(("minimum", "median", "maximum"), epsilon, strict=True)),
                "num_clients": 1000,
            },
            "paid": paid,
            "rounds": 3,
            "num_test": 1000,
            "game": {
                "exploitability": gain,
                "standing": "converged",
                "behaviour": "rational",
                "reward": [20.0] * 3,
                "mean_budget": [0.1] * 3,
            },
            "loss": 1.0,
            "ended_by": "rounds",
            "delta": 1e-5,
            "num_parameters": 650,
            "num_left": 0,
            "disclosure": "",
        }
    )


def store_in(folder):
    """Return a run's folder with nothing but its configuration."""
    (folder / "config.toml").write_text(as_toml(load_run_config("default")), encoding="utf-8")
    return RunStore(folder)


@pytest.fixture
def store(tmp_path):
    made = store_in(tmp_path)
    made.finish(
        StudyResult(
            **{
                "name": "x",
                "is_exhausted": False,
                "trials": [
                    trial("fedpcs", 0, 0.8),
                    trial("fedpcs", 1, 0.9, rho=(0.05, 0.25, 0.4), epsilon=(0.5, 2.5, 4.0)),
                    trial("power-of-choice", 0, 0.5, gain=None),
                ],
            }
        )
    )
    return made


@pytest.mark.parametrize("columns", ["80", "200"])
def test_every_number_is_on_the_table_whatever_the_width(store, columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    print_run(store, as_json=False)
    said = capsys.readouterr().out
    spaced = said.replace("\N{NO-BREAK SPACE}", " ")
    for words in (
        "fedpcs",
        "power-of-choice",
        "85.0 ± 7.1 %",
        "50.0 %",
        "0.0500 / 0.225 / 0.400",
        "0.500 / 2.25 / 4.00",
        "0.101 / 0.200 / 0.300",
        "1.00 / 2.00 / 3.01",
        "not played",
    ):
        assert words in spaced
    assert str(store.folder) in said.replace("\n", "")
    assert "…" not in said


def test_json_is_the_result_where_it_is_and_what_is_sure(store, capsys):
    print_run(store, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told.pop("headline") == "One seed cannot tell fedpcs from power-of-choice."
    (found,) = told.pop("differences")
    assert found["accuracy"] == {"mean": pytest.approx(0.3), "low": None, "high": None, "verdict": "one seed"}
    assert told == {"folder": str(store.folder), **store.result.model_dump()}


def test_the_three_differences_come_first_and_the_sure_one_first_among_them(tmp_path, capsys):
    """Pay is a third less with every seed, as SciPy's paired interval of logarithms has it; accuracy swings."""
    store, seeds = store_in(tmp_path), range(5)
    paid = {"fedpcs": [670, 671, 669, 672, 668], "random": [1001, 999, 1002, 998, 1000]}
    accuracy = {"fedpcs": [0.8, 0.7, 0.9, 0.8, 0.7], "random": [0.7, 0.8, 0.8, 0.9, 0.7]}
    trials = [trial(name, seed, accuracy[name][seed], paid=paid[name][seed]) for name in paid for seed in seeds]
    store.finish(StudyResult(name="x", is_exhausted=False, trials=trials))
    interval = stats.ttest_rel(np.log(paid["fedpcs"]), np.log(paid["random"])).confidence_interval()
    low, high = (100 * (1 - np.exp(end)) for end in (interval.high, interval.low))
    print_run(store, as_json=False)
    said, _, _, pay, other, third, *_ = capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ").splitlines()
    assert said == (
        f"fedpcs pays 33.0 % less than random ({low:.1f} to {high:.1f} %); ε is equal, accuracy cannot be told apart."
    )
    assert f"fedpcs against random pay                    33.0 % less ({low:.1f} to {high:.1f} %)" in pay
    assert "accuracy" in other
    assert "ε of the median client equal" in third
    print_run(store, as_json=True)
    (found,) = json.loads(capsys.readouterr().out)["differences"]
    assert (found["paid"]["low"], found["paid"]["high"]) == pytest.approx((-high / 100, -low / 100))


def test_a_run_without_a_result_can_be_printed(tmp_path, capsys):
    print_run(RunStore(tmp_path), as_json=True)
    assert json.loads(capsys.readouterr().out)["trials"] == []


def test_a_new_folder_is_never_one_that_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for _ in range(3):
        folder = new_folder("demo")
        folder.mkdir(parents=True)
        names.append(folder.name)
    assert names == ["demo", "demo-2", "demo-3"]


def test_no_number_is_cut_in_a_terminal_of_eighty_columns():
    table = run_table._table([trial("power-of-choice", seed, rho=(0.0212, 0.175, 0.294)) for seed in (0, 1)])
    console = Console(file=io.StringIO(), width=80, force_terminal=True, no_color=True)
    console.print(table)
    said = console.file.getvalue()
    assert "…" not in said
    for words in (
        "power-of-choice",
        "50.0\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.0\N{NO-BREAK SPACE}%",
        "0.0212 /",
        "0.294",
    ):
        assert words in said


def test_the_worst_gain_of_all_seeds_is_shown():
    table = run_table._table([trial("random", 0, gain=0.001), trial("random", 1, gain=0.2)])
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    assert "20" in console.file.getvalue().splitlines()[-1]
