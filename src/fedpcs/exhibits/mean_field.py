"""How fast the mean budget φ(t) comes to rest, and whether it rests at an equilibrium (paper, Fig. 3 and Algorithm 1).

Three iterations are set side by side (`mean_field_sweeps`), on rewards announced in advance and on constant ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs.exhibits import solved_games as shared
from fedpcs.exhibits.mean_field_figures import change_figure
from fedpcs.exhibits.mean_field_sweeps import (
    NUM_PRINTED_SWEEPS,
    NUM_SWEEPS,
    PAPER_THRESHOLD,
    Iterations,
    changes,
    iterate,
    sweeps_to_rest,
)
from fedpcs.exhibits.profiles import Profile
from fedpcs.exhibits.solved_games import Case, Games
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.report.figures.game import mean_field_figure
from fedpcs.report.page import Drawing, Finding, Page, Table, Verdict

PAPER_SWEEPS = 5
_CONSTANTS = (5.0, 10.0, 20.0)
_HOW = {"whole paths": "swept whole", "in order": "swept in order"}


def make_page(profile: Profile, games: Games | None = None) -> Page:
    """Solve the games, sweep them anew three ways, and hold the paper's claims against what happens."""
    games = games or Games()
    rewards: tuple[float | None, ...] = (None, *_CONSTANTS)
    cases = [Case(seed, reward=reward) for reward in rewards for seed in range(shared.NUM_SEEDS[profile])]
    certified = [case for case in cases if games.solve(case).status == "converged"]
    iterations = [iterate(games, case) for case in certified]
    failed = [games.solve(case) for case in cases if case not in certified]
    return page_of(iterations, failed, games, profile)


def page_of(iterations: Sequence[Iterations], failed: Sequence[Equilibrium], games: Games, profile: Profile) -> Page:
    """Make the page of games already swept."""
    findings = (*_findings(iterations), *_failure(failed, len(iterations) + len(failed)))
    certificates = {
        f"{words} rewards": [one.found for one in iterations if one.reward == words] for words in _words(iterations)
    }
    return Page(
        name="mean-field",
        title="How fast the mean budget comes to rest",
        headline=_headline(iterations),
        facts=shared.facts(games, profile),
        shrunk=shared.shrunk(profile),
        findings=findings,
        tables=(_table(iterations),) if iterations else (),
        drawings=_drawings(iterations),
        settings=shared.settings(games, profile),
        commands=shared.commands("mean-field", profile),
        provenance=shared.certificates(certificates),
        records=tuple(_record(one) for one in iterations),
    )


def _words(iterations: Sequence[Iterations]) -> list[str]:
    return list(dict.fromkeys(one.reward for one in iterations))


def _headline(iterations: Sequence[Iterations]) -> str:
    if not iterations:
        return "No game certified, so nothing can be said about how fast the mean budget comes to rest."
    return (
        f"With exact responses the mean budget rests after {_middle(iterations, 'whole paths')} sweeps of whole paths "
        f"(median) and {_middle(iterations, 'in order')} in order{_never_words(iterations)}; the paper's own formula "
        f"{_printed_words(iterations)}."
    )


def _middle(iterations: Sequence[Iterations], name: str) -> str:
    needed = [sweeps_to_rest(one.histories[name]) or NUM_SWEEPS + 1 for one in iterations]
    middle = float(np.median(needed))
    return f"more than {NUM_SWEEPS}" if middle > NUM_SWEEPS else f"{middle:g}"


def _never_words(iterations: Sequence[Iterations]) -> str:
    never = {name: sum(_needed(one, name) is None for one in iterations) for name in ("whole paths", "in order")}
    told = [f"{count} of {len(iterations)} games {_HOW[name]}" for name, count in never.items() if count]
    return f" (never within {NUM_SWEEPS}: {', '.join(told)})" if told else ""


def _printed_words(iterations: Sequence[Iterations]) -> str:
    rests = sum(sweeps_to_rest(one.printed.history) is not None for one in iterations)
    return f"rests in {rests or 'none'} of {len(iterations)} games within {NUM_PRINTED_SWEEPS}"


def _findings(iterations: Sequence[Iterations]) -> tuple[Finding, ...]:
    if not iterations:
        return ()
    speed = f"φ(t) reaches its fixed point mostly within {PAPER_SWEEPS} iterations, to a threshold of 0.001"
    found = []
    for name, how in (("whole paths", "whole paths swept, as in Algorithm 1"), ("in order", "rounds swept in order")):
        needed = [sweeps_to_rest(one.histories[name]) for one in iterations]
        away = max(_distance(one, name) for one in iterations)
        found.append(
            Finding(
                f"{speed} ({how}).",
                f"With exact responses {_within(needed)} of {len(needed)} games rest within {PAPER_SWEEPS} sweeps "
                f"({_range(needed)}). After sweep {PAPER_SWEEPS} the path is at most {_format.amount(away)} from where "
                f"it is after {NUM_SWEEPS}.",
                verdict_on_speed(needed),
            )
        )
    return (*found, _printed_finding(iterations))


