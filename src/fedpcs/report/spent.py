"""What each client of a sweep spent: read from the cells' ledgers, drawn from the least to the most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MultipleLocator

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.errors import CorruptFile, FedpcsError
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.conversion import Method, to_epsilon
from fedpcs.privacy.ledger import PrivacyLedger
from fedpcs.report import style
from fedpcs.report.labels import PointLabel, label_line_ends
from fedpcs.report.page import Drawing
from fedpcs.report.palette import pens
from fedpcs.report.svg import NothingToDraw
from fedpcs.studies.cell_store import Done
from fedpcs.studies.groups import Group
from fedpcs.trial.round_log import known_client

_MOST_STEPS = 400
_WIDE_RANGE = 10.0  # of samplers' greatest ε, beyond which the lesser would lie on the axis


@dataclass(frozen=True)
class SpentByClient:
    """What clients spent.

    Attributes:
        epsilon: (clients,) of each cell by its key, zero for those never drawn.
        unreadable: Why the ledgers of other cells that spent something could not be read, by key.
    """

    epsilon: Mapping[str, FloatArray]
    unreadable: Mapping[str, str]


def spent_by_client(done: Sequence[Done]) -> SpentByClient:
    """Read what each client of each cell spent from the cell's ledger."""
    found, unreadable = {}, {}
    for one in done:
        if one.cell.config.privacy.is_private:
            try:
                found[one.cell.key] = _spent(one.ledger, one)
            except FedpcsError as error:
                unreadable[one.cell.key] = str(error)
    return SpentByClient(found, unreadable)


def _spent(path: Path, one: Done) -> FloatArray:
    if not path.is_file() or path.stat().st_size == 0:  # opened, it would become a new ledger
        raise CorruptFile(f"{path}: is not there, or empty.")
    config = one.cell.config
    law: Method = "tight" if config.privacy.noise == "exact" else "exact"
    with PrivacyLedger.open(path) as ledger:
        # Under the name of the sweep that ran it: another that shares the cell may be called otherwise.
        name = one.manifest.config["name"]
        totals = ledger.totals(f"{name}/{one.cell.sampler}/{one.cell.seed}", 0, config.rounds)
    epsilon = np.zeros(config.data.num_clients)
    for client, nanos in totals.items():
        epsilon[known_client(client, epsilon.size, path)] = to_epsilon(Rho(nanos), float(config.privacy.delta), law)
    if len(totals) != (known := one.outcome["spent"]["num_clients"]):
        raise CorruptFile(f"{path}: {len(totals)} clients spent something by it, {known} by the cell's result.")
    return epsilon


def spent_drawing(found: Group, spent: Mapping[str, FloatArray]) -> Drawing:
    """Return the figure of one group: what its clients spent, for every sampler, all seeds together."""
    by_sampler = {
        series.sampler: np.concatenate([spent[one.cell.key] for one in series.done])
        for series in found.series
        if all(one.cell.key in spent for one in series.done)
    }
    place = f" ({found.words})" if found.words else ""
    seeds = sorted({seed for series in found.series for seed in series.seeds})
    delta = _format.amount(float(found.series[0].done[0].outcome["delta"]))
    told = f"{found.words or 'All cells'}; {seed_words(seeds)}{' together' if len(seeds) > 1 else ''}, at δ = {delta}."
    note = f"{told} Clients never drawn spent nothing."
    return Drawing(f"privacy spent by each client{place}", lambda: spent_figure(by_sampler, note))


def spent_figure(spent: Mapping[str, FloatArray], note: str = "") -> Figure:
    """Draw (clients,) ε of each sampler's clients, from the one that spent least to the one that spent most.

    Raises:
        NothingToDraw: Nobody spent anything.
    """
    shown = {name: np.sort(values) for name, values in spent.items() if values.size}
    if not any(values[-1] > 0.0 for values in shown.values()):
        raise NothingToDraw("No client spent anything: there is no ε to draw.")
    figure, (axes,) = style.new_figure(_title(shown), note=note, height_inches=3.9)
    looks, labels = pens(shown), []
    greatest = [float(values[-1]) for values in shown.values()]
    is_log = max(greatest) > _WIDE_RANGE * min(greatest) > 0.0
    for name, values in shown.items():
        pen, kept = looks[name], _kept(values.size)
        share = (np.arange(values.size) + 1.0) / values.size
        drawn = np.where(values > 0.0, values, np.nan) if is_log else values
        axes.plot(share[kept], drawn[kept], color=pen.colour, linestyle=pen.stroke, linewidth=pen.width, label=name)
        labels.append(PointLabel(pen.label, 1.0, float(values[-1]), pen.colour))
    every = np.concatenate(list(shown.values()))
    if is_log:
        low, high = float(every[every > 0.0].min()), float(every.max())
        axes.set_yscale("log")
        axes.set_ylim(low / (high / low) ** 0.05, high * (high / low) ** 0.05)
        style.log_ticks(axes.yaxis, low, high)
    else:
        style.span(axes, every, from_zero=True)
    axes.set_xlim(-0.01, 1.01)
    axes.xaxis.set_major_locator(MultipleLocator(0.25))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100.0 * share:.0f}\N{NO-BREAK SPACE}%"))
    axes.set_xlabel("clients, from the least spent to the most", color=style.INK)
    axes.set_ylabel("ε of a client (log scale)" if is_log else "ε of a client", color=style.INK)
    label_line_ends(axes, labels)
    return figure


def _kept(num_values: int) -> np.ndarray:
    """Return which values are drawn: no more than a screen shows, the first and the last among them."""
    return np.unique(np.linspace(0, num_values - 1, min(num_values, _MOST_STEPS)).round().astype(int))


def _title(shown: Mapping[str, FloatArray]) -> str:
    """Say what the client that spent most spent, and how many spent nothing under the sampler that comes first."""
    name, values = next(iter(shown.items()))
    greatest = max(float(one[-1]) for one in shown.values())
    idle = float(np.mean(values == 0.0))
    rest = f"{_format.percent(idle)} of {name}'s spend nothing" if idle else f"every client of {name} spends some"
    return f"No client spends more than ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{_format.rounded_up(greatest)}; {rest}"


def seed_words(seeds: Sequence[int]) -> str:
    """Return which seeds, in words; a long row of them by its ends.

    Example:
        >>> seed_words([7]), seed_words([0, 1, 2]), seed_words(range(12))
        ('seed 7', 'seeds 0, 1, 2', 'seeds 0 to 11')
    """
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    is_row = len(seeds) > 6 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    return f"seeds {seeds[0]} to {seeds[-1]}" if is_row else f"seeds {', '.join(map(str, seeds))}"
