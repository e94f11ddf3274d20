"""How many cases a property is tried on: all that it should hold in, or, in the quick tests, a fifth of them."""

import os

from hypothesis import settings

_IS_WHOLE = os.environ.get("FEDPCS_ALL_CASES", "") == "1"


def cases(number: int) -> settings:
    """Return settings for so many cases; for a fifth of them unless FEDPCS_ALL_CASES is 1, as in `make check-all`."""
    return settings(max_examples=number if _IS_WHOLE else number // 5, deadline=None)
