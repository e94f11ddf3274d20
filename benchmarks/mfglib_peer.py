"""Our method against MFGLib, the generic mean-field-game library, on the same discretised game.

Shows how long each takes to its best answer, and how exploitable that answer is. Needs the extra `bench`.

Against: MFGLib's algorithms with their defaults, and the setting found best for this game by trying them all,
`FictitiousPlay(alpha=1.0)` in single precision. The last columns are our time to an answer at least as good,
and MFGLib's time over it. A closing line solves the continuous game with `fedpcs.game` itself.

Fairness: every policy, ours or MFGLib's, is scored by MFGLib's own `exploitability_score` in double
precision, off the clock; each side keeps its best. Times are CPU seconds of one thread on either side, the
wall clock beside them. Both are warmed up: our kernels compiled, MFGLib stepped once. The environment is laid
out in memory as MFGLib reads it, and `opt_einsum` must be installed: MFGLib does not ask for it, yet without
it torch builds an (S, A, S, A) intermediate and is twenty times slower. MFGLib moves much memory: measure on
an idle machine, neighbours slow it more than us. Our side is the solver's own scheme on this grid: sweeps in
time order. Where they cycle, as coarse grids provoke, announcements are damped from the first repeat on, as
in `fedpcs.game.mean_field`. Our sweeps are compiled for this game alone; MFGLib takes any game, and part of
the ratio is the price of that.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from mfglib.alg import (  # before mfglib.scoring: the two import each other
    MFOMO,
    FictitiousPlay,
    OccupationMeasureInclusion,
    OnlineMirrorDescent,
    PriorDescent,
)
from mfglib.alg.abc import Iterative
from mfglib.env import Environment
from mfglib.scoring import exploitability_score
from mfglib_game import COHORT_SIZE, NUM_CLIENTS, GridGame, discretise, environment, sweep
from timing import median_seconds, table

from fedpcs._validate import FloatArray
from fedpcs.game import certify, make_game, uniform
from fedpcs.game.mean_field import settle

Peer: TypeAlias = Iterative[Any]

MOST_SWEEPS = 40
HEADER = ["algorithm", "steps", "s to 1 %", "s to 0.01 %", "exploitability", "relative", "at s", "wall s"]
MARGIN = 1e-12  # exploitability below this is zero in double precision


class Step(NamedTuple):
    """One step of a run: CPU and wall-clock seconds so far, scoring excluded, and the exploitability then."""

    number: int
    seconds: float
    wall_seconds: float
    exploitability: float


@dataclass(frozen=True)
class OurRun:
    """Our run: its steps, the mean budgets it ended with, and the mean absolute value of the game."""

    steps: list[Step]
    mean_budget: FloatArray
    scale: float


def score(exact_env: Environment, policy: torch.Tensor) -> float:
    """Return MFGLib's own exploitability of a policy, in double precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # MFGLib allocates in the default type
    try:
        return max(0.0, float(exploitability_score(exact_env, policy.detach().double())))
    finally:
        torch.set_default_dtype(before)


def run_ours(game: GridGame) -> tuple[OurRun, list[FloatArray]]:
    """Sweep until the mean budgets reproduce themselves; damp once a path comes back. Scores come later."""
    rounds, shape = game.last_round + 1, game.initial.shape
    value, policies, seconds = np.zeros((rounds + 1, *shape)), [], []
    announced = np.full(rounds, (game.initial.sum(0) * game.nodes).sum())
    fixed = (game.nodes, game.retention, game.aversion, game.initial, game.reward)
    seen, damping, began = {announced.tobytes()}, 1.0, now()
    for _ in range(MOST_SWEEPS):
        choice, mean = np.empty((rounds, *shape)), np.empty(rounds)
        sweep(*fixed, announced, value, choice, mean)
        policies.append(choice)
        seconds.append(now() - began)
        if (mean == announced).all():
            break
        if damping < 1.0:
            damping = max(0.03, 0.94 * damping)
        elif mean.tobytes() in seen:
            damping = 0.5
        announced = announced + damping * (mean - announced) if damping < 1.0 else mean
        seen.add(announced.tobytes())
    steps = [Step(number, at[0], at[1], math.nan) for number, at in enumerate(seconds, start=1)]
    return OurRun(steps, mean, float((game.initial * np.abs(value[0])).sum())), policies


