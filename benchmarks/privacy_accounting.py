"""A thousand mixed charges and their ε: fedpcs against dp-accounting.

Both sides get the same thousand budgets, different from one another, and are asked for ε at δ = 1e-5. dp-accounting
composes zCDP events in its RDP accountant with its default orders; fedpcs adds whole numbers and minimises once. The
last rows are what dp-accounting does not do: the same charges on disk, in one transaction and in a thousand.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from timing import median_seconds, table

from fedpcs.privacy import Event, PrivacyLedger, ReleaseKey, Rho, compose, to_epsilon
from fedpcs.privacy.events import CLIENT_LEVEL, Family

DELTA = 1e-5


def budgets(count: int) -> list[float]:
    """Return budgets from 1e-4 to 1e-2, all different."""
    return [float(value) for value in np.geomspace(1e-4, 1e-2, count)]


def ours(values: list[float]) -> float:
    return account([Event(Rho.of(value), CLIENT_LEVEL, "secure", Family.GAUSSIAN) for value in values])


def account(events: list[Event]) -> float:
    return to_epsilon(compose(events), DELTA, "tight")


def theirs(values: list[float]) -> float:
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant()
    for value in values:
        accountant.compose(dp_accounting.ZCDpEvent(value))
    return float(accountant.get_epsilon(DELTA))


def on_disk(values: list[float], folder: Path, *, is_together: bool) -> None:
    """Charge every budget to a client of its own cohort, durably."""
    pairs = [
        (ReleaseKey("run", index, str(index % 100)), Event(Rho.of(value), CLIENT_LEVEL, "secure", Family.GAUSSIAN))
        for index, value in enumerate(values)
    ]
    path = folder / "ledger.sqlite"
    for old in folder.iterdir():
        old.unlink()
    with PrivacyLedger.open(path) as ledger:
        if is_together:
            ledger.charge_many(pairs)
        else:
            for key, event in pairs:
                ledger.charge(key, event)


def rows(count: int, repeats: int) -> list[list[str]]:
    values = budgets(count)
    events = [Event(Rho.of(value), CLIENT_LEVEL, "secure", Family.GAUSSIAN) for value in values]
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as name:
        warnings.simplefilter("ignore")
        folder = Path(name)
        work: dict[str, Callable[[], object]] = {
            "dp-accounting, RDP accountant": lambda: theirs(values),
            "fedpcs, in memory": lambda: ours(values),
            "fedpcs, events at hand": lambda: account(events),
            "fedpcs, ledger on disk, one transaction": lambda: on_disk(values, folder, is_together=True),
            "fedpcs, ledger on disk, a transaction each": lambda: on_disk(values, folder, is_together=False),
        }
        seconds = {label: median_seconds(call, repeats) for label, call in work.items()}
        peer = seconds["dp-accounting, RDP accountant"]
        epsilon = {"dp-accounting, RDP accountant": theirs(values), "fedpcs, in memory": ours(values)}
    return [
        [label, f"{1e3 * taken:.3g}", f"{peer / taken:.3g}", f"{epsilon[label]:.5f}" if label in epsilon else "–"]
        for label, taken in seconds.items()
    ]


if __name__ == "__main__":
    header = ["1,000 charges and ε", "ms", "times as fast as dp-accounting", "ε"]
    print(table("Accounting", header, rows(1_000, repeats=9)))
