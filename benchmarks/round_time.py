"""Seconds per round of federated averaging: our engine against hand-written PyTorch, Flower and pfl.

The work, the same for all: 60,000 images of 28×28 dealt to 100 clients, the two-convolution CNN of 1,663,370
parameters, batches of 32, rate 0.1, one local epoch, 20 clients a round, averaged by their sizes. Two cores: two
processes with one thread each. Data, cohorts, the order of images and the peers' initial weights come from one seed, so
all train alike; only rounding differs, enough to move the accuracy by a point or two.

Against: `peer_tuned_loop.py`, as fast as we could write the loop by hand, and the same with `--plain`, as one writes
it first; `peer_flower.py` and `peer_pfl.py`, each in an environment of its own (their first lines say how to make it),
with the training code of the plain loop.

Fairness: every engine is its own process, one at a time, taking turns (A B C A B C …) because machines drift; ratios
are formed within a turn and their median is shown. A round is everything between the server having the old model and
having the new one. Start-up is apart. Idle clients return the model untouched: what is left is the fixed cost of a
round. Measure with nothing else running. Accuracy on 2,000 held-out images shows that all of them train.

The first half of this file is the work itself, which the peers import; it needs only NumPy.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from timing import table

FloatArray: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int64]

NUM_CLIENTS = 100
IMAGES_PER_CLIENT = 600
COHORT_SIZE = 20
BATCH_SIZE = 32
LEARNING_RATE = 0.1
NUM_CLASSES = 10
NUM_TEST_IMAGES = 2_000
SEED = 20_240_501
CONTRAST = 0.2  # of the synthetic classes over unit noise: learnt within a few rounds, not within one


class Data(NamedTuple):
    """Images as (n, 1, 28, 28) with mean 0 and deviation 1 over the training set, labels as (n,)."""

    images: FloatArray
    labels: IntArray
    test_images: FloatArray
    test_labels: IntArray

    def of_client(self, client: int, round_index: int) -> tuple[FloatArray, IntArray]:
        """Return a client's images and labels in the order it takes them this round."""
        generator = np.random.default_rng((SEED, 2, round_index, client))
        rows = client * IMAGES_PER_CLIENT + generator.permutation(IMAGES_PER_CLIENT)
        return self.images[rows], self.labels[rows]


@dataclass(frozen=True)
class Report:
    """What a peer prints: start-up is until the first round may begin, accuracy is after the last one."""

    peer: str
    version: str
    seconds_per_round: list[float]
    startup_seconds: float
    accuracy: float | None

    def show(self) -> None:
        """Print it as the one line the driver reads."""
        print(json.dumps(asdict(self)), flush=True)


@functools.cache
def load(source: str) -> Data:
    """Return the data: `synthetic`, or a file with x_train, y_train, x_test and y_test, as MNIST's `mnist.npz`."""
    if source == "synthetic":
        found = _synthetic()
    else:
        with np.load(source) as arrays:
            found = tuple(arrays[name] for name in ("x_train", "y_train", "x_test", "y_test"))
    count = NUM_CLIENTS * IMAGES_PER_CLIENT
    images, test_images = found[0][:count].astype(np.float32), found[2][:NUM_TEST_IMAGES].astype(np.float32)
    if images.shape != (count, 28, 28) or test_images.shape != (NUM_TEST_IMAGES, 28, 28):
        raise ValueError(
            f"{source} must hold {count:,} training and {NUM_TEST_IMAGES:,} test images of 28×28, "
            f"got {found[0].shape} and {found[2].shape}."
        )
    mean, deviation = images.mean(dtype=np.float64), images.std(dtype=np.float64)
    for part in (images, test_images):
        part -= np.float32(mean)
        part /= np.float32(deviation)
    labels, test_labels = (found[i].astype(np.int64) for i in (1, 3))
    return Data(images[:, None], labels[:count], test_images[:, None], test_labels[:NUM_TEST_IMAGES])


def _synthetic() -> tuple[NDArray[np.generic], ...]:
    """Return coarse random patterns, one a class, each image's moved by up to two pixels and drowned in noise."""
    generator = np.random.default_rng((SEED, 0))
    patterns = np.kron(generator.standard_normal((NUM_CLASSES, 7, 7)), np.ones((1, 4, 4)))
    moves = [(down, right) for down in range(-2, 3) for right in range(-2, 3)]
    moved = CONTRAST * np.stack([np.roll(patterns, move, axis=(1, 2)) for move in moves]).astype(np.float32)

    def draw(count: int) -> tuple[FloatArray, IntArray]:
        labels = generator.integers(NUM_CLASSES, size=count)
        images = generator.standard_normal((count, 28, 28), dtype=np.float32)
        images += moved[generator.integers(len(moves), size=count), labels]
        return images, labels

    return *draw(NUM_CLIENTS * IMAGES_PER_CLIENT), *draw(NUM_TEST_IMAGES)


