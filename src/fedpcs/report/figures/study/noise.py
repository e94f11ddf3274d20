"""How much of an update is noise.

Noise is independent of what a client has to say, so squared norms add up on average: update² = signal² + noise².
"""

from matplotlib.figure import Figure

from fedpcs.report.figures.lines import config_of, rounds_figure
from fedpcs.report.page import NothingToDraw
from fedpcs.studies.results import Group
from fedpcs.trial.records import RoundRecord

TOPIC, ORDER = "Noise in updates", 61


def draw(group: Group) -> Figure:
    """Draw the norm of noise as a share of that of an update."""
    if not config_of(group).privacy.is_private:
        raise NothingToDraw("Without privacy (mode none) updates have no noise.")
    note = "Medians of the clients heard. At 100 % an update shows noise alone; averaging many still helps."
    return rounds_figure(group, share, TOPIC, "noise ÷ update", note=note, from_zero=True, is_share=True)


def share(line: RoundRecord) -> float:
    """Return noise ÷ update of a round, 0 where nothing was sent."""
    sent = line.update_norm.median
    return line.noise_norm.median / sent if sent > 0.0 else 0.0
