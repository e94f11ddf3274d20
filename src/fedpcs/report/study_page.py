"""A sweep as a page: every sampler beside every other, setting by setting, with what the seeds can tell apart."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.report import spending
from fedpcs.report.figures.study import curves_figure
from fedpcs.report.headline import headline as headline_of
from fedpcs.report.page import Drawing, Page, Table
from fedpcs.report.spending import epsilon, exploitability, rewards
from fedpcs.report.spent import seed_words, spent_by_client, spent_drawing
from fedpcs.report.warnings import ended_early, mixed, not_done, noted, unlike, unread_ledgers
from fedpcs.report.words import accuracy_words
from fedpcs.studies.cell_store import Done
from fedpcs.studies.comparison import HEADINGS, MEANINGS, MEASURES, TOGETHER
from fedpcs.studies.grid import Cell
from fedpcs.studies.groups import Group, Series, best_of, compared, group, is_alike
from fedpcs.studies.points import Curve
from fedpcs.studies.promise import promise

REFERENCE = "fedpcs"
# Settings that every record has a column for; others get one, `set.KEY`, where they are on the grid.
_COLUMNS = (
    "data.name",
    "data.partition",
    "sampling.sampling_ratio",
    "sampling.rule",
    "game.behaviour",
    "privacy.mode",
    "privacy.clip_norm",
)
_LEAST_POINTS = 2
_SPACE = "\N{NO-BREAK SPACE}"
_MEANINGS = {
    "accuracy": "after the last round, on the test records, or on validation records where some are held out; mean ± "
    "standard deviation over seeds; bold only where paired intervals that hold together with 95 % confidence put it "
    "above every other sampler",
    **spending.MEANINGS,
    "reads in clear": "what the sampler learns about clients beyond what the noise protects",
}


def comparison_page(
    name: str,
    done: Sequence[Done],
    failures: Mapping[str, str] | None = None,
    *,
    missing: Sequence[Cell] = (),
    command: str = "",
) -> Page:
    """Return the page of a sweep.

    Args:
        name: Of the sweep.
        done: Its finished cells.
        failures: Why others could not be run, by key.
        missing: Cells that are not done.
        command: What runs the sweep again.
    """
    groups, spent = group(done), spent_by_client(done)
    return Page(
        name=name,
        title=f"Sweep {name}",
        headline=headline(groups),
        facts=facts(done),
        warnings=(
            *not_done(missing, failures or {}),
            *mixed(done),
            *noted(done),
            *ended_early(done),
            *(words for one in groups for words in unlike(one)),
            *unread_ledgers(done, spent),
        ),
        tables=(
            *difference_tables(groups),
            *(comparison_table(one, with_meanings=one is groups[0]) for one in groups),
        ),
        drawings=tuple(drawing for one in groups for drawing in (*curve_drawings(one), *_spent(one, spent.epsilon))),
        privacy=privacy_words(done),
        settings=settings_of(done),
        commands=_commands(command, done),
        provenance=provenance(done),
        records=tuple(record_of(one) for one in done),
    )


def _spent(found: Group, spent: Mapping[str, FloatArray]) -> tuple[Drawing, ...]:
    keys = [one.cell.key for series in found.series for one in series.done]
    return (spent_drawing(found, spent),) if any(key in spent and spent[key].any() for key in keys) else ()


def _commands(command: str, done: Sequence[Done]) -> tuple[tuple[str, str], ...]:
    """Return what runs the sweep again, and what runs one of its cells, with what each does."""
    whole = "runs what is missing and writes this page again; done cells are reused"
    return (
        *(((command, whole),) if command else ()),
        *(("fedpcs run DIR/trials/FOLDER/config.toml", _alone(one)) for one in done[:1]),
    )


def _alone(one: Done) -> str:
    return (
        "runs any one cell alone: DIR holds the folder of cells, FOLDER is in the CSV file's column of that name, "
        f"such as {one.cell.folder_name}"
    )


def headline(groups: Sequence[Group]) -> str:
    """Say in a sentence what is sure of FedPCS beside the others, or of whoever stands in for it."""
    if not groups:
        return "No cell is done yet."
    contested = [found for one in groups if (found := compared(one))]
    if not contested:
        top = max(groups, key=lambda one: float(one.series[0].accuracy.mean()))
        where = f" with {top.words}" if top.words else ""
        return f"Highest: {_format.share(float(top.series[0].accuracy.mean()))}, {top.series[0].sampler}{where}."
    sampler = min((found[0].sampler for found in contested), key=lambda name: name != REFERENCE)
    mine = [found for found in contested if found[0].sampler == sampler]
    return headline_of([one for found in mine for one in found], len(mine))


def comparison_table(found: Group, *, with_meanings: bool = True) -> Table:
    """Return the table of one group: a row for each sampler."""
    reference, best = found.of(REFERENCE), best_of(found)
    rows = tuple(_row(series, reference) for series in found.series)
    bold = frozenset((index, 1) for index, series in enumerate(found.series) if series is best)
    headings = ("sampler", "accuracy", "ε", "rewards", "exploitability", "reads in clear")
    title = found.words or "All samplers"
    return Table(title[:1].upper() + title[1:], headings, rows, _MEANINGS if with_meanings else {}, bold)


def difference_tables(groups: Sequence[Group]) -> list[Table]:
    """Return the table of the three differences in every setting; none where no sampler meets another."""
    found = [(one.words, comparison) for one in groups for comparison in compared(one)]
    if not found:
        return []
    rows = tuple((place, one.sampler, one.other, *map(one.words, MEASURES), str(one.num_seeds)) for place, one in found)
    sure = frozenset(
        (row, 3 + column)
        for row, (_, one) in enumerate(found)
        for column, measure in enumerate(MEASURES)
        if one.is_sure(measure)
    )
    headings = ("setting", "sampler", "against", *HEADINGS.values(), "seeds")
    meanings = {HEADINGS[measure]: words for measure, words in MEANINGS.items()}
    return [Table("The three differences", headings, rows, meanings, sure, f"Bold is sure. {TOGETHER}")]


def _row(series: Series, reference: Series | None) -> tuple[str, ...]:
    return (
        series.sampler,
        accuracy_words(series, reference),
        epsilon(series),
        rewards(series),
        exploitability(series),
        series.done[0].outcome["disclosure"] or "nothing",
    )


def curve_drawings(found: Group) -> list[Drawing]:
    """Return the figures of one group: accuracy and loss over rounds. One round alone makes no curve."""
    if all(series.curve("accuracy")[0].size < _LEAST_POINTS for series in found.series):
        return []
    place = f" ({found.words})" if found.words else ""
    records = found.series[0].done[0].cell.config.data.evaluated_on
    seeds = sorted({seed for series in found.series for seed in series.seeds})
    over = "mean and one standard deviation over " if len(seeds) > 1 else ""
    note = f"{found.words or 'All cells'}; on {records}; {over}{seed_words(seeds)}."

    def drawing(quantity: Any, title: str) -> Drawing:
        return Drawing(
            f"{quantity} over rounds{place}", lambda: curves_figure(_curves(found, quantity), quantity, title, note)
        )

    drawings = [drawing("accuracy", _accuracy_title(found))]
    if losses := sorted(series.mean("loss") for series in found.series if _has_loss(series)):
        drawings.append(drawing("loss", f"Loss ends at {_ends([f'{value:.3f}' for value in losses])}"))
    return drawings


def _accuracy_title(found: Group) -> str:
    """Name whoever ends highest only if the seeds do."""
    best, ends = best_of(found), sorted(float(series.accuracy.mean()) for series in found.series)
    if best is not None:
        return f"{best.sampler} ends highest, at {_format.share(ends[-1])}"
    doubt = ": seeds do not set one sampler apart" if len(ends) > 1 else ""
    return f"Accuracy ends at {_ends([_format.share(end) for end in ends])}{doubt}"


def _ends(ordered: Sequence[str]) -> str:
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def _has_loss(series: Series) -> bool:
    return all(one.outcome["loss"] is not None for one in series.done)


def _curves(found: Group, quantity: str) -> list[Curve]:
    curves = []
    for series in found.series:
        rounds, values = series.curve(quantity)
        if rounds.size:
            std = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(rounds.size)
            curves.append(Curve(series.sampler, rounds, values.mean(axis=0), std))
    return curves


def facts(done: Sequence[Done]) -> str:
    """Return the setting in a line."""
    if not done:
        return ""
    configs = [one.cell.config for one in done]
    names = ", ".join(dict.fromkeys(config.data.name for config in configs))
    models = ", ".join(dict.fromkeys(config.training.model for config in configs))
    clients = f"{_span(config.data.num_clients for config in configs)} clients"
    if is_alike([config.game.population_seed for config in configs]):
        clients += ", one draw of their preferences"
    seeds = seed_words(sorted({one.cell.seed for one in done}))
    return f"{names}; {clients}; model {models}; {_span(config.rounds for config in configs)} rounds; {seeds}"


def _span(values: Iterable[int]) -> str:
    found = sorted(set(values))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,}–{found[-1]:,}"


def privacy_words(done: Sequence[Done]) -> tuple[str, ...]:
    """Return what is promised to clients, and what samplers read in clear."""
    if not done:
        return ()
    promises = dict.fromkeys(promise(one.cell.config.privacy, [one.outcome]) for one in done)
    reads = dict.fromkeys(
        f"{one.cell.sampler}: {one.outcome['disclosure']}." for one in done if one.outcome["disclosure"]
    )
    once = "No amplification by sampling clients or batches is claimed: ρ adds up over a client's releases."
    is_private = any(one.cell.config.privacy.is_private for one in done)
    return (*promises, *reads, *((once,) if is_private else ()), *_limits(done))


def _limits(done: Sequence[Done]) -> tuple[str, ...]:
    """Say how many clients reached their limit: what they then spent and earned was not the game's to choose."""
    limited = [one for one in done if one.cell.config.privacy.limit_epsilon is not None]
    left: dict[str, list[int]] = {}
    for one in limited:
        left.setdefault(one.cell.sampler, []).append(one.outcome["num_left"])
    if not any(map(any, left.values())):
        return ()
    told = "; ".join(f"{name} {statistics.fmean(counts):.1f}" for name, counts in left.items())
    return (
        f"Clients that reached their limit of ε and left, mean over cells: {told}. The certificate is of clients "
        "that play to the end and does not know of limits: what these spent and earned, the limit has cut.",
    )


