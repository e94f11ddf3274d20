"""F16–F20: disks that are full, files that are damaged, runs that are changed, shared or stopped."""

import errno
import json
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from fault_injection import Payload
from faulty_federation import ENGINES, tiny
from killed_runs import finish, left_behind, outcome
from processes import descendants, is_alive, wait_until
from tiny_runs import Watcher

from fedpcs import _files
from fedpcs._files import locked
from fedpcs.errors import CorruptFile, FedpcsError, InvalidInput
from fedpcs.privacy import PrivacyLedger, ReleaseKey
from fedpcs.trial import checkpoint, run_store
from fedpcs.trial.config import as_toml
from fedpcs.trial.identity import trial_folder
from fedpcs.trial.run import resume_run, start_run
from fedpcs.trial.run_store import RunStore

ROUNDS = 5


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that was left alone."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    start_run(tiny(rounds=ROUNDS), folder, None, Watcher())
    return folder


@pytest.fixture
def unfinished(whole, tmp_path):
    """A copy of the run as it stood before its trial was finished: log, ledger and checkpoints are whole."""
    folder = tmp_path / "unfinished"
    shutil.copytree(whole, folder)
    (folder / "result.json").unlink()
    for name in ("result.json", "model.pt"):
        (trial_of(folder).folder / name).unlink()
    return folder


def trial_of(folder):
    return RunStore(folder).trial("random", 0)


def newest_first(folder):
    return sorted(trial_of(folder).checkpoints.glob("*.ckpt"), reverse=True)


# --- F16 ---


def failing(call, error_number, after):
    """The call, which fails from its `after`-th use on."""
    left = [after]

    def limited(*arguments, **named):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(error_number, os.strerror(error_number))
        return call(*arguments, **named)

    return limited


@pytest.mark.parametrize(("name", "after"), [("fsync", 0), ("fsync", 5), ("fsync", 8), ("replace", 1), ("replace", 3)])
def test_a_write_that_fails_ends_the_run_with_all_before_it_intact(tmp_path, whole, monkeypatch, name, after):
    """A full disk, a quota or a dying disk: one line that says what to do, and the run resumes to the same bits."""
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(os, name, failing(getattr(os, name), errno.ENOSPC, after))
        with pytest.raises(FedpcsError, match=r"cannot be written.*resume"):
            start_run(tiny(rounds=ROUNDS), folder, None, Watcher())
    assert left_behind(folder) == []
    if not (folder / "manifest.json").exists():
        start_run(tiny(rounds=ROUNDS), folder, None, Watcher())
    else:
        resume_run(folder, Watcher())
    assert outcome(folder) == outcome(whole)


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path, monkeypatch):
    """As a folder that is read-only; root may write there all the same, so the system's answer is put in its mouth."""

    def refused(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(FedpcsError, match="Read-only file system"):
        start_run(tiny(), tmp_path / "new" / "run", None, Watcher())


@pytest.mark.slow
@pytest.mark.parametrize("most_bytes", [300, 3000, 20_000])
def test_a_file_that_may_not_grow_any_more_ends_the_run_in_words(commands, tmp_path, whole, most_bytes):
    """By RLIMIT_FSIZE, in a process of its own: some file of the run fits, the next does not."""
    config = tmp_path / "config.toml"
    config.write_text(as_toml(tiny(rounds=ROUNDS)))
    answer = commands.run("run", config, "--out", tmp_path / "run", most_bytes=most_bytes)
    assert answer["status"] == 1, answer
    assert "Traceback" not in answer["said"]
    assert "cannot be" in answer["said"] or "does not fit" in answer["said"]
    assert left_behind(tmp_path / "run") == []
    finish(commands, tmp_path / "run", config)
    assert outcome(tmp_path / "run") == outcome(whole)


def test_nothing_half_written_counts(unfinished, whole):
    """Leftovers of writes that were cut off: a partial checkpoint, a log line without its end."""
    trial = trial_of(unfinished)
    (trial.checkpoints / "000009.ckpt.partial").write_bytes(b"half a checkpoint")
    with trial.log.open("ab") as stream:
        stream.write(b'{"round": 5, "att')
    resume_run(unfinished, Watcher())
    assert outcome(unfinished) == outcome(whole)


# --- F17 ---


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def empty(path):
    path.write_bytes(b"")


def zeros(path):
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("damage", [cut, flip, empty, zeros])
@pytest.mark.parametrize("number", [1, 2])
def test_a_damaged_checkpoint_is_passed_over_and_said_so(unfinished, whole, damage, number):
    for path in newest_first(unfinished)[:number]:
        damage(path)
    watcher = Watcher()
    resume_run(unfinished, watcher)
    told = [words for words in watcher.said if ".ckpt" in words]
    assert len(told) == number
    assert all(f"round {ROUNDS - number}" in words for words in told)
    assert outcome(unfinished) == outcome(whole)


def test_a_checkpoint_that_cannot_be_read_is_passed_over(unfinished, whole, monkeypatch):
    """A sector that is gone: the disk itself reports an error."""
    newest, read = newest_first(unfinished)[0], checkpoint.read_arrays

    def reading(path):
        if path == newest:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(path)

    watcher = Watcher()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "read_arrays", reading)
        resume_run(unfinished, watcher)
    assert any(newest.name in words for words in watcher.said)
    assert outcome(unfinished) == outcome(whole)


