"""What a reader of a study's page must know first: trials that are missing, or were not made like the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedpcs._keys import dotted_keys
from fedpcs.studies.grid import Cell
from fedpcs.studies.promise import paid_for_nothing
from fedpcs.studies.results import Group, TrialData, group, is_alike
from fedpcs.trial.same_code import code_digest

# What samplers and seeds of one setting may differ by, and what no number depends on.
_EACH_ONES_OWN: Any = {"name": True, "seeds": True, "tensorboard": True, "sampling": {"samplers", "settings"}}
_MOST_NAMED = 10


def warnings_of(trials: Sequence[TrialData], missing: Sequence[Cell], failures: Mapping[str, str]) -> Iterator[str]:
    """Give everything that must be said of some trials, finished or not."""
    done = [one for one in trials if one.is_done]
    if missing:
        text = f"Not finished: {len(done)} of {len(done) + len(missing)} trials are done"
        yield f"{text}; what is said here is said of those."
        yield from [f"{one.label}: {failures[one.key]}" for one in missing if one.key in failures][:_MOST_NAMED]
    yield from mixed(done)
    yield from _forced(trials)
    yield from noted(trials)
    yield from _ended_early(done)
    for found in group(trials):
        yield from unlike(found)


def mixed(done: Sequence[TrialData]) -> tuple[str, ...]:
    """Return warnings where trials were not all made in the same way."""
    first = {one.cell.config.data.name: one.manifest.data.checksum for one in reversed(done)}
    made: dict[str, list[Any]] = {
        "versions of fedpcs's code": [one.manifest.code for one in done],
        "versions of your own code": [one.manifest.own_code for one in done],
        **{
            f"versions of {name}": [one.manifest.libraries.get(name) for one in done]
            for name in ("torch", "numpy", "scipy", "numba")
        },
        # The files alone: what is dealt out of them is the sweep's to vary.
        "data sets": [one.manifest.data.checksum == first[one.cell.config.data.name] for one in done],
    }
    found = [
        f"Cells were run by different {text}; rerun the older ones to compare like with like."
        for text, kinds in made.items()
        if not is_alike(kinds)
    ]
    versions = {one.manifest.code for one in done}
    if len(versions) == 1 and code_digest() not in versions:
        found.append("All cells were run by another version of fedpcs's code than this page was written by.")
    return tuple(found)


def _forced(trials: Sequence[TrialData]) -> list[str]:
    forced = [
        f"Resumed by force at {one.at}, so this is not the result of one run: {'; '.join(one.differences)}."
        for trial in trials
        for one in trial.manifest.forced
    ]
    return list(dict.fromkeys(forced))[:_MOST_NAMED]


def noted(trials: Sequence[TrialData]) -> tuple[str, ...]:
    """Say what was written down while trials were made, and where clients were paid for budgets no noise went with."""
    notes = dict.fromkeys(note for one in trials for note in one.manifest.notes)
    paid = paid_for_nothing([one.result for one in trials if one.result is not None])
    return tuple(text for text in (*notes, paid) if text)


def _ended_early(done: Sequence[TrialData]) -> Iterator[str]:
    """Name the trainings that ended before their last round, each with the rounds it had."""
    early = [one for one in done if one.outcome.rounds < one.cell.config.rounds]
    if early:
        each = [f"{one.cell.label}: {one.outcome.rounds} of {one.cell.config.rounds}" for one in early]
        more = [f"and {len(each) - _MOST_NAMED} more"] if len(each) > _MOST_NAMED else []
        yield (
            f"{len(early)} of {len(done)} trainings ended before their last round: too few clients had anything left "
            "to spend. Their accuracy is that of the round they came to "
            f"({'; '.join(each[:_MOST_NAMED] + more)}); curves end where the shortest does."
        )


def unlike(found: Group) -> list[str]:
    """Name what differs between the samplers of one setting beside the sampler: what was tuned for it, or unfair."""
    trees = {
        series.sampler: dotted_keys(series.trials[0].cell.config.model_dump(mode="json", exclude=_EACH_ONES_OWN))
        for series in found.series
    }
    keys = dict.fromkeys(key for tree in trees.values() for key in tree)
    differing = [key for key in keys if not is_alike([tree.get(key) for tree in trees.values()])]
    place = f"{found.label}: " if found.label else ""
    return [
        f"{place}{key} is not the same for all samplers: "
        + ", ".join(f"{name} {tree.get(key)}" for name, tree in trees.items())
        + "."
        for key in differing
    ]
