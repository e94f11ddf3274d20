"""A ledger notices whatever was done to its file: a flipped bit, an edit, a row removed, its log cut into."""

import hashlib
import os
import random
import shutil
import sqlite3
import stat
from contextlib import closing

import pytest
from sqlite_bytes import idle_bits

from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.events import CLIENT_LEVEL, Event, Family
from fedpcs.privacy.ledger import PrivacyLedger, ReleaseKey

RUN, CLIENTS, COHORT = "fashion-mnist/fedpcs/0", 20, 10
FRAME = 24 + 4096


def event(rng):
    return Event(Rho(rng.randrange(10**6, 10**8)), CLIENT_LEVEL, "fast", Family.GAUSSIAN, True)


def play(ledger, rounds):
    """Do what a run of some rounds does to its ledger, and pay some of what is owed."""
    for number in rounds:
        rng = random.Random(number)
        cohort = [ReleaseKey(RUN, number, client) for client in rng.sample(range(CLIENTS), COHORT)]
        ledger.set_limits([(key.client, 50.0) for key in cohort])
        ledger.charge_many([(key, event(rng)) for key in cohort])
        ledger.owe_many([(key, rng.random()) for key in cohort])
        for key in cohort[:3]:
            ledger.pay(key)
        ledger.set_limit(number % CLIENTS, 40.0)


def answers(ledger):
    """All a ledger can be asked."""
    clients = ledger.clients()
    of_each = [(ledger.spent(c), ledger.limit(c), ledger.remaining(c), ledger.owed(client=c)) for c in clients]
    rest = ledger.owed(), ledger.totals(RUN, 0, 10**6), ledger.num_rows()
    return clients, of_each, list(ledger.charges()), rest


def answers_of(path):
    with PrivacyLedger.open(path) as ledger:
        return answers(ledger)


