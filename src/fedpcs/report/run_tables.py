"""The tables of a run's report: a row per sampler, and for every column a sentence that says what it holds."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fedpcs import _format
from fedpcs.studies.comparison import (
    HEADINGS,
    MEANINGS,
    MEASURES,
    TOGETHER,
    Comparison,
    Measure,
    compare_each,
)
from fedpcs.studies.paired import SPENT_MEANING, spent_over_seeds
from fedpcs.studies.run_files import RunFiles, SamplerFiles

_NOT_YET = "not yet"
_PLAYED = {
    "rational": "yes: best responses",
    "static": "no: each kept its first budget",
    "selfish": "no: all spent the least allowed",
    "raised": "no: each scaled its first budget to the equilibrium's mean",
}


@dataclass(frozen=True)
class Column:
    """One column: its heading, what it means in a sentence, and a sampler's cell."""

    heading: str
    meaning: str
    cell: Callable[[SamplerFiles], str]


@dataclass(frozen=True)
class Row:
    """One sampler: its cells, and what must be said of it."""

    name: str
    cells: tuple[str, ...]
    remark: str


@dataclass(frozen=True)
class ReportTable:
    """A table and its definitions."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def make_tables(run: RunFiles) -> list[ReportTable]:
    """Return the report's tables: what is sure, what was learned, what it cost, who answered."""
    return [
        *_differences(run),
        _table(run, "What the samplers came to", _learning_columns(run)),
        _table(run, "What it cost clients, and the game they played", _cost_columns(run), _remark),
        _table(run, "Who answered", _answer_columns()),
    ]


def comparisons_of(run: RunFiles) -> list[Comparison]:
    """Compare one of a run's samplers with each of the others, over the seeds that are done."""
    return compare_each({sampler.name: sampler.done for sampler in run.samplers})


def ended_at(sampler: SamplerFiles) -> str:
    """Return the mean accuracy of a sampler's finished trials, with its standard deviation."""
    return _format.mean_and_spread([result["accuracy"] for result in sampler.done])


def _differences(run: RunFiles) -> list[ReportTable]:
    """Return the three differences to each of the others, a row each; no table for a sampler alone."""
    against = {one.other: one for one in comparisons_of(run)}
    if not against:
        return []
    sampler = next(iter(against.values())).sampler
    columns = (
        *(_difference(measure, against) for measure in MEASURES),
        Column("seeds", f"Done with both. {TOGETHER}", lambda other: str(against[other.name].num_seeds)),
    )
    rows = [
        Row(f"{sampler} against {one.name}", tuple(column.cell(one) for column in columns), "")
        for one in run.samplers
        if one.name in against
    ]
    return [ReportTable("The three differences", columns, tuple(rows))]


def _difference(measure: Measure, against: Mapping[str, Comparison]) -> Column:
    meaning = f"{MEANINGS[measure][:1].upper()}{MEANINGS[measure][1:]}."
    return Column(f"difference in {HEADINGS[measure]}", meaning, lambda other: against[other.name].words(measure))


def _table(
    run: RunFiles, title: str, columns: tuple[Column, ...], remark: Callable[[SamplerFiles], str] = lambda _: ""
) -> ReportTable:
    rows = [Row(one.name, tuple(column.cell(one) for column in columns), remark(one)) for one in run.samplers]
    return ReportTable(title, columns, tuple(rows))


def _learning_columns(run: RunFiles) -> tuple[Column, ...]:
    return (
        Column(
            "accuracy",
            f"Share of {run.config.data.evaluated_on} the last model labels rightly: mean ± standard deviation over "
            "finished seeds.",
            lambda sampler: ended_at(sampler) if sampler.done else _NOT_YET,
        ),
        Column(
            "loss",
            f"Cross-entropy of the last model on the {run.config.data.evaluated_on}, likewise.",
            lambda sampler: _mean(sampler, "loss", _format.three_decimals),
        ),
        Column(
            "rewards paid",
            "What drawn clients were paid over the run, in the game's money (budget in units of game.budget_unit times "
            "R_t), likewise.",
            lambda sampler: _mean(sampler, "paid"),
        ),
        Column("rounds", "Rounds done of those planned, least and most over seeds.", lambda one: _rounds(run, one)),
        Column(
            "weighed by",
            "The rule of aggregation, and the largest weight of any round and seed; where weights are capped, how many "
            "were cut.",
            _weighed,
        ),
    )


def _cost_columns(run: RunFiles) -> tuple[Column, ...]:
    delta = _format.amount(float(run.config.privacy.delta))
    return (
        Column(
            "ρ spent",
            f"zCDP of all releases of a client together: {SPENT_MEANING}.",
            lambda sampler: _spent(sampler, "rho"),
        ),
        Column(
            f"ε spent at δ = {delta}",
            f"The same as (ε, δ): {SPENT_MEANING}.",
            lambda sampler: _spent(sampler, "epsilon"),
        ),
        Column(
            "clients charged",
            f"How many of {run.config.data.num_clients:,} clients released anything, mean ± standard deviation.",
            lambda sampler: _mean_of([result["spent"]["num_clients"] for result in sampler.done]),
        ),
        Column(
            "exploitability",
            "The certificate of the sampler's game: what a client gains by leaving the announced budgets, as a share "
            "of its utility, on average over clients. The greatest, where the game was solved anew.",
            _exploitability,
        ),
        Column("clients played rationally", "Whether they spent what the equilibrium asks.", _played),
    )


