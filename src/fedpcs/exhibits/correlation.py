"""Do clients' budgets move together? Pearson correlation of budget paths, client by client (paper, Fig. 4).

The paper draws, for each sampler, a map of the correlation between any two clients' strategies ρ_i^t: the Pearson
coefficient of their budget paths over rounds,

    r_ij = Σ_t (ρ_i^t − ρ̄_i)(ρ_j^t − ρ̄_j) / √(Σ_t (ρ_i^t − ρ̄_i)² Σ_t (ρ_j^t − ρ̄_j)²).

It reads a warm map as small divergence between clients. Correlation sees only whether two paths move in the same
direction, not how far apart they are, so the spread between clients is reported beside it. A client whose budget never
moves correlates with nobody: 0/0, left undefined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.exhibits import solved_games as shared
from fedpcs.exhibits import verdicts
from fedpcs.exhibits.correlation_figures import correlation_figure, divergence_figure
from fedpcs.exhibits.profiles import Profile
from fedpcs.exhibits.solved_games import Case, Games
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.report.page import Drawing, Finding, Page, Table, Verdict
from fedpcs.studies.paired import PairedDifference, mean_and_std, paired_difference

FEDPCS, BLIND, BLIND_OWN = "FedPCS", "budget-blind, same rewards", "budget-blind, its own rewards"
STATIC, SELFISH = "static clients", "selfish clients"
# A path that moves by less than this share of its mean stands still; the rest is rounding.
_LEAST_MOVE = 1e-6
_HIGH, _SOME = 0.7, 0.3
# A lead in mean correlation of no more than this counts as none.
_NO_DIFFERENCE = 0.05

Budgets = Mapping[str, Sequence[FloatArray]]


def make_page(profile: Profile, games: Games | None = None) -> Page:
    """Solve both games for every population and correlate budget paths."""
    games = games or Games()

    def solved(seed: int) -> tuple[Equilibrium, ...]:
        aware = games.solve(Case(seed))
        same = games.solve(Case(seed, "budget-blind", reward=shared.path_of(aware)))
        return aware, same, games.solve(Case(seed, "budget-blind"))

    seeds, failures = shared.certified_seeds(profile, solved)
    found = [solved(seed) for seed in seeds]
    budgets = {
        FEDPCS: [aware.profile.budget for aware, _, _ in found],
        BLIND: [same.profile.budget for _, same, _ in found],
        BLIND_OWN: [own.profile.budget for _, _, own in found],
        STATIC: [shared.behaved(aware, "static") for aware, _, _ in found],
        SELFISH: [shared.behaved(aware, "selfish") for aware, _, _ in found],
    }
    used = {name: [three[k] for three in found] for k, name in enumerate((FEDPCS, BLIND, BLIND_OWN))}
    return page_of(budgets, seeds, failures, games, profile, provenance=shared.certificates(used))


def path_correlation(budget: FloatArray) -> FloatArray:
    """Return r_ij of (rounds, clients) budgets: (clients, clients), NaN where either path stands still."""
    centred = budget - budget.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    moves = np.ptp(budget, axis=0) > _LEAST_MOVE * np.abs(budget).mean(axis=0)
    unit = np.divide(centred, length, out=np.full_like(centred, np.nan), where=moves)
    return np.asarray((unit.T @ unit).clip(-1.0, 1.0))


def others_mean(correlation: FloatArray) -> float | None:
    """Return the mean over pairs of different clients; None where no pair has a correlation.

    Example:
        >>> others_mean(np.array([[1.0, 0.5], [0.5, 1.0]]))
        0.5
    """
    pairs = correlation[~np.eye(len(correlation), dtype=np.bool_)]
    known = pairs[~np.isnan(pairs)]
    return float(known.mean()) if known.size else None


def page_of(
    budgets: Budgets,
    seeds: Sequence[int],
    failures: tuple[Finding, ...],
    games: Games,
    profile: Profile,
    *,
    provenance: Mapping[str, str] | None = None,
) -> Page:
    """Make the page of (rounds, clients) budgets by trial and seed."""
    means = {name: [others_mean(path_correlation(paths)) for paths in trial] for name, trial in budgets.items()}
    shown = bool(seeds) and all(mean is not None for name in (FEDPCS, BLIND) for mean in means[name])
    return Page(
        name="correlation",
        title="Whether clients' budgets move together",
        headline=_headline(means, budgets) if shown else "No correlation can be told: no equilibrium, or none moves.",
        facts=shared.facts(games, profile),
        shrunk=shared.shrunk(profile),
        findings=(*(_findings(means, budgets) if shown else ()), *failures),
        tables=(_table(means, budgets),) if seeds else (),
        drawings=_drawings(budgets, means) if shown else (),
        settings=shared.settings(games, profile),
        commands=shared.commands("correlation", profile),
        provenance=provenance or {},
        records=_records(means, budgets, seeds),
    )


def _known(means: Sequence[float | None]) -> list[float]:
    return [mean for mean in means if mean is not None]


def _last_spread(trial: Sequence[FloatArray]) -> list[float]:
    return [_spread(paths[-1]) for paths in trial]


def _spread(budget: FloatArray) -> float:
    """Return the standard deviation over clients, exactly zero where all are the same."""
    return float(budget.std()) if np.ptp(budget) > 0.0 else 0.0


def _headline(means: Mapping[str, Sequence[float | None]], budgets: Budgets) -> str:
    aware, blind = (mean_and_std(_known(means[trial]))[0] for trial in (FEDPCS, BLIND))
    near, far = (mean_and_std(_last_spread(budgets[trial]))[0] for trial in (FEDPCS, BLIND))
    return (
        f"Budget paths of two clients correlate at {_format.two_decimals(aware)} on average under FedPCS and at "
        f"{_format.two_decimals(blind)} under a budget-blind sampler with the same rewards; clients end "
        f"{_format.amount(near)} and {_format.amount(far)} apart (standard deviation)."
    )


def _findings(means: Mapping[str, Sequence[float | None]], budgets: Budgets) -> tuple[Finding, ...]:
    aware = _known(means[FEDPCS])
    gap = paired_difference(aware, _known(means[BLIND]))
    apart = paired_difference(_last_spread(budgets[FEDPCS]), _last_spread(budgets[BLIND]))
    level = paired_difference(aware, np.zeros(len(aware)))
    opposed = np.mean([_opposed(path_correlation(paths)) for paths in budgets[FEDPCS]])
    return (
        Finding(
            "Under FedPCS the budgets of different clients are highly correlated: the map is warm throughout.",
            f"The mean correlation of two clients is {_written(aware)} (95 % interval "
            f"{_format.two_decimals(level.low)} to {_format.two_decimals(level.high)}; highly means {_HIGH}, in part "
            f"{_SOME}), and {_format.percent(float(opposed))} of pairs move against each other: budgets close in on "
            "the mean from above and from below.",
            verdicts.on_grade(aware, _HIGH, _SOME),
        ),
        Finding(
            "Under the baselines a client correlates with itself and less with others than under FedPCS.",
            f"FedPCS less budget-blind, same rewards: {shared.difference(gap, _format.two_decimals)}. A lead of no "
            f"more than {_NO_DIFFERENCE} counts as none.",
            verdict_on_gap(gap),
        ),
        Finding(
            "A warmer map means smaller divergence between clients' strategies.",
            f"The spread between clients in the last round, FedPCS less budget-blind: {shared.difference(apart)}; the "
            f"mean correlation, {shared.difference(gap, _format.two_decimals)}. Paths that move in step can lie any "
            "distance apart.",
            verdict_on_divergence(gap, apart),
        ),
        Finding("Random, Fed-CBS and DELTA each have a map of their own.", shared.ONE_GAME, "differs"),
        Finding(
            "Egocentric clients show as a map that is warm on its diagonal alone.",
            "Clients that keep their first budget, or sit at the lowest, never move; a path that does not move has no "
            "correlation with any other, so for static and selfish clients there is nothing to draw.",
            "cannot say",
        ),
    )


def verdict_on_gap(gap: PairedDifference) -> Verdict:
    """Return whether FedPCS's correlation lies above by more than counts as none: surely, surely not, or neither.

    In part, if it surely lies above and perhaps by no more than that.
    """
    if gap.low > _NO_DIFFERENCE:
        return "agrees"
    if gap.high <= _NO_DIFFERENCE:
        return "differs"
    return "in part" if gap.is_above else "cannot say"


def verdict_on_divergence(gap: PairedDifference, apart: PairedDifference) -> Verdict:
    """Return whether the sampler with the higher correlation is the one with the smaller spread."""
    if (gap.is_above and apart.is_below) or (gap.is_below and apart.is_above):
        return "agrees"
    if (gap.is_above and apart.is_above) or (gap.is_below and apart.is_below):
        return "differs"
    return "cannot say"


def _opposed(correlation: FloatArray) -> float:
    pairs = correlation[np.triu_indices(len(correlation), 1)]
    return float((pairs[~np.isnan(pairs)] < 0.0).mean())


def _written(values: Sequence[float]) -> str:
    return _format.with_spread(values, _format.two_decimals)


def _table(means: Mapping[str, Sequence[float | None]], budgets: Budgets) -> Table:
    rows = []
    for name, trial in budgets.items():
        known = _known(means[name])
        moving = np.mean([np.mean(~np.isnan(np.diag(path_correlation(paths)))) for paths in trial])
        rows.append(
            (
                name,
                _written(known) if known else "undefined",
                _format.percent(float(moving)),
                _format.amount_and_spread([_spread(paths[0]) for paths in trial]),
                _format.amount_and_spread(_last_spread(trial)),
            )
        )
    return Table(
        "Correlation of budget paths and spread between clients, mean ± standard deviation over populations",
        ("clients", "mean correlation of two", "clients that move", "spread, first round", "spread, last round"),
        tuple(rows),
        {"spread, last round": "standard deviation of budgets over clients"},
        note="Undefined: no client's budget moves.",
    )


def _records(
    means: Mapping[str, Sequence[float | None]], budgets: Budgets, seeds: Sequence[int]
) -> tuple[dict[str, object], ...]:
    return tuple(
        {"trial": name, "seed": seed, "mean correlation": mean, "spread, last round": _spread(paths[-1])}
        for name, trial in budgets.items()
        for seed, paths, mean in zip(seeds, trial, means[name], strict=True)
    )


def _drawings(budgets: Budgets, means: Mapping[str, Sequence[float | None]]) -> tuple[Drawing, ...]:
    first = {name: budgets[name][0] for name in (FEDPCS, BLIND)}
    maps = {name: path_correlation(paths) for name, paths in first.items()}
    order = np.argsort(first[FEDPCS][0], kind="stable")
    shown = {name: (table[np.ix_(order, order)], means[name][0]) for name, table in maps.items()}
    spreads = {name: np.array([paths.std(axis=1) for paths in budgets[name]]) for name in (FEDPCS, BLIND, STATIC)}
    return (
        Drawing("correlation of budget paths", lambda: correlation_figure(shown)),
        Drawing("spread between clients", lambda: divergence_figure(spreads)),
    )
