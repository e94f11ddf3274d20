"""The games exhibits are made of: solved once each, certified, and spoken of where they do not certify.

An exhibit names its games as `Case`s and asks `Games` for them. A game is solved at most once, whoever asks. A seed
counts only if every one of its games certifies, so that trials are compared on the same populations.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs.exhibits.profiles import Profile
from fedpcs.game import equilibrium
from fedpcs.game.assemble import game_of_file
from fedpcs.game.config import GameFile, PopulationConfig
from fedpcs.game.equilibrium import STATUS_MEANING, Equilibrium
from fedpcs.game.mean_field import ResponseMode
from fedpcs.game.rules import Game, Selection
from fedpcs.game.schedule import played_budget
from fedpcs.report import style
from fedpcs.report.page import Finding
from fedpcs.studies.paired import PairedDifference

behaved = played_budget  # of clients that do not play
NUM_SEEDS: Mapping[Profile, int] = {"quick": 3, "paper": 10}
ONE_GAME = (
    "None of them looks at budgets, so to a rational client they are the same game, and here they are one row: "
    "budget-blind."
)
SELECTION_WORDS: Mapping[Selection, str] = {"budget-aware": "FedPCS", "budget-blind": "budget-blind"}


@dataclass(frozen=True)
class Case:
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

    @property
    def words(self) -> str:
        """What tells it from other cases of an exhibit."""
        words = f"{SELECTION_WORDS[self.selection]}, τ = {self.sampling_ratio:g}, population {self.seed}"
        if self.reward is not None:
            words += f", rewards {'given' if isinstance(self.reward, tuple) else self.reward}"
        if self.last_round is not None:
            words += f", T = {self.last_round}"
        return words if self.response == "exact" else f"{words}, {self.response} responses"


@dataclass(frozen=True)
class Games:
    """Games by case, solved when first asked for.

    Attributes:
        base: What all of them share: clients, rounds, bounds, the server's weights, the reward policy.
        solved: Those solved so far; give one mapping to several exhibits and none is solved twice.
        say: Is told what is being solved: it takes a while.
    """

    base: GameFile = field(default_factory=GameFile)
    solved: dict[Case, Equilibrium] = field(default_factory=dict)
    say: Callable[[str], None] = field(default=lambda words: None, compare=False)

    def rules(self, case: Case) -> Game:
        """Return a case's game, unsolved."""
        changed = {
            "population": PopulationConfig(seed=case.seed),
            "selection": case.selection,
            "sampling_ratio": case.sampling_ratio,
            "cohort_size": None,
            "last_round": self.base.last_round if case.last_round is None else case.last_round,
        }
        return game_of_file(self.base.model_copy(update=changed))

    def solve(self, case: Case) -> Equilibrium:
        """Return a case's solution, certified or not: its status says."""
        if case.last_round == self.base.last_round:  # one game, one name
            case = replace(case, last_round=None)
        if case not in self.solved:
            self.say(f"solving the game: {case.words} …")
            reward = self.base.reward if case.reward is None else case.reward
            self.solved[case] = equilibrium.solve(
                self.rules(case), reward, response=case.response, tolerance=float(self.base.tolerance), throw=False
            )
        return self.solved[case]


def path_of(found: Equilibrium) -> tuple[float, ...]:
    """Return the rewards a solution announces, as a case of another game may hold them."""
    return tuple(float(reward) for reward in found.reward.path)


def certified_seeds(
    profile: Profile, equilibria: Callable[[int], Iterable[Equilibrium]]
) -> tuple[tuple[int, ...], tuple[Finding, ...]]:
    """Return the seeds all of whose games certify, and a finding about the others, if there are any."""
    kept: list[int] = []
    left_out: list[str] = []
    for seed in range(NUM_SEEDS[profile]):
        failed = [found for found in equilibria(seed) if found.status != "converged"]
        if failed:
            left_out.append(f"seed {seed}: {failure_words(failed[0])}")
        else:
            kept.append(seed)
    if not left_out:
        return tuple(kept), ()
    finding = Finding(
        "The game has an equilibrium, and iterating on the mean budget finds it (Theorems 2 and 3).",
        f"For {len(left_out)} of {NUM_SEEDS[profile]} populations no equilibrium certified, and they are left out of "
        f"every number on this page: {'; '.join(left_out)}.",
        "cannot say",
    )
    return tuple(kept), (finding,)


