"""`fedpcs ledger verify` says of every ledger, log and list of agreed budgets whether it is as it was written."""

import json

import pytest
from command_line import fedpcs
from tiny_runs import play, tiny

from fedpcs._chain import sealed_line


@pytest.fixture
def run(tmp_path):
    """A folder with one trial of a run, its store, and a client's agreed budgets."""
    _, store = play(tmp_path / "run/trials/random-seed0", tiny())
    (tmp_path / "run/agreed.json").write_bytes(sealed_line({"a": {"budgets": [1]}, "b": {"budgets": [2]}}))
    return tmp_path / "run", store


def flip(path, bit):
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def test_a_whole_run_is_exit_0_with_the_number_of_entries(run):
    folder, store = run
    done = fedpcs("ledger", "verify", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"whole    {folder}/agreed.json: 2 runs",
        f"whole    {store.ledger}: 12 charges, 0 limits, 12 rewards",
        f"whole    {store.log}: 3 rounds",
    ]
    found = json.loads(fedpcs("ledger", "verify", folder, "--json").stdout)
    assert found["is_whole"] is True
    assert found["files"][2] == {"path": str(store.log), "entries": {"rounds": 3}, "finding": "", "is_whole": True}


def test_one_ledger_is_checked_by_its_name(run):
    folder, store = run
    other = store.ledger.rename(folder / "kept.db")
    done = fedpcs("ledger", "verify", other)
    assert (done.returncode, done.stdout) == (0, f"whole    {other}: 12 charges, 0 limits, 12 rewards\n")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder, store: flip(store.log, 3000), "rounds.jsonl: line 1 is damaged"),
        (lambda folder, store: flip(folder / "agreed.json", 100), "agreed.json: is damaged"),
        (lambda folder, store: flip(store.ledger, 8 * 4096 + 20), "ledger.sqlite is damaged"),
        (lambda folder, store: store.ledger.write_bytes(b""), "is not there, or empty"),
        (lambda folder, store: store.ledger.unlink(), "is not there, or empty"),
        (
            lambda folder, store: store.log.write_bytes(
                b"".join(store.log.read_bytes().splitlines(keepends=True)[:-1])
            ),
            "rounds.jsonl: has 2 of 3 rounds that are done",
        ),
    ],
)
def test_damage_is_exit_6_with_the_file_and_what_is_wrong(run, damage, words):
    folder, store = run
    damage(folder, store)
    done = fedpcs("ledger", "verify", folder)
    assert done.returncode == 6
    (told,) = [line for line in done.stdout.splitlines() if line.startswith("damaged  ")]
    assert words in told
    assert len(done.stdout.splitlines()) == 3
    done = fedpcs("ledger", "verify", folder, "--json")
    assert done.returncode == 6
    found = json.loads(done.stdout)
    assert found["is_whole"] is False
    assert [words in one["finding"] for one in found["files"]].count(True) == 1


def test_where_there_is_no_ledger_is_exit_2(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        done = fedpcs("ledger", "verify", path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "no ledger there" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_file_that_is_no_ledger_is_exit_6(tmp_path):
    (tmp_path / "text").write_text("hello\n" * 100)
    done = fedpcs("ledger", "verify", tmp_path / "text")
    assert done.returncode == 6
    assert "is not a ledger" in done.stdout
