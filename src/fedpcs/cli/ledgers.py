"""Verbs of ledgers: ledger verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fedpcs.cli.options import JsonOption, PlainCommand, app

ledger = typer.Typer(
    name="ledger",
    help="Ledgers of privacy and rewards: whether they are as they were written.",
    no_args_is_help=True,
    suggest_commands=False,
    rich_markup_mode=None,
)
app.add_typer(ledger)


@ledger.callback()
def _ledger() -> None:
    pass  # so that the one verb keeps its name


@ledger.command("verify", cls=PlainCommand)
def ledger_verify(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A ledger's file, or the folder of a run, a sweep or a client.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Check every row of a ledger against its running hash; in a folder, the logs of rounds and agreed budgets too.

    A ledger put back whole from an older copy is not noticed, nor an edit by somebody who computed the hashes anew.

    Exit code 0 if all is as it was written, 6 if something is damaged, 2 if there is no ledger.

    Example: fedpcs ledger verify fedpcs-runs/default
    """
    from rich.console import Console

    from fedpcs.cli import ledger_report

    found = ledger_report.verify(path)
    if as_json:
        print(json.dumps(ledger_report.verdicts_object(found)))
    else:
        ledger_report.print_verdicts(found, Console())
    if any(one.finding for one in found):
        raise typer.Exit(6)
