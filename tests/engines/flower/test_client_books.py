"""What a client keeps on its own disk: budgets it agreed to are kept to, and its ledger outlives everything."""

import json
from dataclasses import replace

import numpy as np
import pytest
from node_files import announcement, make_books

from fedpcs.engines.flower.preferences import Preferences
from fedpcs.errors import BudgetExhausted, CorruptFile, InvalidInput
from fedpcs.game import announce, best_response
from fedpcs.learning.client import ClientPlan
from fedpcs.learning.protocol import Task
from fedpcs.privacy import PrivacyLedger
from fedpcs.privacy.budget import Rho

ROUNDS, UNIT = 6, 0.01
TOLD = announcement(ROUNDS, cohort=20, clients=100)
PLAN = ClientPlan(mode="client", noise="secure")


@pytest.fixture
def books(tmp_path):
    return make_books(tmp_path / "client", 0.6, 8.0)


def charge(books, task, plan=PLAN):
    books.charge(task, plan.release_event(task, 50, plan.source()))


def test_budgets_are_the_best_response_rounded_down(books):
    expected = best_response(announce([7.0] * ROUNDS, [6.0] * ROUNDS, 20, 100), 0.6, 8.0).budget
    np.testing.assert_array_equal(books.agree(TOLD), np.floor(UNIT * expected * 1e9).astype(np.int64))


def test_the_same_announcement_is_answered_as_before_even_after_a_change_of_mind(books):
    first = books.agree(TOLD)
    again = replace(books, preferences=Preferences(0.1, 2.0)).agree(TOLD)  # a restart with other numbers
    np.testing.assert_array_equal(first, again)


def test_an_announcement_for_later_rounds_starts_from_where_the_client_stands(books):
    first = books.agree(TOLD)
    later = replace(TOLD, first_round=2, reward=(1.0,) * 4, mean_budget=(5.0,) * 4, cohort_size=(20,) * 4)
    answered = books.agree(later)
    assert answered[0] == first[2]
    assert (answered[1:] != first[3:]).all()
    kept = json.loads((books.folder / "agreed.json").read_text())["run"]["budgets"]
    assert kept == [*first[:2].tolist(), *answered.tolist()]


def test_one_who_missed_the_beginning_starts_from_its_initial_budget_and_owes_nothing_for_what_was_before(books):
    late = replace(TOLD, first_round=3, reward=(7.0,) * 3, mean_budget=(6.0,) * 3, cohort_size=(20,) * 3)
    found = books.agree(late)
    short = announcement(3, cohort=20, clients=100, run="from the beginning")
    np.testing.assert_array_equal(found, books.agree(short))
    np.testing.assert_array_equal(books.agree(late), found)
    with pytest.raises(InvalidInput, match="no budget was agreed for round 2"):
        books.check(Task(TOLD.run, 2, 0, "n", Rho(1)))
    books.check(Task(TOLD.run, 3, 0, "n", Rho(int(found[0]))))


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (Task("run", 1, 0, "n", Rho(1)), "was agreed"),
        (Task("run", ROUNDS, 0, "n", Rho(1)), "no budget was agreed"),
        (Task("another", 0, 0, "n", Rho(1)), "no budget was agreed"),
        (Task("run", 0, 0, "n", None), "must name a budget"),
    ],
)
def test_a_task_with_another_budget_than_agreed_is_refused(books, task, words):
    books.agree(TOLD)
    with pytest.raises(InvalidInput, match=words):
        books.check(task)


def test_an_agreed_task_passes(books):
    agreed = books.agree(TOLD)
    for round_index, nanos in enumerate(agreed):
        books.check(Task("run", round_index, 3, "n", Rho(int(nanos))))


def test_the_ledger_adds_up_over_restarts_and_runs_whatever_number_a_server_gives(books):
    charge(books, Task("run", 0, 3, "n", Rho.of(0.1)))
    again = replace(books)
    charge(again, Task("run", 1, 4, "n", Rho.of(0.1)))
    charge(again, Task("another", 0, 0, "n", Rho.of(0.1)))
    with PrivacyLedger.open(books.ledger) as ledger:
        assert ledger.spent("self").rho == Rho.of(0.3)


def test_fresh_noise_over_the_same_round_is_a_second_release(books):
    for _ in range(2):
        charge(books, Task("run", 0, 3, "n", Rho.of(0.1)))
    with PrivacyLedger.open(books.ledger) as ledger:
        assert ledger.spent("self").rho == Rho.of(0.2)


def test_nothing_is_released_past_the_clients_own_limit(books):
    limited = replace(books, limit=Rho.of(0.15))
    charge(limited, Task("run", 0, 3, "n", Rho.of(0.1)))
    with pytest.raises(BudgetExhausted):
        charge(limited, Task("run", 1, 3, "n", Rho.of(0.1)))


def test_damaged_books_are_not_written_over(books):
    books.agree(TOLD)
    (books.folder / "agreed.json").write_text('{"run": 3}')
    with pytest.raises(CorruptFile, match="Put back a copy"):
        books.agree(TOLD)
    assert (books.folder / "agreed.json").read_text() == '{"run": 3}'


@pytest.mark.parametrize(("aversion", "budget"), [(0.0, 1.0), (1.0, 1.0), (float("nan"), 1.0), (0.5, 0.0), (0.5, -1.0)])
def test_private_numbers_out_of_range_are_refused(aversion, budget):
    with pytest.raises(InvalidInput):
        Preferences(aversion, budget)


def test_a_folder_that_others_can_look_into_is_refused_with_the_command_that_closes_it(books):
    books.folder.mkdir(mode=0o750)
    with pytest.raises(InvalidInput, match=f"mode 0750.*chmod 700 {books.folder}"):
        books.agree(TOLD)
    with pytest.raises(InvalidInput, match="chmod 700"):
        charge(books, Task("run", 0, 3, "n", Rho.of(0.1)))
    assert list(books.folder.iterdir()) == []


def test_bounds_that_leave_out_what_a_client_would_spend_first_are_refused_without_that_number(books):
    with pytest.raises(InvalidInput, match=r"must hold what this client would spend first, got \[0.01, 7\]"):
        books.agree(announcement(ROUNDS, budget_bounds=(0.01, 7.0)))


def test_one_told_from_the_beginning_after_it_came_late_starts_from_its_initial_budget(books):
    late = replace(TOLD, first_round=3, reward=(7.0,) * 3, mean_budget=(6.0,) * 3, cohort_size=(20,) * 3)
    books.agree(late)
    earlier = replace(TOLD, first_round=1, reward=(7.0,) * 5, mean_budget=(6.0,) * 5, cohort_size=(20,) * 5)
    assert books.agree(earlier)[0] == int(UNIT * 8.0 * 1e9)


def test_what_was_agreed_is_released_only_while_the_client_still_accepts_it(books):
    task = Task("run", 0, 3, "n", Rho(int(books.agree(TOLD)[0])))
    books.check(task)
    with pytest.raises(InvalidInput, match=r"budget_bounds must be within \[0.01, 8\] by this client's own settings"):
        replace(books, accepted=replace(books.accepted, budget_bounds=(0.01, 8.0))).check(task)
