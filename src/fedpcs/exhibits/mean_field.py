"""How fast the mean budget φ(t) comes to rest, and whether it rests at an equilibrium (paper, Fig. 3 and Algorithm 1).

Each iteration goes over the whole path φ(0)…φ(T), from the initial mean in every round. "Whole paths" is Algorithm 1
with exact best responses. "In order" is ours: within a sweep each round's mean is updated before the next round is
answered. "As printed" is Algorithm 1 with Theorem 1's formula (response mode `paper`). A sweep's change is
max |φ_m(t) − φ_(m−1)(t)|; rest is a change of at most the paper's ε₀ = 0.001.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedpcs import _format
from fedpcs.exhibits.claims import Claim, Judged
from fedpcs.exhibits.exhibit import Exhibit
from fedpcs.exhibits.games import FromGames, Games, GameSpec, lines_drawing, path_of, seeds_of
from fedpcs.game import exact
from fedpcs.game.mean_field import PAPER_SWEEPS as NUM_PRINTED_SWEEPS
from fedpcs.report.figures.game import mean_field_figure
from fedpcs.report.page import Drawing, Table, Verdict

if TYPE_CHECKING:
    from fedpcs._validate import FloatArray
    from fedpcs.exhibits.registry import Profile
    from fedpcs.game.equilibrium import Equilibrium
    from fedpcs.game.rules import Game

THRESHOLD = 1e-3
NUM_SWEEPS, NUM_CLAIMED_SWEEPS = 40, 5
CONSTANTS = (5.0, 10.0, 20.0)
_STILL = 1e-7  # once a sweep changes φ by no more than this, further ones would not be seen
_FLOOR = 1e-6


@dataclass(frozen=True)
class Sweeps:
    """One game's mean budget, sweep by sweep.

    Attributes:
        reward: What was announced.
        seed: Of the population.
        found: Its certified equilibrium.
        whole_paths: (sweeps + 1, rounds) φ with exact responses to a whole announced path.
        in_order: (sweeps + 1, rounds) φ with exact responses, rounds updated in order.
        printed: What Algorithm 1 as printed ends with, certified or not; its history is (sweeps + 1, rounds) too.
    """

    reward: str
    seed: int
    found: Equilibrium
    whole_paths: FloatArray
    in_order: FloatArray
    printed: Equilibrium

    @property
    def equilibria(self) -> dict[str, Equilibrium]:
        """The game itself."""
        return {f"{self.reward} rewards": self.found}

    @property
    def histories(self) -> dict[str, FloatArray]:
        """The three iterations by name; one that stopped early stands still from there on."""
        printed = self.printed.history
        rest = np.repeat(printed[-1:], max(0, NUM_PRINTED_SWEEPS + 1 - len(printed)), axis=0)
        return {"whole paths": self.whole_paths, "in order": self.in_order, "as printed": np.vstack((printed, rest))}

    def needed(self, name: str) -> int | None:
        """Return how many sweeps an iteration needs to rest; None if it never does."""
        return sweeps_to_rest(self.histories[name])


def sweep_game(games: Games, key: tuple[float | None, int], _: Profile = "quick") -> Sweeps:
    """Sweep a solved game's mean budget three ways from the initial mean, on its own rewards."""
    reward, seed = key
    found = games.solve(GameSpec(seed, reward=reward))
    printed = games.solve(GameSpec(seed, reward=path_of(found), response="paper"))
    whole_paths, in_order = (sweep_history(found.game, found.reward.path, in_order=one) for one in (False, True))
    label = found.reward.policy if reward is None else f"constant {_format.amount(reward)}"
    return Sweeps(label, seed, found, whole_paths, in_order, printed)


def sweep_history(game: Game, reward: FloatArray, *, in_order: bool, num_sweeps: int = NUM_SWEEPS) -> FloatArray:
    """Return φ before the first sweep and after each, with exact best responses; repeated once it stands still."""
    crowd = game.population
    rows = exact.table_rows(crowd)
    history = [np.full(game.last_round + 1, crowd.mean(crowd.initial_budget))]
    while len(history) <= num_sweeps:
        if len(history) > 1 and np.abs(history[-1] - history[-2]).max() <= _STILL:
            return np.vstack((history, np.repeat(history[-1:], num_sweeps + 1 - len(history), axis=0)))
        terms = game.terms(reward, history[-1])
        table = exact.tabulate(terms, rows, crowd.initial_budget)
        history.append(exact.play(table, terms, crowd, in_order=in_order).mean_budget)
    return np.array(history)


def changes(history: FloatArray) -> FloatArray:
    """Return max_t |φ_m(t) − φ_(m−1)(t)| for each sweep: (sweeps,)."""
    return np.asarray(np.abs(np.diff(history, axis=0)).max(axis=1))


def sweeps_to_rest(history: FloatArray, threshold: float = THRESHOLD) -> int | None:
    """Return the first sweep that changes φ by no more than the threshold; None if none does.

    Example:
        >>> sweeps_to_rest(np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 2.0]]))
        2
    """
    rests = np.flatnonzero(changes(history) <= threshold)
    return int(rests[0]) + 1 if rests.size else None


def _headline(games: Sequence[Sweeps]) -> str:
    def median(name: str) -> str:
        middle = float(np.median([one.needed(name) or NUM_SWEEPS + 1 for one in games]))
        return f"more than {NUM_SWEEPS}" if middle > NUM_SWEEPS else f"{middle:g}"

    resting = sum(one.needed("as printed") is not None for one in games)
    return (
        f"With exact responses the mean budget rests after {median('whole paths')} sweeps of whole paths (median) and "
        f"{median('in order')} in order; the paper's own formula rests in {resting or 'none'} of {len(games)} games "
        f"within {NUM_PRINTED_SWEEPS}."
    )


