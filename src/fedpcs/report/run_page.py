"""A run as one page: report.html, made from the run's files alone, that needs nothing else to be read.

Equal files give equal pages, to the byte. All that comes from files is escaped.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedpcs import _format
from fedpcs._files import write_text
from fedpcs.report.figures.run_partition import split_words
from fedpcs.report.headline import headline as headline_of
from fedpcs.report.run_figures import draw_all
from fedpcs.report.run_tables import comparisons_of, ended_at, make_tables
from fedpcs.report.templates import template
from fedpcs.studies.promise import caveats, promise
from fedpcs.studies.run_files import RunFiles, read_run
from fedpcs.trial.run_store import RunStore


def write_report(store: RunStore) -> Path:
    """Write a run's report, whether or not the run is finished.

    Returns:
        Where it is: report.html in the run's folder, whole or as it was before.

    Raises:
        CorruptFile: A file of the run is damaged.
        FedpcsError: The page cannot be written.
    """
    write_text(store.report, render(read_run(store)))
    return store.report


def write_report_safely(store: RunStore, say: Callable[[str], None]) -> None:
    """Write the report; if that fails, say so: results are safe, and `fedpcs report` can try again."""
    try:
        write_report(store)
    except Exception as error:  # figures are for people; no mistake in them may cost a result
        say(f"the report could not be drawn ({type(error).__name__}: {error}); results are safe.")


def render(run: RunFiles) -> str:
    """Return the page."""
    return template("run_report.html.j2").render(
        name=run.config.name,
        facts=_facts(run),
        headline=headline(run),
        promise=promise(run.config.privacy, [one for sampler in run.samplers for one in sampler.done]),
        caveats=caveats(run),
        warnings=_warnings(run),
        tables=make_tables(run),
        figures=draw_all(run),
        settings=_settings(run),
        manifest=_manifest(run.manifest.model_dump()),
        command=_command(run),
        repeats=_repeats(run),
    )


def headline(run: RunFiles) -> str:
    """Return the sentence at the top of the page: what is sure of the trials that are done."""
    if run.num_done == 0:
        return "No trial of this run is done yet; the figures show the rounds so far."
    if len(run.samplers) > 1:
        return headline_of(comparisons_of(run))
    (sampler,) = run.samplers
    num_seeds = len(sampler.done)
    over = "with one seed" if num_seeds == 1 else f"over {num_seeds} seeds"
    return f"{sampler.name} ends at {ended_at(sampler)} accuracy {over}."


def _facts(run: RunFiles) -> str:
    config = run.config
    seeds = "1 seed" if len(config.seeds) == 1 else f"{len(config.seeds)} seeds"
    return (
        f"{split_words(run)}; {config.data.num_clients:,} clients, "
        f"{_format.percent(float(config.sampling.sampling_ratio))} drawn in a round; model {config.training.model}; "
        f"{config.rounds:,} rounds; {seeds}"
    )


def _warnings(run: RunFiles) -> list[str]:
    forced = [
        f"Resumed by force at {one.at}, so this is not the result of one run: {'; '.join(one.differences)}."
        for one in run.manifest.forced
    ]
    unfinished = (
        f"Not finished: {run.num_done} of {run.num_trials} trials are done. What is said here is said of those."
    )
    notes = [str(note) for note in run.manifest.notes]
    return ([unfinished] if run.num_done < run.num_trials else []) + forced + notes


def _settings(run: RunFiles) -> dict[str, dict[str, str]]:
    """Return every key of the configuration, by table."""
    values = run.config.model_dump(mode="json")
    top = {name: _written(value) for name, value in values.items() if not isinstance(value, dict)}
    tables = {
        name: {key: _written(item) for key, item in value.items()}
        for name, value in values.items()
        if isinstance(value, dict)
    }
    return {"run": top, **tables}


def _written(value: Any) -> str:
    return "not set" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _manifest(manifest: dict[str, Any]) -> dict[str, str]:
    """Return what the run ran on, as lines; the configuration has a place of its own."""
    found: dict[str, str] = {}
    for name, value in manifest.items():
        if isinstance(value, dict) and name != "config":
            found |= {f"{name}.{key}": _written(item) for key, item in value.items()}
        elif name != "config":
            found[name] = _written(value) if value not in ("", []) else "none"
    return found


def _repeats(run: RunFiles) -> str:
    """Say what running it again gives."""
    if run.config.privacy.is_private and run.config.privacy.noise != "fast":
        return (
            "Its noise comes from the operating system and cannot be repeated: numbers will differ, within that noise."
        )
    if run.config.engine.device != "cpu":
        return "With the same versions it gives the same numbers up to rounding: only the CPU repeats them to the bit."
    return "With the same versions it gives the same numbers."


def _command(run: RunFiles) -> str:
    data_dir = run.manifest.data_dir
    return "fedpcs run config.toml" + (f" --data-dir {shlex.quote(str(data_dir))}" if data_dir else "")
