"""Cohorts under privacy caps: K_t and how much of each B_t a drawn cohort uses (paper, Figs. 7–8).

Two samplers draw cohorts of the same sizes K_t from the same clients: FedPCS in proportion to budgets, and a
random one that ignores them. Either is cut to fit, so no cohort passes its cap; how close does each come?
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from fedpcs import _format, _random
from fedpcs._validate import FloatArray
from fedpcs.game.equilibrium import Equilibrium, merge_note, merge_types
from fedpcs.game.payoffs import cohort_inclusion
from fedpcs.game.rules import Game
from fedpcs.game.sampling_ratio import CohortPlan, cut_to_cap, draw_order, plan_cohort
from fedpcs.report import style
from fedpcs.report.figures.lines import Line, draw_lines

# The paper's caps: 700 falling to 300 for 100 clients with a mean budget of about 6.5.
_PAPER_CAPS = (700.0, 300.0)
_PAPER_TOTAL_BUDGET = 650.0
_MOST_DRAWS, _LEAST_DRAWS = 200, 20
_MOST_DRAWN_CLIENTS = 5_000
_MOST_PLANNED_TYPES = 5_000
# Passing over clients one by one is plain Python; this many steps take about two seconds.
_MOST_STEPS = 8_000_000


def default_caps(budget: FloatArray, game: Game) -> FloatArray:
    """Return the paper's falling caps scaled to this game, never below its largest client's budget."""
    total = game.num_clients * game.population.mean(budget.mean(axis=0))
    caps = np.linspace(*_PAPER_CAPS, game.last_round + 1) * total / _PAPER_TOTAL_BUDGET
    return np.asarray(np.maximum(caps, budget.max(axis=1)))


def num_draws(game: Game) -> int:
    """Return how many cohorts to draw per round; zero where only the expectation is affordable."""
    if not game.population.is_individual or game.num_clients > _MOST_DRAWN_CLIENTS:
        return 0
    draws = min(_MOST_DRAWS, _MOST_STEPS // (2 * (game.last_round + 1) * game.num_clients))
    return draws if draws >= _LEAST_DRAWS else 0


def drawn_usage(budget: FloatArray, plan: CohortPlan, draws: int, *, budget_aware: bool) -> Line:
    """Draw `draws` cohorts in every round, cut each to its cap; return the mean share used, in a band of 5 to 95 %."""
    used = np.empty((plan.budget_cap.size, draws))
    for t, row in enumerate(budget):
        rng = _random.generator(0, "figure-caps", round_index=t)
        cap, size = float(plan.budget_cap[t]), int(plan.cohort_size[t])
        for draw in range(draws):
            cohort = cut_to_cap(draw_order(row, rng, budget_aware=budget_aware), row, size, cap)
            used[t, draw] = row[cohort].sum() / cap
    low, high = np.quantile(used, (0.05, 0.95), axis=1)
    return Line(np.arange(len(used), dtype=np.float64), used.mean(axis=1), low, high)


def expected_usage(budget: FloatArray, plan: CohortPlan, game: Game, *, budget_aware: bool) -> Line:
    """Return the share of each cap that cohorts are expected to use before any is cut."""
    drawn = replace(game, selection="budget-aware" if budget_aware else "budget-blind")
    count = game.population.client_count
    spent = [
        float(count @ (cohort_inclusion(row, float(size), drawn) * row))
        for row, size in zip(budget, plan.cohort_size, strict=True)
    ]
    return Line(np.arange(len(spent), dtype=np.float64), np.array(spent) / plan.budget_cap)


def caps_figure(found: Equilibrium, plan: CohortPlan | None) -> Figure:
    """Draw K_t above, and below it the usage of both samplers.

    Args:
        found: The solved game.
        plan: The cohorts it was solved with; None plans some under the paper's caps, scaled.
    """
    game, budget = merge_types(found, _MOST_PLANNED_TYPES)
    note = "Caps are this game's own."
    if plan is None:
        plan = plan_cohort(budget, found.reward.path, default_caps(budget, game), game)
        note = (
            "No caps were given: these are the paper's (700 falling to 300 for 100 clients), scaled to this game's "
            "total budget and never below its largest client's."
        )
    draws = num_draws(found.game)
    usage = {
        name: drawn_usage(budget, plan, draws, budget_aware=is_aware)
        if draws
        else expected_usage(budget, plan, game, budget_aware=is_aware)
        for name, is_aware in (("FedPCS", True), ("random", False))
    }
    how = f"Both samplers draw K_t clients, {draws} times a round, and cut each cohort to fit."
    note = f"{note} {how if draws else 'Usage is what is expected before a cohort is cut to fit.'}"
    note = f"{note} {merge_note(found, game)}"
    figure, (top, bottom) = style.new_figure("Cohorts under privacy caps", note=note, height_inches=6.4, num_rows=2)
    sizes = {"clients drawn": Line(np.arange(plan.cohort_size.size, dtype=np.float64), plan.cohort_size)}
    draw_lines(top, sizes, "clients drawn, $K_t$", from_zero=True)
    first, last = _format.amount(plan.budget_cap[0]), _format.amount(plan.budget_cap[-1])
    style.caption(top, f"Cohort size under a cap of {first} in round 0 and {last} in the last")
    draw_lines(bottom, usage, "privacy usage Σρ / $B_t$", level=("the cap", 1.0), is_share=True)
    style.caption(bottom, "Share of the cap used: mean and 5–95 % of draws" if draws else "Share used, expected")
    return figure
