"""The exact best response against a plain NumPy dynamic programme on the same announced terms.

Shows what `fedpcs.game.best_response` costs per client and how much utility its answer misses, beside a twin
anybody would write: a loop over rounds, every budget of an even grid against every retention of an even grid,
linear interpolation of next round's values, then a forward pass.

Against: the twin on several grids. An answer is scored by playing it: its utility under the game's payoffs,
compared with the best the certificate finds on a fine grid that holds every method's own path.

Fairness: same clients, same terms, one thread, kernels compiled beforehand, one client at a time for both.
Ratios are of CPU time, which neighbours on the machine disturb less; wall-clock time stands beside it.
The headline compares with the coarsest twin that misses no more than we do, or with the finest where none
does. The twin is plain NumPy, so part of the ratio is what compilation alone would give it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from timing import median_seconds, table

from fedpcs._validate import FloatArray
from fedpcs.game import Game, Population, Terms, best_response, individuals, make_game, solve, uniform
from fedpcs.game.payoffs import client_utility
from fedpcs.game.verify import best_achievable

GRIDS = ((51, 26), (101, 51), (201, 101), (401, 201), (801, 401))  # budgets × retentions
CHECK_ACCURACY = 1e-7
CLOCKS = (time.process_time, time.perf_counter)

Respond = Callable[[Terms, float, float], tuple[FloatArray, FloatArray]]  # -> (rounds,) budget and retention


@dataclass(frozen=True)
class Answers:
    """What one method answered for every client.

    Attributes:
        name: The method.
        seconds: CPU time of one answer, median over clients.
        wall_seconds: The same by the wall clock.
        best: (clients,) best utility the certificate finds on a grid that holds the method's paths.
        utility: (clients,) what playing the answers earns.
    """

    name: str
    seconds: float
    wall_seconds: float
    best: FloatArray
    utility: FloatArray

    def shortfall(self, best: FloatArray) -> FloatArray:
        """Return the utility each client misses, over the mean absolute best: (clients,)."""
        return np.asarray(np.maximum(0.0, best - self.utility) / np.abs(best).mean())


def twin_response(
    terms: Terms, aversion: float, start: float, *, grid: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Return the twin's budget and retention paths: dynamic programming on an even grid."""
    low = min(start, float(terms.mean_budget.min()))
    high = max(start, float(terms.mean_budget.max()))
    nodes, retention = np.linspace(low, high, grid[0]), np.linspace(0.0, 1.0, grid[1])
    keep_cost = (1.0 - aversion) * retention**2
    value = np.empty((terms.reward.size, nodes.size))
    for t in range(terms.last_round, -1, -1):
        chance = _chance(nodes, t, terms)
        value[t] = chance * (nodes * terms.reward[t] - aversion * nodes**2)
        if t < terms.last_round:
            mean = terms.mean_budget[t]
            onward = np.interp(mean + retention * (nodes[:, None] - mean), nodes, value[t + 1])
            value[t] += (onward - chance[:, None] * keep_cost).max(axis=1)

    budget, chosen = np.full(terms.reward.size, start), np.zeros(terms.reward.size)
    for t in range(terms.last_round):
        following = terms.mean_budget[t] + retention * (budget[t] - terms.mean_budget[t])
        onward = np.interp(following, nodes, value[t + 1])
        k = int(np.argmax(onward - _chance(budget[t], t, terms) * keep_cost))
        budget[t + 1], chosen[t] = following[k], retention[k]
    return budget, chosen


def _chance(budget: FloatArray, t: int, terms: Terms) -> FloatArray:
    """Return P = 1 − (1 − x)^K with x = min(1, ρ/(Nφ))."""
    share = np.minimum(1.0, budget / (terms.num_clients * terms.mean_budget[t]))
    return np.asarray(1.0 - (1.0 - share) ** terms.cohort_size[t])


def exact_response(terms: Terms, aversion: float, start: float) -> tuple[FloatArray, FloatArray]:
    """Return the library's budget and retention paths."""
    answer = best_response(terms, aversion, start)
    return answer.budget, answer.retention


def ask(name: str, respond: Respond, terms: Terms, clients: Population, repeats: int) -> Answers:
    """Time `respond` for every client and score what it answers."""
    budget = np.empty((terms.reward.size, clients.num_types))
    retention, seconds = np.empty_like(budget), np.empty((2, clients.num_types))
    for i in range(clients.num_types):
        one = partial(respond, terms, float(clients.privacy_aversion[i]), float(clients.initial_budget[i]))
        budget[:, i], retention[:, i] = one()
        seconds[:, i] = [median_seconds(one, repeats, clock) for clock in CLOCKS]
    utility = client_utility(budget, retention, clients.privacy_aversion, terms)
    best = best_achievable(budget, terms, clients, accuracy=CHECK_ACCURACY).at_most
    cpu, wall = np.median(seconds, axis=1)
    return Answers(name, float(cpu), float(wall), best, utility)


def compare(
    game: Game, reward: float, grids: tuple[tuple[int, int], ...], *, num_asked: int, repeats: int
) -> tuple[list[Answers], FloatArray]:
    """Return every method's answers, ours first, and each client's best achievable utility."""
    terms = solve(game, reward).terms
    crowd = game.population
    asked = individuals(crowd.privacy_aversion[:num_asked], crowd.initial_budget[:num_asked])
    answers = [ask("exact", exact_response, terms, asked, repeats)]
    for grid in grids:
        name = f"NumPy {grid[0]} × {grid[1]}"
        answers.append(ask(name, partial(twin_response, grid=grid), terms, asked, repeats))
    return answers, np.min([found.best for found in answers], axis=0)


def rows(answers: list[Answers], best: FloatArray) -> list[list[str]]:
    """Return a row per method: time, utility missed, and time over ours."""
    result = []
    for found in answers:
        missed = found.shortfall(best)
        times = [f"{1e3 * seconds:.2f}" for seconds in (found.wall_seconds, found.seconds)]
        score = [f"{found.utility.mean():.4f}", f"{missed.mean():.1e}", f"{missed.max():.1e}"]
        result.append([found.name, *times, *score, f"{found.seconds / answers[0].seconds:.1f}"])
    return result


def headline(answers: list[Answers], best: FloatArray) -> str:
    """Return one sentence: how much longer the twin takes for an answer as good as ours."""
    ours, *twins = answers
    missed = ours.shortfall(best).mean()
    equals = [twin for twin in twins if twin.shortfall(best).mean() <= missed]
    twin = equals[0] if equals else twins[-1]
    verdict = "The coarsest twin as good as ours" if equals else "No twin is as good as ours; the finest"
    found = f"{twin.name} misses {twin.shortfall(best).mean():.1e} where exact misses {missed:.1e}"
    return f"{verdict}: {found}, and takes {twin.seconds / ours.seconds:.0f} times as long."


def main() -> None:
    parser = argparse.ArgumentParser(description="The exact best response against a NumPy twin.")
    parser.add_argument("--clients", type=int, default=25, help="how many clients are asked")
    options = parser.parse_args()
    game = make_game(uniform(100, seed=0))
    header = ["method", "ms", "CPU ms", "mean utility", "missed, mean", "missed, worst", "time ÷ exact"]
    for reward in (1.0, 5.0, 10.0):
        answers, best = compare(game, reward, GRIDS, num_asked=options.clients, repeats=3)
        title = f"R = {reward:g}, best achievable {best.mean():.4f}"
        print(table(title, header, rows(answers, best)))
        print(f"\n{headline(answers, best)}", flush=True)


if __name__ == "__main__":
    main()
