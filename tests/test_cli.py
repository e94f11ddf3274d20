"""The commands as a user meets them: exit codes, JSON on stdout, talk on stderr."""

import json
import sys
import types

import numpy as np
import pytest
from command_line import fedpcs, fedpcs_process

from fedpcs.cli import main


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """A small game, solved once and written to disk."""
    folder = tmp_path_factory.mktemp("solved")
    (folder / "game.toml").write_text("num_clients = 30\nlast_round = 6\nreward = 5\n")
    done = fedpcs_process("solve", folder / "game.toml", "--out", folder / "found.npz", "--json")
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_solve_prints_the_promised_object(solved):
    _, found = solved
    assert found["status"] == "converged"
    assert {"iterations", "residual", "reward", "mean_budget", "seconds"} <= set(found)
    assert set(found["exploitability"]) == {"mean", "max", "relative", "resolution"}
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_caps_are_reported(tmp_path):
    (tmp_path / "game.toml").write_text("num_clients = 30\nlast_round = 4\nreward = 5\nbudget_cap = 60\n")
    done = fedpcs("solve", tmp_path / "game.toml", "--json", "--out", tmp_path / "found.npz")
    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert max(found["budget_cap"]["usage"]) <= 1.0
    assert max(found["cohort_size"]) < 30
    assert fedpcs("verify", tmp_path / "found.npz", "--game", tmp_path / "game.toml").returncode == 0


@pytest.mark.parametrize(
    "verb",
    [
        *("run", "resume", "compare", "reproduce", "report", "solve", "verify", "theory", "doctor", "privacy"),
        *("samplers", "audit", "data-list", "data-fetch", "data-check", "ledger-verify", "superlink", "node"),
    ],
)
def test_help_is_plain_text_with_an_example(verb):
    done = fedpcs(*verb.split("-"), "--help")
    assert done.returncode == 0
    assert "Example: fedpcs" in done.stdout
    assert "\\" not in done.stdout


def test_privacy_prints_the_promised_object():
    done = fedpcs("privacy", 0.5, "--delta", 1e-5, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["rho"], found["delta"]) == (0.5, 1e-5)
    rounded = {method: round(value, 5) for method, value in found["epsilon"].items()}
    assert rounded == {"exact": 4.37718, "tight": 4.72839, "standard": 5.29853}


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
        (("1", "--delta", "0"), "delta"),
        (("1", "--delta", "nan"), "delta"),
        (("--epsilon", "nan"), "epsilon"),
        (("--epsilon", "0"), "epsilon"),
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


def said_by(arguments, monkeypatch, capsys):
    """Exit code, stdout and stderr of a command run in this process."""
    monkeypatch.setattr(sys, "argv", ["fedpcs", *map(str, arguments)])
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    return code, *capsys.readouterr()


TINY_RUN = [
    "rounds=2",
    "seeds=[0]",
    "data.num_clients=6",
    "data.partition=iid",
    "engine.kind=in-process",
    "game.reward=5.0",
    "sampling.samplers=['random']",
    "sampling.sampling_ratio=0.5",
    "privacy.limit_epsilon=30.0",
]


