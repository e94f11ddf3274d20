"""The short table at the end of a run, and where runs are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from fedpcs import _format
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
        told = {"headline": said, "differences": [one.numbers for one in compared]}
        print(json.dumps({"folder": str(store.folder), **result.model_dump(), **told}))
        return
    if said is not None:
        print_differences(said, [("", one) for one in compared])
    console = print_whole(_table(result.trials))
    console.print(f"spent: {SPENT_MEANING}; exploitability: what deviating gains", style="dim", soft_wrap=True)
    privacy = store.config_as_it_stands().privacy
    console.print(standing(privacy, result.trials), soft_wrap=True, highlight=False)
    reads = [f"{trial['sampler']}: {trial.disclosure}." for trial in result.trials if trial.disclosure]
    for words in dict.fromkeys(reads):
        console.print(words, soft_wrap=True, highlight=False)
    if words := paid_for_nothing(result.trials):
        console.print(words, soft_wrap=True, highlight=False)
    console.print(f"{store.report if store.report.exists() else store.folder}", soft_wrap=True, highlight=False)


def print_differences(said: str, compared: Sequence[tuple[str, Comparison]]) -> None:
    """Print a headline, and the three differences of every comparison at its place, those that are sure first."""
    table = Table(box=None, padding=(0, 1, 0, 0))
    has_places = any(place for place, _ in compared)
    interval = "mean, 95\N{NO-BREAK SPACE}% interval"
    for name in (*(["setting"] if has_places else []), "compared", "in", interval, "seeds"):
        table.add_column(name, no_wrap=name in (interval, "seeds"), justify="right" if name == "seeds" else "left")
    for place, one in compared:
        first = [*([escape(place)] if has_places else []), escape(f"{one.sampler} against {one.other}")]
        for index, measure in enumerate(one.sure_first):
            names = [""] * len(first) if index else first
            table.add_row(*names, HEADINGS[measure], one.words(measure), str(one.num_seeds))
    console = Console()
    console.print(said, style="bold", highlight=False, soft_wrap=True, markup=False)
    console.print()
    print_whole(table)
    if all(one.num_seeds < 2 for _, one in compared):  # there is no interval to speak of
        return
    together = (
        " All intervals of one measure and setting hold at once with 95 % confidence." if len(compared) > 1 else ""
    )
    note = f"A sure difference is written without + or −: its interval has no zero in it.{together}"
    console.print(note, style="dim", soft_wrap=True)
    console.print()


def print_whole(table: Table) -> Console:
    """Print a table, as wide as it is where there is no terminal: a pipe has no width, and numbers must not be cut."""
    console = Console()
    if not console.is_terminal:
        console.width = max(
            console.width, Measurement.get(console, console.options.update(width=10_000), table).maximum
        )
    console.print(table)
    return console


def _table(trials: list[TrialResult]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0))
    for name in ("sampler", "accuracy", "ρ spent", "ε spent", "rewards", "exploitability"):
        # In a narrow terminal what was spent is broken at its slashes: no number is cut.
        is_whole = not name.endswith("spent")
        table.add_column(name, justify="left" if name == "sampler" else "right", no_wrap=is_whole)
    for sampler in dict.fromkeys(trial.sampler for trial in trials):
        mine = [trial for trial in trials if trial.sampler == sampler]
        gains = [trial.game.exploitability for trial in mine if trial.game.exploitability is not None]
        table.add_row(
            sampler,
            _format.mean_and_spread([trial.accuracy for trial in mine]),
            _three(mine, "rho"),
            _three(mine, "epsilon"),
            _format.amount_and_spread([trial.paid for trial in mine]),
            _format.gain(max(gains)) if gains else "not played",
        )
    return table


def _three(trials: list[TrialResult], unit: str) -> str:
    """Return what clients spent over all seeds."""
    return _format.least_middle_greatest(spent_over_seeds([trial.spent[unit] for trial in trials]))
