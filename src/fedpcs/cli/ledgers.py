"""Verbs of ledgers: ledger verify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedpcs.cli.options import JsonOption, verbs_of

_verb = verbs_of("ledger", "Ledgers of privacy and rewards: whether they are as they were written.")


@_verb("verify")
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
    from dataclasses import asdict

    from fedpcs._outside import printable
    from fedpcs.cli.printing import emit, say
    from fedpcs.studies.ledgers import verify_ledgers

    found = verify_ledgers(path)

    def show() -> None:
        for one in found:
            held = ", ".join(f"{n:,} {kind.removesuffix('s') if n == 1 else kind}" for kind, n in one.entries.items())
            say(f"whole    {printable(one.path, 4096)}: {held}" if one.is_whole else f"damaged  {one.finding}")

    is_whole = all(one.is_whole for one in found)
    files = [{**asdict(one), "is_whole": one.is_whole} for one in found]
    emit({"is_whole": is_whole, "files": files}, as_json, show)
    if not is_whole:
        raise typer.Exit(6)
