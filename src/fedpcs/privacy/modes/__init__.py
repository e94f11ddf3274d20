"""Privacy modes by name. A new one is one object in one file and one entry here, or a call of `register`.

Example:
    >>> from fedpcs.privacy.modes import MODES
    >>> [(mode.name, mode.clips.value) for mode in MODES.values() if mode.level is not None]
    [('paper', 'the update'), ('client', 'the update'), ('record', "every record's gradient")]
"""

from __future__ import annotations

from fedpcs import _validate
from fedpcs.errors import InvalidInput
from fedpcs.privacy.events import Level
from fedpcs.privacy.modes.client import CLIENT
from fedpcs.privacy.modes.mode import Canary, Clips, PrivacyMode
from fedpcs.privacy.modes.no_privacy import NO_PRIVACY
from fedpcs.privacy.modes.paper import PAPER
from fedpcs.privacy.modes.record import RECORD

__all__ = ["MODES", "RECORD", "Clips", "PrivacyMode", "audit_named", "level_named", "mode_named", "register"]

MODES: dict[str, PrivacyMode] = {mode.name: mode for mode in (NO_PRIVACY, PAPER, CLIENT, RECORD)}


def register(mode: PrivacyMode) -> None:
    """Make a mode known to configurations, clients, ledgers, pages and audits.

    Raises:
        InvalidInput: Another mode has its name.
    """
    if MODES.setdefault(mode.name, mode) is not mode:
        raise InvalidInput(f"privacy mode {mode.name!r} is there already. Give the new one a name of its own.")


def mode_named(name: str) -> PrivacyMode:
    """Return the mode of this name.

    Raises:
        InvalidInput: There is none.
    """
    return MODES[_validate.choice("mode", name, tuple(MODES))]


def level_named(name: str) -> Level | None:
    """Return the level of this name that some mode claims; None if none does."""
    levels = (mode.level for mode in MODES.values() if mode.level is not None)
    return next((level for level in levels if level.name == name), None)


def audit_named(name: str) -> tuple[PrivacyMode, Canary]:
    """Return the mode and the canary of an audit: every mode has one or several.

    Raises:
        InvalidInput: There is none of this name.
    """
    audits = {canary.name: (mode, canary) for mode in MODES.values() for canary in mode.canaries}
    return audits[_validate.choice("mode", name, audits)]
