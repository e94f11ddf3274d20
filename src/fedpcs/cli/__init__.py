"""The command line. Each verb parses, calls one function, prints; stdout is data, stderr is talk."""

from __future__ import annotations

import io
import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer

from fedpcs._outside import message
from fedpcs.cli.interrupts import hush, is_interrupt
from fedpcs.cli.options import app as app
from fedpcs.errors import FedpcsError, Interrupted

# isort: off
# In the order in which help lists the verbs.
from fedpcs.cli import runs as runs
from fedpcs.cli import studies as studies
from fedpcs.cli import exhibits as exhibits
from fedpcs.cli import games as games
from fedpcs.cli import theory as theory
from fedpcs.cli import checks as checks
from fedpcs.cli import audit as audit
from fedpcs.cli import data as data
from fedpcs.cli import ledgers as ledgers
from fedpcs.cli import deployment as deployment
# isort: on

# Errors of the command line itself: classes of click, which newer versions of Typer bring along under a private name.
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
_COMMAND_ERROR: Any = typer.BadParameter.__mro__[2]


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"fedpcs {version('fedpcs')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; an error becomes one line on stderr and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that has no ρ is shown a question mark, not a traceback
            stream.reconfigure(errors="replace")
    try:
        sys.exit(app(standalone_mode=False))
    except _COMMAND_ERROR as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # that one is the help itself
            error = _USAGE_ERROR(message(error.format_message()), getattr(error, "ctx", None))
        error.show()
        sys.exit(error.exit_code)
    except FedpcsError as error:
        if isinstance(error, Interrupted):
            hush()
        print(f"fedpcs: {message(error)}", file=sys.stderr)
        sys.exit(error.exit_code)
    except MemoryError as error:
        print(f"fedpcs: out of memory: {message(error) or 'no more to be had'}. Ask for less.", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        words = f"the system refused: {message(error)}. Is the place there, and may it be written to?"
        print(f"fedpcs: {words}", file=sys.stderr)
        sys.exit(1)
    except BaseException as error:
        if not is_interrupt(error):
            raise
        hush()
        print("fedpcs: interrupted", file=sys.stderr)
        sys.exit(130)
