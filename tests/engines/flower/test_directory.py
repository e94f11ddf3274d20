"""Who is connected: names belong to whoever said them first, for as long as he is there."""

import pytest
from flwr.app import Message
from flwr.clientapp import ClientApp
from local_grid import LocalGrid

from fedpcs.engines.flower import messages
from fedpcs.engines.flower.directory import Directory

SAYS = {11: ("ada", 20), 12: ("bob", 30), 13: ("ada", 20), 14: ("eve", 5), 15: ("bob", 31), 16: ("", 3)}


@pytest.fixture
def grid():
    app = ClientApp()

    @app.query("hello")
    def hello(message, context):
        return Message(messages.hello_content(messages.Hello(*SAYS[context.node_id])), reply_to=message)

    made = LocalGrid(app, list(SAYS))
    made.node_ids = [11, 12]
    return made


@pytest.fixture
def said():
    return []


@pytest.fixture
def directory(grid, said):
    made = Directory(grid, 0.0, said.append)
    made.wait_for(2, 1.0)
    made.enrol({one["name"]: one["num_samples"] for one in made.roster()}, {})
    return made


def test_clients_are_numbered_by_name(directory):
    assert directory.nodes() == {0: 11, 1: 12}


@pytest.mark.parametrize(("node", "why"), [(13, "another node has"), (14, "was not there"), (15, "it had 30 records")])
def test_a_node_that_is_not_who_it_says_is_not_heard_and_named_once(directory, grid, said, node, why):
    grid.node_ids = [11, 12, node] if node != 15 else [11, 15]
    for _ in range(3):
        directory.refresh()
    assert node not in directory.nodes().values()
    assert [why in words for words in said].count(True) == 1


def test_a_client_that_moves_is_heard_once_its_old_node_has_gone(directory, grid):
    grid.node_ids = [11, 12, 13]
    directory.refresh()
    assert directory.nodes() == {0: 11, 1: 12}
    grid.node_ids = [12, 13]
    assert directory.is_connected().tolist() == [True, True]
    assert directory.nodes() == {0: 13, 1: 12}


def test_a_node_without_a_name_is_nobody(directory, grid, said):
    grid.node_ids = [11, 12, 16]
    directory.refresh()
    assert directory.nodes() == {0: 11, 1: 12}
    assert "does not say who it is" in said[-1]


def test_a_node_that_says_nothing_is_not_asked_in_every_round(directory, grid, said):
    """Once a run goes on: each time it is asked, the others wait."""
    grid.node_ids = [11, 12, 99]  # one that SAYS knows nothing of fails
    for _ in range(5):
        directory.refresh()
    assert [words for words in said if "does not say who it is" in words][1:] == []
    assert directory.nodes() == {0: 11, 1: 12}


def test_a_bound_name_is_not_given_to_another_node(grid, said):
    made = Directory(grid, 0.0, said.append)
    made.wait_for(2, 1.0)
    roster = made.roster()
    made.enrol({one["name"]: one["num_samples"] for one in roster}, {one["name"]: one["node"] for one in roster})
    grid.node_ids = [12, 13]  # 13 has the name of 11
    assert made.is_connected().tolist() == [False, True]
    assert any("belongs to the node that had it" in words for words in said)
    grid.node_ids = [11, 12, 13]
    assert made.is_connected().tolist() == [True, True]
    assert made.nodes() == {0: 11, 1: 12}
