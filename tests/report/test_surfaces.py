"""One number on all surfaces: terminal, pages, JSON and CSV tell one run alike."""

import csv
import json
import statistics

import pytest
from pages import read
from tiny_runs import tiny

from fedpcs import _format
from fedpcs.cli.run_table import print_run
from fedpcs.report import study_page
from fedpcs.report.export import export_csv
from fedpcs.report.study import write_study
from fedpcs.report.study_page import comparison_page
from fedpcs.studies.grid import Cell
from fedpcs.studies.results import TrialData
from fedpcs.trial.run import start_run

SAMPLERS, SEEDS = ("fedpcs", "random"), (0, 1)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A real run: two samplers, two seeds, eight clients, three rounds."""
    config = tiny(seeds=list(SEEDS), sampling={"samplers": list(SAMPLERS)}, privacy={"mode": "client"})
    return start_run(config, tmp_path_factory.mktemp("surfaces") / "run")


@pytest.fixture(scope="module")
def sweep(store):
    """The same trials as a sweep's page."""
    done = []
    for result in store.result.trials:
        sampling = store.config().sampling.model_copy(update={"samplers": [result.sampler]})
        config = store.config().model_copy(update={"sampling": sampling, "seeds": [result.seed]})
        trial = store.trial(result.sampler, result.seed)
        done.append(
            TrialData(Cell(config, "", {}), trial.result, tuple(trial.rounds()), store.manifest, 1.0, trial.folder)
        )
    return comparison_page("tiny", done)


def of_terminal(store, capsys):
    """(sampler → heading → cell) of the table that is printed, cut where its headings stand."""
    print_run(store, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("sampler "))
    heading, rows = lines[first], lines[first + 1 :]
    names = ("accuracy", "ρ spent", "ε spent", "rewards", "exploitability")
    ends = [heading.index(name) + len(name) for name in names]  # columns of numbers end together
    starts = [max(map(len, SAMPLERS)), *ends[:-1]]
    cells = {row.split()[0]: row for row in rows[: len(SAMPLERS)]}
    return {
        sampler: {name: row[start:end].strip() for name, start, end in zip(names, starts, ends, strict=True)}
        for sampler, row in cells.items()
    }


def of_page(store, monkeypatch):
    monkeypatch.setattr(study_page, "drawings_of", lambda *_: ())
    cells = read(write_study(store.folder).report.read_text(encoding="utf-8")).cells
    headings = {
        "accuracy": "accuracy",
        "ρ spent": "ρ spent",
        "ε spent": "ε spent",
        "rewards": "rewards",
        "exploitability": "exploitability",
    }
    return {
        sampler: {name: cells[heading][k].strip() for name, heading in headings.items()}
        for k, sampler in enumerate(SAMPLERS)
    }


def from_numbers(rows):
    """Return what is to be shown of whole numbers, a row for each seed."""
    return {
        "accuracy": _format.mean_and_spread([float(row["accuracy"]) for row in rows]),
        "rewards": _format.amount_and_spread([float(row["paid"]) for row in rows]),
        **{
            f"{symbol} spent": " / ".join(
                (
                    _format.rounded_up(min(float(row[f"{unit}_minimum"]) for row in rows)),
                    _format.rounded_up(statistics.fmean(float(row[f"{unit}_median"]) for row in rows)),
                    _format.rounded_up(max(float(row[f"{unit}_maximum"]) for row in rows)),
                )
            )
            for symbol, unit in (("ρ", "rho"), ("ε", "epsilon"))
        },
        "exploitability": _format.gain(max(float(row["exploitability"]) for row in rows)),
    }


def test_a_run_is_told_alike_by_terminal_and_page(store, capsys, monkeypatch):
    printed = of_terminal(store, capsys)
    assert set(printed) == set(SAMPLERS)
    assert printed == of_page(store, monkeypatch)


def test_what_is_shown_follows_from_the_whole_numbers_of_json_and_csv(store, sweep, tmp_path, capsys):
    print_run(store, as_json=True)
    trials = json.loads(capsys.readouterr().out)["trials"]
    flat = [
        {
            "sampler": trial["sampler"],
            "accuracy": trial["accuracy"],
            "paid": trial["paid"],
            "exploitability": trial["game"]["exploitability"],
            **{
                f"{unit}_{name}": trial["spent"][unit][name]
                for unit in ("rho", "epsilon")
                for name in trial["spent"][unit]
            },
        }
        for trial in trials
    ]
    export_csv(sweep, tmp_path / "cells.csv")
    with (tmp_path / "cells.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    shown = of_terminal(store, capsys)
    for rows in (flat, written):
        for sampler in SAMPLERS:
            assert from_numbers([row for row in rows if row["sampler"] == sampler]) == shown[sampler]
    for row, trial in zip(written, flat, strict=True):  # no digit is lost on the way
        assert [float(row[name]) for name in trial if name != "sampler"] == [
            trial[name] for name in trial if name != "sampler"
        ]


def test_a_sweep_s_page_tells_the_same_numbers(store, sweep, capsys):
    shown = of_terminal(store, capsys)
    told = {
        name: {
            heading: row[k]
            for table in sweep.tables[1:]
            for row in table.rows
            if row[0] == name
            for k, heading in enumerate(table.headings)
        }
        for name in SAMPLERS
    }
    assert {name: {heading: told[name][heading] for heading in shown[name]} for name in SAMPLERS} == shown
