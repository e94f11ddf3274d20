"""What accuracies cost: privacy spent, rewards owed, noise beside the updates it hides, sampler by sampler."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from fedpcs import _format
from fedpcs.report.page import Table
from fedpcs.studies.groups import Group, Series
from fedpcs.studies.paired import SPENT_MEANING, spent_over_seeds

MEANINGS = {
    "ε": f"spent: {SPENT_MEANING}",
    "rewards": "owed to clients in all, mean ± standard deviation over seeds",
    "exploitability": "mean gain of a client that alone leaves the equilibrium, over mean utility; the largest game",
}
_OF_NOISE = {
    "W": "clipping bound",
    "sent": "norm of what the median drawn client sent, update and noise, last round, mean over seeds",
    "noise": "norm of that client's noise, likewise",
    "noise ÷ signal": "noise over the clipped update, whose square is that of what was sent less that of the noise; "
    "a lower bound where the noise's own chance hides it",
}
# So many standard deviations of the noise's squared norm must an update's square stand out by, to be seen at all.
_SEEN = 4.0


def spending_table(groups: Sequence[Group]) -> Table:
    """Return one table for all settings of a page: a row for each sampler in each."""
    headings = ("setting", "sampler", *MEANINGS, *_OF_NOISE)
    rows = tuple(
        (found.words, series.sampler, epsilon(series), rewards(series), exploitability(series), *_noise(series))
        for found in groups
        for series in found.series
    )
    return Table("Privacy spent, rewards, certificate and noise", headings, rows, {**MEANINGS, **_OF_NOISE})


def epsilon(series: Series) -> str:
    """Return the least, the median and the greatest client's ε."""
    if not series.done[0].cell.config.privacy.is_private:
        return "no noise"
    return _format.least_middle_greatest(spent_over_seeds([one.outcome["spent"]["epsilon"] for one in series.done]))


def rewards(series: Series) -> str:
    """Return what is owed to clients."""
    return _format.amount_and_spread([one.outcome["paid"] for one in series.done])


def exploitability(series: Series) -> str:
    """Return what deviating gains in per cent; what rounding alone explains is nothing."""
    rational = [one for one in series.done if one.cell.config.game.behaviour == "rational"]
    played = [gain for one in rational if (gain := one.outcome["game"]["exploitability"]) is not None]
    if not played:
        return "not played"
    return _format.gain(max(played))


def _noise(series: Series) -> tuple[str, str, str, str]:
    last = [one.rounds[-1] for one in series.done]
    sent, noise = (statistics.fmean(line[name]["median"] for line in last) for name in ("update_norm", "noise_norm"))
    bound = float(series.done[0].cell.config.privacy.clip_norm)
    return f"{bound:g}", f"{sent:.3g}", f"{noise:.3g}", noise_to_signal(sent, noise, _num_parameters(series))


def _num_parameters(series: Series) -> int:
    return int(series.done[0].outcome["num_parameters"])


def noise_to_signal(sent: float, noise: float, num_parameters: int) -> str:
    """Return noise over signal, of the norms of what was sent and of the noise in it.

    The squared norm of d normal variables has a relative standard deviation of √(2/d): a signal below that is not seen.

    Example:
        >>> noise_to_signal(5.0, 4.0, 1_000_000), noise_to_signal(226.13, 226.11, 1_663_370)
        ('1.3', 'above 15')
    """
    if noise == 0.0:
        return "no noise"
    signal, least = sent**2 / noise**2 - 1.0, _SEEN * math.sqrt(2.0 / num_parameters)
    return f"{signal**-0.5:.2g}" if signal > least else f"above {least**-0.5:.2g}"
