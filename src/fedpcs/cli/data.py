"""Verbs of the data sets: data list, data fetch, data check."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fedpcs.cli.options import DataDirOption, JsonOption, verbs_of

_verb = verbs_of("data", "Data sets: which there are, fetch one, check one.")


@_verb("list")
def data_list(data_dir: DataDirOption = None, as_json: JsonOption = False) -> None:
    """List the data sets: their published size, whether they are here, and their terms.

    Example: fedpcs data list
    """
    from fedpcs.cli.printing import emit, print_table
    from fedpcs.learning.datasets.inventory import describe_all

    found = describe_all(data_dir)
    numbers = ("classes", "train", "test", "MB to fetch")
    rows = [
        (
            one["name"],
            str(one["num_classes"]),
            *(f"{one[name]:,}" for name in ("num_train", "num_test")),
            f"{round(one['num_bytes'] / 1e6):,}" if one["num_bytes"] else "–",
            "yes" if one["is_present"] else "no",
            one["terms"],
        )
        for one in found
    ]
    headings = ("name", *numbers, "here", "terms")
    emit(found, as_json, lambda: print_table(rows, headings, right=numbers, folded=("terms",)))


@_verb("fetch")
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
    from fedpcs.learning.datasets.catalogue import find_entry

    find_entry(name)  # before torch is imported
    from fedpcs.cli.printing import emit
    from fedpcs.learning.datasets import fetch_dataset

    folder = fetch_dataset(name, data_dir, progress=True)
    emit({"name": name, "folder": str(folder)}, as_json, lambda: print(folder))


@_verb("check")
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
    from fedpcs.learning.datasets.catalogue import find_entry

    if ":" not in name:
        find_entry(name)  # before torch is imported
    from fedpcs.cli.printing import emit, print_facts
    from fedpcs.learning.datasets.inventory import check

    found = check(name, data_dir)
    emit(found, as_json, lambda: print_facts(_facts(found), f"{found['name']}: {found['says']}"))


def _facts(one: dict[str, Any]) -> dict[str, str]:
    return {
        "folder": one["folder"] or "–",
        "images": f"{one['num_train']:,} train, {one['num_test']:,} test",
        "classes": str(one["num_classes"]),
        "checksum": one["checksum"],
        **{
            name: f"{file['sha256']}, {'as published' if file['is_published'] else 'not published'}"
            for name, file in one["files"].items()
        },
    }
