"""The short table at the end of a run, and where runs are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from fedpcs import _format
from fedpcs.cli.printing import make_table, print_table, print_whole, say
from fedpcs.report.headline import headline
from fedpcs.studies.comparison import HEADINGS, Comparison, compare_each
from fedpcs.studies.paired import SPENT_MEANING, spent_over_seeds
from fedpcs.studies.promise import paid_for_nothing, standing
from fedpcs.trial.records import StudyResult, TrialResult
from fedpcs.trial.run_store import RunStore

_RUNS = Path("fedpcs-runs")


def new_folder(name: str) -> Path:
    """Return the first of fedpcs-runs/NAME, NAME-2, NAME-3, … that is not taken."""
    folder, number = _RUNS / name, 1
    while folder.exists():
        number += 1
        folder = _RUNS / f"{name}-{number}"
    return folder


def print_run(store: RunStore, *, as_json: bool) -> None:
    """Print what a run came to, what is sure first: a sentence and two tables, or one JSON object."""
    result = store.result or StudyResult(name="", trials=[], is_exhausted=False)
    samplers = dict.fromkeys(trial.sampler for trial in result.trials)
    compared = compare_each({name: [trial for trial in result.trials if trial.sampler == name] for name in samplers})
    said = headline(compared) if compared else None
    if as_json:
        comparison = {"headline": said, "differences": [one.numbers for one in compared]}
        print(json.dumps({"folder": str(store.folder), **result.model_dump(), **comparison}))
        return
    if said is not None:
        print_differences(said, [("", one) for one in compared])
    print_whole(_table(result.trials))
    say(f"spent: {SPENT_MEANING}; exploitability: what deviating gains", style="dim")
    say(standing(store.config_as_it_stands().privacy, [trial.disclosure for trial in result.trials]))
    reads = [f"{trial.sampler}: {trial.disclosure}." for trial in result.trials if trial.disclosure]
    say(*dict.fromkeys(reads), *filter(None, (paid_for_nothing(result.trials),)))
    say(store.report if store.report.exists() else store.folder)


def print_differences(said: str, compared: Sequence[tuple[str, Comparison]]) -> None:
    """Print a headline, and the three differences of every comparison at its place, those that are sure first."""
    has_places = any(place for place, _ in compared)
    interval = "mean, 95\N{NO-BREAK SPACE}% interval"
    headings = (*(["setting"] if has_places else []), "compared", "in", interval, "seeds")
    rows = []
    for place, one in compared:
        names = [*([place] if has_places else []), f"{one.sampler} against {one.other}"]
        for measure in one.sure_first:
            rows.append((*names, HEADINGS[measure], one.text(measure), str(one.num_seeds)))
            names = [""] * len(names)
    say(said, style="bold")
    say("")
    print_table(rows, headings, right=("seeds",), folded=headings[:-2])
    if all(one.num_seeds < 2 for _, one in compared):  # there is no interval to speak of
        return
    together = (
        " All intervals of one measure and setting hold at once with 95 % confidence." if len(compared) > 1 else ""
    )
    say(f"A sure difference is written without + or −: its interval has no zero in it.{together}", style="dim")
    say("")


def _table(trials: list[TrialResult]) -> Table:
    rows = []
    for sampler in dict.fromkeys(trial.sampler for trial in trials):
        mine = [trial for trial in trials if trial.sampler == sampler]
        gains = [trial.game.exploitability for trial in mine if trial.game.exploitability is not None]
        rows.append(
            (
                sampler,
                _format.mean_and_spread([trial.accuracy for trial in mine]),
                _three(mine, "rho"),
                _three(mine, "epsilon"),
                _format.amount_and_spread([trial.paid for trial in mine]),
                _format.gain(max(gains)) if gains else "not played",
            )
        )
    headings = ("sampler", "accuracy", "ρ spent", "ε spent", "rewards", "exploitability")
    # In a narrow terminal what was spent is broken at its slashes: no number is cut.
    return make_table(rows, headings, right=headings[1:], folded=("ρ spent", "ε spent"))


def _three(trials: list[TrialResult], unit: str) -> str:
    """Return what clients spent over all seeds."""
    return _format.least_middle_greatest(spent_over_seeds([getattr(trial.spent, unit) for trial in trials]))
