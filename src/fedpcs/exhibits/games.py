"""Exhibits made of games: each game is solved once, certified, and named where it does not certify."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.exhibits.claims import CANNOT_SAY
from fedpcs.exhibits.exhibit import Gathered, Request
from fedpcs.exhibits.registry import Profile
from fedpcs.game import equilibrium
from fedpcs.game.assemble import game_of_file
from fedpcs.game.config import GameFile, PopulationConfig
from fedpcs.game.equilibrium import STATUS_MEANING, Equilibrium
from fedpcs.game.mean_field import ResponseMode
from fedpcs.game.rules import Game, Selection
from fedpcs.report.figures.lines import lines_figure, mean_line
from fedpcs.report.page import Drawing, Finding, Page

NUM_SEEDS: Mapping[Profile, int] = {"quick": 3, "paper": 10}
ONE_GAME = (
    "None of them looks at budgets, so to a rational client they are the same game, and here they are one row: "
    "budget-blind."
)
_SELECTIONS: Mapping[Selection, str] = {"budget-aware": "FedPCS", "budget-blind": "budget-blind"}


@dataclass(frozen=True)
class GameSpec:
    """One game to solve.

    Attributes:
        seed: Of the population.
        selection: Whether the draw favours larger budgets.
        sampling_ratio: τ.
        reward: Policy, number or path; None for the base's own.
        response: How clients answer.
        last_round: T; None for the base's own.
    """

    seed: int
    selection: Selection = "budget-aware"
    sampling_ratio: float = 0.2
    reward: str | float | tuple[float, ...] | None = None
    response: ResponseMode = "exact"
    last_round: int | None = None


@dataclass(frozen=True)
class Games:
    """Games that share a base, solved when first asked for, each once."""

    base: GameFile = field(default_factory=GameFile)
    solved: dict[GameSpec, Equilibrium] = field(default_factory=dict)
    say: Callable[[str], None] = field(default=lambda text: None, compare=False)

    def solve(self, spec: GameSpec) -> Equilibrium:
        """Return a game's solution, certified or not: its status says."""
        if spec.last_round == self.base.last_round:  # one game, one name
            spec = replace(spec, last_round=None)
        if spec not in self.solved:
            who = f"{_SELECTIONS[spec.selection]}, τ = {spec.sampling_ratio:g}, {spec.response} responses"
            self.say(f"solving the game: {who}, population {spec.seed} …")
            reward = self.base.reward if spec.reward is None else spec.reward
            self.solved[spec] = equilibrium.solve(
                self._game(spec), reward, response=spec.response, tolerance=float(self.base.tolerance), throw=False
            )
        return self.solved[spec]

    def _game(self, spec: GameSpec) -> Game:
        changed = {
            "population": PopulationConfig(seed=spec.seed),
            "selection": spec.selection,
            "sampling_ratio": spec.sampling_ratio,
            "cohort_size": None,
            "last_round": self.base.last_round if spec.last_round is None else spec.last_round,
        }
        return game_of_file(self.base.model_copy(update=changed))

    def frame(self, profile: Profile) -> Page:
        """Return what every exhibit of games shows."""
        clients = 100 if self.base.num_clients is None else self.base.num_clients
        reward = f"rewards: {self.base.reward}" if isinstance(self.base.reward, str) else "rewards given"
        population = {"population", "num_clients", "cohort_size", "sampling_ratio", "budget_cap"}
        base = {key: str(value) for key, value in self.base.model_dump(exclude=population).items()}
        shrunk = (
            f"{NUM_SEEDS['quick']} populations of clients are drawn; the paper profile draws {NUM_SEEDS['paper']} (the "
            "paper does not say how many it drew). Clients, rounds and bounds are the paper's."
        )
        return Page(
            name="",
            title="",
            headline="No game certified, so nothing can be said.",
            facts=f"{clients} clients, {self.base.last_round + 1} rounds, {reward}, {NUM_SEEDS[profile]} populations",
            shrunk=(shrunk,) if profile == "quick" else (),
            settings={
                "game": {"num_clients": str(clients), **base},
                "populations": {
                    "seeds": ", ".join(str(seed) for seed in range(NUM_SEEDS[profile])),
                    "privacy aversion": "uniform on (0, 1), clipped to [0.001, 0.999]",
                    "initial budgets": "uniform within budget_bounds",
                },
            },
        )


