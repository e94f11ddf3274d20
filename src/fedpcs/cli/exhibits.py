"""The verb of the paper's exhibits."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fedpcs.cli.interrupts import command_line, goes_on_by
from fedpcs.cli.options import DataDirOption, JsonOption, verb
from fedpcs.errors import InvalidInput
from fedpcs.exhibits.registry import EXHIBITS, Profile, check_dataset, listed

_EXHIBITS = Path("fedpcs-runs/reproduce")


@verb()
def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="EXHIBIT", help="Which; the list if absent.")] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="On which data set; fashion-mnist if absent.")
    ] = None,
    profile: Annotated[Profile, typer.Option(metavar="quick|paper", help="Two cores, or the paper's sizes.")] = "quick",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where exhibits and their cells are kept.")] = _EXHIBITS,
    data_dir: DataDirOption = None,
    jobs: Annotated[int | None, typer.Option(min=1, max=1024, help="Cells at a time; one a core if absent.")] = None,
    only_done: Annotated[bool, typer.Option("--only-done", help="Run nothing; show what is done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make one of the paper's exhibits: run what is missing, write a page that says where we agree with the paper.

    Cells are shared between exhibits and reused: stop it at any time and give the same command again.

    Example: fedpcs reproduce welfare
    """
    if name is None:
        given = {"--dataset": dataset, "--data-dir": data_dir, "--jobs": jobs, "--only-done": only_done or None}
        given |= {"--profile": None if profile == "quick" else profile, "--out": None if out == _EXHIBITS else out}
        if idle := [flag for flag, value in given.items() if value is not None]:
            raise InvalidInput(f"{idle[0]} needs an EXHIBIT, one of {', '.join(EXHIBITS)}.")
        if as_json:
            print(json.dumps({key: {"summary": one.summary, "quick": one.quick} for key, one in EXHIBITS.items()}))
            return
        print("In brackets: how long the quick profile takes on two cores.")
        for key, one in EXHIBITS.items():
            print(f"{key:18} {one.summary} ({one.quick})")
        return
    found = listed(name)  # a misspelt name is refused before torch is imported
    if dataset is not None and not found.reads_data:
        raise InvalidInput(f"--dataset {dataset}: {name} is about the game alone and reads no data. Leave it out.")
    data = "fashion-mnist" if dataset is None else dataset
    check_dataset(name, data)
    from fedpcs.cli.printing import say
    from fedpcs.exhibits import reproduce

    with goes_on_by(command_line(), out, out / "trials"):
        page = reproduce.reproduce(
            name, data, profile, out, data_dir, num_jobs=jobs, only_done=only_done, say=partial(say, to_stderr=True)
        )
    print(json.dumps({"report": str(page)}) if as_json else page)
