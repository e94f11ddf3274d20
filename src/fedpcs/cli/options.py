"""The command line's root, and options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from fedpcs.errors import InvalidInput

if TYPE_CHECKING:
    import click

app = typer.Typer(
    name="fedpcs",
    help="Privacy-aware client sampling in federated learning.",
    no_args_is_help=True,
    suggest_commands=False,  # Click does, and both together ask twice
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class PlainCommand(TyperCommand):
    """A verb whose help is plain text: Typer marks brackets for Rich even where Rich has no part."""

    def get_help(self, ctx: click.Context) -> str:
        """Return it with brackets as they are."""
        return super().get_help(ctx).replace("\\[", "[")


verb = partial(app.command, cls=PlainCommand)


def verbs_of(name: str, summary: str) -> Callable[..., Callable[..., Any]]:
    """Return what makes a function a verb of a group, such as `fedpcs data list`."""
    group = typer.Typer(name=name, help=summary, no_args_is_help=True, suggest_commands=False, rich_markup_mode=None)
    group.callback()(lambda: None)  # so that a group's only verb keeps its name
    app.add_typer(group)
    return partial(group.command, cls=PlainCommand)


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
DataDirOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", file_okay=False, help="Where data sets lie; FEDPCS_DATA or the cache if absent."),
]


def each_key_once(given: list[str] | None) -> list[str] | None:
    """Refuse a key that --set or --grid is given twice: one of its values would count for nothing."""
    from fedpcs._keys import dotted_keys, read_value

    seen: dict[str, str] = {}
    for one in given or []:
        key, _, text = one.partition("=")
        for name in dotted_keys({key.strip(): read_value(text)}):
            if name in seen:
                raise InvalidInput(f"{name} is given twice, by {seen[name]!r} and by {one!r}. Keep one of them.")
            seen[name] = one
    return given


SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change one key of the run, such as rounds=5.", callback=each_key_once
    ),
]


def make_folder(folder: Path) -> None:
    """Make the folder that --figures names."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"--figures {folder}: cannot be made: {error.strerror}. Give another folder.") from None


def check_study(folder: Path) -> None:
    """Refuse a folder that holds neither a run nor a sweep, before torch is imported to read it."""
    if not folder.is_dir():
        why = "it is a file" if folder.exists() else "there is no such folder"
        raise InvalidInput(f"{folder}: no run there ({why}). Give the folder `fedpcs run` printed.")
    if not any((folder / name).is_file() for name in ("config.toml", "sweep.json")):
        raise InvalidInput(
            f"{folder}: no run there, nor a sweep (config.toml and sweep.json are missing). Give a folder of `fedpcs "
            "run` or `fedpcs compare`; exhibits are written again by `fedpcs reproduce EXHIBIT`."
        )
