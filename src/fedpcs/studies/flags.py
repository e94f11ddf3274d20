"""A sweep as the command line gives it: the file of a sweep or a run, or a preset, and flags, which always win."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedpcs._keys import read_override, read_value
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
    where = source or "preset default"
    sweep = make_sweep_config(_tables(source or "default"), where)
    varied = dict(map(_read_grid, grid))
    fixed = {key: value for one in overrides for key, value in read_override(one).items()}

    def left(table: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in table.items() if key not in fixed and key not in varied}

    values = {
        **sweep.model_dump(),
        "set": {**left(sweep.set), **fixed},
        "grid": {**left(sweep.grid), **varied},
        "per_sampler": {name: left(changed) for name, changed in sweep.per_sampler.items()},
        "variants": [{**one.model_dump(), "set": left(one.set)} for one in sweep.variants],
    }
    if samplers is not None:
        values["samplers"] = [name.strip() for name in samplers.split(",") if name.strip()]
        values["variants"] = [{**one, "samplers": None} for one in values["variants"]]
        if not values["samplers"]:
            raise InvalidInput(f"--samplers must be names parted by commas, such as fedpcs,random; got {samplers!r}.")
    if seeds is not None:
        try:
            values["seeds"] = [int(part) for part in seeds.split(",")]
        except ValueError:
            raise InvalidInput(
                f"--seeds must be whole numbers parted by commas, such as 0,1,2; got {seeds!r}."
            ) from None
    return make_sweep_config(values, where)


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
