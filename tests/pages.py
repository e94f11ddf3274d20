"""Pages for tests: one that has something of everything, and a reader that sees a page as a browser would."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fedpcs.report import style
from fedpcs.report.page import Drawing, Finding, Page, Table, Verdict

VOID = {"meta", "img", "br", "hr", "link", "input", "source"}
VERDICTS: tuple[Verdict, ...] = ("agrees", "differs", "in part", "cannot say")
SAMPLERS = ("fedpcs", "random", "aocs", "fed-cbs", "delta", "power-of-choice", "oort", "clustered", "optimal")


def small_figure() -> Figure:
    figure, (axes,) = style.new_figure("A title", note="Small print.", height_inches=2.0)
    axes.plot([0, 1], [0, 1], color=style.BLUE)
    return figure


def broken_figure() -> Figure:
    raise ValueError("no <such> trial")


def full_page(mark: str = "", **changes: Any) -> Page:
    """Return a page with something in every field, `mark` being in every string a person may have written."""
    table = Table(
        title=f"Accuracy{mark}",
        headings=(f"sampler{mark}", f"accuracy{mark}", f"ε spent{mark}"),
        rows=tuple((f"{name}{mark}", f"{80 + k}.5 %{mark}", f"{k}.25{mark}") for k, name in enumerate(SAMPLERS)),
        meanings={f"accuracy{mark}": f"on test records{mark}"},
        bold=frozenset({(0, 1), (2, 2)}),
        note=f"Bold: clear of zero{mark}",
    )
    values: dict[str, Any] = {
        "name": "everything",
        "title": f"The title{mark}",
        "headline": f"The headline{mark}",
        "facts": f"digits; 20 clients{mark}",
        "warnings": (f"One cell is missing{mark}",),
        "shrunk": (f"10 rounds where the paper has 500{mark}",),
        "findings": tuple(Finding(f"Claim {k}{mark}", f"Found {k}{mark}", v) for k, v in enumerate(VERDICTS)),
        "tables": (table, Table("Second table", ("a", "b"), (("only row", "only cell"),))),
        "drawings": (Drawing(f"A topic{mark}", small_figure), Drawing("A broken one", broken_figure)),
        "privacy": (f"Promised: ε of 3{mark}", f"Read in clear: sizes{mark}"),
        "settings": {f"data{mark}": {f"name{mark}": f"digits{mark}"}},
        "commands": ((f"fedpcs reproduce everything{mark}", f"Runs it again{mark}"),),
        "provenance": {f"fedpcs{mark}": f"9.8.7{mark}"},
    }
    return Page(**{**values, **changes})


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    share = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


class Reader(HTMLParser):
    """Reads a page: tags must close in order; rows, cells by heading, attributes and text are collected."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.rows: list[list[str]] = []
        self.cells: dict[str, list[str]] = {}
        self.heading = ""
        self.bold: list[str] = []
        self.headings: list[str] = []
        self.text = ""
        self.style = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "td":
            self.heading = dict(attrs).get("data-heading") or ""
            self.cells.setdefault(self.heading, []).append("")
        if tag == "h2":
            self.headings.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            self.style += data
            return
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data
        if "td" in self.open:
            self.cells[self.heading][-1] += data
        if "td" in self.open and "strong" in self.open:
            self.bold.append(data)
        if "h2" in self.open:
            self.headings[-1] += data


def read(page: str) -> Reader:
    reader = Reader(page)
    assert reader.open == []
    return reader
