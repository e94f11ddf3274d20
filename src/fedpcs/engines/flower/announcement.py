"""What a server announces to a client, checked number by number before the client believes any of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from fedpcs import _validate
from fedpcs._outside import printable
from fedpcs.engines.flower.conditions import Conditions
from fedpcs.errors import InvalidInput
from fedpcs.game.config import MOST_REWARD
from fedpcs.game.rules import Terms, announce

# Of the fields of an announcement. A server and a client of different versions do not understand one another.
VERSION = 2
_MOST_CLIENTS = 10_000_000
_MOST_NAME = 200
_PATHS = ("reward", "mean_budget", "cohort_size")
_ROUNDING = 1e-9  # of a mean over clients whose budgets all lie at a bound


@dataclass(frozen=True)
class Announcement:
    """What the server announces for the rounds from `first_round` on.

    Attributes:
        run: Name of the run.
        first_round: t of the first entry of every path.
        reward: R_t for a unit of budget.
        mean_budget: φ(t), in units.
        cohort_size: K_t.
        num_clients: N.
        selection: Whether the draw looks at budgets.
        conditions: What the client compares with its own settings.
    """

    run: str
    first_round: int
    reward: tuple[float, ...]
    mean_budget: tuple[float, ...]
    cohort_size: tuple[int, ...]
    num_clients: int
    selection: str
    conditions: Conditions

    def terms(self) -> Terms:
        """Return it as the game has it, checked."""
        selection: Any = self.selection
        return announce(self.reward, self.mean_budget, list(self.cohort_size), self.num_clients, selection)


def announcement_values(announcement: Announcement) -> dict[str, Any]:
    """Return an announcement as JSON can hold it."""
    return {"version": VERSION, **asdict(announcement)}


def announcement_of(values: Mapping[str, Any]) -> Announcement:
    """Return the announcement these values describe.

    Raises:
        InvalidInput: A field is missing or unknown, or a number is not finite, out of range, or too many.
    """
    if values.get("version") != VERSION:
        raise InvalidInput(
            f"announcement must have version {VERSION}, got {printable(values.get('version'), 40)}. Install the same "
            "fedpcs on the server and on every client."
        )
    _refuse_other_fields("announcement", values, {"version", *(item.name for item in fields(Announcement))})
    found = values["conditions"]
    _refuse_other_fields("announcement's conditions", found, {item.name for item in fields(Conditions)})
    bounds = found["budget_bounds"]
    conditions = Conditions(**{**found, "budget_bounds": tuple(bounds) if isinstance(bounds, list) else bounds})
    first = _validate.integer("first_round", values["first_round"], low=0, high=conditions.rounds - 1)
    for name in _PATHS:
        path = values[name]
        if not isinstance(path, list) or len(path) != conditions.rounds - first:
            got = len(path) if isinstance(path, list) else printable(path, 40)
            raise InvalidInput(f"{name} must have an entry for each of {conditions.rounds - first} rounds, got {got}.")
    made = Announcement(
        _checked_run(values["run"]),
        first,
        tuple(values["reward"]),
        tuple(values["mean_budget"]),
        tuple(values["cohort_size"]),
        num_clients=_validate.integer("num_clients", values["num_clients"], low=1, high=_MOST_CLIENTS),
        selection=values["selection"],
        conditions=conditions,
    )
    _check_paths(made)
    return made


def _check_paths(made: Announcement) -> None:
    """Refuse a reward, a mean or a cohort that no game can have."""
    low, high = made.conditions.budget_bounds
    for t, (reward, mean, size) in enumerate(zip(made.reward, made.mean_budget, made.cohort_size, strict=True)):
        _validate.number(f"reward[{t}]", reward, low=0.0, high=MOST_REWARD)
        _validate.number(f"mean_budget[{t}]", mean, low=low * (1.0 - _ROUNDING), high=high * (1.0 + _ROUNDING))
        _validate.integer(f"cohort_size[{t}]", size, low=1, high=made.num_clients)
    made.terms()


def _checked_run(run: Any) -> str:
    if not (isinstance(run, str) and 0 < len(run) <= _MOST_NAME and run.isprintable()):
        raise InvalidInput(f"run must be a name of 1 to {_MOST_NAME} printable characters, got {printable(run, 40)}.")
    return run


def _refuse_other_fields(what: str, values: Any, wanted: set[str]) -> None:
    found = set(values) if isinstance(values, Mapping) else set()
    if found != wanted:
        kind, names = ("lacks", wanted - found) if wanted - found else ("must not have", found - wanted)
        raise InvalidInput(f"{what} {kind} {printable(', '.join(sorted(map(str, names))))}.")


def refuse_changed(before: Announcement, now: Announcement) -> None:
    """Refuse a second announcement of a run that changes more than rewards, mean budgets and cohorts.

    Raises:
        InvalidInput: Names the first condition that is another than was agreed to.
    """
    for name in (item.name for item in fields(Conditions)):
        _refuse_change(now.run, name, getattr(before.conditions, name), getattr(now.conditions, name))
    for name in ("num_clients", "selection"):
        _refuse_change(now.run, name, getattr(before, name), getattr(now, name))


def _refuse_change(run: str, name: str, before: object, now: object) -> None:
    if before != now:
        raise InvalidInput(
            f"{name} must stay {before!r}, as agreed for run {run!r}, got {now!r}. Nothing is trained or charged. Give "
            "a run with other conditions a name of its own."
        )
