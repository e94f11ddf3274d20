"""How long one draw takes with a million clients, and how time and memory grow with their number.

Shows, for every design and every sampler at its default settings: one draw of K = 1,000 clients with inclusion
probabilities and weights, from N = 10,000, 100,000 and 1,000,000; the largest memory of a process that does nothing
else; and the exponent of time against N.

Against: NumPy's `Generator.choice(N, K, replace=False, p=…)` in the same process, which draws successively and returns
clients alone: no inclusion probabilities, so nothing to weigh the updates by. Ours does more, so a ratio above one is
the price of knowing them.

Fairness: both sides are timed in the same process, one thread each, as medians of as many repeats. Inputs are made
beforehand. Samplers with a memory draw from the one they start with. Checking the inputs is on our clock.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from timing import median_seconds, peak_gib, table

from fedpcs.sampling import DESIGNS, SAMPLERS, Sampler, View, draw, make_sampler, make_view, weigh

SIZES = (10_000, 100_000, 1_000_000)
COHORT_SIZE = 1_000
TARGET_SECONDS, TARGET_MIB = 1.0, 500.0
NUM_CLASSES = 10
WAYS = (*(f"fedpcs, {design}" for design in DESIGNS), *(name for name in SAMPLERS if name != "fedpcs"))


@dataclass(frozen=True)
class Measured:
    """One way of drawing from N clients.

    Attributes:
        seconds: One draw with its inclusion probabilities and weights.
        peer_seconds: One draw by NumPy's `choice`.
        peak_mib: Largest resident memory of the process, inputs and libraries and all.
        inputs_mib: The same before the first draw.
    """

    seconds: float
    peer_seconds: float
    peak_mib: float
    inputs_mib: float


def sampler_of(way: str) -> Sampler:
    """Return the sampler a row of the table is about."""
    name, _, design = way.partition(", ")
    return make_sampler(name, design=design) if design else make_sampler(name)


def view_for(sampler: Sampler, num_clients: int) -> View:
    """Return a view with what the sampler reads and nothing else, so that memory is its own."""
    rng = np.random.default_rng(0)
    fields: dict[str, Any] = {name: rng.uniform(0.01, 12.0, num_clients) for name in sampler.reads}
    if "label_counts" in fields:
        fields["label_counts"] = rng.integers(1, 50, (num_clients, NUM_CLASSES))
    sizes = rng.integers(50, 500, num_clients)
    return make_view(min(COHORT_SIZE, num_clients // 2), sizes, **fields)


def measure_here(way: str, num_clients: int, repeats: int) -> Measured:
    """Measure one way of drawing in this process."""
    sampler = sampler_of(way)
    view = view_for(sampler, num_clients)
    rng = np.random.default_rng(1)
    inputs = peak_gib()

    def one_draw() -> None:
        weigh("own", draw(sampler, view, rng), view)

    seconds = median_seconds(one_draw, repeats)
    peak = peak_gib()
    probability = view.data_weight
    peer = median_seconds(lambda: rng.choice(num_clients, view.cohort_size, replace=False, p=probability), repeats)
    return Measured(seconds, peer, 1024.0 * peak, 1024.0 * inputs)


def measure_apart(way: str, num_clients: int, repeats: int) -> Measured:
    """Measure one way of drawing in a process of its own."""
    command = [sys.executable, __file__, "--measure", way, str(num_clients), str(repeats)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Measured(**json.loads(done.stdout))


def row(way: str, sizes: Sequence[int], repeats: int) -> list[str]:
    """Return a row: milliseconds for each N, the ratio to NumPy and the memory at the last, and the growth."""
    found = [measure_apart(way, size, repeats) for size in sizes]
    last = found[-1]
    growth = np.log(last.seconds / found[-2].seconds) / np.log(sizes[-1] / sizes[-2])
    return [
        way,
        *(f"{1e3 * item.seconds:.1f}" for item in found),
        f"{last.seconds / last.peer_seconds:.1f}",
        f"{last.seconds / TARGET_SECONDS:.2f}",
        f"{last.peak_mib:.0f} ({last.peak_mib - last.inputs_mib:.0f})",
        f"{growth:.2f}",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--measure", nargs=3, metavar=("WAY", "N", "REPEATS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        way, num_clients, repeats = arguments.measure
        print(json.dumps(asdict(measure_here(way, int(num_clients), int(repeats)))))
        return
    header = [
        "one draw of 1,000, ms",
        *(f"N = {size:,}" for size in SIZES),
        "÷ NumPy choice",
        "÷ target 1 s",
        "MiB of 500 (by drawing)",
        "N^",
    ]
    print(table("Draws", header, [row(way, SIZES, arguments.repeats) for way in WAYS]))


if __name__ == "__main__":
    main()