def settings_of(done: Sequence[Done]) -> dict[str, dict[str, str]]:
    """Return every key that all cells share with its value, by table; others are said to vary."""
    if not done:
        return {}
    trees = [one.cell.config.model_dump(mode="json", exclude={"name", "seeds", "tensorboard"}) for one in done]
    found: dict[str, dict[str, str]] = {"run": {}}
    for table, value in trees[0].items():
        if isinstance(value, dict):
            found[table] = {key: _shared([tree[table][key] for tree in trees]) for key in value}
        else:
            found["run"][table] = _shared([tree[table] for tree in trees])
    return found


def _shared(values: Sequence[Any]) -> str:
    return str(values[0]) if is_alike(values) else "varies"


def provenance(done: Sequence[Done]) -> dict[str, str]:
    """Return what cells ran on, and how long they took."""
    if not done:
        return {}
    first = done[0].manifest
    distinct = {one.cell.key: one for one in done}.values()  # one cell may stand in several tables
    took = [one.seconds for one in distinct if one.seconds is not None]
    found = {**first.libraries, "python": first.python, "machine": first.machine}
    found["data checksum"] = ", ".join(dict.fromkeys(one.manifest.data.checksum for one in done))
    found["code"] = ", ".join(dict.fromkeys(one.manifest.code for one in done))
    if took:
        known = "all" if len(took) == len(distinct) else f"{len(took)} of {len(distinct)} cells"
        found["seconds a cell, one core"] = f"median {statistics.median(took):.0f}, {known} {sum(took):,.0f}"
    return found


