"""What a sampler is, and the two functions through which a run uses one.

`draw` shows a sampler the fields it declared and no others, holds its answer to every sampler's promises, and labels it
if something private was read that nobody was charged for; `remember` does the same with what came back. A sampler is a
frozen record of settings. What it learns is a mapping of named arrays that the run keeps, so a run resumed from a saved
memory goes on as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from fedpcs.errors import InvalidInput
from fedpcs.sampling.drawn import Draw, check_draw
from fedpcs.sampling.feedback import HEARD, Feedback, overheard
from fedpcs.sampling.view import ACCESS, Memory, View, restricted


class Sampler(Protocol):
    """Draws cohorts. All of a sampler's settings are its fields; it holds nothing that changes."""

    @property
    def name(self) -> str:
        """The name it is registered by."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields of `View` it sees beside data sizes and availability."""

    @property
    def hears(self) -> tuple[str, ...]:
        """The fields of `Feedback` it learns from."""

    def draw(self, view: View, rng: np.random.Generator) -> Draw:
        """Draw the cohort of one round; a pure function of both."""


@runtime_checkable
class Learner(Protocol):
    """A sampler that remembers. Memory is arrays by name; NaN may stand for what is not known.

    An array with one entry per client at the start keeps that length; any other may grow.
    """

    def start(self, num_clients: int) -> Memory:
        """Return what it knows before the first round."""

    def remember(self, view: View, draw: Draw, feedback: Feedback) -> Memory:
        """Return what it knows after a round; the view's memory is what it knew before."""


def start(sampler: Sampler, num_clients: int) -> Memory:
    """Return a sampler's memory before the first round."""
    return sampler.start(num_clients) if isinstance(sampler, Learner) else {}


def draw(sampler: Sampler, view: View, rng: np.random.Generator) -> Draw:
    """Draw a cohort, showing the sampler what it declared and nothing else.

    Example:
        >>> from fedpcs.sampling import make_sampler, make_view
        >>> view = make_view(2, [50, 30, 20], budget=[1.0, 1.0, 4.0])
        >>> draw(make_sampler("fedpcs"), view, np.random.default_rng(1)).clients.tolist()
        [1, 2]
    """
    check_declared(sampler)
    view = _with_memory(sampler, view)
    for name in sampler.reads:
        if getattr(view, name) is None:
            raise InvalidInput(
                f"sampler {sampler.name!r} needs {name}, which the view lacks; it is never taken for zero. Pass "
                f"{name}=… to make_view, or set the sampler so that it does without."
            )
    found = check_draw(sampler.draw(restricted(view, sampler.reads), rng), view)
    return replace(found, label=disclosure(sampler, view.charged).label)


def remember(sampler: Sampler, view: View, drawn: Draw, feedback: Feedback) -> Memory:
    """Return a sampler's memory after a round, letting it hear what it declared and nothing else."""
    if not isinstance(sampler, Learner):
        return view.memory
    check_declared(sampler)
    if strangers := np.setdiff1d(feedback.clients, drawn.clients).tolist():
        raise InvalidInput(f"feedback must be from clients that were drawn, got it from {strangers!r}.")
    view = _with_memory(sampler, view)
    for name in sampler.hears:
        # What is merely observed may be missing: nobody was asked for it.
        if getattr(feedback, name) is None and feedback.clients.size and HEARD[name] != "observed":
            raise InvalidInput(
                f"sampler {sampler.name!r} learns from {name}, which the feedback lacks; it is never taken for zero. "
                f"Pass {name}=… to make_feedback, or set the sampler so that it does without."
            )
    return sampler.remember(restricted(view, sampler.reads), drawn, overheard(feedback, sampler.hears))


def check_declared(sampler: Sampler) -> None:
    """Raise if a sampler declares to read what no view or feedback has."""
    for name, known in (("reads", ACCESS), ("hears", HEARD)):
        if not isinstance(getattr(sampler, name), tuple):
            raise InvalidInput(f"{sampler.name}.{name} must be a tuple of field names, got {getattr(sampler, name)!r}.")
        if unknown := sorted(set(getattr(sampler, name)) - set(known)):
            raise InvalidInput(f"{sampler.name}.{name} names {unknown[0]!r}; it may name {', '.join(sorted(known))}.")


def _with_memory(sampler: Sampler, view: View) -> View:
    """Return the view with the memory a sampler starts with if it has none; refuse one that is not this sampler's."""
    if not isinstance(sampler, Learner):
        return view
    fresh = sampler.start(view.num_clients)
    if not (isinstance(fresh, Mapping) and isinstance(view.memory, Mapping)):
        raise InvalidInput(f"memory of {sampler.name} must be arrays by name, got {type(view.memory).__name__}.")
    if not all(isinstance(value, np.ndarray) for value in (*fresh.values(), *view.memory.values())):
        raise InvalidInput(f"memory of {sampler.name} must be arrays by name, so that it can be saved.")
    if not view.memory:
        return replace(view, memory=fresh)
    if set(view.memory) != set(fresh):
        raise InvalidInput(
            f"memory must hold {', '.join(sorted(fresh))} for {sampler.name}, got {', '.join(sorted(view.memory))}. "
            "Keep what start and remember return, for each sampler its own."
        )
    for name, value in fresh.items():
        if value.shape == (view.num_clients,) != view.memory[name].shape:
            raise InvalidInput(
                f"memory[{name!r}] must have one entry for each of {view.num_clients} clients, got shape "
                f"{view.memory[name].shape}. A federation whose clients change starts a new memory."
            )
    return view


@dataclass(frozen=True)
class Disclosure:
    """What a sampler makes clients disclose.

    Attributes:
        private: Private fields it uses.
        uncharged: Those among them that no accounted mechanism released.
    """

    private: tuple[str, ...]
    uncharged: tuple[str, ...]

    @property
    def label(self) -> str:
        """What a report must say beside the privacy it claims; empty if there is nothing to say."""
        if not self.uncharged:
            return ""
        return f"selection reads {', '.join(self.uncharged)}: private, and not part of the privacy claimed"


def disclosure(sampler: Sampler, charged: Iterable[str] = ()) -> Disclosure:
    """Say what a sampler makes clients disclose, given the fields that were released under an accounted mechanism.

    Example:
        >>> from fedpcs.sampling import make_sampler
        >>> disclosure(make_sampler("fedpcs")).label
        ''
        >>> disclosure(make_sampler("fed-cbs")).label
        'selection reads label_counts: private, and not part of the privacy claimed'
    """
    check_declared(sampler)
    seen = {name for name in sampler.reads if ACCESS[name] == "private"}
    heard = {name for name in sampler.hears if HEARD[name] == "private"}
    private, paid = tuple(sorted(seen | heard)), set(charged)
    known = {name for fields in (ACCESS, HEARD) for name, access in fields.items() if access == "private"}
    if unknown := sorted(paid - known):
        raise InvalidInput(
            f"charged names {unknown[0]!r}, which is no private field; those are {', '.join(sorted(known))}."
        )
    return Disclosure(private, tuple(name for name in private if name not in paid))
