"""`check_sampler` finds a sampler that breaks a promise, whichever it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from fedpcs.errors import InvalidInput
from fedpcs.sampling import Draw, biased_draw, check_sampler, draw_by_size


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
        expansion = np.full(found.clients.size, view.num_clients / found.clients.size)
        return replace(found, expansion=expansion, weights=view.data_weight[found.clients] * expansion)


class Heavy(Honest):
    def draw(self, view, rng):
        found = super().draw(view, rng)
        return replace(found, weights=7.0 * found.weights)


class HalfBlind(Honest):
    def draw(self, view, rng):
        is_large = view.update_norm >= np.median(view.update_norm)
        return draw_by_size(view, np.where(is_large, 1.0, 0.0), "pivotal", rng)


class Partial(Honest):
    def draw(self, view, rng):
        return draw_by_size(view, 1.0 + np.arange(view.num_clients), "pivotal", rng)


class PartialAndBiased(Honest):
    def draw(self, view, rng):
        clients = np.flatnonzero(view.is_available)[: view.cohort_size]
        return biased_draw(clients, np.full(clients.size, 1.0 / clients.size))


class Everyone(Honest):
    def draw(self, view, rng):
        clients = np.flatnonzero(view.is_available)
        return biased_draw(clients, view.data_weight[clients])


class Crowded(Honest):
    def draw(self, view, rng):
        clients = np.flatnonzero(view.is_available & (rng.random(view.num_clients) < 0.9))
        return Draw(clients, np.ones(clients.size), np.full(view.num_clients, 0.1), None, None, 1.0)


class Speechless(Honest):
    def draw(self, view, rng):
        return None


class Naive(Honest):
    def draw(self, view, rng):
        share = view.data_weight
        clients = rng.choice(view.num_clients, view.cohort_size, replace=False, p=share)
        return biased_draw(clients, np.full(clients.size, 1.0 / clients.size))


class Misdesigned(Honest):
    def draw(self, view, rng):
        found = super().draw(view, rng)
        return replace(found, inclusion=np.full(view.num_clients, found.clients.size / view.num_clients))


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
        (Heavy, "not unbiased: its weights are not"),
        pytest.param(HalfBlind, "not unbiased: client", marks=pytest.mark.slow),
        pytest.param(Partial, "not impartial: client", marks=pytest.mark.slow),
        (PartialAndBiased, "not impartial: client"),
        (Everyone, "at most 6 clients, got 30"),
        (Crowded, "not sized: cohorts hold 2"),
        (Speechless, "must return a Draw, got None"),
        (Naive, "not defined for fewer available than asked for: ValueError: Fewer non-zero entries"),
        (Misdesigned, "not as designed: client"),
        (Misspelt, "update_norms"),
    ],
)
def test_a_broken_promise_is_named(kind, complaint) -> None:
    Forgetful.kept.clear()
    with pytest.raises(InvalidInput, match=complaint):
        check_sampler(kind())
