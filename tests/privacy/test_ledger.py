"""The ledger adds up exactly, refuses what would pass a limit, charges a release once, and pays a reward once."""

import itertools
import math
import random
import shutil
import sqlite3
import threading
from collections import defaultdict
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from fedpcs.errors import BudgetExhausted, CorruptFile, FedpcsError, InvalidInput
from fedpcs.privacy._ledger_chain import adding
from fedpcs.privacy.budget import MOST_NANOS, NANOS_PER_UNIT, Rho
from fedpcs.privacy.conversion import to_epsilon
from fedpcs.privacy.events import CLIENT_LEVEL, RECORD_LEVEL, Event, Family, compose, weakest
from fedpcs.privacy.ledger import Charge, PrivacyLedger, Receipt, ReleaseKey, Spent
from fedpcs.privacy.modes.paper import PAPER

LEVELS = (CLIENT_LEVEL, RECORD_LEVEL, PAPER.level)

NOT_NUMBERS = [math.nan, math.inf, -math.inf, -1, -1e-12, True, np.True_, "x", None, [1.0], 1j, 1e308]
NOT_TEXTS = [math.nan, True, None, "", "  ", "a\0b", "a\nb", "\ud800", b"x", ["x"], 1.5]
NUMBER = itertools.count()
WRITABLE = "PRAGMA writable_schema = ON; UPDATE sqlite_master "


def release(rho=0.1, *, level=CLIENT_LEVEL, noise="secure", family=Family.GAUSSIAN, is_replayable=False):
    return Event(Rho.of(rho), level, noise, family, is_replayable)


def key(round_index=0, client="ada", run="run"):
    return ReleaseKey(run, round_index, client)