def _within(needed: Sequence[int | None]) -> int:
    return sum(sweeps is not None and sweeps <= PAPER_SWEEPS for sweeps in needed)


def verdict_on_speed(needed: Sequence[int | None]) -> Verdict:
    """Return whether "mostly within five" holds: for most games and none that never rests, for some, or for none."""
    within = _within(needed)
    if 2 * within > len(needed) and None not in needed:
        return "agrees"
    return "in part" if within else "differs"


def _range(needed: Sequence[int | None]) -> str:
    known = [sweeps for sweeps in needed if sweeps is not None]
    never = len(needed) - len(known)
    least, most = min(known, default=0), max(known, default=0)
    words = f"{least} to {most} needed" if least < most else f"{most} needed" if known else ""
    unrested = f"{never} not at rest after {NUM_SWEEPS}" if never else ""
    return ", ".join(part for part in (words, unrested) if part)


def _distance(one: Iterations, name: str) -> float:
    history = one.histories[name]
    return float(np.abs(history[min(PAPER_SWEEPS, len(history) - 1)] - history[-1]).max())


def _printed_finding(iterations: Sequence[Iterations]) -> Finding:
    gains = [one.printed.certificate.relative for one in iterations]
    last = [float(changes(one.printed.history)[-1]) for one in iterations]
    good = sum(one.printed.status == "converged" for one in iterations)
    verdict: Verdict = "agrees" if good == len(iterations) else "in part" if good else "differs"
    return Finding(
        "Algorithm 1 converges to the fixed point (Theorem 3), and Theorem 1's responses are optimal there.",
        f"As printed, {good} of {len(iterations)} games end at an equilibrium. In its last sweep the mean budget still "
        f"moves by {_format.amount(min(last))} to {_format.amount(max(last))}, and a client that leaves it gains "
        f"{_format.gain(min(gains))} to {_format.gain(max(gains))}.",
        verdict,
    )


def _failure(failed: Sequence[Equilibrium], num_games: int) -> tuple[Finding, ...]:
    if not failed:
        return ()
    words = "; ".join(shared.failure_words(found) for found in failed)
    return (
        Finding(
            "The game has an equilibrium, and iterating on the mean budget finds it (Theorems 2 and 3).",
            f"{len(failed)} of {num_games} games did not certify and are left out of the numbers here: {words}.",
            "cannot say",
        ),
    )


def _table(iterations: Sequence[Iterations]) -> Table:
    rows = []
    for words in _words(iterations):
        group = [one for one in iterations if one.reward == words]
        needed = [", ".join(_count(_needed(one, name)) for one in group) for name in group[0].histories]
        gains = [one.printed.certificate.relative for one in group]
        rows.append((words, *needed, _format.with_spread(gains, _format.gain)))
    return Table(
        "Sweeps until the mean budget rests, one number per population",
        ("rewards", "whole paths", "in order", "as printed", "gain by leaving the printed answer"),
        tuple(rows),
        {
            "in order": "each round's mean is updated before the next round is answered, within a sweep",
            "as printed": "Theorem 1's formula in place of exact responses, under the same rewards; Algorithm 1 moves "
            "the rewards from sweep to sweep too",
        },
        note=f"Rest: no round's mean changes by more than {PAPER_THRESHOLD:g}. A dash: not within {NUM_SWEEPS} "
        f"sweeps ({NUM_PRINTED_SWEEPS} as printed).",
    )


def _needed(one: Iterations, name: str) -> int | None:
    return sweeps_to_rest(one.histories[name])


def _count(sweeps: int | None) -> str:
    return "–" if sweeps is None else str(sweeps)


def _record(one: Iterations) -> dict[str, object]:
    needed = {f"sweeps, {name}": sweeps_to_rest(history) for name, history in one.histories.items()}
    return {
        "reward": one.reward,
        "seed": one.seed,
        **needed,
        "last change, as printed": float(changes(one.printed.history)[-1]),
        "exploitability": one.found.certificate.relative,
        "exploitability, as printed": one.printed.certificate.relative,
    }


def _drawings(iterations: Sequence[Iterations]) -> tuple[Drawing, ...]:
    if not iterations:
        return ()
    return (
        Drawing("mean budget by sweep", lambda: shared.of_one_population(mean_field_figure(iterations[0].found))),
        Drawing("change by sweep", lambda: _change_figure(iterations)),
    )


def _change_figure(iterations: Sequence[Iterations]) -> Figure:
    group = [one for one in iterations if one.reward == iterations[0].reward]
    shown = {name: [one.histories[name][: NUM_SWEEPS + 1] for one in group] for name in group[0].histories}
    rests = {name: sum(sweeps_to_rest(one) is not None for one in some) for name, some in shown.items()}
    title = (
        f"Within {NUM_SWEEPS} sweeps the mean budget rests in {rests['whole paths']} of {len(group)} "
        f"populations swept whole, in {rests['in order']} in order, in {rests['as printed']} with the printed formula"
    )
    moved = {name: np.array([changes(one) for one in some]) for name, some in shown.items()}
    return change_figure(moved, title, f"Change by sweep, {group[0].reward} rewards", PAPER_THRESHOLD)
