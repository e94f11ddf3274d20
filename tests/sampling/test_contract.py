"""`check_sampler` finds a sampler that breaks a promise, whichever it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from fedpcs.errors import InvalidInput
from fedpcs.sampling import SAMPLERS, check_sampler, draw_by_size, make_sampler
from fedpcs.sampling.contract import try_out
from fedpcs.sampling.draw import chosen


@dataclass(frozen=True)
class Honest:
    """Draws by a size that it remembers; each child below breaks one promise."""

    name: ClassVar[str] = "mine"
    reads: ClassVar[tuple[str, ...]] = ("update_norm",)
    hears: ClassVar[tuple[str, ...]] = ("update_norm",)

    def draw(self, view, rng):
        return draw_by_size(view, view.update_norm + view.memory["size"], "pivotal", rng)

    def start(self, num_clients):
        return {"size": np.ones(num_clients)}

    def remember(self, view, draw, feedback):
        size = view.memory["size"].copy()
        size[feedback.clients] = feedback.need("update_norm")
        return {"size": size}


class Unrepeatable(Honest):
    def draw(self, view, rng):
        return super().draw(view, np.random.default_rng())


class Untidy(Honest):
    def remember(self, view, draw, feedback):
        view.memory["size"][feedback.clients] = 1.0
        return view.memory


class Forgetful(Honest):
    kept: ClassVar[dict[int, float]] = {}

    def draw(self, view, rng):
        self.kept[view.round_index] = self.kept.get(view.round_index, 0.0) + 1.0
        calls = self.kept[view.round_index]
        return draw_by_size(view, view.update_norm ** (1.0 if calls < 3 else 8.0), "pivotal", rng)


class Undefined(Honest):
    def draw(self, view, rng):
        if not view.update_norm.any():
            raise ZeroDivisionError("division by zero")
        return super().draw(view, rng)


class Unscaled(Honest):
    def draw(self, view, rng):
        found = super().draw(view, rng)
        return replace(found, expansion=np.full(found.clients.size, view.num_clients / found.clients.size))


class Misdesigned(Honest):
    def draw(self, view, rng):
        found = super().draw(view, rng)
        return replace(found, inclusion=np.full(view.num_clients, found.clients.size / view.num_clients))


class Repeating(Honest):
    def draw(self, view, rng):
        return chosen(view, np.zeros(view.cohort_size, dtype=np.int64), np.ones(view.cohort_size))


class Peeking(Honest):
    def draw(self, view, rng):
        return draw_by_size(view, view.need("budget"), "pivotal", rng)


class Misspelt(Honest):
    reads: ClassVar[tuple[str, ...]] = ("update_norms",)


def test_an_honest_sampler_passes() -> None:
    check_sampler(Honest())


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (Unrepeatable, "not repeatable"),
        (Untidy, "writes to an array"),
        (Forgetful, "not resumable"),
        (Undefined, "not defined for nothing but zeros"),
        (Unscaled, "not unbiased: client"),
        (Misdesigned, "not as designed: client"),
        (Repeating, "distinct"),
        (Peeking, "needs budget"),
        (Misspelt, "update_norms"),
    ],
)
def test_a_broken_promise_is_named(kind, complaint) -> None:
    Forgetful.kept.clear()
    with pytest.raises(InvalidInput, match=complaint):
        check_sampler(kind())


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_registered_sampler_passes(name) -> None:
    check_sampler(make_sampler(name), num_draws=400)


def test_trying_out_returns_one_draw() -> None:
    assert try_out(make_sampler("random"), num_clients=9, cohort_size=4).clients.size == 4
