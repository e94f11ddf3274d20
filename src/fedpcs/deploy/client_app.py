"""The client app of a deployment: one node, one client, its own records and its own books.

A node is told where its settings are, and nothing else; they stay on its machine (`fedpcs.deploy.node_settings`):

    --node-config 'settings="/home/ada/node.toml"'
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

from flwr.app import Context
from flwr.clientapp import ClientApp

from fedpcs.deploy.node_settings import NodeSettings, conditions_of
from fedpcs.deploy.settings_file import read_settings, settings_path
from fedpcs.engines.flower.client_app import Member, kept_here, make_client_app, refusals_logged
from fedpcs.engines.flower.conditions import refuse_outside
from fedpcs.errors import FedpcsError
from fedpcs.learning.client import ClientSide
from fedpcs.trial.assemble import clients_of, device_of
from fedpcs.trial.config import load_run_config


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
        settings = _settings(context)
        name = settings.client
        config = load_run_config(self.config_file)
        with refusals_logged(name):  # by this file clients train, and it came from the server
            refuse_outside(conditions_of(config), settings.accepted)
        try:
            side = _side(self.config_file, settings.partition_id, settings.num_partitions, settings.data_dir)
        except FedpcsError:  # says what is wrong with how the node was started
            raise
        except Exception as error:  # of a function that reads the client's records: it may quote them
            raise kept_here(name, type(error).__name__, str(error)) from None
        return Member(
            name=name,
            side=side,
            num_samples=int(side.data.num_samples[0]),
            books=settings.books,
            may_be_asked=settings.may_be_asked,
        )


def _settings(context: Context) -> NodeSettings:
    """Return a node's settings; what is wrong with them stays on its machine."""
    try:
        return read_settings(settings_path(context.node_config, os.environ))
    except FedpcsError as error:
        raise kept_here("this node", "its settings cannot be used", str(error)) from None


@functools.lru_cache(maxsize=1)
def _side(config_file: str, number: int, count: int, data_dir: str | None) -> ClientSide:
    config = load_run_config(config_file, [f"data.num_clients={count}"])
    where = None if data_dir is None else Path(data_dir)
    return clients_of(config, config.seeds[0], where, device_of(config)[0], only=number)
