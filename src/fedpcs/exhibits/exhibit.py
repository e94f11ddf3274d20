"""An exhibit as a declaration, and the one builder that makes its page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from fedpcs.exhibits.claims import Claim
from fedpcs.exhibits.registry import Profile, listed
from fedpcs.report.page import Drawing, Page, Table
from fedpcs.studies.grid import Cell
from fedpcs.studies.results import TrialData

Results = TypeVar("Results")
Run = Callable[[Sequence[Cell]], list[TrialData]]


@dataclass(frozen=True)
class Request:
    """Which exhibit is wanted, how large, on what data; `run` returns the trials that finished, `say` is told news."""

    name: str
    profile: Profile = "quick"
    dataset: str = "fashion-mnist"
    data_dir: Path | None = None
    run: Run = lambda cells: []
    say: Callable[[str], None] = lambda text: None

    @property
    def command(self) -> str:
        """What makes this page again."""
        data = f" --dataset {self.dataset}" if listed(self.name).reads_data else ""
        return f"fedpcs reproduce {self.name}{data} --profile {self.profile}"


@dataclass(frozen=True)
class Gathered(Generic[Results]):
    """What an exhibit is made of.

    Attributes:
        results: What its claims, tables and drawings are functions of; None if there are none to show.
        frame: What every exhibit of its kind shows: facts, settings, provenance, what is smaller or missing.
    """

    results: Results | None
    frame: Page


@dataclass(frozen=True, kw_only=True)
class Exhibit(Generic[Results]):
    """What one exhibit shows, as functions of its results. What is None is as in the frame of its kind.

    Attributes:
        title: Of the page; {dataset} stands for the data set's name.
        gather: Runs trials or solves games, as far as they are missing.
        claims: The paper's sentences and their judges.
        headline: The main finding, in a sentence.
        tables: In order.
        drawings: In order.
        records: One flat mapping for each measurement.
        claims_heading: Whose claims they are, if not the paper's.
    """

    title: str
    gather: Callable[[Request], Gathered[Results]]
    claims: Sequence[Claim] = ()
    headline: Callable[[Results], str] | None = None
    tables: Callable[[Results], Iterable[Table]] | None = None
    drawings: Callable[[Results], Iterable[Drawing]] | None = None
    records: Callable[[Results], Iterable[Mapping[str, Any]]] | None = None
    claims_heading: str | None = None


def declaration(name: str) -> Exhibit[Any]:
    """Load an exhibit's declaration."""
    module, _, attribute = listed(name).place.partition(":")
    found: Exhibit[Any] = getattr(import_module(f"fedpcs.exhibits.{module}"), attribute)
    return found


def build(exhibit: Exhibit[Results], request: Request, gathered: Gathered[Results]) -> Page:
    """Make an exhibit's page of what was gathered for it."""
    frame, results = gathered.frame, gathered.results
    shown: dict[str, Any] = {}
    if results is not None:
        judged = [finding for claim in exhibit.claims for finding in claim.findings(results)]
        shown["findings"] = (*judged, *frame.findings)
        for field in ("tables", "drawings", "records"):
            if (make := getattr(exhibit, field)) is not None:
                shown[field] = tuple(make(results))
        if exhibit.headline is not None:
            shown["headline"] = exhibit.headline(results)
    if exhibit.claims_heading is not None:
        shown["claims_heading"] = exhibit.claims_heading
    again = "runs what is missing and writes this page again; give --out and --data-dir as before, if any"
    return replace(
        frame,
        name=f"{request.name}-{request.dataset}" if "--dataset" in request.command else request.name,
        title=exhibit.title.format(dataset=request.dataset),
        commands=((request.command, again), *frame.commands),
        **shown,
    )