@pytest.fixture
def ledger(tmp_path):
    with PrivacyLedger.open(tmp_path / "ledger.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One ledger for many Hypothesis cases, each with clients and runs of its own."""
    with PrivacyLedger.open(tmp_path_factory.mktemp("shared") / "ledger.sqlite") as opened:
        yield opened


# Charging


def test_a_charge_is_in_the_file_when_it_returns(ledger):
    receipt = ledger.charge(key(), release())
    assert receipt == Receipt(key(), 1, Rho.of(0.1), is_replay=False)
    # A copy of the files as they stand, never closed: what a crash would leave.
    copy = ledger.path.with_name("copy.sqlite")
    shutil.copy(ledger.path, copy)
    shutil.copy(f"{ledger.path}-wal", f"{copy}-wal")
    with PrivacyLedger.open(copy) as survivor:
        assert survivor.spent("ada").rho == Rho.of(0.1)


def test_a_commit_waits_for_the_disk(ledger):
    settings_of = {
        name: ledger._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
    }
    assert settings_of == {"journal_mode": "wal", "synchronous": 2}


def test_a_client_spends_over_all_runs_and_reopenings(tmp_path):
    path = tmp_path / "ledger.sqlite"
    for run in ("first", "second", "third"):
        with PrivacyLedger.open(str(path)) as ledger:
            ledger.charge(key(run=run), release())
    with PrivacyLedger.open(path) as ledger:
        assert ledger.spent("ada") == Spent(Rho.of(0.3), CLIENT_LEVEL, True, 3)
        assert ledger.path == path


def test_a_number_and_its_text_are_one_client(ledger):
    ledger.charge(key(0, client=7), release())
    ledger.charge(key(1, client="7"), release())
    ledger.charge(key(2, client=np.int64(7)), release())
    assert ledger.spent(7) == ledger.spent("7")
    assert ledger.spent(7).num_releases == 3
    assert ledger.clients() == ("7",)


events = st.builds(
    Event,
    st.integers(0, 10**12).map(Rho),
    st.sampled_from(LEVELS),
    st.sampled_from(["fast", "secure", "exact"]),
    st.sampled_from(Family),
    st.booleans(),
)


@cases(300)
@given(st.lists(events, max_size=12), st.integers(0, 100))
def test_the_total_is_the_composition_of_the_events_in_any_order(shared, charged, seed):
    run = f"compose {next(NUMBER)}"
    numbered = list(enumerate(charged))
    for client in ("as made", "shuffled"):
        shared.charge_many([(ReleaseKey(run, index, f"{run} {client}"), event) for index, event in numbered])
        random.Random(seed).shuffle(numbered)
        spent = shared.spent(f"{run} {client}")
        assert spent.rho == compose(charged)
        assert spent.level == weakest(event.level for event in charged)
        assert spent.is_gaussian == all(event.family is Family.GAUSSIAN for event in charged)
        assert spent.num_releases == len(charged)
    assert [line.event for line in shared.charges(run, f"{run} as made")] == charged


def test_a_charge_reads_no_row_but_those_of_its_client(ledger):
    plan = ledger._connection.execute(
        "EXPLAIN QUERY PLAN SELECT COALESCE(SUM(rho_nanos), 0) FROM charges WHERE client = 'ada'"
    ).fetchall()
    assert "USING COVERING INDEX charges_of_client (client=?)" in plan[0][3]


# Repeats


def test_the_same_bits_again_cost_nothing(ledger):
    event = release(is_replayable=True)
    ledger.charge(key(), event)
    ledger.set_limit("ada", 0.1)  # used up: a replay is allowed all the same
    assert ledger.charge(key(), event) == Receipt(key(), 1, Rho(0), is_replay=True)
    assert ledger.spent("ada") == Spent(Rho.of(0.1), CLIENT_LEVEL, True, 1)


def test_fresh_noise_over_the_same_data_is_charged_again(ledger):
    receipts = [ledger.charge(key(), release()) for _ in range(3)]
    assert [receipt.attempt for receipt in receipts] == [1, 2, 3]
    assert not any(receipt.is_replay for receipt in receipts)
    assert ledger.spent("ada").rho == Rho.of(0.3)
    assert [line.attempt for line in ledger.charges()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"rho": 0.2}, "rho was ρ = 0.1, is ρ = 0.2"),
        ({"level": RECORD_LEVEL}, r"level was client, is record"),
        ({"noise": "fast"}, "noise was secure, is fast"),
        ({"family": Family.DISCRETE_GAUSSIAN}, "family was gaussian, is discrete-gaussian"),
        ({"is_replayable": False}, "is_replayable was True, is False"),
    ],
)
def test_one_key_cannot_stand_for_two_replayable_releases(ledger, change, shown):
    ledger.charge(key(), release(is_replayable=True))
    with pytest.raises(InvalidInput, match=shown):
        ledger.charge(key(), release(**{"is_replayable": True, **change}))
    assert ledger.spent("ada").num_releases == 1


# Limits


def test_a_release_past_the_limit_is_refused_before_the_client_trains(ledger):
    """P16: the refusal says what is left and what was asked for, and nothing is written."""
    ledger.set_limit("ada", 0.25)
    ledger.charge_many([(key(0), release()), (key(1), release())])
    assert ledger.would_exceed("ada", 0.1)
    with pytest.raises(BudgetExhausted) as caught:
        ledger.charge(key(2), release())
    assert (caught.value.remaining, caught.value.requested, caught.value.exit_code) == (0.05, 0.1, 4)
    for part in ("'ada'", "spent ρ = 0.2", "limit ρ = 0.25", "ρ = 0.05 remains", "needs ρ = 0.1", "set_limit"):
        assert part in str(caught.value)
    assert ledger.spent("ada").num_releases == 2
    assert not ledger.would_exceed("ada", 0.05)
    assert ledger.charge(key(2), release(0.05)).rho == Rho.of(0.05)
    assert ledger.remaining("ada") == Rho(0)


def test_a_limit_can_be_replaced_even_below_what_is_spent(ledger):
    ledger.charge(key(), release(0.5))
    ledger.set_limit("ada", Rho.of(0.2))
    assert (ledger.remaining("ada"), ledger.would_exceed("ada", 1e-9)) == (Rho(0), True)
    ledger.set_limit("ada", 0.7)
    assert ledger.remaining("ada") == Rho.of(0.2)


