"""What a reader of a sweep's page must know first: cells that are missing, or were not made like the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedpcs._keys import dotted_keys
from fedpcs.report.spent import SpentByClient
from fedpcs.studies.cell_store import Done
from fedpcs.studies.grid import Cell
from fedpcs.studies.groups import Group, is_alike
from fedpcs.studies.promise import paid_for_nothing
from fedpcs.trial.same_code import code_digest

# What manifests must agree on for cells to be compared like with like.
_ALIKE = {
    "code": "versions of fedpcs's code",
    "own_code": "versions of your own code",
    **{name: f"versions of {name}" for name in ("torch", "numpy", "scipy", "numba")},
    "data": "data sets",
}
# What samplers and seeds of one setting may differ by, and what no number depends on.
_EACH_ONES_OWN: Any = {"name": True, "seeds": True, "tensorboard": True, "sampling": {"samplers", "settings"}}


def not_done(cells: Sequence[Cell], failures: Mapping[str, str]) -> tuple[str, ...]:
    """Say how many cells are not done, and why some could not be run."""
    if not cells:
        return ()
    told = [f"{cell.words}: {failures[cell.key]}" for cell in cells if cell.key in failures]
    return (f"{len(cells)} cells are not done; what is said here is said of the others.", *told[:10])


def mixed(done: Sequence[Done]) -> tuple[str, ...]:
    """Return warnings where cells were not all made in the same way."""
    found = []
    for key, words in _ALIKE.items():
        kinds = [one.manifest.libraries.get(key, one.manifest.get(key)) for one in done]
        if key == "data":  # the files alone: what is dealt out of them is the sweep's to vary
            by_name = {one.cell.config.data.name: one.manifest.data.checksum for one in done}
            kinds = [one.manifest.data.checksum == by_name[one.cell.config.data.name] for one in done]
        if not is_alike(kinds):
            found.append(f"Cells were run by different {words}; rerun the older ones to compare like with like.")
    versions = {one.manifest.code for one in done}
    if len(versions) == 1 and code_digest() not in versions:
        found.append("All cells were run by another version of fedpcs's code than this page was written by.")
    if any(one.manifest.forced for one in done):
        found.append("Some cells were resumed by force under other code or data.")
    return tuple(found)


def noted(done: Sequence[Done]) -> tuple[str, ...]:
    """Say what was written down while cells were made, and where clients were paid for budgets no noise went with."""
    notes = dict.fromkeys(note for one in done for note in one.manifest.notes)
    return tuple(words for words in (*notes, paid_for_nothing([one.outcome for one in done])) if words)


def ended_early(done: Sequence[Done]) -> tuple[str, ...]:
    """Name the trainings that ended before their last round, each with the rounds it had."""
    early = [one for one in done if one.outcome["rounds"] < one.cell.config.rounds]
    if not early:
        return ()
    told = "; ".join(f"{one.cell.words}: {one.outcome['rounds']} of {one.cell.config.rounds}" for one in early[:10])
    more = f"; and {len(early) - 10} more" if len(early) > 10 else ""
    return (
        f"{len(early)} of {len(done)} trainings ended before their last round: too few clients had anything left to "
        f"spend. Their accuracy is that of the round they came to ({told}{more}); curves end where the shortest does.",
    )


def unlike(found: Group) -> list[str]:
    """Name what differs between the samplers of one setting beside the sampler: what was tuned for it, or unfair."""
    trees = {
        series.sampler: dotted_keys(series.done[0].cell.config.model_dump(mode="json", exclude=_EACH_ONES_OWN))
        for series in found.series
    }
    keys = dict.fromkeys(key for tree in trees.values() for key in tree)
    differing = [key for key in keys if not is_alike([tree.get(key) for tree in trees.values()])]
    place = f"{found.words}: " if found.words else ""
    return [
        f"{place}{key} is not the same for all samplers: "
        + ", ".join(f"{name} {tree.get(key)}" for name, tree in trees.items())
        + "."
        for key in differing
    ]


def unread_ledgers(done: Sequence[Done], spent: SpentByClient) -> tuple[str, ...]:
    """Name cells whose ledger cannot be read, unless there is none at all: then nothing is drawn of any."""
    if not spent.unreadable or not spent.epsilon:
        return ()
    words = {one.cell.key: one.cell.words for one in done}
    first = next(iter(spent.unreadable))
    return (
        f"The ledgers of {len(spent.unreadable)} cells cannot be read, and the figures of what each client spent are "
        f"without those samplers: such as {words[first]}: {spent.unreadable[first]}",
    )
