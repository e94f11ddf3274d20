"""F37: files that are devices or pipes, too large, or changed by hand; none holds a command up, none is believed."""

from __future__ import annotations

import json
import os
import shutil
import signal

import numpy as np
import pytest
from command_line import fedpcs, fedpcs_process
from forked import Hang
from mutations import as_toml, put
from sealed_logs import read_log, write_log
from tiny_runs import tiny

from fedpcs import _files
from fedpcs._files import is_locked, locked
from fedpcs.errors import FedpcsError, InvalidInput
from fedpcs.trial.config import load_run_config
from fedpcs.trial.run import start_run

GAME = {"num_clients": 6, "last_round": 3, "cohort_size": 2, "reward": 6.0, "accuracy_scale": 10.0}


@pytest.fixture(autouse=True)
def no_waiting():
    """End a test that waits for a pipe, with an error no code under test catches."""

    def ring(*_):
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 90.0)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


KINDS = ("pipe", "folder", "device")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", ["run", "compare", "doctor", "solve", "verify", "verify --game"])
def test_no_device_or_pipe_as_an_input_holds_a_command_up(verb, kind, tmp_path):
    put(tmp_path / "input", kind)
    words = ("verify", "any.npz", "--game") if verb == "verify --game" else (verb,)
    done = fedpcs(*words, tmp_path / "input")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "Not a regular file" in done.stderr or "folder" in done.stderr or "directory" in done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_no_device_or_pipe_as_a_population_holds_a_game_up(kind, tmp_path):
    put(tmp_path / "crowd.csv", kind)
    (tmp_path / "game.toml").write_text("[population]\nfile = 'crowd.csv'\n")
    done = fedpcs("solve", tmp_path / "game.toml")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "population.file" in done.stderr


def test_a_link_to_a_regular_file_is_followed(tmp_path):
    (tmp_path / "here.toml").write_text("rounds = 4\n")
    (tmp_path / "link.toml").symlink_to(tmp_path / "here.toml")
    assert load_run_config(str(tmp_path / "link.toml")).rounds == 4


@pytest.mark.parametrize("verb", ["run", "solve"])
def test_a_configuration_that_is_too_large_is_refused_before_it_is_read(verb, tmp_path):
    with (tmp_path / "large.toml").open("wb") as file:
        file.truncate(10**12)  # holes: it takes no room on the disk
    done = fedpcs(verb, tmp_path / "large.toml")
    assert done.returncode == 2
    assert "1,048,576" in done.stderr


@pytest.mark.parametrize("text", ["{} = 1", "[{}]", "x = {{{} = 1}}"])
@pytest.mark.parametrize("verb", ["run", "solve"])
def test_a_key_of_thousands_of_names_takes_no_time(verb, text, tmp_path):
    """Python's parser takes time that grows with the square of their number: minutes for 60 kB."""
    (tmp_path / "deep.toml").write_text(text.format("a." * 30_000 + "a"))
    signal.setitimer(signal.ITIMER_REAL, 5.0)
    done = fedpcs(verb, tmp_path / "deep.toml")
    assert done.returncode == 2
    assert "20 names" in done.stderr


BAD_FILES = [
    *(("run", f"rounds = {number}", "wrong.toml: ") for number in ("9" * 5000, "0x" + "f" * 9000)),
    *(("solve", f"num_clients = {number}", "wrong.toml: ") for number in ("9" * 5000, "0x" + "f" * 9000)),
    ("run", "[sampling.settings.fedpcs]\nname = 'random'", "has no setting 'name'"),
    ("run", "[federation]\nprior = {a={b={c=1}}}", "federation.prior"),
    ("run", "[federation]\nprior = [[[1]]]", "federation.prior"),
    ("run", "[federation]\nprior = {weight={a={b=1}}}", "federation.prior"),
    ("run", "[federation]\nprior = {weight=[[[1]]]}", "federation.prior"),
    # Sizes no machine can hold are refused before memory is asked for.
    ("solve", f"num_clients = {10**13}", "num_clients must be a whole number in [1, 1e+07]"),
    ("solve", f"num_clients = {10**9}", "num_clients must be a whole number in [1, 1e+07]"),
    ("solve", "num_clients = 5_000_000\nlast_round = 100_000", "rounds × types"),
    ("solve", f"[population]\nbins = [{10**6}, {10**6}]", "bins[1] must be"),
    ("solve", f"[population]\nbins = [{10**13}, 1]", "bins.0 must be"),
    ("solve", f"num_clients = {10**400}\n[population]\nbins = [2, 2]", "num_clients must be"),
]