def test_a_cohort_is_charged_whole_or_not_at_all(ledger):
    ledger.set_limit("bob", 0.05)
    cohort = [(key(client=client), release()) for client in ("ada", "bob", "cleo")]
    with pytest.raises(BudgetExhausted, match="'bob'"):
        ledger.charge_many(cohort)
    assert list(ledger.charges()) == []
    assert len(ledger.charge_many(cohort[::2])) == 2
    assert ledger.charge_many([]) == ()


def test_a_cohort_may_name_a_client_twice_but_not_past_its_limit(ledger):
    ledger.set_limit("ada", 0.15)
    with pytest.raises(BudgetExhausted):
        ledger.charge_many([(key(0), release()), (key(1), release())])
    assert ledger.spent("ada").num_releases == 0


steps = st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from([0, 1, 3, 5, 10**9]), st.booleans())


@cases(150)
@given(st.lists(steps, max_size=15), st.lists(st.none() | st.integers(0, 12), min_size=3, max_size=3))
def test_any_sequence_of_charges_follows_the_rules(shared, sequence, limits):
    """Against a twin that keeps lists in memory: free, refused or charged, and never past the limit."""
    run = f"rules {next(NUMBER)}"
    names = [f"{run} {client}" for client in range(3)]
    for name, limit in zip(names, limits, strict=True):
        if limit is not None:
            shared.set_limit(name, Rho(limit))
    charged = defaultdict(list)
    for client, round_index, nanos, is_replayable in sequence:
        event = Event(Rho(nanos), PAPER.level, "noise", Family.GAUSSIAN, is_replayable)
        before = [old for t, old in charged[client] if t == round_index]
        spent = sum(old.rho.nanos for _, old in charged[client])
        at = ReleaseKey(run, round_index, names[client])
        if before and before[-1].is_replayable and before[-1] == event:
            assert shared.charge(at, event) == Receipt(at, len(before), Rho(0), is_replay=True)
        elif before and before[-1].is_replayable:
            with pytest.raises(InvalidInput, match="must equal the one charged"):
                shared.charge(at, event)
        elif limits[client] is not None and spent + nanos > limits[client]:
            assert shared.would_exceed(names[client], event.rho)
            with pytest.raises(BudgetExhausted) as caught:
                shared.charge(at, event)
            assert (caught.value.remaining, caught.value.requested) == ((limits[client] - spent) / 1e9, nanos / 1e9)
        else:
            assert shared.charge(at, event) == Receipt(at, len(before) + 1, event.rho, is_replay=False)
            charged[client].append((round_index, event))
    for client, name in enumerate(names):
        assert shared.spent(name).rho == compose(event for _, event in charged[client])
        assert limits[client] is None or shared.spent(name).rho <= Rho(limits[client])


# Reports


def test_epsilon_is_exact_for_gaussian_noise_and_tight_otherwise(ledger):
    ledger.charge(key(0), release(0.5))
    assert ledger.spent("ada").epsilon(1e-5) == to_epsilon(0.5, 1e-5, "exact") == pytest.approx(4.37718, abs=1e-5)
    ledger.charge(key(1), release(0.5, family=Family.DISCRETE_GAUSSIAN))
    assert ledger.spent("ada").epsilon(1e-5) == to_epsilon(1.0, 1e-5, "tight") == pytest.approx(7.07720, abs=1e-5)


def test_nothing_spent_is_no_level_and_epsilon_zero(ledger):
    assert ledger.spent("nobody") == Spent(Rho(0), None, True, 0)
    assert ledger.spent("nobody").epsilon(1e-5) == 0.0
    assert ledger.clients() == ()