def tiny_run(*more):
    last = {override.partition("=")[0]: override for override in (*TINY_RUN, *more)}
    return [part for override in last.values() for part in ("--set", override)]


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out the drawing of reports; tests/report/test_study_page.py looks at those."""
    from fedpcs.report import study

    def write_nothing(page, folder, **_):
        (folder / "report.html").write_text("drawn")
        return folder / "report.html"

    monkeypatch.setattr(study, "write_page", write_nothing)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "no-such-preset"), "no-such-preset: no such file or preset"),
        (("run", "--set", "rounds=1"), "rounds must be greater than or equal to 2, got 1"),
        (("run", "--set", "nonsense"), "'nonsense' must be KEY=VALUE"),
        (("run", "fashion-mnist", "--data-dir", "absent"), "fedpcs data fetch fashion-mnist"),
        (("run", "--engine", "workers", "--set", "engine.kind=flower"), "engine.kind is given twice"),
        (("run", "--out", "a-file"), "a-file: is a file"),
        (("run", "--out", "full"), "full: is not empty"),
        (("run", "full"), "full: is a folder"),
        (("run", "bad.toml"), "bad.toml: cannot be read as TOML"),
        (("resume", "absent"), "absent: no run there"),
        (("resume", "a-file"), "a-file: no run there"),
        (("resume", "full"), "full: no run there"),
        (("report", "absent"), "absent: no run there"),
        (("data", "fetch", "no-such-data"), "no-such-data"),
        (("data", "check", "no-such-data"), "no-such-data"),
        (("data", "check", "cifar-10", "--data-dir", "absent"), "fedpcs data fetch cifar-10"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_to_runs_and_data_is_one_line_and_exit_2(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("")
    (tmp_path / "bad.toml").write_text("rounds =")
    before = sorted(path.name for path in tmp_path.iterdir())
    code, out, err = said_by(arguments, monkeypatch, capsys)
    assert words in err
    assert (code, out, len(err.strip().splitlines())) == (2, "", 1)
    assert err.startswith("fedpcs: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--wat"),
        ("resume",),
        ("data", "fly"),
        ("data", "check"),
        ("data", "list", "--data-dir", __file__),
    ],
    ids=" ".join,
)
def test_commands_that_do_not_exist_exit_2(arguments, monkeypatch, capsys):
    code, out, err = said_by(arguments, monkeypatch, capsys)
    assert (code, out) == (2, "")
    assert "Usage:" in err


def test_a_run_is_json_on_stdout_and_can_be_resumed_reported_and_not_overwritten(
    tmp_path, monkeypatch, capsys, undrawn
):
    folder = tmp_path / "run"
    code, out, err = said_by(("run", "--out", folder, "--json", *tiny_run()), monkeypatch, capsys)
    assert code == 0, err
    found = json.loads(out)
    assert found["folder"] == str(folder)
    assert [(trial["sampler"], trial["rounds"], trial["ended_by"]) for trial in found["trials"]] == [
        ("random", 2, "rounds")
    ]
    code, out, err = said_by(("resume", folder, "--json"), monkeypatch, capsys)
    assert (code, json.loads(out)) == (0, found)
    assert "done already" in " ".join(err.split())
    code, out, _ = said_by(("report", folder), monkeypatch, capsys)
    assert (code, out) == (0, f"{folder / 'report.html'}\n")
    code, out, err = said_by(("run", "--out", folder, *tiny_run()), monkeypatch, capsys)
    assert (code, out) == (2, "")
    assert f"fedpcs resume {folder}" in err


def test_a_run_in_which_everyone_has_spent_its_limit_exits_4_and_keeps_its_result(
    tmp_path, monkeypatch, capsys, undrawn
):
    broke = tiny_run("privacy.limit_epsilon=0.3", "game.budget_unit=0.001", "rounds=9", "sampling.sampling_ratio=1.0")
    code, out, err = said_by(("run", "--out", tmp_path / "run", "--json", *broke), monkeypatch, capsys)
    assert code == 4, err
    assert json.loads(out)["is_exhausted"] is True
    assert "limit_epsilon" in err.splitlines()[-1]
    assert list((tmp_path / "run" / "trials").glob("*-random-seed0-*/model.pt"))


def test_a_run_whose_game_has_no_certified_equilibrium_exits_3(tmp_path, monkeypatch, capsys):
    from fedpcs.errors import NotConverged
    from fedpcs.trial import schedule

    def unsolved(config, sampler):
        raise NotConverged("no equilibrium was found.")

    monkeypatch.setattr(schedule, "make_schedule", unsolved)
    code, out, err = said_by(("run", "--out", tmp_path / "run", *tiny_run()), monkeypatch, capsys)
    assert (code, out) == (3, "")
    assert err.splitlines()[-1] == "fedpcs: no equilibrium was found."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reproduce", "--profile", "paper"), "--profile needs an EXHIBIT, one of accuracy-table"),
        (("reproduce", "--only-done"), "--only-done needs an EXHIBIT"),
        (("reproduce", "curves", "--dataset", ""), "got ''"),
        (("reproduce", "welfare", "--profile", "slow"), "not one of 'quick', 'paper'"),
        (("reproduce", "curves", "--dataset", "mnist"), "fashion-mnist"),
        (("reproduce", "trade-off", "--dataset", "cifar-10"), "Leave it out."),
        (("reproduce", "welfare", "--dataset", "cifar-10"), "reads no data"),
        (("compare", "no-such.toml"), "no-such.toml"),
        (("compare", "--seeds", "0,a"), "--seeds must be whole numbers"),
        (("compare", "--samplers", ","), "--samplers must be names"),
        (("compare", "--grid", "rounds"), "'rounds' must be KEY=VALUE,VALUE"),
        (("compare", "--set", "rounds=0"), "rounds must be"),
        (("reproduce", "data-distribution", "--only-done"), "made anew each time"),
        (("reproduce", "welfare", "--only-done"), "welfare is not made of trials but made anew each time"),
        (("compare", "--grid", "rounds=3,4", "--grid", "rounds=5"), "rounds is given twice, by 'rounds=3,4' and by"),
        (("compare", "--set", "rounds=3", "--set", "rounds=5"), "Keep one of them"),
        (("compare", "--set", "data={alpha=1}", "--set", "data.alpha=2"), "data.alpha is given twice"),
        (("run", "--set", "rounds=3", "--set", "rounds=5"), "rounds is given twice"),
        (("report", "no-such-folder"), "no-such-folder"),
    ],
)
def test_bad_studies_are_one_line_and_exit_2(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, out, err = said_by(arguments, monkeypatch, capsys)
    assert (code, out) == (2, "")
    assert words in err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--out", "a-file"),
        ("compare", "--out", "a-file/below"),
        ("compare", "--out", "new", "--cells", "a-file"),
        ("reproduce", "welfare", "--out", "a-file"),
    ],
    ids=" ".join,
)
def test_a_file_in_the_place_of_a_folder_is_refused_before_anything_is_computed(
    arguments, tmp_path, monkeypatch, capsys
):
    from fedpcs.exhibits import exhibit
    from fedpcs.studies import plan as sweep_plan

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_text("")
    monkeypatch.setattr(sweep_plan, "plan_sweep", lambda *_: pytest.fail("a sweep was planned"))
    monkeypatch.setattr(exhibit, "declaration", lambda name: pytest.fail("an exhibit was made"))
    code, out, err = said_by(arguments, monkeypatch, capsys)
    assert (code, out) == (2, "")
    assert "is a file; give a folder." in err
    assert [path.name for path in tmp_path.iterdir()] == ["a-file"]


def test_report_says_what_to_give_where_exhibits_are(tmp_path, monkeypatch, capsys):
    (tmp_path / "report.html").write_text("")
    code, out, err = said_by(("report", tmp_path), monkeypatch, capsys)
    assert (code, out) == (2, "")
    assert "no run there, nor a sweep" in err
    assert "`fedpcs reproduce EXHIBIT`" in err


def test_a_sweep_is_not_put_on_top_of_a_run(tmp_path, monkeypatch, capsys):
    (tmp_path / "config.toml").write_text("")
    code, out, err = said_by(("compare", "--out", tmp_path), monkeypatch, capsys)
    assert (code, out) == (2, "")
    assert "a run is kept there" in err
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


def test_reports_written_before_one_that_is_refused_are_named(tmp_path, monkeypatch, capsys):
    from fedpcs.report import study

    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "sweep.json").write_text("{}")
    page = tmp_path / "sweep" / "report.html"
    write, written = study.write_study, types.SimpleNamespace(report=page)
    monkeypatch.setattr(study, "write_study", lambda one, **_: written if one.name == "sweep" else write(one))
    code, out, err = said_by(("report", tmp_path / "sweep", tmp_path / "absent"), monkeypatch, capsys)
    assert (code, out) == (2, f"{page}\n")
    assert "absent: no run there" in err


def test_a_plan_runs_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, out, _ = said_by(("compare", "--seeds", "0", "--set", "rounds=2", "--plan", "--json"), monkeypatch, capsys)
    plan = json.loads(out)
    assert code == 0
    assert (plan["num_cells"], plan["num_done"]) == (2, 0)
    assert plan["estimated_seconds"] > 0.0
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_that_another_error_hides_is_still_an_interrupt(monkeypatch, capsys):
    """A second signal may strike while an archive is being written, whose closing then fails."""

    def broken(**_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise ValueError("Can't close the ZIP file") from None

    monkeypatch.setattr("fedpcs.cli.app", broken)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert "interrupted" in capsys.readouterr().err


def test_version_is_the_package_s():
    assert fedpcs("--version").stdout.startswith("fedpcs 0.")


def test_nothing_is_left_behind_but_the_file(solved):
    folder, _ = solved
    assert sorted(path.name for path in folder.iterdir()) == ["found.npz", "game.toml"]


def test_verify_refuses_complex_numbers(solved, tmp_path):
    with np.load(solved[0] / "found.npz") as stored:
        arrays = dict(stored)
    np.savez(tmp_path / "complex.npz", **{**arrays, "budget": arrays["budget"] + 1j})
    done = fedpcs("verify", tmp_path / "complex.npz", "--game", solved[0] / "game.toml")
    assert done.returncode == 2
    assert "complex128" in done.stderr


def test_a_figure_folder_that_cannot_be_made_is_refused_before_solving(tmp_path):
    (tmp_path / "file").write_text("")
    done = fedpcs("solve", "--figures", tmp_path / "file" / "figures")
    assert done.returncode == 2
    assert "--figures" in done.stderr


def test_a_run_without_a_folder_gets_a_new_one_each_time(tmp_path, monkeypatch, capsys, undrawn):
    monkeypatch.chdir(tmp_path)
    for name in ("demo", "demo-2"):
        code, out, err = said_by(("run", *tiny_run("name=demo", "privacy.mode=client")), monkeypatch, capsys)
        assert code == 0, err
        assert out.splitlines()[-1] == f"fedpcs-runs/{name}/report.html"
