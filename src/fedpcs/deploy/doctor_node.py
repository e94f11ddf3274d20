"""Whether a client's machine is as it should be: its settings, its folder, its ledger, and the most it can spend."""

from __future__ import annotations

from pathlib import Path

from fedpcs import _format
from fedpcs._check import Check, noted
from fedpcs._files import refuse_open
from fedpcs.deploy.node_settings import NodeSettings, conditions_of
from fedpcs.deploy.settings_file import read_settings
from fedpcs.engines.flower.conditions import refuse_outside
from fedpcs.errors import FedpcsError
from fedpcs.privacy import PrivacyLedger
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.conversion import to_epsilon
from fedpcs.trial.config import RunConfig


def check_node(path: Path, config: RunConfig | None = None) -> list[Check]:
    """Look at a client's machine before its node is started; nothing is written there.

    Args:
        path: The client's settings file.
        config: A run it may be asked to take part in.
    """
    try:
        settings = read_settings(path.absolute())
    except FedpcsError as error:
        return [Check("settings", "wrong", str(error), "Without settings this client takes part in nothing.")]
    found = [_settings(path, settings), _folder(settings), *_ledger(settings), _accepts(settings)]
    return found if config is None else [*found, _run(settings, config)]


def _settings(path: Path, settings: NodeSettings) -> Check:
    part = f"part {settings.partition_id} of {settings.num_partitions}"
    return Check("settings", "fine", f"{path}: {settings.client}, {part}; nobody else on this machine can read them")


def _folder(settings: NodeSettings) -> Check:
    folder = settings.books.folder
    if not folder.exists():
        return Check("state folder", "fine", f"{folder}: not there yet; the first run makes it, for its owner alone")
    try:
        refuse_open(folder, folder.stat().st_mode)
    except FedpcsError as error:
        return Check("state folder", "wrong", str(error), "Until then this client refuses every run.")
    return Check("state folder", "fine", f"{folder}: nobody else on this machine can look into it")


def _ledger(settings: NodeSettings) -> list[Check]:
    """Look at what was spent and what can be; of a ledger that is not there, nothing was."""
    path, spent = settings.books.ledger, Rho(0)
    text, epsilon = "no ledger yet: nothing was spent", 0.0
    if path.exists():
        try:
            with PrivacyLedger.open(path) as ledger:
                total = ledger.spent("self")
        except FedpcsError as error:
            return [Check("ledger", "wrong", str(error), "Until then this client refuses every task.")]
        spent, epsilon = total.rho, total.epsilon(float(settings.accepts.delta))
        text = f"{path}: {total.num_releases:,} releases"
    if spent.nanos:
        text += f"; spent ρ = {_format.rounded_up(float(spent))}, which is ε = {_format.rounded_up(epsilon)}"
    return [Check("ledger", "fine", text), _most(settings, spent)]


def _most(settings: NodeSettings, spent: Rho) -> Check:
    """Say what a client can ever spend, whatever any server announces."""
    delta, unit = float(settings.accepts.delta), float(settings.accepts.budget_unit)
    if not settings.accepted.is_private:
        text = (
            f"no limit holds: accepts.mode is {settings.accepts.mode!r}, so updates leave without noise and nothing is "
            "charged"
        )
        return Check("at most", "wrong", text, "Set accepts.mode = 'record', unless nobody's records are at stake.")
    each = Rho.of(unit * float(settings.accepts.budget_bounds[1]))
    text = (
        f"ε = {_format.setting(settings.limit_epsilon)} at δ = {_format.amount(delta)} over all runs, now and later, "
        f"whatever a server announces ({settings.limit}); at most {each} in one round, and at most "
        f"{settings.accepts.rounds} rounds in one run"
    )
    if spent >= settings.limit:
        return noted("at most", f"{text}. All of it is spent", "This client answers no more tasks.")
    if to_epsilon(each, delta) > float(settings.limit_epsilon):
        remedy = "Lower accepts.budget_bounds or accepts.budget_unit, if the runs you are asked for allow it."
        return noted("at most", f"{text}. One round could spend all of it", remedy)
    return noted("at most", text)


def _accepts(settings: NodeSettings) -> Check:
    accepted = settings.accepted
    unit, low, high, bound = map(_format.setting, (accepted.budget_unit, *accepted.budget_bounds, accepted.clip_norm))
    text = (
        f"runs with budget_unit = {unit}, budgets in [{low}, {high}], mode {accepted.mode!r}, clip_norm = {bound}, "
        f"noise {accepted.noise!r} or stronger, trust {accepted.trust!r}"
    )
    seeded = "Seeded noise can be taken off by the server: to try things out only."
    return noted("accepts", text, seeded if accepted.noise == "fast" else "")


def _run(settings: NodeSettings, config: RunConfig) -> Check:
    try:
        refuse_outside(conditions_of(config), settings.accepted)
    except FedpcsError as error:
        return Check("run", "wrong", f"{config.name}: {error}", "This client would refuse it.")
    return Check("run", "fine", f"{config.name}: within what this client accepts")