def failure_words(found: Equilibrium) -> str:
    """Return why a solution is not called an equilibrium."""
    gain = _format.gain(found.certificate.relative)
    return (
        f"{SELECTION_WORDS[found.game.selection]}, K = {found.game.cohort_size[0]:.0f}, {found.reward.policy} rewards "
        f"({found.status}: deviating gains {gain}). {STATUS_MEANING[found.status].split('.')[0]}"
    )


def certificates(equilibria: Mapping[str, Sequence[Equilibrium]]) -> dict[str, str]:
    """Return what clients gain by deviating from each equilibrium used, by what it was used for."""
    return {
        f"certificate, {use}": "mean gain by deviating ÷ mean best utility: "
        + ", ".join(_format.gain(found.certificate.relative) for found in solved)
        for use, solved in equilibria.items()
    }


def difference(found: PairedDifference, write: Callable[[float], str] = _format.amount, unit: str = "") -> str:
    r"""Return a paired difference with its interval.

    Example:
        >>> difference(PairedDifference(-3.0, -5.0, -1.0, 3))
        '−3 (95\xa0% interval −5 to −1, 3 pairs)'
    """
    if found.num_pairs == 1:
        return f"{write(found.mean)}{unit} (one pair, no interval)"
    return (
        f"{write(found.mean)}{unit} (95\N{NO-BREAK SPACE}% interval {write(found.low)} to {write(found.high)}, "
        f"{found.num_pairs} pairs)"
    )


def points(found: PairedDifference) -> str:
    """Return a paired difference of shares in percentage points."""
    return difference(found, _format.points, " points")


def of_one_population(figure: Figure) -> Figure:
    """Return a figure whose title says that it is about the first population alone."""
    title = f"One population: {figure.get_suptitle()}".replace("\n", " ")
    figure.suptitle(textwrap.fill(title, 76), x=0.012, ha="left", fontsize=12.5, fontweight="bold", color=style.INK)
    return figure


def facts(games: Games, profile: Profile, *, ratios: str = "τ = 0.2") -> str:
    """Return the setting in a line."""
    clients = 100 if games.base.num_clients is None else games.base.num_clients
    reward = games.base.reward
    words = f"rewards: {reward}" if isinstance(reward, str) else "rewards given"
    return f"{clients} clients, {games.base.last_round + 1} rounds, {ratios}, {words}, {_populations(profile)}"


def shrunk(profile: Profile) -> tuple[str, ...]:
    """Return what the quick profile has less of."""
    if profile == "paper":
        return ()
    return (
        f"{NUM_SEEDS['quick']} populations of clients are drawn; the paper profile draws {NUM_SEEDS['paper']} (the "
        "paper does not say how many it drew). Clients, rounds and bounds are the paper's.",
    )


def commands(name: str, profile: Profile, *options: str) -> tuple[tuple[str, str], ...]:
    """Return how to make a page again."""
    words = " ".join(("fedpcs reproduce", name, *options, f"--profile {profile}"))
    return ((words, "this page"),)


def settings(games: Games, profile: Profile) -> dict[str, dict[str, str]]:
    """Return the game's settings, written."""
    base = games.base.model_dump(exclude={"population", "num_clients", "cohort_size", "sampling_ratio", "budget_cap"})
    clients = 100 if games.base.num_clients is None else games.base.num_clients
    return {
        "game": {"num_clients": str(clients), **{key: str(value) for key, value in base.items()}},
        "populations": {
            "seeds": ", ".join(str(seed) for seed in range(NUM_SEEDS[profile])),
            "privacy aversion": "uniform on (0, 1), clipped to [0.001, 0.999]",
            "initial budgets": "uniform within budget_bounds",
        },
    }


def _populations(profile: Profile) -> str:
    return f"{NUM_SEEDS[profile]} populations"
