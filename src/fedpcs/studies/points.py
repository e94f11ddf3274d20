"""What some figures are drawn from: points of a trade-off, and intervals."""

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


@dataclass(frozen=True)
class Bar:
    """A mean and its confidence interval.

    Attributes:
        label: What it is the mean of.
        mean: The mean.
        low: The interval's lower end; NaN where there is no interval.
        high: The interval's upper end; NaN where there is no interval.
    """

    label: str
    mean: float
    low: float
    high: float