def median_run(game: GridGame, exact_env: Environment, repeats: int = 5) -> OurRun:
    """Return our median run by time, scored once: every run plays the same policies."""
    run_ours(game)  # compile
    runs = sorted((run_ours(game) for _ in range(repeats)), key=lambda run: run[0].steps[-1].seconds)
    found, policies = runs[repeats // 2]
    steps = []
    for step, choice in zip(found.steps, policies, strict=True):
        policy = torch.nn.functional.one_hot(torch.tensor(choice, dtype=torch.int64), len(game.retention))
        steps.append(step._replace(exploitability=score(exact_env, policy)))
    return replace(found, steps=steps)


def run_mfglib(algorithm: Peer, env: Environment, exact_env: Environment, limit: float) -> list[Step]:
    """Step an MFGLib algorithm for `limit` seconds of its own time."""
    policy = torch.ones((env.T + 1, *env.S, *env.A)) / env.n_actions
    algorithm.step_next_state(algorithm.init_state(env, policy.clone()), None, None)  # warm up
    state = algorithm.init_state(env, policy)
    steps, clock, number = [Step(0, 0.0, 0.0, score(exact_env, policy))], np.zeros(2), 0
    while clock[0] < limit and steps[-1].exploitability > MARGIN:
        began = now()
        state = algorithm.step_next_state(state, None, None)
        clock, number = clock + now() - began, number + 1
        if number <= 12 or number % 5 == 0:
            steps.append(Step(number, clock[0], clock[1], score(exact_env, state.pi)))
    return steps


def run_mfomo(game: GridGame, exact_env: Environment, limit: float) -> list[Step]:
    """Run MFOMO, which has no stepping interface: its own wall clock, which includes its own scoring."""
    env, solver = environment(game, torch.float32, is_differentiable=True), MFOMO()
    pace = solver.solve(env, max_iter=3, atol=None, rtol=None)[2][-1] / 3
    policies, _, clock = solver.solve(env, max_iter=max(1, int(limit / pace)), atol=None, rtol=None)
    return [Step(i, clock[i], clock[i], score(exact_env, policy)) for i, policy in enumerate(policies)]


def now() -> FloatArray:
    """Return CPU and wall-clock seconds."""
    return np.array((time.process_time(), time.perf_counter()))


def first(steps: list[Step], level: float) -> Step:
    """Return the step at which a run first reached `level`; NaN times if it never did."""
    never = Step(0, math.nan, math.nan, math.nan)
    return next((step for step in steps if step.exploitability <= level), never)


def row(name: str, steps: list[Step], ours: OurRun) -> list[str]:
    """Return a run's row: its best answer, when it had it, and when we had one as good."""
    best = min(step.exploitability for step in steps)
    at, mine = first(steps, best), first(ours.steps, max(best, MARGIN))
    early = [f"{first(steps, level * ours.scale).seconds:.3f}" for level in (1e-2, 1e-4)]
    times = [f"{at.seconds:.3f}", f"{at.wall_seconds:.3f}", f"{mine.seconds:.4f}"]
    answer = [f"{best:.1e}", f"{best / ours.scale:.1e}", *times, f"{at.seconds / mine.seconds:.0f}"]
    return ["–" if cell == "nan" else cell for cell in (name, str(steps[-1].number), *early, *answer)]


def contenders(game: GridGame, *, is_small: bool) -> list[tuple[Peer, torch.dtype]]:
    """Return MFGLib's algorithms and each one's precision: defaults first, then what suits them best."""
    # PriorDescent's default temperature, 1, overflows exp(Q / temperature) here; this is the least that fits.
    largest = environment(game, torch.float64).r_max * (game.last_round + 1)
    single, double = torch.float32, torch.float64
    found: list[tuple[Peer, torch.dtype]] = [
        (FictitiousPlay(), single),
        (OnlineMirrorDescent(), single),
        (PriorDescent(round(max(0.3, largest / 1500), 2), 3), double),
        (FictitiousPlay(0.3), single),
        (FictitiousPlay(1.0), single),
        (FictitiousPlay(1.0), double),
        (OnlineMirrorDescent(10.0), single),
    ]
    if is_small:
        inclusions = (OccupationMeasureInclusion(a, osqp_atol=1e-6, osqp_rtol=1e-6) for a in (1e-3, 0.1))
        found += [(algorithm, single) for algorithm in inclusions]
    return found


def compare(title: str, game: GridGame, seconds: float, *, is_small: bool = False) -> OurRun:
    """Print one game's table; on the small grid also the algorithms that are hopeless on the larger one."""
    exact_env = environment(game, torch.float64)
    ours = median_run(game, exact_env)
    rows = [row("ours: sweeps in order", ours.steps, ours)]
    for algorithm, dtype in contenders(game, is_small=is_small):
        torch.set_default_dtype(dtype)
        steps = run_mfglib(algorithm, environment(game, dtype), exact_env, seconds)
        rows.append(row(f"{algorithm} {str(dtype)[6:]}".replace("self.", ""), steps, ours))
    if is_small:
        torch.set_default_dtype(torch.float32)
        rows.append(row("MFOMO()", run_mfomo(game, exact_env, seconds), ours))
    header = [*HEADER, "ours s", "ratio"]
    print(table(f"{title}, mean absolute value {ours.scale:.2f}", header, rows), flush=True)
    return ours


def continuous(game: GridGame, ours: OurRun) -> str:
    """Return one sentence on the same game without a grid, solved by the library."""
    crowd = uniform(NUM_CLIENTS, seed=0)
    whole = make_game(crowd, last_round=game.last_round, cohort_size=COHORT_SIZE)
    path = whole.reward_path(game.reward)
    profile = settle(whole, path).profile
    seconds = median_seconds(lambda: settle(whole, path), 5)
    relative = certify(profile, path, whole).relative
    apart = float(np.abs(profile.mean_budget - ours.mean_budget).max())
    return (
        f"\n`fedpcs.game` solves the continuous game in {seconds:.3f} s to a relative exploitability of "
        f"{relative:.1e}; the grid's mean budgets differ from it by at most {apart:.3f}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Our method against MFGLib on one discretised game.")
    parser.add_argument("--seconds", type=float, default=3.5, help="CPU time limit of each MFGLib run")
    options = parser.parse_args()
    if not torch.backends.opt_einsum.is_available():
        parser.error("opt_einsum is missing and MFGLib 20 times slower without it: pip install opt-einsum")
    torch.set_num_threads(1)
    for reward in (1.0, 3.0, 10.0):
        game = discretise((10, 40, 11), last_round=30, reward=reward)
        print(continuous(game, compare(f"T = 30, R = {reward:g}", game, options.seconds)), flush=True)
    small = discretise((4, 16, 6), last_round=6, reward=1.0)
    compare("Small grid, T = 6, R = 1", small, options.seconds, is_small=True)


if __name__ == "__main__":
    main()
