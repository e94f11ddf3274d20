"""A sweep as the command line gives it: the file of a sweep or a run, or a preset, and flags that overrule it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedpcs._keys import dotted_keys, read_override, read_value
from fedpcs.errors import InvalidInput
from fedpcs.studies.grid import SweepConfig, make_sweep_config
from fedpcs.trial.config import make_run_config, read_tables
from fedpcs.trial.presets import preset_names

# Keys that only the file of a sweep has; a file without any of them is a run, to be varied by flags.
_OF_A_SWEEP = ("base", "samplers", "set", "grid", "per_sampler", "variants")


def read_sweep(
    source: str | None,
    *,
    samplers: str | None = None,
    seeds: str | None = None,
    grid: Sequence[str] = (),
    overrides: Sequence[str] = (),
) -> SweepConfig:
    """Read what to compare from a sweep's file, a run's file or a preset, and from flags that add to it.

    Args:
        source: A path or a preset; None: the preset `default`.
        samplers: Names parted by commas.
        seeds: Whole numbers parted by commas.
        grid: Such as "data.partition=iid,dirichlet".
        overrides: Such as "rounds=5".

    Raises:
        InvalidInput: A file or flag cannot be read, or does not make a sweep.
    """
    values = _tables(source or "default")
    if samplers is not None:
        values["samplers"] = [name.strip() for name in samplers.split(",") if name.strip()]
        if not values["samplers"]:
            raise InvalidInput(f"--samplers must be names parted by commas, such as fedpcs,random; got {samplers!r}.")
    if seeds is not None:
        try:
            values["seeds"] = [int(part) for part in seeds.split(",")]
        except ValueError:
            raise InvalidInput(
                f"--seeds must be whole numbers parted by commas, such as 0,1,2; got {seeds!r}."
            ) from None
    where = source or "preset default"
    varied = dict(map(_read_grid, grid))
    fixed = {key: value for one in overrides for key, value in read_override(one).items()}
    if twice := [key for key in fixed if key in varied]:
        raise InvalidInput(f"--set {twice[0]} and --grid {twice[0]} give one key twice: keep one of them.")
    _add(values, "grid", varied, where, instead_of="set")
    _add(values, "set", fixed, where, instead_of="grid")
    sweep = make_sweep_config(values, where)
    _refuse_idle_flags(sweep, fixed, where, has_samplers=samplers is not None)
    return sweep


def _read_grid(text: str) -> tuple[str, list[Any]]:
    key, sign, values = text.partition("=")
    if not sign or not key.strip() or not values.strip():
        raise InvalidInput(f"--grid {text!r} must be KEY=VALUE,VALUE,…, such as sampling.sampling_ratio=0.2,0.5.")
    if "[" in values or "{" in values:  # lists and tables have commas of their own
        listed = read_value(f"[{values}]")
        if not isinstance(listed, list):
            raise InvalidInput(f"--grid {text!r}: values must be as TOML writes them, such as [0.01, 12],[1, 2].")
        return key.strip(), listed
    return key.strip(), [read_value(part) for part in values.split(",")]


def _add(values: dict[str, Any], table: str, flags: dict[str, Any], where: str, instead_of: str) -> None:
    """Add what flags give to a table of a sweep's file, in place; the key of a flag overrules the file's.

    It does so wherever the file has it: in that table, or in the one it is taken out of.
    """
    before, other = values.get(table, {}), values.get(instead_of, {})
    if not flags or not isinstance(before, dict) or not isinstance(other, dict):
        return
    try:
        values[table] = {**dotted_keys(before), **flags}
        values[instead_of] = {key: value for key, value in dotted_keys(other).items() if key not in flags}
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None


def _refuse_idle_flags(sweep: SweepConfig, fixed: Mapping[str, Any], where: str, *, has_samplers: bool) -> None:
    """Refuse flags that a table of the file would overrule, all of it or for some samplers."""
    tables = {f"per_sampler.{name}": changed for name, changed in sweep.per_sampler.items()}
    tables |= {f"variants.{one.label}": one.set for one in sweep.variants}
    for words, changed in tables.items():
        if kept := [key for key in fixed if key in changed]:
            raise InvalidInput(
                f"{where}: --set {kept[0]} is overruled by {words}.{kept[0]}: take that out of the file, or leave the "
                "flag out."
            )
    if has_samplers and sweep.variants and all(one.samplers for one in sweep.variants):
        raise InvalidInput(
            f"{where}: --samplers has no effect where every variant lists its own: take samplers out of the variants, "
            "or leave the flag out."
        )


def _tables(source: str) -> dict[str, Any]:
    if source in preset_names():
        return _of_run(source)
    values = read_tables(source)
    if not any(key in values for key in _OF_A_SWEEP):
        return _of_run(source)
    base = values.get("base")
    if isinstance(base, str) and base and base not in preset_names():
        values["base"] = str(Path(source).parent / base)  # a path is written down as seen from its file
    return values


def _of_run(source: str) -> dict[str, Any]:
    """Return the sweep a run is by itself: its own samplers and seeds."""
    config = make_run_config(read_tables(source), source)
    name = config.name
    return {"name": name, "base": source, "samplers": list(config.sampling.samplers), "seeds": list(config.seeds)}
