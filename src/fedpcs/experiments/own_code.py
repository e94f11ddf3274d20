"""A user's own model, data or sampler, named as package.module:name, is also looked for where the command is run."""

from __future__ import annotations

import os
import sys


def look_here(*names: str) -> None:
    """Let Python import from the working folder, as `python -m` does, if a name is one of the user's own."""
    if any(":" in name for name in names) and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