def cohort(round_index: int) -> list[int]:
    """Return the clients of a round."""
    generator = np.random.default_rng((SEED, 1, round_index))
    return [int(client) for client in generator.choice(NUM_CLIENTS, COHORT_SIZE, replace=False)]


def peer_parser(description: str | None) -> argparse.ArgumentParser:
    """Return the arguments that every peer takes."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", default="synthetic", help="`synthetic`, or an .npz file laid out as mnist.npz")
    parser.add_argument("--idle", action="store_true", help="clients return at once: the fixed cost of a round")
    return parser


class Engine(NamedTuple):
    """One row of the table: the interpreter, and the script with its own arguments."""

    name: str
    python: str
    script: tuple[str, ...]


def run(engine: Engine, arguments: Sequence[str]) -> Report:
    """Run an engine in a process of its own and return what it printed."""
    script = Path(__file__).with_name(engine.script[0])
    command = [engine.python, str(script), *engine.script[1:], *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in finished.stdout.splitlines() if line.startswith("{")]
    if finished.returncode or len(lines) != 1:
        raise SystemExit(f"{engine.name} failed ({finished.returncode}):\n{finished.stderr[-3000:]}")
    return Report(**json.loads(lines[0]))


def engines(options: argparse.Namespace) -> list[Engine]:
    """Return what can be measured here, the tuned loop first; what is missing is named on stderr."""
    wanted = [
        Engine("tuned loop", sys.executable, ("peer_tuned_loop.py",)),
        Engine("plain loop", sys.executable, ("peer_tuned_loop.py", "--plain")),
        Engine("fedpcs, workers", sys.executable, ("ours_round.py", "--engine", "workers")),
        Engine("Flower, Ray", options.flower_python, ("peer_flower.py",)),
        Engine("pfl", options.pfl_python, ("peer_pfl.py",)),
    ]
    found = []
    for engine in wanted:
        if not engine.python:
            print(f"{engine.name}: skipped, no interpreter given", file=sys.stderr)
        elif not Path(__file__).with_name(engine.script[0]).exists():
            print(f"{engine.name}: skipped, {engine.script[0]} is missing", file=sys.stderr)
        else:
            found.append(engine)
    return found


def row(name: str, turns: list[Report], baseline: list[Report], idle: list[Report]) -> list[str]:
    """Return an engine's row; `baseline` holds the tuned loop's reports of the same turns."""
    seconds = [value for turn in turns for value in turn.seconds_per_round]
    ratios = [
        statistics.median(turn.seconds_per_round) / statistics.median(base.seconds_per_round)
        for turn, base in zip(turns, baseline, strict=True)
    ]
    fixed = statistics.median(value for turn in idle for value in turn.seconds_per_round)
    accuracy = turns[-1].accuracy
    return [
        f"{name} ({turns[-1].version})",
        f"{statistics.median(seconds):.2f}",
        f"{min(seconds):.2f}–{max(seconds):.2f}",
        f"{statistics.median(ratios):.2f}",
        f"{min(ratios):.2f}–{max(ratios):.2f}",
        f"{fixed:.3f}",
        f"{statistics.median(turn.startup_seconds for turn in turns):.1f}",
        "–" if accuracy is None else f"{100 * accuracy:.1f} %",
    ]


def main() -> None:
    parser = peer_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="turns; each engine runs once a turn")
    parser.add_argument("--flower-python", metavar="PATH", help="interpreter that has flwr[simulation] and torch")
    parser.add_argument("--pfl-python", metavar="PATH", help="interpreter that has pfl[pytorch]")
    options = parser.parse_args()
    shared = ["--rounds", str(options.rounds), "--data", options.data]
    measured = engines(options)
    turns: dict[str, list[Report]] = {engine.name: [] for engine in measured}
    idle: dict[str, list[Report]] = {engine.name: [] for engine in measured}
    for turn in range(options.repeats):
        for engine in measured:
            if not options.idle:
                turns[engine.name].append(run(engine, shared))
            idle[engine.name].append(run(engine, [*shared, "--idle"]))
            print(f"turn {turn + 1} of {options.repeats}: {engine.name} done", file=sys.stderr, flush=True)
    shown = idle if options.idle else turns
    first = shown[measured[0].name]
    header = ["engine", "s per round", "min–max", "÷ tuned loop", "min–max", "idle s", "start-up s", "accuracy"]
    rows = [row(engine.name, shown[engine.name], first, idle[engine.name]) for engine in measured]
    print(table(f"Seconds per round, turns: {options.repeats}, rounds a turn: {options.rounds}", header, rows))


if __name__ == "__main__":
    main()
