"""Noise for 1.66 million parameters: each source against `torch.randn` of the same size, timed in turn.

`torch.randn` makes float32 from a seeded Mersenne Twister on all its threads; the sources make float64 on one thread,
`secure` and `exact` from a ChaCha stream keyed by the operating system. The last row is that stream alone.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from randomgen import ChaCha
from timing import median_seconds, table

from fedpcs.privacy.noise import ExactNoise, FastNoise, NoiseSource, SecureNoise

NUM_PARAMETERS = 1_663_370


def rows(size: int, repeats: int) -> list[list[str]]:
    sources: list[NoiseSource] = [FastNoise(0), SecureNoise(), ExactNoise()]
    stream = ChaCha(rounds=12)

    def drawer(source: NoiseSource) -> Callable[[], object]:
        return lambda: source.draw(size)

    work: dict[str, Callable[[], object]] = {"torch.randn": lambda: torch.randn(size)}
    work |= {source.name: drawer(source) for source in sources}
    work["raw ChaCha12 words"] = lambda: stream.random_raw(size)
    for call in work.values():
        call()
    seconds = {label: median_seconds(call, repeats) for label, call in work.items()}
    return [
        [label, f"{1e3 * taken:.1f}", f"{1e9 * taken / size:.1f}", f"{taken / seconds['torch.randn']:.2g}"]
        for label, taken in seconds.items()
    ]


if __name__ == "__main__":
    header = [f"{NUM_PARAMETERS:,} draws", "ms", "ns a draw", "÷ torch.randn"]
    for num_threads in (torch.get_num_threads(), 1):
        torch.set_num_threads(num_threads)
        print(table(f"Noise, torch on {num_threads} thread(s)", header, rows(NUM_PARAMETERS, repeats=15)))
