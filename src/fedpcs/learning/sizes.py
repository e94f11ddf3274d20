"""How many records a client is believed to have, where the server has its word alone.

Sizes decide what an update weighs, how many steps a client may have taken and how little noise it may have added.
Nobody can check them, so they are capped: at 100 times the median of all clients', unless somebody knows better.
"""

from __future__ import annotations

from collections.abc import Sequence

# No client holds more; mode `paper` makes no noise for more.
MOST_SAMPLES = 10**12
_MOST_MEDIANS = 100


def size_cap(sizes: Sequence[int], configured: int | None = None) -> int:
    """Return the most records a client is believed to have.

    Args:
        sizes: What clients say, whole numbers of at least 1.
        configured: What whoever runs the federation says; None: 100 times the median.

    Example:
        >>> size_cap([600, 500, 2_000_000_000]), size_cap([600, 2_000_000_000]), size_cap([1, 1, 70], 50)
        (60000, 60000, 50)
    """
    if configured is not None:
        return configured
    # The lower median: of two clients one must not set the measure for the other.
    return _MOST_MEDIANS * sorted(sizes)[(len(sizes) - 1) // 2]
