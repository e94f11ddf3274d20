"""Where a node's settings are kept: in a file that nobody else on its machine may read, and so on no command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fedpcs import _validate
from fedpcs._files import MOST_TEXT, open_regular, refuse_open
from fedpcs._keys import first_problem
from fedpcs._outside import printable
from fedpcs._toml import parse_toml
from fedpcs.deploy.node_settings import Accepts, NodeSettings
from fedpcs.errors import InvalidInput

VARIABLE = "FEDPCS_NODE_SETTINGS"


def settings_path(node_config: Mapping[str, Any], environment: Mapping[str, str]) -> Path:
    """Return where a node's settings are: named on its command line, or by FEDPCS_NODE_SETTINGS.

    Raises:
        InvalidInput: Neither names a file, or the command line holds settings of its own.
    """
    _refuse_told(node_config)
    named = node_config.get("settings", environment.get(VARIABLE, ""))
    if not (isinstance(named, str) and named):
        raise InvalidInput(
            "this node has no settings. Write them to a file that only you can read, and start the node with "
            f"--node-config 'settings=\"/path/node.toml\"', or set {VARIABLE}."
        )
    return Path(named).expanduser().absolute()


def _refuse_told(names: Iterable[str]) -> None:
    """Refuse settings on a command line, which every user of the machine can read there."""
    known = [*NodeSettings.model_fields, *Accepts.model_fields]
    for name in names:
        if (near := _validate.nearest(str(name).replace("-", "_"), known)) is not None and name != "settings":
            raise InvalidInput(
                f"--node-config names {name}, which everybody on this machine can read in `ps`. Put {near} into the "
                "node's settings file, and start the node with --node-config 'settings=\"/path/node.toml\"' alone."
            )


def read_settings(path: Path) -> NodeSettings:
    """Read a client's settings.

    Raises:
        InvalidInput: Other users of the machine can read them, or they are none.
    """
    text = _private_text(path)
    try:
        values = parse_toml(text)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    try:
        found = NodeSettings.model_validate(values)
    except ValidationError as error:
        raise InvalidInput(f"{path}: {first_problem(error, NodeSettings)}") from None
    return found.model_copy(update={name: _beside(path, getattr(found, name)) for name in ("state_dir", "data_dir")})


def _beside(path: Path, name: str | None) -> str | None:
    return None if name is None else str(path.parent / Path(name).expanduser())


def _private_text(path: Path) -> str:
    try:
        with open_regular(path, MOST_TEXT) as stream:
            refuse_open(path, os.fstat(stream.fileno()).st_mode)
            return stream.read().decode("utf-8-sig")
    except OSError as error:
        words = f"{path}: cannot be read: {error.strerror}. Give the node's settings as a TOML file."
        raise InvalidInput(words) from None
    except ValueError as error:  # no text, or a name that no file can have
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path}: cannot be read: {printable(error)}.") from None