def flipped(content, bit):
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A ledger that was closed: its file, and what it answers."""
    path = tmp_path_factory.mktemp("whole") / "ledger.sqlite"
    with PrivacyLedger.open(path) as ledger:
        play(ledger, range(30))
        expected = answers(ledger)
    return path, expected


@pytest.fixture
def path(whole, tmp_path):
    return shutil.copy(whole[0], tmp_path / "ledger.sqlite")


def count_flips(path, content, bits, expected):
    """Return how many flips are noticed, and the bits of those that change no answer; any other fails the test."""
    noticed, idle = 0, []
    for bit in bits:
        path.write_bytes(flipped(content, bit))
        try:
            found = answers_of(path)
        except CorruptFile as error:
            noticed += "\n" not in str(error)
        else:
            assert found == expected, f"bit {bit} changes an answer and nobody notices"
            idle.append(bit)
    return noticed, idle


@pytest.mark.parametrize("number", [pytest.param(10_000, marks=pytest.mark.slow), 250])
def test_no_flipped_bit_of_a_ledger_passes_unnoticed(whole, tmp_path, number):
    """Done-when 4. A bit is noticed when the file is opened, or it is one that SQLite never reads.

    Which bits these are is not taken from what happens: `sqlite_bytes` reads it off the pages.
    """
    original, expected = whole
    content = original.read_bytes()
    bits = random.Random(26).sample(range(8 * len(content)), number)
    noticed, idle = count_flips(tmp_path / "ledger.sqlite", content, bits, expected)
    never_read = idle_bits(content)
    print(f"{number} flips: {noticed} noticed, {len(idle)} in bits that are never read, 0 missed")
    assert noticed + len(idle) == number
    assert set(idle) <= never_read
    assert noticed > number / 2


EDITS = [
    "UPDATE charges SET rho_nanos = rho_nanos - 1 WHERE number = 7",
    "UPDATE charges SET rho_nanos = rho_nanos + 1 WHERE number = 7",
    "PRAGMA ignore_check_constraints = ON; UPDATE charges SET rho_nanos = -1 WHERE number = 7",
    "UPDATE charges SET client = 'zz' WHERE number = 3",
    "UPDATE charges SET client = 'eve' WHERE number = 7",
    "UPDATE charges SET round_index = 77 WHERE number = 7",
    "UPDATE charges SET is_replayable = 0 WHERE number = 7",
    "UPDATE charges SET family = 'discrete-gaussian' WHERE number = 7",
    "UPDATE charges SET hash = zeroblob(32) WHERE number = 7",
    "UPDATE charges SET number = 1000 WHERE number = 7",
    "DELETE FROM charges WHERE number = 7",
    "DELETE FROM charges WHERE number = (SELECT MAX(number) FROM charges)",
    "DELETE FROM charges",
    "INSERT INTO charges SELECT 301, run, 99, client, 1, 0, level, noise, family, 0, hash FROM charges LIMIT 1",
    "UPDATE charges SET number = -number; UPDATE charges SET number = 301 + number",  # the other way round
    "UPDATE limits SET rho_nanos = 9 * rho_nanos WHERE number = 3",
    "DELETE FROM limits WHERE number = (SELECT MAX(number) FROM limits)",
    "UPDATE rewards SET amount_nanos = 0 WHERE number = 4",
    "UPDATE rewards SET is_paid = 1 - is_paid WHERE number = 4",
    "DELETE FROM rewards WHERE is_paid = 1",
    "DELETE FROM rewards WHERE number = (SELECT MAX(number) FROM rewards)",
    "UPDATE heads SET num_rows = num_rows - 1 WHERE name = 'charges'",
    "UPDATE heads SET hash = (SELECT hash FROM charges WHERE number = 5) WHERE name = 'charges'",
    "UPDATE heads SET name = 'charge' WHERE name = 'charges'",
    "DELETE FROM heads",
    "INSERT INTO heads VALUES ('more', 0, x'00')",
]


@pytest.mark.parametrize("edit", EDITS)
def test_no_edit_of_rows_passes_unnoticed(path, edit):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(edit)
    with pytest.raises(CorruptFile, match="is damaged"):
        PrivacyLedger.open(path)


def test_the_first_row_that_is_not_as_it_was_written_is_named(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE charges SET rho_nanos = 0 WHERE number IN (17, 170)")
    with pytest.raises(CorruptFile, match="row 17 of charges was changed"):
        PrivacyLedger.open(path)


def test_the_chain_is_the_one_that_is_described(path):
    """By hand, so that others can check a ledger without fedpcs."""
    with closing(sqlite3.connect(path)) as connection:
        for table in ("charges", "limits", "rewards"):
            digest = hashlib.sha256(table.encode()).digest()
            rows = connection.execute(f"SELECT * FROM {table} ORDER BY number").fetchall()
            for *columns, stored in rows:
                digest = hashlib.sha256(digest + repr(tuple(columns)).encode("ascii")).digest()
                assert stored == digest
            head = connection.execute("SELECT num_rows, hash FROM heads WHERE name = ?", (table,)).fetchone()
            assert head == (len(rows), digest)


def test_a_name_that_is_no_ascii_is_in_the_chain(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with PrivacyLedger.open(path) as ledger:
        ledger.charge(ReleaseKey("лауф", 0, "Zoë 🐢"), event(random.Random(1)))
    assert answers_of(path)[0] == ("Zoë 🐢",)


def test_ledgers_open_at_once_continue_one_chain(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with PrivacyLedger.open(path) as one, PrivacyLedger.open(path) as other:
        for number in range(0, 10, 2):
            play(one, [number])
            play(other, [number + 1])
        expected = answers(one)
    assert answers_of(path) == expected


def test_what_changes_nothing_adds_no_row(path):
    with PrivacyLedger.open(path) as ledger:
        before = ledger.num_rows()
        play(ledger, [29])  # charges that are replays, rewards that are owed and paid
        assert {name: count - before[name] for name, count in ledger.num_rows().items()} == {
            "charges": 0,
            "limits": 2,  # a limit that was raised, and lowered again
            "rewards": 0,
        }


def test_a_row_is_refused_wholly_if_one_of_its_cohort_is(path):
    with PrivacyLedger.open(path) as ledger:
        before = ledger.num_rows()
        pairs = [(ReleaseKey(RUN, 100, 1), event(random.Random(2))), (ReleaseKey(RUN, 0, "new"), None)]
        with pytest.raises(InvalidInput):
            ledger.charge_many(pairs)
        with pytest.raises(InvalidInput, match="Owe it first"):
            ledger.pay(ReleaseKey(RUN, 100, 1))
        assert ledger.num_rows() == before
    assert answers_of(path)


# The write-ahead log, as a crash leaves it


@pytest.fixture(scope="module")
def crashed(whole, tmp_path_factory):
    """A ledger and its log as they stand while it is open; what it answers then, and what without the last round."""
    folder = tmp_path_factory.mktemp("crashed")
    path = shutil.copy(whole[0], folder / "ledger.sqlite")
    with PrivacyLedger.open(path) as ledger:
        play(ledger, [30])
        ledger.charge(ReleaseKey("last", 0, 1), event(random.Random(3)))
        before = answers(ledger)
        ledger.charge(ReleaseKey("last", 1, 1), event(random.Random(4)))
        return path.read_bytes(), folder.joinpath("ledger.sqlite-wal").read_bytes(), answers(ledger), before


def with_log(folder, content, log):
    path = folder / "ledger.sqlite"
    path.write_bytes(content)
    folder.joinpath("ledger.sqlite-wal").write_bytes(log)
    folder.joinpath("ledger.sqlite-shm").unlink(missing_ok=True)
    return path


def test_no_flipped_bit_of_a_log_passes_unnoticed(crashed, tmp_path):
    """SQLite would take each for the place of a crash, and forget the charges behind it. No bit of a log is idle."""
    content, log, expected, _ = crashed
    assert answers_of(with_log(tmp_path, content, log)) == expected
    heads = [index for frame in (1, 2) for index in range(len(log) - frame * FRAME, len(log) - frame * FRAME + 24)]
    rng = random.Random(27)
    bits = [8 * index + rng.randrange(8) for index in [*range(32), *heads]]
    for bit in bits + rng.sample(range(8 * len(log)), 60):
        path = with_log(tmp_path, content, flipped(log, bit))
        with pytest.raises(CorruptFile, match="of its log is not as it was written"):
            PrivacyLedger.open(path)
        assert path.read_bytes() == content
        assert path.with_name("ledger.sqlite-wal").read_bytes() == flipped(log, bit)


def test_a_log_that_a_crash_cut_short_is_no_damage(crashed, tmp_path):
    """What was being written when the process was killed or the power failed had not been released."""
    content, log, expected, before = crashed
    last = len(log) - FRAME
    for cut in (last, last + 10, last + 24, len(log) - 1):
        assert answers_of(with_log(tmp_path, content, log[:cut])) == before
    for length in (0, 10, 32, 33, 40):
        answers_of(with_log(tmp_path, content, log[:length]))
    assert answers_of(with_log(tmp_path, content, log + bytes(2 * FRAME))) == expected
    assert answers_of(with_log(tmp_path, content, log + random.Random(5).randbytes(2 * FRAME))) == expected
    torn = log[: last - 3000] + random.Random(6).randbytes(3000) + log[last:]  # a page that was not yet on the disk
    assert answers_of(with_log(tmp_path, content, torn)) == before


def test_a_log_with_a_hole_before_its_last_transaction_is_damaged(crashed, tmp_path):
    content, log, _, _ = crashed
    holed = log[:5000] + random.Random(7).randbytes(3000) + log[8000:]
    with pytest.raises(CorruptFile, match="frame 2 of its log"):
        PrivacyLedger.open(with_log(tmp_path, content, holed))


# Who may read it


def test_only_its_owner_reads_a_ledger_and_what_stands_beside_it(tmp_path):
    before = os.umask(0)
    try:
        (tmp_path / "empty.sqlite").touch(0o666)
        for name in ("new.sqlite", "empty.sqlite"):
            with PrivacyLedger.open(tmp_path / name) as ledger:
                play(ledger, [0])
                found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob(f"{name}*")}
                assert found == {name: 0o600, f"{name}-wal": 0o600, f"{name}-shm": 0o600}
    finally:
        os.umask(before)
