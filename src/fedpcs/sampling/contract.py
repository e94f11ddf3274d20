"""The promises every sampler makes, as a check that anyone can run on their own.

    promise       how it is checked
    repeatable    the same generator draws the same cohort, bit for bit
    tidy          neither the view nor the memory is written to
    resumable     rounds that go on from a saved memory, with a new sampler, equal rounds that were never interrupted
    defined       one client, a cohort of everyone, few available clients, nothing but zeros to go by: still a draw
    sized         cohorts are no larger than asked for, on average over many draws
    impartial     clients with other numbers are drawn as often as before
    as designed   over many draws a client comes up as often as its inclusion probability says
    unbiased      weights are θ·expansion, and 1{drawn}·expansion has mean one for every client

The last two are held to samplers that return an inclusion or an expansion; a biased one returns None instead.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedpcs import _validate
from fedpcs._random import generator
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.sampling.drawn import Draw
from fedpcs.sampling.feedback import HEARD, make_feedback
from fedpcs.sampling.sampler import Sampler, draw, remember, start
from fedpcs.sampling.view import ACCESS, Memory, View, make_view

_NUM_CLASSES = 5
_NUM_ROUNDS = 6
# With some hundred comparisons a fair sampler strays this far once in ten thousand runs; the seed is fixed besides.
_FAR = 5.0
_LEAST_DRAWS = 400
# Relative error of an approximate inclusion times the number of clients.
_APPROXIMATION = 2.0


@dataclass(frozen=True)
class _World:
    """What clients would say, round by round, all of it made up from one seed."""

    num_clients: int
    cohort_size: int
    seed: int

    def view(self, round_index: int, memory: Memory, **changes: Any) -> View:
        rng = generator(self.seed, "contract", round_index)
        arrays: dict[str, Any] = {name: rng.uniform(0.5, 4.0, self.num_clients) for name in ACCESS}
        arrays["num_samples"] = rng.permutation(np.arange(20.0, 20.0 + self.num_clients))
        arrays["is_available"] = np.ones(self.num_clients, dtype=np.bool_)
        arrays["local_steps"] = np.ceil(arrays["num_samples"] / 8.0)
        arrays["label_counts"] = rng.integers(0, 20, (self.num_clients, _NUM_CLASSES)) + 1
        view = make_view(self.cohort_size, round_index=round_index, memory=memory, **{**arrays, **changes})
        for value in (*vars(view).values(), *memory.values()):
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        return view

    def remember(self, sampler: Sampler, view: View, drawn: Draw) -> Memory:
        rng = generator(self.seed, "contract-feedback", view.round_index)
        said: dict[str, Any] = {name: rng.uniform(0.5, 4.0, self.num_clients)[drawn.clients] for name in HEARD}
        said["local_steps"] = np.ceil(view.num_samples[drawn.clients] / 8.0)
        return remember(sampler, view, drawn, make_feedback(drawn.clients, **said))

    def draw(self, sampler: Sampler, view: View) -> Draw:
        return draw(sampler, view, generator(self.seed, "contract-draw", view.round_index))


def check_sampler(
    sampler: Sampler, *, num_clients: int = 30, cohort_size: int = 6, num_draws: int = 2_000, seed: int = 0
) -> None:
    """Raise `InvalidInput` naming the first promise that `sampler` breaks.

    Args:
        sampler: Any sampler, registered or not.
        num_clients: Clients of the made-up federation it is tried on.
        cohort_size: Clients drawn each round.
        num_draws: Draws behind the statistical promises; 400 or more, or zero to skip them.
        seed: Where the federation and the draws come from.

    Example:
        >>> from fedpcs.sampling import make_sampler
        >>> check_sampler(make_sampler("fedpcs"), num_draws=400)
    """
    _validate.integer("num_clients", num_clients, low=3)
    world = _World(num_clients, _validate.integer("cohort_size", cohort_size, low=1, high=num_clients), seed)
    if _validate.integer("num_draws", num_draws, low=0) and num_draws < _LEAST_DRAWS:
        raise InvalidInput(f"num_draws must be 0 or at least {_LEAST_DRAWS}, got {num_draws}. Fewer show nothing.")
    try:
        memory = _check_rounds(sampler, world)
        _check_edges(sampler, seed)
    except InvalidInput:
        raise
    except Exception as error:  # whatever a sampler of someone's own may raise
        if "read-only" in str(error):
            raise InvalidInput(f"{sampler.name} writes to an array it was shown ({error}). Copy it first.") from error
        raise InvalidInput(f"{sampler.name} fails: {_said(error)}") from error
    if num_draws:
        view = world.view(_NUM_ROUNDS, memory)
        drawn = _check_statistics(sampler, view, num_draws, seed)
        _check_relabelled(sampler, view, drawn, num_draws, seed)


def is_unbiased(sampler: Sampler) -> bool:
    """Return whether a sampler's draws say how many clients each one stands for; a draw of made-up clients shows it."""
    world = _World(30, 6, 0)
    return world.draw(sampler, world.view(0, start(sampler, 30))).expansion is not None


def _check_rounds(sampler: Sampler, world: _World) -> Memory:
    memory = start(sampler, world.num_clients)
    saved, newcomer = _through_a_file(memory), copy.deepcopy(sampler)
    for round_index in range(_NUM_ROUNDS):
        view = world.view(round_index, memory)
        first, again = world.draw(sampler, view), world.draw(sampler, view)
        _demand(_same(first, again), sampler, "repeatable", "two draws from the same generator differ")
        resumed = world.draw(copy.deepcopy(newcomer), world.view(round_index, saved))
        _demand(_same(first, resumed), sampler, "resumable", f"round {round_index} differs after saving and loading")
        memory = world.remember(sampler, view, first)
        saved = _through_a_file(world.remember(copy.deepcopy(newcomer), world.view(round_index, saved), resumed))
    return memory


