"""Verbs of a deployment: superlink, node. Both start Flower's own, with what Flower's lacks around it."""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer

from fedpcs._plugins import pip_install
from fedpcs.cli.options import verb
from fedpcs.errors import InvalidInput

# Whatever is not ours goes on to Flower's command as it stands.
_PASSES_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


@verb(context_settings=_PASSES_ON)
def superlink(context: typer.Context) -> None:
    """Start Flower's SuperLink, with limits on what a node may send: takes the arguments of flower-superlink.

    Example: fedpcs superlink --host 0.0.0.0 --port 8000 --database superlink.db --enable-supernode-auth
    """
    _part("superlink").run_superlink(context.args)


@verb(context_settings=_PASSES_ON)
def node(
    context: typer.Context,
    patience: Annotated[
        float, typer.Option(metavar="MINUTES", min=1.0, help="How long the SuperLink may be silent.")
    ] = 5.0,
) -> None:
    """Start Flower's SuperNode, and end when it no longer hears its SuperLink: takes the arguments of flower-supernode.

    Exit code 8 when the SuperLink was silent for too long, or Flower's loop has ended: start it again. Other codes are
    Flower's.

    Example: fedpcs node --superlink server.example.org:8000 --root-certificates secrets/ca.crt
    """
    _part("supernode").run_supernode(context.args, 60.0 * patience)


def _part(name: str) -> Any:
    """Return a module of ours that stands on Flower.

    Raises:
        InvalidInput: Flower is not installed, or is a version that lacks what the module uses.
    """
    try:
        return importlib.import_module(f"fedpcs.engines.flower.{name}")
    except ImportError as error:
        raise InvalidInput(f"Flower cannot be used: {error}. Run `{pip_install('flower')}`.") from None