@pytest.mark.parametrize(("verb", "text", "words"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_sizes_no_machine_can_hold_are_refused_before_memory_is_asked_for(verb, text, words, tmp_path):
    """And what is nested too deep, too long to read, or of a name that means something else, in one line."""
    (tmp_path / "wrong.toml").write_text(text + "\n")
    done = fedpcs(verb, tmp_path / "wrong.toml")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert words in done.stderr
    assert len(done.stderr) < 600


@pytest.mark.parametrize("key", ["game.budget_bounds", "federation.drift_tolerance", "game.tolerance", "game.reward"])
def test_a_number_no_float_can_hold_is_one_line(key):
    number = "9" * 400
    done = fedpcs("run", "--set", f"{key}={f'[1.0, {number}]' if key == 'game.budget_bounds' else number}")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert f"{key}" in done.stderr
    assert "a whole number below 1e308" in done.stderr


@pytest.mark.parametrize(
    ("number", "allowed"),
    [
        ("10.5", "a whole number"),
        ("1e20", "less than or equal to 1000000000000"),
        ("nan", "a finite number"),
        ("0", "greater than or equal to 1"),
        ("-3", "greater than or equal to 1"),
        ("inf", "a finite number"),
    ],
)
def test_a_number_of_records_that_is_none_is_refused(number, allowed, tmp_path):
    (tmp_path / "crowd.csv").write_text(f"privacy_aversion,initial_budget,num_samples\n0.5,1.0,{number}\n")
    (tmp_path / "game.toml").write_text("[population]\nfile = 'crowd.csv'\n")
    done = fedpcs("solve", tmp_path / "game.toml")
    assert f"line 2: num_samples must be {allowed}, got '{number}'." in done.stderr
    listed = {"privacy_aversion": [0.5], "initial_budget": [1.0], "num_samples": [float(number)]}
    (tmp_path / "game.toml").write_text(as_toml({"population": listed}))
    assert (done.returncode, fedpcs("solve", tmp_path / "game.toml").returncode) == (2, 2)


def test_a_line_without_end_in_a_population_is_refused(tmp_path):
    (tmp_path / "crowd.csv").write_text("privacy_aversion,initial_budget\n" + "," * 30_000_000)
    (tmp_path / "game.toml").write_text("[population]\nfile = 'crowd.csv'\n")
    done = fedpcs("solve", tmp_path / "game.toml")
    assert "longer than 10,000 characters" in done.stderr


@pytest.fixture(scope="module")
def equilibrium(tmp_path_factory):
    """A game's file and its equilibrium's."""
    folder = tmp_path_factory.mktemp("equilibrium")
    (folder / "game.toml").write_text(as_toml(GAME))
    assert fedpcs("solve", folder / "game.toml", "--out", folder / "whole.npz").returncode == 0
    return folder


def test_the_equilibrium_itself_is_certified(equilibrium):
    assert fedpcs("verify", equilibrium / "whole.npz", "--game", equilibrium / "game.toml").returncode == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("weight", one) for one in (np.nan, np.inf, -1.0, 0.9)),
        *(("num_samples", one) for one in (np.inf, np.nan, 0.0)),
        *(("cohort_size", one) for one in (0.0, np.nan, -2.0, 5.0)),
    ],
)
def test_a_wrong_weight_size_or_cohort_in_an_equilibrium_is_not_certified(equilibrium, tmp_path, name, value):
    with np.load(equilibrium / "whole.npz") as stored:
        arrays = dict(stored)
    arrays[name] = arrays[name].copy()
    arrays[name][1] = value
    np.savez(tmp_path / "changed.npz", **arrays)
    done = fedpcs("verify", tmp_path / "changed.npz", "--game", equilibrium / "game.toml")
    assert done.returncode == 2
    assert name in done.stderr


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of two samplers."""
    folder = tmp_path_factory.mktemp("run") / "run"
    start_run(tiny(sampling={"samplers": ["fedpcs", "random"]}), folder)
    return folder


@pytest.fixture
def run(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def at(*names):
    """Return what changes a value of a JSON file or of a log's line at these names."""
    *way, last, value = names

    def change(tree):
        for name in way:
            tree = tree[name]
        tree[last] = value

    return change


TRIAL, LOG = "trials/*/result.json", "trials/*/rounds.jsonl"
HAND_CHANGED = [
    ("manifest.json", at("forced", [{}])),
    ("manifest.json", at("forced", 7)),
    ("manifest.json", at("notes", 7)),
    ("manifest.json", at("data_dir", 7)),
    ("result.json", at("trials", [7])),
    ("result.json", at("trials", 0, "spent", [])),
    (TRIAL, at("game", "behaviour", "odd")),
    (TRIAL, at("game", "reward", "odd")),
    (TRIAL, at("game", "mean_budget", [[1.0]])),
    (TRIAL, at("times_drawn", [1.0])),
    (TRIAL, at("times_drawn", ["x"] * 8)),
    (TRIAL, at("label_counts", [[1]] * 7 + [[1, 2]])),
    (TRIAL, at("paid", 1.7e308)),
    (TRIAL, at("rounds", 10**20)),
    (TRIAL, at("num_test", 10**400)),
    (LOG, at("cohort", [10**20])),
    (LOG, at("cohort", [1_000_000])),
    (LOG, at("cohort", [-1])),
    (LOG, at("round", 2)),
    (LOG, at("cohort_budget", "x")),
    (LOG, at("realised_mean_budget", "x")),
    (LOG, at("draw", "evenness", "x")),
    (LOG, at("draw", [])),
    (LOG, at("spent", 7)),
    (LOG, at("left", [[1]])),
    (LOG, at("given_up", [{}])),
    (LOG, at("exploitability", "x")),
]


