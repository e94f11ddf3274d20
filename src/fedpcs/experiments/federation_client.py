"""The client app of a deployment: one node, one client, its own records and its own books.

What a node is told when it is started, and keeps to itself:

    --node-config 'partition-id=0 num-partitions=3 privacy-aversion=0.4 initial-budget=5.0 state-dir="/var/lib/fedpcs"'
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.clientapp import ClientApp

from fedpcs import _validate
from fedpcs.engines.flower.client_app import Member, kept_here, make_client_app
from fedpcs.engines.flower.client_books import ClientBooks, Preferences
from fedpcs.errors import FedpcsError, InvalidInput
from fedpcs.experiments.arm_plan import client_plan, dealt_out, device_of, load_for
from fedpcs.experiments.run_config import RunConfig, load_run_config
from fedpcs.learning.client import ClientSide
from fedpcs.learning.client_data import OwnData
from fedpcs.learning.models import make_model
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.conversion import to_rho

_NEEDED = ("partition-id", "num-partitions", "privacy-aversion", "initial-budget", "state-dir")
_OPTIONAL = ("name", "data-dir", "limit-epsilon", "may-be-asked", "allow-seeded-noise")


def client_app(config_file: str | Path) -> ClientApp:
    """Return the client app of a deployment.

    Args:
        config_file: The run's file, which the app brings along; the same for the server and all clients.
    """
    return make_client_app(Members(str(config_file)))


@dataclass(frozen=True)
class Members:
    """Makes the one client a node plays.

    Attributes:
        config_file: The run's file.
    """

    config_file: str

    def __call__(self, context: Context, run: str) -> Member:
        """Return a node's client, whatever the run: its records, and its books of all runs."""
        told = context.node_config
        if missing := [name for name in _NEEDED if name not in told]:
            raise InvalidInput(f"node-config must name {', '.join(missing)}. Start the node with --node-config.")
        _check_names(told)
        config = load_run_config(self.config_file)
        _check_noise(config, told)
        name = str(told.get("name", f"client-{told['partition-id']}"))
        number, count = int(told["partition-id"]), int(told["num-partitions"])
        data_dir = str(told["data-dir"]) if "data-dir" in told else None
        try:
            side = _side(self.config_file, number, count, data_dir)
        except FedpcsError:  # says what is wrong with how the node was started
            raise
        except Exception as error:  # of a function that reads the client's records: it may quote them
            raise kept_here(name, type(error).__name__, str(error)) from None
        return Member(
            name=name,
            side=side,
            num_samples=int(side.data.num_samples[0]),
            books=_books(config, told, name),
            may_be_asked=_flag(told, "may-be-asked"),
        )


def _check_noise(config: RunConfig, told: Mapping[str, Any]) -> None:
    if config.privacy.mode != "none" and config.privacy.noise == "fast" and not _flag(told, "allow-seeded-noise"):
        raise InvalidInput(
            "privacy.noise is 'fast': its noise comes from a seed the server knows, and can be taken off again. Set "
            "privacy.noise = 'secure' in the run's file; to try things out, start nodes with allow-seeded-noise=true."
        )


def _check_names(told: Mapping[str, Any]) -> None:
    """Refuse a name that is nearly one of ours: a limit that is misspelled would be no limit."""
    known = (*_NEEDED, *_OPTIONAL)
    for name in told:
        near = difflib.get_close_matches(str(name).replace("_", "-"), known, n=1, cutoff=0.8)
        if near and name not in known:
            raise InvalidInput(f"node-config names {name}, which means nothing. Did you mean {near[0]}?")


def _flag(told: Mapping[str, Any], name: str) -> bool:
    value = told.get(name, False)
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be true or false, without quotation marks, got {value!r}.")
    return value


def _books(config: RunConfig, told: Mapping[str, Any], name: str) -> ClientBooks:
    """Return a client's books; what is wrong with its private numbers stays on its machine."""
    low, high = (float(bound) for bound in config.game.budget_bounds)
    try:
        limit = told.get("limit-epsilon")
        most = None if limit is None else Rho.at_most(to_rho(float(limit), float(config.privacy.delta), "tight"))
        first = _validate.number("initial-budget", float(told["initial-budget"]), low=low, high=high)
        preferences = Preferences(float(told["privacy-aversion"]), first)
    except (FedpcsError, ValueError, TypeError) as error:
        raise kept_here(name, "its private numbers are not what they may be", str(error)) from None
    return ClientBooks(Path(str(told["state-dir"])).expanduser(), preferences, most)


@functools.lru_cache(maxsize=1)
def _side(config_file: str, number: int, count: int, data_dir: str | None) -> ClientSide:
    config = load_run_config(config_file, [f"data.num_clients={count}"])
    if not 0 <= number < count:
        raise InvalidInput(f"partition-id must be in [0, {count - 1}], got {number}. num-partitions is {count}.")
    seed = config.seeds[0]
    dataset = load_for(config, None if data_dir is None else Path(data_dir).expanduser())
    model = make_model(config.training.model, dataset.input_shape, dataset.num_classes, seed=seed)
    return ClientSide(
        client_plan(config, seed, device_of(config)[0]), model, OwnData(dealt_out(config, dataset, seed), number)
    )