def test_charges_come_back_in_order_as_they_were_made(ledger):
    """More than a page of them, and a charge made meanwhile is read too."""
    rng = random.Random(1)
    made = [
        (
            ReleaseKey(f"run {rng.randrange(3)}", index, str(rng.randrange(5))),
            Event(Rho(rng.randrange(100)), rng.choice(LEVELS), "noise", rng.choice(list(Family)), rng.random() < 0.5),
        )
        for index in range(2100)
    ]
    ledger.charge_many(made)
    lines = [Charge(at, 1, event) for at, event in made]
    assert list(ledger.charges(run="run 1")) == [line for line in lines if line.key.run == "run 1"]
    assert list(ledger.charges(client=3)) == [line for line in lines if line.key.client == "3"]
    reader = ledger.charges()
    assert next(reader) == lines[0]
    ledger.charge(key(), release())
    assert list(reader) == [*lines[1:], Charge(key(), 1, release())]


# Rewards


def test_a_reward_is_owed_once(ledger):
    assert ledger.owe(key(), 1.5) is True
    assert ledger.owe(key(), 1.5) is False
    assert ledger.owed() == Fraction(3, 2)
    with pytest.raises(InvalidInput, match=r"amount must be 1\.5, .* got 2"):
        ledger.owe(key(), 2)
    assert ledger.owed() == Fraction(3, 2)


def test_a_reward_is_paid_once(ledger):
    ledger.owe(key(0), 1.5)
    ledger.owe(key(1), 0.25)
    assert [ledger.pay(key(0)), ledger.pay(key(0))] == [True, False]
    assert ledger.owed() == Fraction(1, 4)
    assert ledger.owe(key(0), 1.5) is False  # paid is paid
    assert ledger.owed() == Fraction(1, 4)
    with pytest.raises(InvalidInput, match="Owe it first"):
        ledger.pay(key(2))


@cases(100)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 10**10), st.booleans()), max_size=8))
def test_rewards_add_up_exactly_by_run_and_client(shared, rewards):
    run = f"rewards {next(NUMBER)}"
    unpaid = {}
    for round_index, client, nanos, is_paid in rewards:
        at = ReleaseKey(run, round_index, client)
        if at not in unpaid:
            assert shared.owe(at, Fraction(nanos, NANOS_PER_UNIT))
            assert not is_paid or shared.pay(at)
            unpaid[at] = 0 if is_paid else nanos
    assert shared.owed(run=run) == Fraction(sum(unpaid.values()), NANOS_PER_UNIT)
    for client in range(3):
        expected = sum(nanos for at, nanos in unpaid.items() if at.client == client)
        assert shared.owed(run=run, client=client) == Fraction(expected, NANOS_PER_UNIT)


def test_amounts_are_read_as_written_to_the_nearest_billionth(ledger):
    for index, amount in enumerate([0.1, 0.2, Fraction(1, 3), 7, 1e-10, -0.0]):
        ledger.owe(key(index), amount)
    assert ledger.owed() == Fraction(3, 10) + Fraction(333_333_333, 10**9) + 7


# Too much


def test_a_total_that_an_integer_cannot_hold_is_refused(ledger):
    ledger.charge(key(0), Event(Rho(MOST_NANOS), CLIENT_LEVEL, "secure", Family.GAUSSIAN))
    assert ledger.would_exceed("ada", Rho(1))
    with pytest.raises(InvalidInput, match=r"'ada'.*beyond what a ledger can count"):
        ledger.charge(key(1), Event(Rho(1), CLIENT_LEVEL, "secure", Family.GAUSSIAN))
    assert ledger.spent("ada").rho == Rho(MOST_NANOS)


def test_a_full_disk_is_told_and_charges_nothing(ledger):
    (pages,) = ledger._connection.execute("PRAGMA page_count").fetchone()
    ledger._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(FedpcsError, match="does not fit on its disk"):
        ledger.charge_many([(key(index), release()) for index in range(1000)])
    assert ledger.spent("ada").num_releases == 0
    ledger._connection.execute("PRAGMA max_page_count = 100000")
    assert ledger.charge(key(), release()).attempt == 1


