"""The tables that every study's page has: a row for each sampler in each setting."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedpcs import _format
from fedpcs.report.columns import ANSWERS, COST, GAIN, NOISE, REWARDS, Column, learned
from fedpcs.report.columns import accuracy_text as accuracy_text
from fedpcs.report.page import Table
from fedpcs.studies.comparison import HEADINGS, MEANINGS, MEASURES, TOGETHER
from fedpcs.studies.paired import PairedDifference
from fedpcs.studies.results import Group, best_of, compared


def study_tables(groups: Sequence[Group]) -> list[Table]:
    """Return a study's tables: what is sure, what was learned, what it cost, who answered."""
    if not groups:
        return []
    return [
        *difference_tables(groups),
        sampler_table(groups, "What the samplers came to", learned(groups)),
        sampler_table(groups, "What it cost clients, and the game they played", COST),
        sampler_table(groups, "Noise beside the updates it hides", NOISE),
        sampler_table(groups, "Who answered", ANSWERS),
    ]


def difference_tables(groups: Sequence[Group]) -> list[Table]:
    """Return the table of the three differences in every setting; none where no sampler meets another."""
    found = [(one.label, comparison) for one in groups for comparison in compared(one)]
    if not found:
        return []
    num_places = int(len(groups) > 1)
    rows = [(place, one.sampler, one.other, *map(one.text, MEASURES), str(one.num_seeds)) for place, one in found]
    sure = frozenset(
        (row, 2 + num_places + column)
        for row, (_, one) in enumerate(found)
        for column, measure in enumerate(MEASURES)
        if one.is_sure(measure)
    )
    names = {measure: f"difference in {HEADINGS[measure]}" for measure in MEASURES}
    headings = ("setting", "sampler", "against", *names.values(), "seeds")[1 - num_places :]
    meanings = {names[measure]: _sentence(text) for measure, text in MEANINGS.items()}
    meanings["seeds"] = "Done with both."
    shown = tuple(row[1 - num_places :] for row in rows)
    return [Table("The three differences", headings, shown, meanings, sure, f"Bold is sure. {TOGETHER}")]


def sampler_table(groups: Sequence[Group], title: str, columns: Sequence[Column]) -> Table:
    """Return a table with a row for each sampler in each setting; the best accuracy of a setting is bold."""
    is_one = len(groups) == 1
    rows = [(found, series) for found in groups for series in found.series]
    cells = tuple(
        (*(() if is_one else (found.label,)), series.sampler, *(column.cell(series) for column in columns))
        for found, series in rows
    )
    headings = (*(() if is_one else ("setting",)), "sampler", *(column.heading for column in columns))
    bold = frozenset(
        (row, headings.index("accuracy"))
        for row, (found, series) in enumerate(rows)
        if "accuracy" in headings and all(one.done for one in found.series) and best_of(found) is series
    )
    return Table(title, headings, cells, {column.heading: column.meaning for column in columns}, bold)


def spending_table(groups: Sequence[Group]) -> Table:
    """Return what accuracies cost in one table: privacy, rewards, certificate and noise."""
    return sampler_table(groups, "Privacy spent, rewards, certificate and noise", (COST[1], REWARDS, GAIN, *NOISE))


def difference_text(found: PairedDifference) -> str:
    r"""Return a difference of accuracies in points with its interval.

    Example:
        >>> difference_text(PairedDifference(0.021, 0.004, 0.038, 3))
        '+2.1 (+0.4 to +3.8)'
    """
    if not math.isfinite(found.low):
        return f"{_format.points(found.mean)} (one seed)"
    return f"{_format.points(found.mean)} ({_format.points(found.low)} to {_format.points(found.high)})"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
