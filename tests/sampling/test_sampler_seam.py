"""`draw` and `remember` show a sampler what it declared, hold it to its promises, and `disclosure` says what it saw."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from fedpcs.errors import InvalidInput
from fedpcs.sampling import Draw, disclosure, draw, make_feedback, make_sampler, make_view, remember, start
from fedpcs.sampling.feedback import HEARD
from fedpcs.sampling.view import ACCESS

ALL_FIELDS = {
    **{name: [1.0, 2.0, 3.0] for name in ("budget", "noise_power", "update_norm", "loss")},
    **{name: [1.0, 2.0, 3.0] for name in ("gradient_distance", "gradient_variance")},
    "label_counts": np.ones((3, 2)),
}


@dataclass(frozen=True)
class Spy:
    """Writes down what it is shown and draws what it is told to."""

    shown: list
    answer: Draw | None = None
    reads: tuple = ()
    hears: tuple = ()
    name: str = "spy"

    def draw(self, view, rng):
        self.shown.append(view)
        return self.answer or made([0, 1])


@dataclass(frozen=True)
class LearningSpy(Spy):
    def start(self, num_clients):
        return {"times": np.zeros(num_clients)}

    def remember(self, view, draw, feedback):
        self.shown.append((view, feedback))
        return {"times": view.memory["times"] + 1}


def made(clients, **others):
    clients = np.array(clients, dtype=np.int64)
    weights = np.full(clients.size, 0.5)
    return replace(Draw(clients, weights, None, None, None, 2), **others)


def visible(record, names):
    return {name for name in names if getattr(record, name) is not None}


@pytest.mark.parametrize("reads", [(), ("budget",), ("loss", "label_counts")])
def test_a_sampler_sees_what_it_declared_and_nothing_else(reads):
    spy = Spy([], reads=reads)
    draw(spy, make_view(2, [1, 2, 3], **ALL_FIELDS), np.random.default_rng(0))
    assert visible(spy.shown[0], ACCESS) == {"num_samples", "is_available", *reads}


def test_a_learner_hears_what_it_declared_and_nothing_else():
    spy = LearningSpy([], reads=("budget",), hears=("loss",))
    view = make_view(2, [1, 2, 3], **ALL_FIELDS)
    feedback = make_feedback(
        np.array([0, 1]), updates=np.ones((2, 2)), loss=[1, 2], duration=[1, 2], noise_power=[1, 1]
    )
    assert remember(spy, view, made([0, 1]), feedback)["times"].tolist() == [1.0, 1.0, 1.0]
    seen, heard = spy.shown[0]
    assert visible(seen, ACCESS) == {"num_samples", "is_available", "budget"}
    assert visible(heard, HEARD) == {"loss"}


def test_what_a_sampler_declared_and_nobody_told_is_an_error_not_a_zero():
    """Even for a sampler that would not ask for it: naming the sampler and the field. Durations are only observed."""
    view = make_view(2, [1, 2, 3])
    with pytest.raises(InvalidInput, match="sampler 'spy' needs update_norm, which the view lacks"):
        draw(Spy([], reads=("update_norm",)), view, np.random.default_rng(0))
    learner = LearningSpy([], hears=("gradient_variance", "duration"))
    with pytest.raises(InvalidInput, match="sampler 'spy' learns from gradient_variance, which the feedback lacks"):
        remember(learner, view, made([0, 1]), make_feedback(np.array([0, 1]), duration=[1, 2]))
    told = make_feedback(np.array([0, 1]), gradient_variance=[1, 2])
    assert remember(learner, view, made([0, 1]), told)["times"].tolist() == [1.0, 1.0, 1.0]
    assert remember(learner, view, made([0, 1]), make_feedback([]))["times"].tolist() == [1.0, 1.0, 1.0]


def test_a_learner_without_memory_begins_at_its_start():
    spy = LearningSpy([])
    view = make_view(2, [1, 2, 3])
    draw(spy, view, np.random.default_rng(0))
    assert spy.shown[0].memory["times"].tolist() == [0.0, 0.0, 0.0]
    assert start(spy, 3)["times"].tolist() == [0.0, 0.0, 0.0]
    assert not view.memory


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (made([1, 1]), "distinct, ascending"),
        (made([0, 3]), r"in \[0, 2\]"),
        (made([0, 2]), "not available"),
        (replace(made([0, 1]), clients=np.array([0.0, 1.0])), "whole numbers"),
        (made([0, 1], weights=np.array([0.5, -0.1])), "weights must be an array of 2 finite numbers of at least 0"),
        (made([0, 1], weights=np.array([0.5])), "weights must be an array of 2 finite"),
        (made([0, 1], expansion=np.array([1.0, np.inf])), "expansion must be an array of 2 finite"),
        (made([0, 1], inclusion=np.array([0.5, 1.5, 0.0])), r"inclusion must be an array of 3 numbers in \[0, 1\]"),
        (made([0, 1], draw_probability=np.array([0.5, -0.5, 0.0])), "draw_probability must be an array of 3 numbers"),
    ],
)
def test_a_draw_that_breaks_a_promise_is_refused_by_what_it_breaks(answer, message):
    view = make_view(2, [1, 2, 3], is_available=[True, True, False])
    with pytest.raises(InvalidInput, match=message):
        draw(Spy([], answer), view, np.random.default_rng(0))


PRIVATE = [
    ("random", {}, ()),
    ("fedpcs", {}, ()),
    ("clustered", {}, ()),
    ("aocs", {}, ("update_norm",)),
    ("aocs", {"subtract_noise": True}, ("update_norm",)),
    ("aocs", {"norms": "last-known"}, ()),
    ("fed-cbs", {}, ("label_counts",)),
    ("delta", {}, ("gradient_variance",)),
    ("delta", {"variance_ratio": 0.0}, ()),
    ("delta", {"score": "authors-code"}, ()),
    ("delta", {"information": "ideal"}, ("gradient_distance", "gradient_variance")),
    ("delta", {"information": "ideal", "variance_ratio": 0.0}, ("gradient_distance",)),
    ("power-of-choice", {}, ("loss",)),
    ("power-of-choice", {"losses": "last-known"}, ("loss",)),
    ("oort", {}, ("loss_energy",)),
    ("optimal", {}, ()),
    ("optimal", {"norms": "current"}, ("update_norm",)),
]


@pytest.mark.parametrize(("name", "settings", "private"), PRIVATE)
def test_private_fields_are_disclosed_until_they_are_charged(name, settings, private):
    """Norms of updates as they arrived are post-processing of a release; norms asked of everybody are not."""
    sampler = make_sampler(name, **settings)
    found = disclosure(sampler)
    assert found.private == found.uncharged == private
    assert (found.label == "") == (not private)
    assert all(field in found.label for field in private)
    charged = disclosure(sampler, private)
    assert (charged.private, charged.uncharged, charged.label) == (private, (), "")


@pytest.mark.parametrize("spy", [Spy([], reads=("budgets",)), LearningSpy([], hears=("losses",))])
def test_a_field_that_does_not_exist_cannot_be_declared(spy):
    view = make_view(2, [1, 2, 3], **ALL_FIELDS)
    for use in (lambda: draw(spy, view, np.random.default_rng(0)), lambda: disclosure(spy)):
        with pytest.raises(InvalidInput, match=r"spy\.(reads names 'budgets'|hears names 'losses'); it may name "):
            use()


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ({"norm": np.ones(3)}, "memory must hold times for spy, got norm"),
        ({"times": np.ones(4)}, r"memory\['times'\] must have one entry for each of 3 clients, got shape \(4,\)"),
    ],
)
def test_a_memory_that_is_another_s_is_refused(memory, message):
    view, spy = make_view(2, [1, 2, 3], memory=memory), LearningSpy([])
    with pytest.raises(InvalidInput, match=message):
        draw(spy, view, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match=message):
        remember(spy, view, made([0, 1]), make_feedback([0]))


def test_feedback_from_a_client_that_was_not_drawn_is_refused():
    for stranger in (2, 3):
        with pytest.raises(InvalidInput, match=rf"from clients that were drawn, got it from \[{stranger}\]"):
            remember(LearningSpy([]), make_view(2, [1, 2, 3]), made([0, 1]), make_feedback([0, stranger]))
