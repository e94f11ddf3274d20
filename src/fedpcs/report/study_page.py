"""The page of a study: a run, a comparison, or the trials of an exhibit."""

from __future__ import annotations

import json
import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedpcs import _format
from fedpcs.report.columns import seed_text
from fedpcs.report.figures.partition import split_text
from fedpcs.report.figures.study import drawings_of
from fedpcs.report.headline import headline as headline_of
from fedpcs.report.page import Page
from fedpcs.report.tables import study_tables
from fedpcs.report.warnings import warnings_of
from fedpcs.studies.grid import Cell
from fedpcs.studies.promise import promise
from fedpcs.studies.results import Group, Study, TrialData, compared, group, is_alike
from fedpcs.trial.config import RunConfig

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
_MOST_VALUES = 3


def study_page(study: Study) -> Page:
    """Return the page of a study's folder."""
    kind = "Sweep" if study.config is None else "Run"
    return comparison_page(
        study.name,
        study.trials,
        title=f"{kind} {study.name}",
        failures={**study.failures, **study.damaged},
        missing=study.missing,
        command=study.command,
        config=study.config,
    )


def comparison_page(
    name: str,
    trials: Sequence[TrialData],
    *,
    title: str = "",
    failures: Mapping[str, str] | None = None,
    missing: Sequence[Cell] = (),
    command: str = "",
    config: RunConfig | None = None,
) -> Page:
    """Return the page of some trials, finished or not, with all that a page of trials has.

    Args:
        name: Of the study.
        trials: Those that have begun.
        title: Of the page; the name if empty.
        failures: Why others could not be run, by key.
        missing: Cells that are not done.
        command: What runs a sweep again.
        config: Of a run: as given, with all samplers and seeds.
    """
    groups, done = group(trials), [one for one in trials if one.is_done]
    configs = [one.cell.config for one in trials] if config is None else [config]
    return Page(
        name=name,
        title=title or name,
        headline=headline(groups),
        facts=facts(configs),
        warnings=tuple(warnings_of(trials, missing, failures or {})),
        tables=tuple(study_tables(groups)),
        drawings=tuple(drawing for one in groups for drawing in drawings_of(one, one.label if groups[1:] else "")),
        privacy=privacy_text(configs, trials),
        settings=settings_of(configs),
        commands=_sweep_commands(command, done) if config is None else (_run_command(config, trials),),
        provenance=provenance(trials),
        records=tuple(record_of(one) for one in done),
    )


def headline(groups: Sequence[Group]) -> str:
    """Say in a sentence what is sure of FedPCS beside the others, or of whoever stands in for it."""
    begun = [one for one in groups if any(series.done for series in one.series)]
    if not begun:
        return "No trial is done yet."
    contested = [found for one in begun if (found := compared(one))]
    if contested:
        sampler = min((found[0].sampler for found in contested), key=lambda name: name != REFERENCE)
        mine = [found for found in contested if found[0].sampler == sampler]
        return headline_of([one for found in mine for one in found], len(mine))
    top = max(begun, key=lambda one: float(one.series[0].accuracy.mean()))
    series, where = top.series[0], f" with {top.label}" if top.label else ""
    over = "one seed" if len(series.done) == 1 else f"{len(series.done)} seeds"
    text = f"{series.sampler} ends at {_format.mean_and_spread(list(series.accuracy))} accuracy over {over}"
    return f"{text}{where}, the highest of {len(begun)} settings." if len(begun) > 1 else f"{text}{where}."


def facts(configs: Sequence[RunConfig]) -> str:
    """Return the setting in a line."""
    if not configs:
        return ""
    data = ", ".join(dict.fromkeys(split_text(config.data) for config in configs))
    clients = f"{_span(config.data.num_clients for config in configs)} clients"
    if is_alike([config.game.population_seed for config in configs]):
        clients += ", one draw of their preferences"
    ratios = [float(config.sampling.sampling_ratio) for config in configs]
    drawn = f"{_format.percent(ratios[0])} drawn in a round; " if is_alike(ratios) else ""
    models = ", ".join(dict.fromkeys(config.training.model for config in configs))
    seeds = seed_text(sorted({seed for config in configs for seed in config.seeds}))
    rounds = _span(config.rounds for config in configs)
    return f"{data}; {clients}; {drawn}model {models}; {rounds} rounds; {seeds}"


def _span(values: Iterable[int]) -> str:
    found = sorted(set(values))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,}–{found[-1]:,}"


