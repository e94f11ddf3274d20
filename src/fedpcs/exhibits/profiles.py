"""How large an exhibit is made: `quick`, for two cores, or `paper`, with the paper's sizes."""

from typing import Literal

Profile = Literal["quick", "paper"]
