"""Files that are whole or not there, whoever writes them and how often."""

import multiprocessing
import os

import pytest
from made_records import a_round

from fedpcs._files import locked, write_whole
from fedpcs.errors import FedpcsError
from fedpcs.trial.store import TrialStore


def write_often(path, content, times):
    for _ in range(times):
        write_whole(path, content)


def test_processes_that_write_one_file_take_turns(tmp_path):
    path = tmp_path / "game.npz"
    contents = [bytes([letter]) * 200_000 for letter in b"abc"]
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=write_often, args=(path, content, 40)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_writer_left_is_written_over(tmp_path):
    path = tmp_path / "result.json"
    (tmp_path / "result.json.partial").write_bytes(b"a long beginning of something else")
    write_whole(path, b"{}")
    assert path.read_bytes() == b"{}"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(FedpcsError, match="cannot be written: No such file or directory"):
        write_whole(tmp_path / "nowhere" / "file", b"")


def test_files_and_run_folders_are_their_owners_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        with locked(tmp_path / "run"):
            write_whole(tmp_path / "run" / "config.toml", b"")
            trial = TrialStore(tmp_path / "run" / "trial")
            trial.create()
            trial.append(a_round(0))
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "run", *(tmp_path / "run").rglob("*"))}
    assert modes == {"run": 0o700, "lock": 0o600, "config.toml": 0o600, "trial": 0o700, "rounds.jsonl": 0o600}
