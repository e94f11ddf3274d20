"""Let tests import the scripts of docs/fidelity, so that what the document shows is what is tested."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "fidelity"))
