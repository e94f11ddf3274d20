"""The commands as a user meets them: real processes, exit codes, JSON on stdout, talk on stderr."""

import json
import subprocess
import sys

import numpy as np
import pytest

from fedpcs.cli import main


def fedpcs(*arguments, cwd=None):
    command = [sys.executable, "-c", "from fedpcs.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """A small game, solved once and written to disk."""
    folder = tmp_path_factory.mktemp("solved")
    (folder / "game.toml").write_text("num_clients = 30\nlast_round = 6\nreward = 5\n")
    done = fedpcs("solve", folder / "game.toml", "--out", folder / "found.npz", "--json")
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_solve_prints_the_promised_object(solved):
    _, found = solved
    assert found["status"] == "converged"
    assert {"iterations", "residual", "reward", "mean_budget", "seconds"} <= set(found)
    assert set(found["exploitability"]) == {"mean", "max", "relative"}
    assert set(found["server_cost"]) == {"total", "per_round"}
    assert {"equilibrium", "optimum_bounded", "optimum_unbounded", "worst_case"} <= set(found["welfare"])
    assert found["price_of_anarchy"]["equilibrium"] >= 1.0
    assert len(found["reward"]) == len(found["mean_budget"]) == 7
    assert found["server_cost"]["total"] == pytest.approx(sum(found["server_cost"]["per_round"]))


def test_out_holds_the_promised_arrays(solved):
    folder, found = solved
    with np.load(folder / "found.npz") as stored:
        assert stored["budget"].shape == stored["retention"].shape == (7, 30)
        assert stored["mean_budget"] == pytest.approx(found["mean_budget"])
        assert stored["budget"].mean(axis=1) == pytest.approx(found["mean_budget"])
        assert stored["reward"].tolist() == [5.0] * 7
        assert stored["privacy_aversion"].shape == stored["initial_budget"].shape == (30,)


def test_nothing_is_left_behind_but_the_file(solved):
    folder, _ = solved
    assert sorted(path.name for path in folder.iterdir()) == ["found.npz", "game.toml"]


def test_verify_agrees(solved):
    folder, found = solved
    done = fedpcs("verify", folder / "found.npz", "--game", folder / "game.toml", "--json")
    assert done.returncode == 0, done.stderr
    checked = json.loads(done.stdout)
    assert checked["status"] == "equilibrium"
    assert checked["exploitability"]["relative"] == pytest.approx(found["exploitability"]["relative"])
    assert checked["server_cost"]["total"] == pytest.approx(found["server_cost"]["total"])


def tampered(folder, name, change):
    with np.load(folder / "found.npz") as stored:
        arrays = dict(stored)
    arrays[name] = change(arrays[name])
    np.savez(folder / "tampered.npz", **arrays)
    try:
        return fedpcs("verify", folder / "tampered.npz", "--game", folder / "game.toml")
    finally:
        (folder / "tampered.npz").unlink()


@pytest.mark.parametrize(
    ("name", "change", "code", "words"),
    [
        ("retention", lambda a: np.zeros_like(a), 3, "NOT an equilibrium"),
        ("budget", lambda a: a[:, ::-1].copy(), 3, "NOT an equilibrium"),
        ("mean_budget", lambda a: a + 0.1, 3, "NOT an equilibrium"),
        ("budget", lambda a: a * np.nan, 2, "NaN"),
        ("budget", lambda a: a[:, 1:], 2, "shape"),
        ("retention", lambda a: a + 2, 2, "[0, 1]"),
        ("reward", lambda a: a + 1, 2, "reward in the file is not the one this game fixes"),
        ("privacy_aversion", lambda a: a[::-1].copy(), 2, "privacy_aversion in the file is not this game's"),
    ],
)
def test_verify_is_not_fooled(solved, name, change, code, words):
    done = tampered(solved[0], name, change)
    assert done.returncode == code
    assert words in done.stdout + done.stderr


def test_verify_refuses_what_is_no_equilibrium_file(solved, tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    np.save(tmp_path / "array.npy", np.ones(3))
    np.savez(tmp_path / "partial.npz", budget=np.ones((2, 2)))
    for name, words in (
        ("text.npz", "not an equilibrium file"),
        ("array.npy", "not an equilibrium file"),
        ("partial.npz", "lacks retention"),
        ("absent.npz", "no such file"),
    ):
        done = fedpcs("verify", tmp_path / name, "--game", solved[0] / "game.toml")
        assert done.returncode == 2
        assert words in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_verify_asks_whether_the_server_could_do_better(tmp_path):
    """A constant reward of 50 is an equilibrium among clients, but no commitment."""
    common = "num_clients = 20\nlast_round = 4\n"
    (tmp_path / "fixed.toml").write_text(common + "reward = 50\n")
    (tmp_path / "committed.toml").write_text(common)
    assert fedpcs("solve", tmp_path / "fixed.toml", "--out", tmp_path / "found.npz").returncode == 0
    assert fedpcs("verify", tmp_path / "found.npz", "--game", tmp_path / "fixed.toml").returncode == 0
    done = fedpcs("verify", tmp_path / "found.npz", "--game", tmp_path / "committed.toml", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["server"]["improvement"] > 0.1


def test_verify_holds_a_file_to_the_caps(tmp_path):
    common = "num_clients = 30\nlast_round = 4\nreward = 5\nbudget_cap = "
    for cap in (60, 30):
        (tmp_path / f"{cap}.toml").write_text(f"{common}{cap}\n")
    assert fedpcs("solve", tmp_path / "60.toml", "--out", tmp_path / "found.npz").returncode == 0
    done = fedpcs("verify", tmp_path / "found.npz", "--game", tmp_path / "30.toml")
    assert done.returncode == 2
    assert "above budget_cap" in done.stderr


def test_verify_refuses_complex_numbers(solved, tmp_path):
    with np.load(solved[0] / "found.npz") as stored:
        arrays = dict(stored)
    np.savez(tmp_path / "complex.npz", **{**arrays, "budget": arrays["budget"] + 1j})
    done = fedpcs("verify", tmp_path / "complex.npz", "--game", solved[0] / "game.toml")
    assert done.returncode == 2
    assert "complex128" in done.stderr


def test_a_game_too_large_for_memory_is_one_line_and_exit_2(tmp_path):
    (tmp_path / "game.toml").write_text("num_clients = 1000000000000000\n")
    done = fedpcs("solve", tmp_path / "game.toml")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


def test_what_does_not_converge_says_so_and_exits_3(tmp_path):
    (tmp_path / "game.toml").write_text("reward = 10\nresponse = 'paper'\n")
    done = fedpcs("solve", tmp_path / "game.toml", "--json", "--out", tmp_path / "kept.npz")
    assert done.returncode == 3
    assert json.loads(done.stdout)["status"] == "not-converged"
    assert (tmp_path / "kept.npz").exists(), "the result is kept even so"
    assert fedpcs("verify", tmp_path / "kept.npz", "--game", tmp_path / "game.toml").returncode == 3


def test_a_bad_game_is_one_line_and_exit_2(tmp_path):
    (tmp_path / "game.toml").write_text("cohort_size = 200\n")
    done = fedpcs("solve", tmp_path / "game.toml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "fedpcs: cohort_size must be a whole number in [1, 100], got 200.\n"


@pytest.mark.parametrize(
    "arguments",
    [("solve", "absent.toml"), ("solve", "--out", "absent/folder/x.npz"), ("solve", "--wat"), ("fly",), ("verify",)],
)
def test_bad_arguments_exit_2(arguments, tmp_path):
    done = fedpcs(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_figure_folder_that_cannot_be_made_is_refused_before_solving(tmp_path):
    (tmp_path / "file").write_text("")
    done = fedpcs("solve", "--figures", tmp_path / "file" / "figures")
    assert done.returncode == 2
    assert "--figures" in done.stderr


def test_the_table_is_for_people(solved):
    folder, _ = solved
    done = fedpcs("solve", folder / "game.toml")
    assert done.returncode == 0
    for words in ("converged", "exploitability", "price of anarchy"):
        assert words in done.stdout


def test_caps_are_reported(tmp_path):
    (tmp_path / "game.toml").write_text("num_clients = 30\nlast_round = 4\nreward = 5\nbudget_cap = 60\n")
    done = fedpcs("solve", tmp_path / "game.toml", "--json", "--out", tmp_path / "found.npz")
    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert max(found["budget_cap"]["usage"]) <= 1.0
    assert max(found["cohort_size"]) < 30
    assert fedpcs("verify", tmp_path / "found.npz", "--game", tmp_path / "game.toml").returncode == 0


@pytest.mark.parametrize("arguments", [("--help",), ("solve", "--help"), ("verify", "--help"), ("samplers", "--help")])
def test_help_has_an_example(arguments):
    done = fedpcs(*arguments)
    assert done.returncode == 0
    assert arguments == ("--help",) or "Example:" in done.stdout


def test_version_is_the_package_s():
    assert fedpcs("--version").stdout.startswith("fedpcs 0.")


def test_privacy_prints_the_promised_object():
    done = fedpcs("privacy", 0.5, "--delta", 1e-5, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["rho"], found["delta"]) == (0.5, 1e-5)
    rounded = {method: round(value, 5) for method, value in found["epsilon"].items()}
    assert rounded == {"exact": 4.37718, "tight": 4.72839, "standard": 5.29853}


def test_privacy_says_which_conversion_to_quote():
    done = fedpcs("privacy", 0.5)
    assert done.returncode == 0, done.stderr
    assert "4.3772" in done.stdout
    assert "Quote exact if every release added Gaussian noise" in " ".join(done.stdout.split())


def test_privacy_converts_back():
    forth = json.loads(fedpcs("privacy", 0.5, "--json").stdout)["epsilon"]["exact"]
    back = json.loads(fedpcs("privacy", "--epsilon", forth, "--json").stdout)
    assert back["rho"]["exact"] == pytest.approx(0.5, rel=1e-9)
    assert back["rho"]["standard"] < back["rho"]["tight"] < back["rho"]["exact"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("nan",), "rho"),
        (("-1",), "rho"),
        (("inf",), "rho"),
        (("1", "--delta", "0"), "delta"),
        (("1", "--delta", "2"), "delta"),
        (("1", "--delta", "nan"), "delta"),
        (("--epsilon", "0"), "epsilon"),
        (("--epsilon", "nan"), "epsilon"),
        (("one",), "RHO"),
        ((), "RHO"),
        (("1", "--epsilon", "1"), "RHO"),
    ],
)
def test_privacy_refuses_bad_numbers_with_exit_2(arguments, named, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fedpcs", "privacy", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert named in said.err
    assert said.out == ""