def privacy_text(configs: Sequence[RunConfig], trials: Sequence[TrialData]) -> tuple[str, ...]:
    """Return what is promised to clients, and what must be said beside it."""
    done = [one for one in trials if one.is_done]
    kept = [promise(one.cell.config.privacy, [one.outcome.disclosure]) for one in done]
    sentences = list(dict.fromkeys(kept or [promise(config.privacy) for config in configs]))
    sentences += dict.fromkeys(
        f"{one.cell.sampler}: {one.outcome.disclosure}." for one in done if one.outcome.disclosure
    )
    if any(config.privacy.is_private for config in configs):
        sentences.append(
            "No amplification by sampling clients or batches is claimed: ρ adds up over a client's releases."
        )
        if len(trials) > 1:
            sentences.append(
                "Each sampler and seed is a federation of its own; run on the same people, all of them together would "
                "cost the sum of their ρ."
            )
        if any(one.outcome.label_counts for one in done):
            sentences.append(
                "The figure of who holds what shows clients' data without noise: it is for the experimenter, not for "
                "release."
            )
    limited = [one for one in done if one.cell.config.privacy.limit_epsilon is not None and one.outcome.num_left]
    if limited:
        left: dict[str, list[int]] = {}
        for one in done:
            left.setdefault(one.cell.sampler, []).append(one.outcome.num_left)
        each = "; ".join(f"{name} {statistics.fmean(counts):.1f}" for name, counts in left.items())
        sentences.append(
            f"Clients that reached their limit of ε and left, mean over trials: {each}. The certificate is of clients "
            "that play to the end and does not know of limits."
        )
    return tuple(sentences)


def settings_of(configs: Sequence[RunConfig]) -> dict[str, dict[str, str]]:
    """Return every key that all configurations share with its value, by table; others are said to vary."""
    trees = [config.model_dump(mode="json") for config in configs]
    found: dict[str, dict[str, str]] = {"run": {}} if trees else {}
    for table, value in trees[0].items() if trees else ():
        if isinstance(value, dict):
            found[table] = {key: _shared([tree[table][key] for tree in trees]) for key in value}
        else:
            found["run"][table] = _shared([tree[table] for tree in trees])
    return found


def _shared(values: Sequence[Any]) -> str:
    return _written(values[0]) if is_alike(values) else "varies"


def _written(value: Any) -> str:
    return "not set" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def provenance(trials: Sequence[TrialData]) -> dict[str, str]:
    """Return what trials ran on, and how long they took."""
    values: dict[str, dict[str, None]] = {}
    for manifest in dict.fromkeys(json.dumps(one.manifest.model_dump()) for one in trials):
        for name, value in json.loads(manifest).items():
            if name in ("data", "libraries", "own_code"):
                for key, item in value.items():
                    values.setdefault(f"{name}.{key}", {})[_written(item)] = None
            elif name not in ("config", "forced", "notes"):
                values.setdefault(name, {})[_written(value)] = None
    found = {
        name: ", ".join(kinds) if len(kinds) <= _MOST_VALUES else f"{len(kinds)} different"
        for name, kinds in values.items()
    }
    took = [one.seconds for one in {one.cell.key: one for one in trials}.values() if one.seconds is not None]
    if took:
        found["seconds a trial, one core"] = f"median {statistics.median(took):.0f}, in all {sum(took):,.0f}"
    return found


def _run_command(config: RunConfig, trials: Sequence[TrialData]) -> tuple[str, str]:
    """Return what runs it again, and what that gives."""
    data_dir = trials[0].manifest.data_dir if trials else None
    command = "fedpcs run config.toml" + (f" --data-dir {shlex.quote(data_dir)}" if data_dir else "")
    gives = "With the same versions it gives the same numbers."
    if config.privacy.is_private and config.privacy.noise != "fast":
        gives = "Its noise comes from the operating system and cannot be repeated: numbers differ within that noise."
    elif config.engine.device != "cpu":
        gives = "With the same versions it gives the same numbers up to rounding: only the CPU repeats them to the bit."
    return command, f"In the folder of this page, which holds config.toml. {gives}"


def _sweep_commands(command: str, done: Sequence[TrialData]) -> tuple[tuple[str, str], ...]:
    """Return what runs a sweep again, and what runs one of its cells, with what each does."""
    whole = "Runs what is missing and writes this page again; done cells are reused."
    alone = "Runs any one cell alone: DIR holds the folder of cells, FOLDER is in the CSV file's column of that name"
    return (
        *(((command, whole),) if command else ()),
        *(("fedpcs run DIR/trials/FOLDER/config.toml", f"{alone}, such as {one.folder.name}.") for one in done[:1]),
    )


def _one_value(value: Any) -> str | float | int | bool:
    """Return a value of the grid as a table's cell holds it."""
    return value if isinstance(value, str | float | int | bool) else str(value)


def record_of(one: TrialData) -> dict[str, Any]:
    """Return a finished trial as one flat row."""
    config, result = one.cell.config, one.outcome
    return {
        "cell": one.cell.key,
        "folder": one.folder.name,
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
        "rounds": result.rounds,
        "accuracy": result.accuracy,
        "loss": result.loss,
        **{f"epsilon_{name}": value for name, value in result.spent.epsilon.model_dump().items()},
        **{f"rho_{name}": value for name, value in result.spent.rho.model_dump().items()},
        "delta": result.delta,
        "paid": result.paid,
        "exploitability": result.game.exploitability if config.game.behaviour == "rational" else None,
        "reads_in_clear": result.disclosure,
        "seconds": one.seconds,
    }
