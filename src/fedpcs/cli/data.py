"""Verbs of the data sets: data list, data fetch, data check."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from fedpcs.cli.options import DataDirOption, JsonOption, PlainCommand, app

data = typer.Typer(
    name="data",
    help="Data sets: which there are, fetch one, check one.",
    no_args_is_help=True,
    suggest_commands=False,
    rich_markup_mode=None,
)
app.add_typer(data)


@data.command("list", cls=PlainCommand)
def data_list(data_dir: DataDirOption = None, as_json: JsonOption = False) -> None:
    """List the data sets: their published size, whether they are here, and their terms.

    Example: fedpcs data list
    """
    from rich.console import Console

    from fedpcs.learning.datasets import inventory as data_report

    found = data_report.describe_all(data_dir)
    if as_json:
        print(json.dumps(found))
    else:
        data_report.print_all(found, Console())


@data.command("fetch", cls=PlainCommand)
def data_fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `fedpcs data list`.")],
    data_dir: DataDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch a data set from its publisher unless it is here, and print its folder; a broken fetch goes on where it was.

    Exit code 0 if it is here now, 2 if there is no such set or its server cannot be reached, 6 if what arrived is
    damaged.

    Example: fedpcs data fetch fashion-mnist --data-dir data
    """
    from fedpcs.learning.datasets import fetch_dataset

    folder = fetch_dataset(name, data_dir, progress=True)
    print(json.dumps({"name": name, "folder": str(folder)}) if as_json else folder)


@data.command("check", cls=PlainCommand)
def data_check(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name from `fedpcs data list`, or package.module:function.")
    ],
    data_dir: DataDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read a data set from its files, and say whether they are the published ones.

    Exit code 0 if it can be read, 2 if it is not here, 6 if a file is damaged.

    Example: fedpcs data check cifar-10 --data-dir data
    """
    from rich.console import Console

    from fedpcs.learning.datasets import inventory as data_report

    found = data_report.check(name, data_dir)
    if as_json:
        print(json.dumps(found))
    else:
        data_report.print_check(found, Console())