def test_no_whole_checkpoint_is_exit_6(unfinished):
    for path in newest_first(unfinished):
        flip(path)
    before = trial_of(unfinished).log.read_bytes()
    with pytest.raises(CorruptFile, match="no checkpoint") as caught:
        resume_run(unfinished, Watcher())
    assert caught.value.exit_code == 6
    assert trial_of(unfinished).log.read_bytes() == before


def test_a_checkpoint_of_another_make_is_not_executed(unfinished, tmp_path):
    marker = tmp_path / "executed"
    for path in newest_first(unfinished):
        path.write_bytes(pickle.dumps(Payload(str(marker))))
    with pytest.raises(CorruptFile):
        resume_run(unfinished, Watcher())
    assert not marker.exists()


def test_a_log_shorter_than_the_checkpoint_is_exit_6(unfinished):
    log = trial_of(unfinished).log
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:2]))
    with pytest.raises(CorruptFile, match="2 rounds"):
        resume_run(unfinished, Watcher())


@pytest.mark.parametrize("name", ["manifest.json", "config.toml"])
def test_a_damaged_manifest_or_configuration_is_an_error_in_words(unfinished, name):
    (unfinished / name).write_bytes(b"\x00\xff")
    with pytest.raises(FedpcsError, match=name):
        resume_run(unfinished, Watcher())


def test_a_damaged_ledger_is_exit_6(unfinished):
    trial_of(unfinished).ledger.write_bytes(b"not a ledger" * 100)
    with pytest.raises(CorruptFile):
        resume_run(unfinished, Watcher())


def test_a_lost_ledger_is_exit_6_and_no_fresh_start(unfinished):
    """A new, empty ledger would report less than was spent."""
    for path in trial_of(unfinished).folder.glob("ledger.sqlite*"):
        path.unlink()
    with pytest.raises(CorruptFile, match="charges of rounds that are done are missing"):
        resume_run(unfinished, Watcher())
    assert not trial_of(unfinished).ledger.exists()


def test_no_flipped_bit_of_a_log_passes_unnoticed(unfinished):
    """F35. Every thirteenth bit, and all of the last line's end."""
    trial = trial_of(unfinished)
    content = trial.log.read_bytes()
    for bit in {*range(0, 8 * len(content), 13), *range(8 * len(content) - 600, 8 * len(content))}:
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        trial.log.write_bytes(changed)
        with pytest.raises(CorruptFile, match=r"rounds\.jsonl(: line \d is damaged| has 4 rounds)"):
            trial.keep_rounds(ROUNDS)
        assert trial.log.read_bytes() == changed


