"""What the operator of a deployment is told: a line for every round and for whatever happens."""

from __future__ import annotations

from collections.abc import Callable

from fedpcs import _format
from fedpcs._outside import printable
from fedpcs.trial.progress import Silent
from fedpcs.trial.records import RoundRecord

_LONGEST_LINE = 600


def one_line(say: Callable[[str], None]) -> Callable[[str], None]:
    """Return `say` for words that clients may have a part in: nothing of theirs makes a line of its own."""
    return lambda words: say(printable(words.replace("\N{NO-BREAK SPACE}", " "), _LONGEST_LINE))


class Operator(Silent):
    """An observer that says what happens, a line at a time.

    Args:
        say: Takes a line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def say(self, words: str) -> None:
        """Pass it on."""
        self._say(words)

    def round_done(self, record: RoundRecord, seconds: float) -> None:
        """Say what became of a round."""
        score = "" if record.accuracy is None else f", accuracy {_format.share(record.accuracy)}"
        heard = f"{len(record.heard)} of {len(record.cohort)} heard"
        drift = record.budget_drift
        strays = "" if drift is None else f", budgets {drift:+.1%} from what was announced"
        self._say(f"round {record.round}: {heard}{score}{strays} ({_format.duration(seconds)})")
