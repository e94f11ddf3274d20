"""A run on disk: what was asked for, what it ran on, its trials, its report, and its result written last.

config.toml   manifest.json   lock   trials/DATA-SPLIT-RATIO-SAMPLER-seedN-KEY/…   games/   report.html   result.json
"""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fedpcs._files import NEW_RUN, write_json
from fedpcs._plugins import digests
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.trial.config import RunConfig, load_run_config
from fedpcs.trial.identity import alone, trial_folder
from fedpcs.trial.records import DataIdentity, Forced, Manifest, StudyResult, read_record
from fedpcs.trial.same_code import code_digest
from fedpcs.trial.store import BegunFolder, TrialStore

_LIBRARIES = ("fedpcs", "torch", "numpy", "numba", "scipy")
# What must be the same for a resumed run to equal one that never stopped.
_MUST_MATCH = {"config", "data", "code", "own_code", "libraries"}


class RunStore(BegunFolder):
    """The folder of one run."""

    @property
    def report(self) -> Path:
        """`report.html`."""
        return self.folder / "report.html"

    @property
    def result(self) -> StudyResult | None:
        """What the run came to; None while it is not done."""
        path = self.folder / "result.json"
        return read_record(StudyResult, path) if path.exists() else None

    def trial(self, sampler: str, seed: int) -> TrialStore:
        """Return the store of one sampler and seed."""
        return self.trial_of(alone(self.config_as_it_stands(), sampler, seed))

    def trial_of(self, config: RunConfig) -> TrialStore:
        """Return the store of a trial, by its configuration."""
        return TrialStore(self.folder / "trials" / trial_folder(config))

    def config(self) -> RunConfig:
        """Read the configuration the run was made with.

        Raises:
            CorruptFile: It is damaged, or no longer the one in the manifest.
        """
        found = self.config_as_it_stands()
        try:
            is_the_same = RunConfig.model_validate(self.manifest.config) == found
        except ValidationError:
            is_the_same = False
        if not is_the_same:
            raise CorruptFile(f"{self.folder / 'config.toml'}: is not the configuration in manifest.json. {NEW_RUN}")
        return found

    def config_as_it_stands(self) -> RunConfig:
        """Read the configuration, which may have been changed since the run began: `check_same` says if it was.

        Raises:
            CorruptFile: It is damaged.
        """
        try:
            return load_run_config(str(self.folder / "config.toml"))
        except InvalidInput as error:  # the file was right when it was written here
            raise CorruptFile(f"{error} {NEW_RUN}") from None

    def outcome(self, config: RunConfig) -> StudyResult:
        """Return what all trials came to."""
        trials = [self.trial(sampler, seed).result for sampler in config.sampling.samplers for seed in config.seeds]
        found = [trial for trial in trials if trial is not None]
        return StudyResult(name=config.name, trials=found, is_exhausted=all(one.ended_by == "budget" for one in found))

    def finish(self, result: StudyResult) -> None:
        """Write the result: the run is done."""
        write_json(self.folder / "result.json", result.model_dump())


def open_run(folder: Path) -> RunStore:
    """Open a run that was started before.

    Raises:
        InvalidInput: There is none.
    """
    if not (folder / "config.toml").is_file():
        why = "there is no such folder"
        if folder.exists():
            why = "config.toml is missing" if folder.is_dir() else "it is a file"
        raise InvalidInput(f"{folder}: no run there ({why}). Give the folder `fedpcs run` printed.")
    if not (folder / "manifest.json").is_file():
        raise CorruptFile(f"{folder}: manifest.json is missing; the run had not begun. Start it again.")
    return RunStore(folder)


def make_manifest(config: RunConfig, data: DataIdentity, data_dir: Path | None, notes: list[str]) -> Manifest:
    """Return what identifies a run: what it computes, from what, with which code."""
    return Manifest(
        config=config.model_dump(mode="json"),
        data=data,
        data_dir=None if data_dir is None else str(data_dir.resolve()),
        **_code(config),
        python=platform.python_version(),
        machine=platform.machine(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        notes=notes,
    )


def _code(config: RunConfig) -> dict[str, Any]:
    libraries = {name: version(name) for name in _LIBRARIES}
    return {"code": code_digest(), "own_code": digests(config.named), "libraries": libraries}


def check_same(store: BegunFolder, now: Manifest, *, force: bool) -> None:
    """Refuse to go on with a run under another configuration, code or data than it began with.

    Raises:
        InvalidInput: Something differs; says what. With `force` it is written to the manifest instead.
    """
    before = store.manifest
    was, is_now = (one.model_dump(include=_MUST_MATCH) for one in (before, now))
    differences = [line for name in sorted(_MUST_MATCH) for line in _differences(name, was[name], is_now[name])]
    if not differences:
        return
    if not force:
        raise InvalidInput(
            f"{store.folder}: cannot be resumed as it was begun: {'; '.join(differences)}. Put things back, or go on "
            "all the same with --force: the result will not be that of one run, and the manifest will say so."
        )
    forced = [*before.forced, Forced(at=now.started, differences=differences)]
    kept = {"started": before.started, "notes": before.notes, "forced": forced}
    store.write_manifest(now.model_copy(update=kept))


def is_by_this_code(store: TrialStore, config: RunConfig) -> bool:
    """Say whether a trial was begun by the very code that is running now: fedpcs's, its libraries', the user's own."""
    before, now = store.manifest, _code(config)
    return all(getattr(before, name) == now[name] for name in now)


def _differences(name: str, before: Any, now: Any) -> list[str]:
    if before == now:
        return []
    if isinstance(before, dict) and isinstance(now, dict):
        keys = dict.fromkeys([*before, *now])
        return [line for key in keys for line in _differences(f"{name}.{key}", before.get(key), now.get(key))]
    return [f"{name} was {_short(before)}, is {_short(now)}"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:16] + "…" + text[-8:]