def test_a_log_line_with_another_number_in_it_is_exit_6_with_file_and_line(unfinished):
    log = trial_of(unfinished).log
    log.write_bytes(log.read_bytes().replace(b'"paid": ', b'"paid": 1', 3).replace(b'"paid": 1', b'"paid": ', 2))
    with pytest.raises(CorruptFile, match=r"rounds\.jsonl: line 3 is damaged.*Put back a copy") as caught:
        resume_run(unfinished, Watcher())
    assert caught.value.exit_code == 6


def test_a_log_cut_back_to_a_checkpoint_goes_on_in_the_same_chain(unfinished, whole):
    """What is behind the checkpoint is done over, whatever became of it."""
    trial = trial_of(unfinished)
    newest_first(unfinished)[0].unlink()
    trial.log.write_bytes(trial.log.read_bytes()[:-30] + b"x" * 29)
    resume_run(unfinished, Watcher())
    assert outcome(unfinished) == outcome(whole)


def test_nothing_is_added_to_a_log_whose_last_line_carries_no_hash(unfinished):
    trial = trial_of(unfinished)
    content = trial.log.read_bytes() + b'{"round": 5}\n'
    trial.log.write_bytes(content)
    with pytest.raises(CorruptFile, match=r"rounds\.jsonl: its last line is damaged"):
        trial.append({"round": 6})
    assert trial.log.read_bytes() == content


@pytest.mark.parametrize("client", ["zz", "1000000", "-1", "8", "01", "٣", "9" * 5000, "x" * 5000])
def test_a_ledger_that_names_a_client_the_run_has_not_is_exit_6(unfinished, client):
    """Written with the right hashes: a ledger of another run of the same name, say."""
    with PrivacyLedger.open(trial_of(unfinished).ledger) as ledger:
        one = next(ledger.charges())
        ledger.charge(ReleaseKey(one.key.run, 0, client), one.event)
    with pytest.raises(
        CorruptFile, match=r"ledger\.sqlite: client .* spent something by it; clients are 0…7"
    ) as caught:
        resume_run(unfinished, Watcher())
    assert caught.value.exit_code == 6
    assert len(str(caught.value)) < 1000
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TRIGGER more AFTER INSERT ON charges BEGIN DELETE FROM charges; END",
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLF x' WHERE name = 'charges'",
    ],
)
def test_a_ledger_with_another_schema_is_exit_6_in_one_line(unfinished, change):
    """More of these are in `test_the_database_of_another_program_is_left_alone`."""
    with closing(sqlite3.connect(trial_of(unfinished).ledger)) as ledger:
        ledger.executescript(change)
    with pytest.raises(CorruptFile, match=r"ledger\.sqlite is damaged") as caught:
        resume_run(unfinished, Watcher())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["trials/*/result.json", "result.json", "manifest.json"])
@pytest.mark.parametrize("content", ["[]", "{}", "7", "null"])
def test_json_of_another_kind_is_exit_6(whole, tmp_path, name, content):
    shutil.copytree(whole, tmp_path / "run")
    next((tmp_path / "run").glob(name)).write_text(content)
    store = RunStore(tmp_path / "run")
    with pytest.raises(CorruptFile, match=r"holds no object|must be given"):
        print(store.result, store.manifest, trial_of(tmp_path / "run").result)


# --- F18 ---


def change_configuration(folder, monkeypatch):
    path = folder / "config.toml"
    path.write_text(path.read_text().replace("server_rate = 1.0", "server_rate = 0.5"))
    return "server_rate was 1.0, is 0.5"


def change_code(folder, monkeypatch):
    monkeypatch.setattr(run_store, "code_digest", lambda: "0" * 64)
    return "code was "


def change_data(folder, monkeypatch):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["data"]["checksum"] = "f" * 64
    path.write_text(json.dumps(manifest))
    return "data.checksum was "


def change_torch(folder, monkeypatch):
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "libraries": {"torch": "1.0"}}))
    return "libraries.torch was '1.0', is "


CHANGES = [change_configuration, change_code, change_data, change_torch]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_run_is_not_resumed_and_the_difference_is_shown(unfinished, monkeypatch, change):
    shown = change(unfinished, monkeypatch)
    before = sorted((path, path.read_bytes()) for path in unfinished.rglob("*.json*"))
    with pytest.raises(InvalidInput, match="--force") as caught:
        resume_run(unfinished, Watcher())
    assert shown in str(caught.value)
    assert before == sorted((path, path.read_bytes()) for path in unfinished.rglob("*.json*"))


