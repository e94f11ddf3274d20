"""The server's cost, accuracy lost and rewards, under each sampler and sampling ratio (paper, Fig. 6).

Cost over the run is Σ_t Σ_i π_i [γa/((t+1)ρ_i) + (1−γ)R_t ρ_i]. FedPCS's server announces the path that is best for it
at each τ. Its rivals ignore budgets and are shown twice: with FedPCS's rewards, so that only the sampler differs, and
with the path that is best for their own server. Under a budget-blind sampler a client's chance K/N only scales what it
earns: budgets and the best path do not depend on τ, and cost is proportional to K. So its own game is solved once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.exhibits import solved_games as shared
from fedpcs.exhibits.profiles import Profile
from fedpcs.exhibits.server_cost_figures import cost_figure, saving_figure
from fedpcs.exhibits.server_cost_findings import (
    BLIND,
    BLIND_OWN,
    DRAW,
    FEDPCS,
    RATIOS,
    RIVALS,
    SELFISH,
    STATIC,
    Costs,
    LemmaCosts,
    findings,
    gaps,
    lemma_finding,
)
from fedpcs.exhibits.solved_games import Case, Games
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.game.payoffs import server_cost
from fedpcs.game.rules import Game
from fedpcs.report.page import Drawing, Finding, Page, Table
from fedpcs.studies.paired import mean_and_std


def make_page(profile: Profile, games: Games | None = None) -> Page:
    """Solve the games of every population and ratio, and compare the server's cost."""
    games = games or Games()

    def solved(seed: int) -> dict[str, Equilibrium]:
        found = {BLIND_OWN: games.solve(Case(seed, "budget-blind"))}
        for ratio in RATIOS:
            aware = games.solve(Case(seed, sampling_ratio=ratio))
            same = Case(seed, "budget-blind", ratio, shared.path_of(aware))
            found |= {f"{FEDPCS}, τ = {ratio:g}": aware, f"{BLIND}, τ = {ratio:g}": games.solve(same)}
        return found

    seeds, failures = shared.certified_seeds(profile, lambda seed: solved(seed).values())
    costs = gather([_costs_of(solved(seed)) for seed in seeds])
    used = {name: [solved(seed)[name] for seed in seeds] for name in (solved(seeds[0]) if seeds else ())}
    pairs = {ratio: _lemma_games(games, seeds, ratio) for ratio in RATIOS}
    used |= {f"{FEDPCS}, the lemma's rewards, τ = {ratio:g}": [one for one, _ in mine] for ratio, mine in pairs.items()}
    lemma = {ratio: [(float(a.cost.sum()), float(b.cost.sum())) for a, b in mine] for ratio, mine in pairs.items()}
    return page_of(costs, seeds, failures, games, profile, lemma=lemma, provenance=shared.certificates(used))


def _lemma_games(games: Games, seeds: Sequence[int], ratio: float) -> list[tuple[Equilibrium, Equilibrium]]:
    """Return the game under the lemma's rewards beside the one under those announced, where the first certifies."""

    def solved(seed: int, reward: str | None) -> Equilibrium:
        return games.solve(Case(seed, sampling_ratio=ratio, reward=reward))

    pairs = [(solved(seed, "per-round"), solved(seed, None)) for seed in seeds]
    return [(lemma, announced) for lemma, announced in pairs if lemma.status == "converged"]


def _costs_of(found: Mapping[str, Equilibrium]) -> dict[str, dict[float, float]]:
    """Return one population's cost by trial and ratio."""
    own = found[BLIND_OWN]
    costs: dict[str, dict[float, float]] = {trial: {} for trial in (FEDPCS, *RIVALS, DRAW)}
    for ratio in RATIOS:
        aware, same = found[f"{FEDPCS}, τ = {ratio:g}"], found[f"{BLIND}, τ = {ratio:g}"]
        blind, path = same.game, aware.reward.path
        costs[FEDPCS][ratio] = total_cost(aware.profile.budget, path, aware.game)
        costs[BLIND][ratio] = total_cost(same.profile.budget, path, blind)
        costs[DRAW][ratio] = total_cost(same.profile.budget, path, aware.game)
        at_ratio = replace(own.game, cohort_size=blind.cohort_size)
        costs[BLIND_OWN][ratio] = total_cost(own.profile.budget, own.reward.path, at_ratio)
        costs[STATIC][ratio] = total_cost(shared.behaved(aware, "static"), path, blind)
        costs[SELFISH][ratio] = total_cost(shared.behaved(aware, "selfish"), path, blind)
    return costs


