"""What each client spent, from the least to the most: read from the trials' ledgers."""

import numpy as np
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.errors import CorruptFile, FedpcsError
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.conversion import Method, to_epsilon
from fedpcs.privacy.ledger import PrivacyLedger
from fedpcs.report.figures.lines import Line, config_of, lines_figure, styles_of
from fedpcs.report.page import NothingToDraw
from fedpcs.studies.results import Group, Series, TrialData
from fedpcs.trial.rounds.results import known_client

TOPIC, ORDER = "Privacy spent by each client", 35
_WIDE_RANGE = 10.0  # of samplers' greatest ε, beyond which the lesser would lie on the axis


def draw(group: Group) -> Figure:
    """Draw ε of each sampler's clients, all seeds together, from the one that spent least to the most."""
    spent, unread = {}, {}
    for series in group.series:
        try:
            if series.done:
                spent[series.sampler] = np.sort(np.concatenate([epsilon_of(one) for one in series.done]))
        except FedpcsError as error:
            unread[series.sampler] = _without_folders(str(error), series)
    greatest = [float(values[-1]) for values in spent.values()]
    if not spent or max(greatest) == 0.0:
        reason = "; ".join(f"{name}: {error}" for name, error in unread.items())
        raise NothingToDraw(reason or "No client has spent anything in a trial that is done.")
    delta = _format.amount(float(config_of(group).privacy.delta))
    note = "Finished trials of all seeds together. Clients never drawn spent nothing."
    note += "".join(f" Not drawn, as a ledger cannot be read: {name}: {error}" for name, error in unread.items())
    is_log = max(greatest) > _WIDE_RANGE * min(greatest) > 0.0
    floor = min(float(values[values > 0.0].min()) for values in spent.values()) if is_log else None
    return lines_figure(
        TOPIC,
        {name: _line(values, is_log) for name, values in spent.items()},
        f"ε of a client at δ = {delta}{', log scale' if is_log else ''}",
        note=note,
        xlabel="clients in %, from the least spent to the most",
        styles=styles_of(group),
        from_zero=True,
        log_floor=floor,
    )


def _line(values: FloatArray, is_log: bool) -> Line:
    places = 100.0 * np.arange(1, values.size + 1) / values.size
    return Line(places, np.where(values > 0.0, values, np.nan) if is_log else values)


def _without_folders(text: str, series: Series) -> str:
    """Return a message with the trial it is of: a page says nothing of where its study lies."""
    for one in series.trials:
        text = text.replace(f"{one.folder}", one.folder.name)
    return text


def epsilon_of(one: TrialData) -> FloatArray:
    """Return (clients,) what each client of a finished trial spent, by its ledger; zero for those never drawn.

    Raises:
        CorruptFile: The ledger cannot be read, or does not agree with the result.
    """
    config, path = one.cell.config, one.ledger
    epsilon = np.zeros(config.data.num_clients)
    if not config.privacy.is_private:
        return epsilon
    if not path.is_file() or path.stat().st_size == 0:  # opened, it would become a new ledger
        raise CorruptFile(f"{path}: is not there, or empty.")
    law: Method = "tight" if config.privacy.noise == "exact" else "exact"
    with PrivacyLedger.open(path) as ledger:
        # Under the name of the study that ran it: another that shares the trial may be called otherwise.
        name = one.manifest.config["name"]
        totals = ledger.totals(f"{name}/{one.cell.sampler}/{one.cell.seed}", 0, config.rounds)
    cost = {nanos: to_epsilon(Rho(nanos), float(config.privacy.delta), law) for nanos in set(totals.values())}
    for client, nanos in totals.items():
        epsilon[known_client(client, epsilon.size, path)] = cost[nanos]
    if len(totals) != (known := one.outcome.spent.num_clients):
        raise CorruptFile(f"{path}: {len(totals)} clients spent something by it, {known} by the trial's result.")
    return epsilon