@pytest.mark.parametrize(("name", "change"), HAND_CHANGED, ids=[str(index) for index in range(len(HAND_CHANGED))])
def test_a_file_of_a_run_that_was_changed_by_hand_is_exit_6_in_one_line(run, name, change):
    path = next(run.glob(name))
    lines = read_log(path) if name == LOG else [json.loads(path.read_text())]
    change(lines[0])
    write_log(path, lines) if name == LOG else path.write_text(json.dumps(lines[0]))
    done = fedpcs("resume" if name == "result.json" else "report", run)
    assert (done.returncode, len(done.stderr.splitlines())) == (6, 1), done.stderr
    assert str(path) in done.stderr


def test_theory_checks_a_log_like_a_report_does(run):
    lines = read_log(next(run.glob(LOG)))
    del lines[1]["loss"]
    write_log(next(run.glob(LOG)), lines)
    done = fedpcs("theory", run)
    assert (done.returncode, len(done.stderr.splitlines())) == (6, 1)
    assert "line 2: loss must be given" in done.stderr


def test_half_a_character_in_a_note_is_shown_and_breaks_no_page(run):
    path = next(run.glob("trials/*/manifest.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "notes": ["\ud800"]}))
    assert fedpcs("report", run).returncode == 0
    assert "\\ud800" in (run / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["manifest.json", TRIAL, LOG])
def test_no_device_or_pipe_in_a_run_holds_a_report_up(run, name, kind):
    put(next(run.glob(name)), kind)
    assert fedpcs("report", run).returncode == 6


def test_a_link_in_the_place_of_the_lock_is_not_written_through(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").symlink_to(victim)
    with pytest.raises(InvalidInput, match="lock"), locked(tmp_path / "run"):
        pass
    assert not is_locked(tmp_path / "run")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("kind", KINDS)
def test_nor_is_what_is_no_file_in_its_place(kind, tmp_path):
    put(tmp_path / "lock", kind)
    with pytest.raises(InvalidInput, match="lock"), locked(tmp_path):
        pass
    assert not is_locked(tmp_path)


def test_nor_is_a_link_where_a_file_is_written_beside_or_appended(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "result.json.partial").symlink_to(victim)
    with pytest.raises(FedpcsError, match="cannot be written"):
        _files.write_whole(tmp_path / "result.json", b"{}")
    assert victim.read_text() == "precious"


HOSTILE = "x\x1b[2J\nfedpcs: done\u202e"


@pytest.mark.parametrize(
    "words",
    [
        ("run", f"{HOSTILE}.toml"),
        ("solve", f"{HOSTILE}.toml"),
        ("report", HOSTILE),
        ("verify", f"{HOSTILE}.npz"),
        ("run", "--set", f"{HOSTILE}=1"),
        ("compare", "--samplers", HOSTILE),
        ("data", "check", HOSTILE),
        ("run", f"--{HOSTILE}"),
        (HOSTILE,),
        ("theory", "--rounds", HOSTILE),
    ],
)
def test_nothing_from_outside_reaches_the_terminal_raw(words, tmp_path):
    done = fedpcs(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "\\x1b[2J" in done.stderr
    assert not {"\x1b", "\u202e"} & set(done.stderr)
    assert not any(line.startswith("fedpcs: done") for line in done.stderr.splitlines())


def test_keys_and_values_of_files_are_escaped_and_cut(tmp_path):
    for tree in ({HOSTILE: 1}, {"rounds": HOSTILE * 1000}, {"seeds": ["y" * 50_000]}, {"name": "z" * 50_000}):
        (tmp_path / "run.toml").write_text(as_toml(tree))
        done = fedpcs("run", tmp_path / "run.toml")
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert len(done.stderr) < 1000
        assert "\x1b" not in done.stderr


def test_a_long_message_with_short_values_is_not_cut(run):
    """What differs from the run that was begun is listed whole."""
    (run / "result.json").unlink()
    manifest = json.loads((run / "manifest.json").read_text())
    for name in manifest["config"]["engine"]:
        manifest["config"]["engine"][name] = "another"
    (run / "manifest.json").write_text(json.dumps(manifest))
    done = fedpcs("resume", run)
    assert done.returncode == 2
    assert all(f"config.engine.{name}" in done.stderr for name in manifest["config"]["engine"])


def test_a_real_process_with_a_pipe_ends_by_itself(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert fedpcs_process("run", tmp_path / "pipe").returncode == 2