def total_cost(budget: FloatArray, reward: FloatArray, game: Game) -> float:
    """Return the server's expected cost over the run."""
    return float(server_cost(budget, reward, game).sum())


def gather(costs: Sequence[Mapping[str, Mapping[float, float]]]) -> dict[str, dict[float, list[float]]]:
    """Return populations' costs as one list for each trial and ratio."""
    return {
        trial: {ratio: [one[trial][ratio] for one in costs] for ratio in RATIOS}
        for trial in (costs[0] if costs else ())
    }


def page_of(
    costs: Costs,
    seeds: Sequence[int],
    failures: tuple[Finding, ...],
    games: Games,
    profile: Profile,
    *,
    lemma: LemmaCosts | None = None,
    provenance: Mapping[str, str] | None = None,
) -> Page:
    """Make the page of costs by trial, ratio and seed."""
    nothing = "No population's games all certified, so no costs can be compared."
    return Page(
        name="server-cost",
        title="The server's cost by sampler and sampling ratio",
        headline=_headline(costs) + _draw_words(costs) if seeds else nothing,
        facts=shared.facts(games, profile, ratios="τ = 0.2, 0.5, 0.8"),
        shrunk=shared.shrunk(profile),
        findings=(*(findings(costs) if seeds else ()), *lemma_finding(lemma or {}, len(seeds)), *failures),
        tables=(_table(costs), _savings(costs)) if seeds else (),
        drawings=_drawings(costs) if seeds else (),
        settings=shared.settings(games, profile),
        commands=shared.commands("server-cost", profile),
        provenance=provenance or {},
        records=tuple(
            {"trial": trial, "sampling ratio": ratio, "seed": seed, "cost": cost}
            for trial, by_ratio in costs.items()
            for ratio, values in by_ratio.items()
            for seed, cost in zip(seeds, values, strict=True)
        ),
    )


def _headline(costs: Costs) -> str:
    saved = gaps(costs, BLIND_OWN)
    each = ", ".join(f"{_format.share(gap.mean)} at {_ratio_words(ratio)}" for ratio, gap in saved.items())
    return f"FedPCS's server saves {each} against a budget-blind server that announces its own best rewards."


def _draw_words(costs: Costs) -> str:
    """Return how much of the saving is had by drawing alone."""
    if DRAW not in costs:
        return ""
    alone = [1.0 - a / b for a, b in zip(costs[DRAW][RATIOS[0]], costs[BLIND][RATIOS[0]], strict=True)]
    return (
        f" Drawing by budget saves {_format.share(mean_and_std(alone)[0])} at {_ratio_words(RATIOS[0])} even if "
        "clients do not respond to it."
    )


def _ratio_words(ratio: float) -> str:
    return f"τ = {ratio:g}".replace(" ", "\N{NO-BREAK SPACE}")


def _table(costs: Costs) -> Table:
    return Table(
        "The server's cost over the run, mean ± standard deviation over populations",
        ("sampler and clients", *map(_ratio_words, RATIOS)),
        tuple(
            (trial, *(_format.amount_and_spread(values) for values in by_ratio.values()))
            for trial, by_ratio in costs.items()
        ),
        note="Same rewards: those FedPCS's server announces at that τ; static and selfish clients are paid them too.",
    )


def _savings(costs: Costs) -> Table:
    found = {rival: gaps(costs, rival) for rival in RIVALS}
    clear = frozenset(
        (row, column)
        for row, by_ratio in enumerate(found.values())
        for column, gap in enumerate(by_ratio.values(), start=1)
        if gap.is_above or gap.is_below
    )
    return Table(
        "What FedPCS's server saves, as a share of the rival's cost, with 95 % intervals over populations",
        ("against", *map(_ratio_words, RATIOS)),
        tuple(
            (rival, *(shared.difference(gap, _format.share) for gap in by_ratio.values()))
            for rival, by_ratio in found.items()
        ),
        bold=clear,
        note="Bold: the interval leaves zero out.",
    )


def _drawings(costs: Costs) -> tuple[Drawing, ...]:
    drawn = {trial: by_ratio for trial, by_ratio in costs.items() if trial not in (SELFISH, DRAW)}
    selfish = mean_and_std(costs[SELFISH][RATIOS[0]])[0]
    note = f"Not drawn: clients that all sit at the lowest budget, {_format.amount(selfish)} at τ = {RATIOS[0]:g}."
    saved = {rival: gaps(costs, rival) for rival in (BLIND_OWN, BLIND)}
    return (
        Drawing("cost by sampling ratio", lambda: cost_figure(drawn, _headline(costs).rstrip("."), note)),
        Drawing("saving by sampling ratio", lambda: saving_figure(saved)),
    )
