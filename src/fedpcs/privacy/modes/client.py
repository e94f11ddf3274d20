"""Mode `client`: all a client holds is protected but the number of its records. Sensitivity 2W."""

from __future__ import annotations

from fedpcs.privacy.events import CLIENT_LEVEL
from fedpcs.privacy.modes.mode import Canary, Neighbours
from fedpcs.privacy.modes.update_mode import UpdateMode

CLIENT = UpdateMode(
    "client",
    CLIENT_LEVEL,
    "The mechanism protects each client: its releases look alike for any two data sets of the same size that it could "
    "hold. The number of its records is public.",
    (Canary("client", Neighbours.OPPOSITE_UPDATES),),
)
