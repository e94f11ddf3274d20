"""Verbs of a deployment: superlink, node. Both start Flower's own, with what Flower's lacks around it."""

from __future__ import annotations

from typing import Annotated

import typer

from fedpcs.cli.options import verb

# Whatever is not ours goes on to Flower's command as it stands.
_PASSES_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


@verb(context_settings=_PASSES_ON)
def superlink(context: typer.Context) -> None:
    """Start Flower's SuperLink, with limits on what a node may send: takes the arguments of flower-superlink.

    Example: fedpcs superlink --host 0.0.0.0 --port 8000 --database superlink.db --enable-supernode-auth
    """
    from fedpcs.engines.flower.superlink import run_superlink

    run_superlink(context.args)


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
    from fedpcs.engines.flower.supernode import run_supernode

    run_supernode(context.args, 60.0 * patience)