def _one_value(value: Any) -> str | float | int | bool:
    """Return a value of the grid as a table's cell holds it."""
    return value if isinstance(value, str | float | int | bool) else str(value)


def record_of(one: Done) -> dict[str, Any]:
    """Return a cell as one flat row."""
    config, result = one.cell.config, one.outcome
    return {
        "cell": one.cell.key,
        "folder": one.cell.folder_name,
        "variant": one.cell.variant,
        "data": config.data.name,
        "partition": config.data.partition,
        "sampling_ratio": float(config.sampling.sampling_ratio),
        "sampler": one.cell.sampler,
        "rule": config.sampling.rule,
        "behaviour": config.game.behaviour,
        "mode": config.privacy.mode,
        "clip_norm": float(config.privacy.clip_norm),
        **{f"set.{key}": _one_value(value) for key, value in one.cell.point.items() if key not in _COLUMNS},
        "seed": one.cell.seed,
        "rounds": result["rounds"],
        "accuracy": result["accuracy"],
        "loss": result["loss"],
        **{f"epsilon_{name}": value for name, value in result["spent"]["epsilon"].items()},
        **{f"rho_{name}": value for name, value in result["spent"]["rho"].items()},
        "delta": result["delta"],
        "paid": result["paid"],
        "exploitability": result["game"]["exploitability"] if config.game.behaviour == "rational" else None,
        "reads_in_clear": result["disclosure"],
        "seconds": one.seconds,
    }