def test_changed_code_of_the_user_s_own_is_a_changed_run(tmp_path, monkeypatch):
    module = tmp_path / "own_network.py"
    module.write_text("from torch import nn\ndef net(shape, k): return nn.Sequential(nn.Flatten(), nn.Linear(64, k))\n")
    monkeypatch.syspath_prepend(tmp_path)
    config = tiny(training={"model": "own_network:net"}, engine={"kind": "in-process"})
    folder = tmp_path / "run"
    start_run(config, folder, None, Watcher())
    (folder / "result.json").unlink()
    resume_run(folder, Watcher())
    (folder / "result.json").unlink()
    module.write_text(module.read_text() + "# another network\n")
    with pytest.raises(InvalidInput, match=r"own_code\.own_network was"):
        resume_run(folder, Watcher())


def test_a_run_that_is_done_is_done_whatever_the_code(whole, monkeypatch):
    monkeypatch.setattr(run_store, "code_digest", lambda: "0" * 64)
    watcher = Watcher()
    assert resume_run(whole, watcher).result is not None
    assert any("done already" in words for words in watcher.said)


@pytest.mark.parametrize("change", CHANGES)
def test_with_force_it_is_and_the_manifest_says_so(unfinished, monkeypatch, change):
    newest_first(unfinished)[0].unlink()
    shown = change(unfinished, monkeypatch)
    store = resume_run(unfinished, Watcher(), force=True)
    assert store.result is not None
    assert shown in str(store.manifest.forced)
    assert store.manifest.forced[0].at


def test_force_with_nothing_changed_records_nothing(unfinished):
    assert resume_run(unfinished, Watcher(), force=True).manifest.forced == []


# --- F19 ---


def test_a_run_that_another_process_works_on_is_refused(unfinished, whole):
    with locked(unfinished), pytest.raises(InvalidInput, match=f"pid {os.getpid()}") as caught:
        resume_run(unfinished, Watcher())
    assert caught.value.exit_code == 2
    resume_run(unfinished, Watcher())
    assert outcome(unfinished) == outcome(whole)


@pytest.mark.parametrize("verb", [pytest.param("run", marks=pytest.mark.slow), "resume"])
def test_of_two_processes_on_one_folder_one_works_and_one_refuses(commands, tmp_path, verb):
    config = tmp_path / "config.toml"
    config.write_text(as_toml(tiny(rounds=100)))
    command = ("run", config, "--out", tmp_path / "run")
    if verb == "resume":
        log = tmp_path / "run/trials" / trial_folder(tiny(rounds=100)) / "rounds.jsonl"
        commands.run(*command, signals=[(0.0, signal.SIGKILL)], once=f"{log}:2")
        command = ("resume", tmp_path / "run")
    answers = commands.together([command, command])
    assert sorted(answer["status"] for answer in answers) == [0, 2], answers
    (refused,) = [answer for answer in answers if answer["status"] == 2]
    assert "another process" in refused["said"] or "not empty" in refused["said"]