def _check_edges(sampler: Sampler, seed: int) -> None:
    positive = {"num_samples", "is_available", "label_counts", "budget", "local_steps"}
    zeros = {name: np.zeros(6) for name in ACCESS if name not in positive}
    few = np.array([True, False, False, True, False, False])
    edges: dict[str, tuple[int, int, dict[str, Any]]] = {
        "one client": (1, 1, {}),
        "a cohort of everyone": (6, 6, {}),
        "fewer available than asked for": (6, 4, {"is_available": few}),
        "nothing but zeros": (6, 2, zeros),
        "every client balanced": (6, 2, {"label_counts": np.full((6, _NUM_CLASSES), 7.0)}),
    }
    for name, (num_clients, cohort_size, changes) in edges.items():
        world = _World(num_clients, cohort_size, seed)
        try:
            memory = start(sampler, num_clients)
            for round_index in range(2):
                view = world.view(round_index, memory, **changes)
                memory = world.remember(sampler, view, world.draw(sampler, view))
        except Exception as error:  # whatever a sampler of someone's own may raise
            raise InvalidInput(f"{sampler.name} is not defined for {name}: {_said(error)}") from error


def _check_statistics(sampler: Sampler, view: View, num_draws: int, seed: int) -> FloatArray:
    """Return how often each client was drawn, having held that against what the sampler says."""
    drawn, expanded, designed, variance, square = (np.zeros(view.num_clients) for _ in range(5))
    sizes = np.zeros(num_draws)
    for k in range(num_draws):
        found = draw(sampler, view, generator(seed, "contract-statistics", k))
        drawn[found.clients] += 1.0
        sizes[k] = found.clients.size
        if found.inclusion is not None:
            designed += found.inclusion
            variance += found.inclusion * (1.0 - found.inclusion)
        if found.expansion is not None:
            expanded[found.clients] += found.expansion
            square[found.clients] += found.expansion**2
            own = np.allclose(found.weights, view.data_weight[found.clients] * found.expansion, rtol=1e-9)
            _demand(own, sampler, "unbiased", "its weights are not θ·expansion")
    most = view.cohort_size + _FAR * sizes.std() / np.sqrt(num_draws) + 1e-9
    larger = f"cohorts hold {sizes.mean():.1f} clients on average where {view.cohort_size} were asked for"
    _demand(sizes.mean() <= most, sampler, "sized", larger)
    if found.inclusion is not None:
        # An inclusion may be an approximation, as `gumbel`'s is: within 2 % for a hundred clients, coarse for a few.
        slack = _APPROXIMATION * designed / view.num_clients
        score = np.maximum(np.abs(drawn - designed) - slack, 0.0) / np.sqrt(np.maximum(variance, 1.0))
        _demand(score.max() < _FAR, sampler, "as designed", _worst("comes up", drawn, designed, score))
    if found.expansion is not None:
        mean = expanded / num_draws
        # A few hits, or misses, say little of the variance: it is never taken for less than one more hit would add.
        one_more = np.sqrt(square / np.maximum(drawn, 1.0)) / num_draws
        error = np.sqrt(np.maximum(square / num_draws - mean**2, 1e-6) / num_draws + one_more**2)
        score = np.abs(mean - 1.0) / error
        is_rare = (designed > 0.0) & (designed < _FAR**2)  # too rare to tell
        score = np.where(is_rare, 0.0, score)
        expected = np.full(view.num_clients, float(num_draws))
        _demand(score.max() < _FAR, sampler, "unbiased", _worst("counts", expanded, expected, score))
    return drawn


def _check_relabelled(sampler: Sampler, view: View, drawn: FloatArray, num_draws: int, seed: int) -> None:
    """Give clients other numbers: each must come up as often as it did."""
    order = generator(seed, "contract-labels").permutation(view.num_clients)

    def relabelled(value: Any) -> Any:
        return value[order] if isinstance(value, np.ndarray) and value.shape[:1] == (view.num_clients,) else value

    changes: dict[str, Any] = {name: relabelled(getattr(view, name)) for name in ACCESS}
    memory = {name: relabelled(value) for name, value in view.memory.items()}
    other, again = replace(view, memory=memory, **changes), np.zeros(view.num_clients)
    for k in range(num_draws):
        again[order[draw(sampler, other, generator(seed, "contract-relabelled", k)).clients]] += 1.0
    rate = (drawn + again) / (2.0 * num_draws)
    score = np.abs(drawn - again) / np.sqrt(np.maximum(2.0 * num_draws * rate * (1.0 - rate), 1.0))
    _demand(score.max() < _FAR, sampler, "impartial", _worst("under another number comes up", again, drawn, score))


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, InvalidInput) else f"{type(error).__name__}: {error}"


def _demand(holds: bool | np.bool_, sampler: Sampler, promise: str, what: str) -> None:
    if not holds:
        raise InvalidInput(f"{sampler.name} is not {promise}: {what}.")


def _worst(verb: str, found: FloatArray, expected: FloatArray, score: FloatArray) -> str:
    client = int(np.argmax(score))
    return f"client {client} {verb} {found[client]:.0f} times where {expected[client]:.0f} were expected"


def _same(a: Draw, b: Draw) -> bool:
    pairs = ((getattr(a, name), getattr(b, name)) for name in ("clients", "weights", "inclusion", "expansion"))
    return all(x is y or np.array_equal(x, y) for x, y in pairs)


def _through_a_file(memory: Memory) -> Mapping[str, FloatArray]:
    """Return the memory as it comes back from a file."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **dict(memory))
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}