def _answer_columns() -> tuple[Column, ...]:
    return (
        Column("left", "Clients that had left for good by the end; sum over seeds.", _left),
        Column("drop-outs", "Drawn clients that failed or never answered, by kind; sum over seeds.", _by("failures")),
        Column("refusals", "Updates the server did not admit, by kind; sum over seeds.", _by("refusals")),
        Column(
            "drawn again",
            "Draws repeated because fewer than engine.quorum answered; sum over seeds.",
            lambda sampler: f"{sum(line['attempt'] for trial in sampler.trials for line in trial.rounds):,}",
        ),
        Column(
            "evenness",
            "Jain's index of how often clients were drawn: 1 if all equally often, 1/N if always the same one; mean "
            "over seeds.",
            lambda sampler: _last(sampler, "evenness"),
        ),
        Column(
            "against design",
            "Root mean square of (drawn − designed) in standard deviations, over clients: near 1 if draws follow the "
            "sampler's own probabilities, “none” if it has none; mean over seeds.",
            lambda sampler: _last(sampler, "inclusion_score"),
        ),
    )


def _remark(sampler: SamplerFiles) -> str:
    return "; ".join(dict.fromkeys(result["disclosure"] for result in sampler.done if result.get("disclosure")))


def _mean(sampler: SamplerFiles, name: str, write: Callable[[float], str] | None = None) -> str:
    values = [float(result[name]) for result in sampler.done if result[name] is not None]  # None: it has diverged
    return _mean_of(values, write)


def _mean_of(values: list[float], write: Callable[[float], str] | None = None) -> str:
    if not values:
        return _NOT_YET
    return _format.amount_and_spread(values) if write is None else _format.with_spread(values, write)


def _rounds(run: RunFiles, sampler: SamplerFiles) -> str:
    done = [len(trial.rounds) for trial in sampler.trials]
    found = f"{min(done):,}" if min(done) == max(done) else f"{min(done):,}–{max(done):,}"
    early = sum(result["ended_by"] == "budget" for result in sampler.done)
    why = f"; {early} ended as nobody could afford another round" if early else ""
    return f"{found} of {run.config.rounds:,}{why}"


def _spent(sampler: SamplerFiles, unit: str) -> str:
    found = [result["spent"][unit] for result in sampler.done if result["spent"]["num_clients"] > 0]
    if not found:
        return "nothing" if sampler.done else _NOT_YET
    return _format.least_middle_greatest(spent_over_seeds(found))


def _exploitability(sampler: SamplerFiles) -> str:
    gains = [result["game"]["exploitability"] for result in sampler.done]
    lines = [line for trial in sampler.trials for line in trial.rounds if line.replanned]
    known = [one for one in [*gains, *(line.get("exploitability") for line in lines)] if one is not None]
    if not known:
        return "not played" if gains else _NOT_YET
    kept = sum(line.exploitability is None for line in lines)
    solved = len(lines) - kept
    anew = f"; solved anew {_times(solved)}" if solved else ""
    return _format.gain(max(known)) + anew + (f"; not solved {_times(kept)}, the last schedule kept" if kept else "")


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _played(sampler: SamplerFiles) -> str:
    games = [result["game"] for result in sampler.done]
    words = [
        "no game: nothing depends on budgets" if game["standing"] == "not-played" else _PLAYED[game["behaviour"]]
        for game in games
    ]
    return "; ".join(dict.fromkeys(words)) or _NOT_YET


def _left(sampler: SamplerFiles) -> str:
    known = [
        trial.result["num_left"] if trial.result else len({who for line in trial.rounds for who in line["left"]})
        for trial in sampler.trials
    ]
    return f"{sum(known):,}"


def _weighed(sampler: SamplerFiles) -> str:
    lines = [line for trial in sampler.trials for line in trial.rounds]
    if not lines:
        return _NOT_YET
    largest = max(line["draw"]["largest_weight"] for line in lines)
    told = f"{', '.join(dict.fromkeys(line['rule'] for line in lines))}; at most {_format.amount(largest)}"
    cut = [line["num_capped"] for line in lines if line.get("num_capped") is not None]
    return f"{told}; {sum(cut):,} of {sum(len(line['heard']) for line in lines):,} cut" if cut else told


def _by(name: str) -> Callable[[SamplerFiles], str]:
    def cell(sampler: SamplerFiles) -> str:
        kinds: Counter[str] = Counter()
        for trial in sampler.trials:
            for line in trial.rounds:
                for attempt in (line, *line.get("given_up", [])):
                    kinds.update(attempt[name])
        spelled = ", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items()))
        return f"{kinds.total():,}" + (f" ({spelled})" if spelled else "")

    return cell


def _last(sampler: SamplerFiles, name: str) -> str:
    found = [float(track.values[-1]) for track in sampler.settled_tracks("draw", name)]
    if not any(trial.rounds for trial in sampler.trials):
        return _NOT_YET
    return f"{statistics.fmean(found):.2f}" if found else "none"