def test_a_lock_held_for_a_moment_by_a_process_that_starts_is_waited_for(unfinished, whole):
    """What a run killed while it forks leaves behind: a child that has the lock until it runs its own program."""
    holder = (
        "import fcntl, sys, time; lock = open(sys.argv[1], 'a'); fcntl.flock(lock, fcntl.LOCK_EX); "
        "print(flush=True); time.sleep(0.3)"
    )
    with subprocess.Popen([sys.executable, "-c", holder, str(unfinished / "lock")], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        resume_run(unfinished, Watcher())
    assert outcome(unfinished) == outcome(whole)


def test_a_lock_left_by_a_dead_process_holds_nobody_up(unfinished, whole):
    (unfinished / "lock").write_text("pid 999999\n")
    resume_run(unfinished, Watcher())
    assert outcome(unfinished) == outcome(whole)


# --- F20 ---


LONGER = 15


@pytest.fixture(scope="module")
def longer(commands):
    """What a run of more rounds comes to if nobody stops it, whatever its engine and its checkpoints."""
    config = commands.folder / "longer.toml"
    config.write_text(as_toml(tiny(rounds=LONGER)))
    assert commands.run("run", config, "--out", commands.folder / "longer")["status"] == 0
    return outcome(commands.folder / "longer")


def stopped(commands, folder, signals, **changes):
    """Start a run, signal it in its fourth round; return (configuration file, what it said and how it ended)."""
    config, asked = folder / "config.toml", tiny(rounds=LONGER, **changes)
    config.write_text(as_toml(asked))
    log = RunStore(folder / "run").trial_of(asked).log
    answer = commands.run("run", config, "--out", folder / "run", signals=signals, once=f"{log}:3")
    assert answer["status"] == 130, answer
    assert "Traceback" not in answer["said"]
    last = answer["said"].splitlines()[-1]
    assert last.startswith(f"fedpcs: {folder / 'run'}: stopped"), answer
    assert last.endswith(f"Go on with `fedpcs resume {folder / 'run'}`."), answer
    return config, answer


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("number", "checkpoint_every"), [pytest.param(signal.SIGINT, 1, marks=pytest.mark.slow), (signal.SIGTERM, 7)]
)
def test_a_run_asked_to_stop_resumes_to_the_same_bits(commands, tmp_path, longer, engine, number, checkpoint_every):
    changes = {"checkpoint_every": checkpoint_every, "engine": {"kind": engine}}
    config, answer = stopped(commands, tmp_path, [(0.0, number)], **changes)
    folder = tmp_path / "run"
    assert "saved" in answer["said"]
    done = len(trial_of(folder).rounds())
    assert 3 <= done < LONGER
    assert int(newest_first(folder)[0].stem) == done  # nothing that was done is done again
    assert not left_behind(folder)
    finish(commands, folder, config)
    assert outcome(folder) == longer


def test_a_second_signal_ends_at_once_and_the_run_still_resumes(commands, tmp_path, longer):
    config, _ = stopped(commands, tmp_path, [(0.0, signal.SIGINT), (0.0, signal.SIGINT)])
    finish(commands, tmp_path / "run", config)
    assert outcome(tmp_path / "run") == longer


# --- The command itself: no child of a test's server, no shortcut ---


@pytest.mark.slow
def test_the_command_is_killed_interrupted_and_resumed_and_leaves_no_process(tmp_path):
    """kill −9, then Ctrl-C to the whole process group: as it happens at a terminal, with workers."""
    config = tmp_path / "config.toml"
    endless = {"rounds": 20_000, "evaluate_every": 20_000, "privacy": {"mode": "none"}}  # and no game to solve
    asked = tiny(**endless, engine={"kind": "workers"})
    config.write_text(as_toml(asked))
    log = RunStore(tmp_path / "run").trial_of(asked).log
    with fedpcs("run", config, "--out", tmp_path / "run") as process:
        family = once_in_round(3, log, process)
        process.kill()
    wait_until(lambda: not any(map(is_alive, family)))
    with fedpcs("resume", tmp_path / "run") as process:
        family = once_in_round(10, log, process)
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert "Traceback" not in said
    wait_until(lambda: not any(map(is_alive, family)))


def fedpcs(*arguments):
    command = [sys.executable, "-c", "import fedpcs.cli as c; c.main()", *map(str, arguments)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, start_new_session=True, **pipes)


def once_in_round(number, log, process):
    """Wait until that many rounds are done; return the processes that belong to the run."""
    wait_for_rounds(log, number, process)
    family = descendants(process.pid)
    assert len(family) >= 3  # the process that forks workers, and two of them
    return family


def wait_for_rounds(log, number, process):
    wait_until(lambda: process.poll() is not None or (log.exists() and log.read_bytes().count(b"\n") >= number), 60.0)
    assert process.poll() is None, process.communicate()


def test_files_are_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "file"
    _files.write_whole(path, b"before")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(os.fsync, errno.EIO, 0))
        with pytest.raises(FedpcsError):
            _files.write_whole(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