def test_a_ledger_another_process_holds_is_told(ledger):
    ledger._connection.execute("PRAGMA busy_timeout = 20")
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(FedpcsError, match="held by another process"):
        ledger.charge(key(), release())
    assert ledger.spent("ada").num_releases == 0  # reading goes on
    other.close()
    assert ledger.charge(key(), release()).attempt == 1


# Files


def filled(folder):
    """The path of a closed ledger of some pages."""
    path = folder / "ledger.sqlite"
    with PrivacyLedger.open(path) as ledger:
        ledger.charge_many([(key(index, client=index % 7), release(0.001)) for index in range(300)])
        ledger.set_limit("ada", 1.0)
        for index in range(100):
            ledger.owe(key(index), 1.25)
    return path


def assert_refused_and_untouched(path, kind, match, exit_code):
    content = path.read_bytes()
    with pytest.raises(kind, match=match) as caught:
        PrivacyLedger.open(path)
    assert caught.value.exit_code == exit_code
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize("size", [1, 10, 100, 4096, 100_000])
def test_random_bytes_are_not_a_ledger(tmp_path, size):
    path = tmp_path / "noise"
    path.write_bytes(random.Random(size).randbytes(size))
    assert_refused_and_untouched(path, CorruptFile, "not a ledger", 6)


def test_a_ledger_cut_anywhere_is_refused(tmp_path):
    whole = filled(tmp_path).read_bytes()
    path = tmp_path / "cut.sqlite"
    cuts = [1, 20, 99, 100, 101, 4095, 4096, 4097, len(whole) - 4096, len(whole) - 100, len(whole) - 1]
    for length in [*cuts, *random.Random(3).sample(range(len(whole)), 20)]:
        path.write_bytes(whole[:length])
        assert_refused_and_untouched(path, CorruptFile, "Put back a copy", 6)


def test_a_ledger_with_a_page_of_rubbish_is_refused(tmp_path):
    whole = filled(tmp_path).read_bytes()
    path = tmp_path / "holed.sqlite"
    for page in range(len(whole) // 4096):
        rubbish = random.Random(page).randbytes(4096)
        path.write_bytes(whole[: page * 4096] + rubbish + whole[(page + 1) * 4096 :])
        assert_refused_and_untouched(path, CorruptFile, "Put back a copy", 6)


def test_an_unknown_level_or_family_is_refused(tmp_path):
    """In a row that carries the right hash, as another make of fedpcs might write it."""
    path = filled(tmp_path)
    for number, kinds in enumerate([("none", "gaussian"), ("client", "none")]):
        with closing(sqlite3.connect(path)) as connection, connection, adding(connection, "charges") as add:
            add("run", number, "bob", 1, 5, kinds[0], "secure", kinds[1], 0)
        with PrivacyLedger.open(path) as ledger, pytest.raises(CorruptFile, match="none"):
            list(ledger.charges(client="bob"))
    with PrivacyLedger.open(path) as ledger, pytest.raises(CorruptFile, match="unknown level 'none'"):
        ledger.spent("bob")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("PRAGMA application_id = 1", "another make"),
        ("PRAGMA user_version = 0", "its version is 0"),
        ("DROP TABLE rewards", "rewards.* is missing"),
        ("DROP TABLE charges", "charges.* is missing"),
        ("DROP INDEX charges_of_client", "charges_of_client is missing"),
        ("CREATE TABLE more (name TEXT)", "more is missing, added"),
        ("CREATE VIEW more AS SELECT * FROM limits", "more is missing, added"),
        ("CREATE TRIGGER more AFTER INSERT ON charges BEGIN DELETE FROM charges; END", "more is missing, added"),
        ("ALTER TABLE limits ADD COLUMN more TEXT", "limits is missing, added or not as"),
        ("ALTER TABLE charges RENAME COLUMN rho_nanos TO rho_nanor", "charges.* not as"),
        (WRITABLE + "SET sql = replace(sql, 'rho_nanos INTEGER', 'rho_nanos INTEGES')", "not as fedpcs makes it"),
        (WRITABLE + "SET sql = replace(sql, 'rho_nanos INT', 'rho_nanos REAL')", "not as fedpcs makes it"),
        (WRITABLE + "SET sql = 'CREATE TABLF x' WHERE name = 'charges'", "is damaged"),
        ("PRAGMA writable_schema = ON; DELETE FROM sqlite_master WHERE name = 'rewards'", "is damaged"),
    ],
)
def test_the_database_of_another_program_is_left_alone(tmp_path, change, words):
    """A ledger but for one mark of its make."""
    path = filled(tmp_path)
    connection = sqlite3.connect(path)
    connection.executescript(change)
    connection.commit()
    connection.close()
    assert_refused_and_untouched(path, CorruptFile, words, 6)


