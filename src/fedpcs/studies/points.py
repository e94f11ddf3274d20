"""What the figures of a sweep are drawn from: curves, points of a trade-off, and intervals."""

from __future__ import annotations

from dataclasses import dataclass

from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput


@dataclass(frozen=True)
class Curve:
    """A quantity over rounds, over seeds.

    Attributes:
        label: Whose it is: a sampler's name, or whatever the sweep varies.
        rounds: (points,) rounds that were evaluated, rising.
        mean: (points,) over seeds; NaN where a round was not evaluated.
        std: (points,) standard deviation over seeds; NaN or 0 where there is none.
    """

    label: str
    rounds: FloatArray
    mean: FloatArray
    std: FloatArray

    def __post_init__(self) -> None:
        shapes = {self.rounds.shape, self.mean.shape, self.std.shape}
        if len(shapes) != 1 or self.rounds.ndim != 1:
            raise InvalidInput(
                f"curve {self.label!r} needs a mean and a std for each of its rounds, got shapes "
                f"{self.rounds.shape}, {self.mean.shape} and {self.std.shape}. Give three arrays of one length."
            )


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
