"""What a run may claim: the one place for these sentences, in the terminal, on pages, in `--help`, README and docs.

The mechanism is what is proved: how much noise hides what, in docs/guarantees.md. A run whose noise is seeded computes
what the mechanism would, and whoever has the seed can take the noise away: a simulation. Only a run whose noise nobody
can repeat gives clients the guarantee.
"""

from __future__ import annotations

from typing import Literal

from fedpcs.privacy.events import NOISE_WITH_GUARANTEE
from fedpcs.privacy.modes.mode import PrivacyMode

Standing = Literal["no privacy", "not proven", "simulation", "guarantee"]

RULE = (
    "The mechanism is proved; with noise fast (seeded) a run is a simulation of it; with secure or exact the guarantee "
    "holds."
)
_SENTENCES: dict[Standing, str] = {
    "no privacy": "No privacy: updates leave clients as they are.",
    "not proven": "No guarantee: {caveat}.",
    "simulation": "This run is a simulation: the mechanism is proved, but its noise is seeded (noise = fast); "
    "with noise = secure or exact the guarantee holds.",
    "guarantee": "The guarantee holds: the mechanism is proved, and nobody can repeat its noise (noise = {noise}).",
}
_FOR_UPDATES_ALONE = (
    "The guarantee holds for updates alone: their mechanism is proved, and nobody can repeat its noise "
    "(noise = {noise}). What samplers read of clients besides has no noise."
)


def standing_of(mode: PrivacyMode, noise: str) -> Standing:
    """Return what a run of this privacy mode, with this source of noise, may claim.

    Example:
        >>> from fedpcs.privacy.modes import MODES
        >>> [standing_of(MODES["record"], noise) for noise in ("fast", "secure")], standing_of(MODES["paper"], "secure")
        (['simulation', 'guarantee'], 'not proven')
    """
    if mode.level is None:
        return "no privacy"
    if not mode.level.is_proven:
        return "not proven"
    return "guarantee" if noise in NOISE_WITH_GUARANTEE else "simulation"


def standing_sentence(mode: PrivacyMode, noise: str, *, has_uncharged: bool = False) -> str:
    """Return the same as a sentence.

    Args:
        mode: Of privacy.
        noise: Its source.
        has_uncharged: Whether samplers read private values that no accounted mechanism released.

    Example:
        >>> from fedpcs.privacy.modes import MODES
        >>> standing_sentence(MODES["record"], "exact")
        'The guarantee holds: the mechanism is proved, and nobody can repeat its noise (noise = exact).'
    """
    standing = standing_of(mode, noise)
    chosen = _FOR_UPDATES_ALONE if standing == "guarantee" and has_uncharged else _SENTENCES[standing]
    sentence = chosen.format(noise=noise, caveat="" if mode.level is None else mode.level.caveat)
    if standing == "not proven" and noise not in NOISE_WITH_GUARANTEE:
        sentence += f" Its noise is seeded (noise = {noise}) besides: a simulation."
    return sentence


def noise_standing(noise: str) -> str:
    """Return what a source of noise makes of a run whose mechanism is proved.

    Example:
        >>> noise_standing("fast"), noise_standing("secure")
        ('seeded: a simulation', 'nobody can repeat it: the guarantee holds')
    """
    return "nobody can repeat it: the guarantee holds" if noise in NOISE_WITH_GUARANTEE else "seeded: a simulation"