def test_opening_waits_for_a_process_that_writes(tmp_path):
    """SQLite refuses at once to begin a log while another process writes, whatever its timeout."""
    path = filled(tmp_path)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.1, other.close)
    timer.start()
    with PrivacyLedger.open(path) as ledger:
        assert ledger._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    timer.join()


def test_a_newer_format_is_refused(tmp_path):
    path = filled(tmp_path)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {3 << 16 | 3}")
    connection.close()
    assert_refused_and_untouched(path, InvalidInput, "format 3.*Upgrade fedpcs", 2)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_log_whose_ledger_is_gone_is_kept(tmp_path, is_there):
    """SQLite would delete it, and the charges in it."""
    path = tmp_path / "ledger.sqlite"
    log = tmp_path / "ledger.sqlite-wal"
    log.write_bytes(b"charges")
    if is_there:
        path.touch()
    with pytest.raises(CorruptFile, match=r"its log ledger\.sqlite-wal is there"):
        PrivacyLedger.open(path)
    assert log.read_bytes() == b"charges"


def test_an_empty_file_becomes_a_ledger(tmp_path):
    path = tmp_path / "empty"
    path.touch()
    with PrivacyLedger.open(path) as ledger:
        ledger.charge(key(), release())
    with PrivacyLedger.open(path) as ledger:
        assert ledger.spent("ada").num_releases == 1


def test_a_closed_ledger_leaves_one_file(tmp_path):
    filled(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.sqlite"]


def test_a_path_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    for path in (tmp_path, tmp_path / "missing" / "ledger.sqlite", tmp_path / "a" / ".." / "b" / "c"):
        with pytest.raises(InvalidInput, match=r"cannot be written.*existing, writable folder"):
            PrivacyLedger.open(path)
    path = filled(tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    for refused in (path, tmp_path / "new.sqlite"):
        with pytest.raises(InvalidInput, match="cannot be written"):
            PrivacyLedger.open(refused)


def test_a_ledger_that_has_become_read_only_is_told(ledger):
    ledger._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(InvalidInput, match="Make it writable"):
        ledger.charge(key(), release())


@pytest.mark.parametrize("bad", [None, True, math.nan, -1, 3, b"ledger", "", ":memory:", "a\0b"])
def test_a_path_must_name_a_file(bad):
    with pytest.raises(InvalidInput, match="path must be the name of a file"):
        PrivacyLedger.open(bad)


# Misuse


def test_a_closed_ledger_says_so(ledger):
    ledger.close()
    ledger.close()
    for use in (lambda: ledger.charge(key(), release()), lambda: ledger.spent("ada"), lambda: list(ledger.charges())):
        with pytest.raises(InvalidInput, match="closed"):
            use()


def test_a_ledger_of_another_thread_says_so(ledger):
    caught = []

    def use():
        try:
            ledger.charge(key(), release())
        except InvalidInput as error:
            caught.append(str(error))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "one ledger per thread" in caught[0]


def test_a_ledger_does_not_pass_to_a_forked_process(ledger, monkeypatch):
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(InvalidInput, match="Open it again in this one"):
        ledger.charge(key(), release())


@pytest.mark.parametrize("bad", NOT_TEXTS)
def test_names_must_be_texts(ledger, bad):
    with pytest.raises(InvalidInput, match="run must be"):
        ReleaseKey(bad, 0, "ada")
    with pytest.raises(InvalidInput, match="client must be"):
        ReleaseKey("run", 0, bad)
    with pytest.raises(InvalidInput, match="noise must be"):
        ledger.charge(key(), release(noise=bad))
    for ask in (ledger.limit, ledger.spent, ledger.remaining):
        with pytest.raises(InvalidInput, match="client must be"):
            ask(bad)
    with pytest.raises(InvalidInput, match="client must be"):
        ledger.set_limit(bad, 1.0)
    with pytest.raises(InvalidInput, match="client must be"):
        ledger.would_exceed(bad, 1.0)
    if bad is not None:  # None asks for all
        for look in (ledger.charges, ledger.owed):
            with pytest.raises(InvalidInput, match="run must be"):
                look(run=bad)
            with pytest.raises(InvalidInput, match="client must be"):
                look(client=bad)


@pytest.mark.parametrize("bad", [-1, 2**63, 10**100])
def test_a_client_number_is_zero_or_above(bad):
    with pytest.raises(InvalidInput, match="client must be a whole number"):
        ReleaseKey("run", 0, bad)


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, 0.5, 2**63])
def test_a_round_is_a_whole_number(bad):
    with pytest.raises(InvalidInput, match="round_index must be a whole number"):
        ReleaseKey("run", bad, "ada")