def verdict_on_speed(needed: Sequence[int | None]) -> Verdict:
    """Return whether "mostly within five" holds: for most games and none that never rests, for some, or for none."""
    within = sum(sweeps is not None and sweeps <= NUM_CLAIMED_SWEEPS for sweeps in needed)
    if 2 * within > len(needed) and None not in needed:
        return "agrees"
    return "in part" if within else "differs"


def _speed(name: str) -> Callable[[Sequence[Sweeps]], Judged]:
    def judge(games: Sequence[Sweeps]) -> Judged:
        needed = [one.needed(name) for one in games]
        known = sorted(sweeps for sweeps in needed if sweeps is not None)
        within = sum(sweeps <= NUM_CLAIMED_SWEEPS for sweeps in known)
        parts = [f"{known[0]} to {known[-1]} needed"] if known else []
        parts += [f"{needed.count(None)} not at rest after {NUM_SWEEPS}"] if None in needed else []
        histories = [one.histories[name] for one in games]
        away = max(float(np.abs(one[min(NUM_CLAIMED_SWEEPS, len(one) - 1)] - one[-1]).max()) for one in histories)
        found = (
            f"With exact responses {within} of {len(needed)} games rest within {NUM_CLAIMED_SWEEPS} sweeps "
            f"({', '.join(parts)}). After sweep {NUM_CLAIMED_SWEEPS} the path is at most {_format.amount(away)} from "
            f"where it is after {NUM_SWEEPS}."
        )
        return verdict_on_speed(needed), found

    return judge


def _printed(games: Sequence[Sweeps]) -> Judged:
    gains = [one.printed.certificate.relative for one in games]
    last = [float(changes(one.printed.history)[-1]) for one in games]
    good = sum(one.printed.status == "converged" for one in games)
    found = (
        f"As printed, {good} of {len(games)} games end at an equilibrium. In its last sweep the mean budget still "
        f"moves by {_format.amount(min(last))} to {_format.amount(max(last))}, and a client that leaves it gains "
        f"{_format.gain(min(gains))} to {_format.gain(max(gains))}."
    )
    return "agrees" if good == len(games) else "in part" if good else "differs", found


def _table(games: Sequence[Sweeps]) -> Iterable[Table]:
    rows = []
    for reward in dict.fromkeys(one.reward for one in games):
        group = [one for one in games if one.reward == reward]
        needed = [", ".join(str(one.needed(name) or "–") for one in group) for name in group[0].histories]
        gains = [one.printed.certificate.relative for one in group]
        rows.append((reward, *needed, _format.with_spread(gains, _format.gain)))
    yield Table(
        "Sweeps until the mean budget rests, one number per population",
        ("rewards", "whole paths", "in order", "as printed", "gain by leaving the printed answer"),
        tuple(rows),
        {
            "in order": "each round's mean is updated before the next round is answered, within a sweep",
            "as printed": "Theorem 1's formula in place of exact responses, under the same rewards; Algorithm 1 moves "
            "the rewards from sweep to sweep too",
        },
        note=f"Rest: no round's mean changes by more than {THRESHOLD:g}. A dash: not within {NUM_SWEEPS} sweeps "
        f"({NUM_PRINTED_SWEEPS} as printed).",
    )


def _record(one: Sweeps) -> dict[str, Any]:
    return {
        "reward": one.reward,
        "seed": one.seed,
        **{f"sweeps, {name}": one.needed(name) for name in one.histories},
        "last change, as printed": float(changes(one.printed.history)[-1]),
        "exploitability": one.found.certificate.relative,
        "exploitability, as printed": one.printed.certificate.relative,
    }


def _drawings(games: Sequence[Sweeps]) -> Iterable[Drawing]:
    first = games[0]
    group = [one for one in games if one.reward == first.reward]
    moved = {
        name: np.array([changes(one.histories[name][: NUM_SWEEPS + 1]) for one in group]) for name in first.histories
    }
    yield Drawing("mean budget by sweep, one population", lambda: mean_field_figure(first.found))
    yield lines_drawing(
        f"change of the mean budget by sweep, {first.reward} rewards",
        moved,
        "largest change of φ(t), log scale",
        note="Changes below 10⁻⁶ are drawn there.",
        xlabel="sweep, from 0",
        level=("rest, ε₀", THRESHOLD),
        log_floor=_FLOOR,
    )


_SPEED = f"φ(t) reaches its fixed point mostly within {NUM_CLAIMED_SWEEPS} iterations, to a threshold of 0.001"
EXHIBIT = Exhibit(
    title="How fast the mean budget comes to rest",
    gather=FromGames(
        solve=sweep_game,
        keys=lambda profile: [(reward, seed) for reward in (None, *CONSTANTS) for seed in seeds_of(profile)],
    ),
    headline=_headline,
    claims=(
        Claim(f"{_SPEED} (whole paths swept, as in Algorithm 1).", _speed("whole paths")),
        Claim(f"{_SPEED} (rounds swept in order).", _speed("in order")),
        Claim(
            "Algorithm 1 converges to the fixed point (Theorem 3), and Theorem 1's responses are optimal there.",
            _printed,
        ),
    ),
    tables=_table,
    drawings=_drawings,
    records=lambda games: map(_record, games),
)
