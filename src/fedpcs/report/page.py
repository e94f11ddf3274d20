"""What a page shows, as values: findings, tables and figures, before anything is rendered or exported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from matplotlib.figure import Figure

from fedpcs.errors import FedpcsError

Verdict = Literal["agrees", "differs", "in part", "cannot say"]


@dataclass(frozen=True)
class Finding:
    """One claim held against what was measured.

    Attributes:
        claim: What the paper says, in a sentence of ours.
        found: What we found, with its numbers.
        verdict: Whether the two agree.
    """

    claim: str
    found: str
    verdict: Verdict


@dataclass(frozen=True)
class Table:
    """A table of words and written numbers.

    Attributes:
        title: What it holds.
        headings: One for each column.
        rows: Cells as they are to be read, the first of each row being its name.
        meanings: What headings mean, by heading; those that need it.
        bold: (row, column) of cells that stand out, because an interval says so.
        note: Small print.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    meanings: Mapping[str, str] = field(default_factory=dict)
    bold: frozenset[tuple[int, int]] = frozenset()
    note: str = ""

    @property
    def sampler_columns(self) -> tuple[int, ...]:
        """The columns that name samplers: these are marked with the samplers' colours."""
        return tuple(k for k, heading in enumerate(self.headings) if heading in ("sampler", "against"))


class NothingToDraw(FedpcsError):
    """There is nothing for a figure; the message says why, in a sentence."""


@dataclass(frozen=True)
class Drawing:
    """A figure still to be drawn.

    Attributes:
        topic: What it shows, in a few words; a file name is made of it.
        draw: Draws it, or raises `NothingToDraw`.
        place: The setting it is of, where a page has several.
    """

    topic: str
    draw: Callable[[], Figure]
    place: str = ""

    @property
    def name(self) -> str:
        """The topic with its place."""
        return f"{self.topic} ({self.place})" if self.place else self.topic


@dataclass(frozen=True)
class Page:
    """Everything a run, a comparison or an exhibit has to show.

    Attributes:
        name: Short, for files.
        title: What this is, in a few words.
        headline: The main finding, in a sentence.
        facts: Setting in a line: data, clients, rounds, seeds.
        warnings: What a reader must know before reading on: cells missing, code that differs.
        shrunk: What the quick profile has smaller, one sentence each.
        shrunk_heading: Smaller than what.
        findings: Claims held against measurements.
        claims_heading: Whose claims they are.
        tables: In order.
        drawings: In order.
        privacy: What is promised to clients, and what was read from them in clear, one sentence each.
        settings: Tables of keys and written values, for whoever wants to repeat it.
        commands: How to run it again, one command each, with what it does.
        provenance: Versions, checksums, wall-clock.
        records: One flat mapping for each measurement, for CSV and Parquet.
    """

    name: str
    title: str
    headline: str
    facts: str
    warnings: tuple[str, ...] = ()
    shrunk: tuple[str, ...] = ()
    shrunk_heading: str = "Smaller here than in the paper"
    findings: tuple[Finding, ...] = ()
    claims_heading: str = "What the paper says, and what was found"
    tables: tuple[Table, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    privacy: tuple[str, ...] = ()
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    commands: tuple[tuple[str, str], ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)
    records: tuple[Mapping[str, Any], ...] = ()