class Outcome(Protocol):
    """What one population, or one of its games, came to."""

    @property
    def seed(self) -> int:
        """Of the population."""
        ...

    @property
    def equilibria(self) -> Mapping[str, Equilibrium]:
        """The solutions it is made of, by what they are used for; it counts only if all of them certify."""
        ...


def seeds_of(profile: Profile) -> Sequence[int]:
    """Return the populations' seeds."""
    return range(NUM_SEEDS[profile])


@dataclass(frozen=True, kw_only=True)
class FromGames:
    """Gathers the outcomes of an exhibit's games, those that certify.

    Attributes:
        solve: Makes an outcome of a key, such as a population's seed.
        keys: Of the outcomes, by profile.
        facts: What the line of facts has besides.
        quick_note: What else is smaller in the quick profile.
    """

    solve: Callable[[Games, Any, Profile], Any]
    keys: Callable[[Profile], Iterable[Any]] = seeds_of
    facts: str = "τ = 0.2"
    quick_note: str = ""

    def __call__(self, request: Request) -> Gathered[Any]:
        """Solve the games."""
        return self.gather(request, Games(say=request.say))

    def gather(self, request: Request, games: Games) -> Gathered[Any]:
        """Solve games, or take those that are solved; leave out what does not certify, and say so."""
        kept, left_out = [], []
        for key in self.keys(request.profile):
            outcome = self.solve(games, key, request.profile)
            failed = [found for found in outcome.equilibria.values() if found.status != "converged"]
            if failed:
                left_out.append(f"seed {outcome.seed}: {failure(failed[0])}")
            else:
                kept.append(outcome)
        frame = games.frame(request.profile)
        smaller = (self.quick_note,) if self.quick_note and request.profile == "quick" else ()
        frame = replace(
            frame,
            facts=f"{frame.facts}, {self.facts}",
            shrunk=(*frame.shrunk, *smaller),
            findings=_left_out(left_out, len(kept) + len(left_out)),
            provenance=certificates(kept),
        )
        return Gathered(kept or None, frame)


def _left_out(reasons: Sequence[str], num_all: int) -> tuple[Finding, ...]:
    claim = "The game has an equilibrium, and iterating on the mean budget finds it (Theorems 2 and 3)."
    found = (
        f"{len(reasons)} of {num_all} are left out of every number on this page, since a game did not certify: "
        f"{'; '.join(reasons)}."
    )
    return (Finding(claim, found, CANNOT_SAY),) if reasons else ()


def failure(found: Equilibrium) -> str:
    """Return why a solution is not called an equilibrium."""
    gain = _format.gain(found.certificate.relative)
    return (
        f"{_SELECTIONS[found.game.selection]}, K = {found.game.cohort_size[0]:.0f}, {found.reward.policy} rewards "
        f"({found.status}: deviating gains {gain}). {STATUS_MEANING[found.status].split('.')[0]}"
    )


def certificates(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return what clients gain by deviating from each equilibrium, by what it was used for."""
    gains: dict[str, list[str]] = {}
    for one in outcomes:
        for use, found in one.equilibria.items():
            gains.setdefault(use, []).append(_format.gain(found.certificate.relative))
    what = "mean gain by deviating ÷ mean best utility"
    return {f"certificate, {use}": f"{what}: {', '.join(each)}" for use, each in gains.items()}


def path_of(found: Equilibrium) -> tuple[float, ...]:
    """Return the rewards a solution announces, as another game's spec may hold them."""
    return tuple(float(reward) for reward in found.reward.path)


def lines_drawing(
    topic: str,
    lines: Mapping[str, FloatArray],
    ylabel: str,
    *,
    note: str = "",
    places: Sequence[float] = (),
    **look: Any,
) -> Drawing:
    """Return a drawing of (populations, points) values by label.

    Args:
        topic: What is shown; the title, too.
        lines: The values.
        ylabel: The quantity.
        note: Small print.
        places: Of the points; rounds from 0 on if there are none.
        look: What `draw_lines` is told.
    """

    def draw() -> Figure:
        means = {
            label: mean_line(np.array(places if len(places) else range(values.shape[1]), dtype=np.float64), values)
            for label, values in lines.items()
        }
        text = f"{note} Mean over populations, in a band from the least to the greatest.".strip()
        return lines_figure(topic[:1].upper() + topic[1:], means, ylabel, note=text, **look)

    return Drawing(topic, draw)