@pytest.mark.parametrize("bad", NOT_NUMBERS)
def test_budgets_and_amounts_are_finite_numbers_of_zero_or_above(ledger, bad):
    with pytest.raises(InvalidInput, match="rho must be"):
        ledger.set_limit("ada", bad)
    with pytest.raises(InvalidInput, match="rho must be"):
        ledger.would_exceed("ada", bad)
    with pytest.raises(InvalidInput, match="amount must be"):
        ledger.owe(key(), bad)
    assert (ledger.limit("ada"), ledger.owed()) == (None, 0)


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, 0.0, 1.0])
def test_delta_lies_strictly_between_zero_and_one(ledger, bad):
    with pytest.raises(InvalidInput, match="delta must be"):
        ledger.spent("ada").epsilon(bad)


@pytest.mark.parametrize("bad", [None, True, math.nan, -1, "x", ("run", 0, "ada")])
def test_a_key_is_a_release_key(ledger, bad):
    for use in (lambda: ledger.charge(bad, release()), lambda: ledger.owe(bad, 1.0), lambda: ledger.pay(bad)):
        with pytest.raises(InvalidInput, match="key must be a ReleaseKey"):
            use()


@pytest.mark.parametrize("bad", [None, True, 0.1, "x", Rho.of(0.1)])
def test_what_is_not_an_event_is_not_charged(ledger, bad):
    with pytest.raises(InvalidInput, match="event must be an Event"):
        ledger.charge_many([(key(0), release()), (key(1), bad)])
    assert list(ledger.charges()) == []


@pytest.mark.parametrize(
    "change",
    [{"rho": 0.1}, {"rho": math.nan}, {"rho": None}, {"level": "client"}, {"family": "gaussian"}, {"is_replayable": 1}],
)
def test_an_event_that_says_less_than_accounting_needs_is_not_charged(ledger, change):
    said = {"rho": Rho.of(0.1), "level": CLIENT_LEVEL, "noise": "secure", "family": Family.GAUSSIAN, **change}
    with pytest.raises(InvalidInput, match="must be"):
        ledger.charge_many([(key(0), release()), (key(1), Event(**said))])
    assert list(ledger.charges()) == []


@pytest.mark.parametrize("bad", [None, 3, "x", [None], [key()], [(key(),)], [(key(), release(), 1)]])
def test_a_cohort_is_pairs(ledger, bad):
    with pytest.raises(InvalidInput, match="releases must be pairs"):
        ledger.charge_many(bad)
