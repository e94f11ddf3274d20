"""What the figures of a trade-off are drawn from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TradeOff:
    """What one sampler reached under one aggregation rule, and what it cost.

    Attributes:
        label: The sampler's name.
        rule: The aggregation rule's name.
        epsilon_median: What the median client spent; infinite where nothing was promised.
        paid: Rewards, all clients and rounds.
        accuracy_mean: Over seeds, in [0, 1].
        accuracy_std: Over seeds; NaN where there is none.
        way: A line to be drawn with it: (ε of the median client, rewards paid, accuracy), means over seeds, after each
            evaluated round of its training, or of other runs of its kind.
    """

    label: str
    rule: str
    epsilon_median: float
    paid: float
    accuracy_mean: float
    accuracy_std: float
    way: tuple[tuple[float, float, float], ...] = ()
