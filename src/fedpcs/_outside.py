r"""Text from outside, made fit to print: the one place.

A client's name, a server's reason, a key of a file: whoever wrote it may have put line feeds into it to forge lines of
a log, escape codes to redraw a terminal, or half characters that no terminal can write.
"""

from __future__ import annotations

import re

MOST_SHOWN = 200
_NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"  # of our own words: 39.4 %
_MOST_OF_MESSAGE = 8_000
_STRING = r"""(?<!\w)('[^']*'|"[^"]*")"""  # as Python writes it; an apostrophe comes after a letter
_LIST = r"(\[[^\[\]]*\])"


def printable(text: object, most: int = MOST_SHOWN) -> str:
    r"""Return text as one line that may be printed: what is no plain character is escaped, what is too long is cut.

    Guarantees:
        At most `most` characters. No line feeds, control or escape codes, marks that turn the direction of writing, or
        halves of characters. Text that has none of them and is short enough comes back as it is.

    Example:
        >>> print(printable("clinic-a\nfedpcs: done \x1b[2J"))
        clinic-a\nfedpcs: done \x1b[2J
    """
    words = str(text)[: most + 1]  # enough to know that it is too long
    escaped = "".join(
        one if one.isprintable() or one == _NO_BREAK_SPACE else one.encode("unicode_escape").decode() for one in words
    )
    return escaped if len(escaped) <= most else escaped[: most - 1] + "…"


def shown(value: object, most: int = MOST_SHOWN) -> str:
    """Return a value as Python writes it, made fit to print."""
    try:
        words = repr(value)
    except (ValueError, RecursionError):  # a whole number of too many digits, or lists nested too deep
        words = f"a {type(value).__name__} too large to show"
    return printable(words, most)


def message(error: object) -> str:
    """Return an error's message as one line that may be printed, with the values in it cut.

    A message of ours may be long for a reason, such as a list of all that differs. A value in it may not: whatever
    stands in quotes or in brackets is cut at 200 characters, wherever the message was made.
    """
    words = printable(error, 10 * _MOST_OF_MESSAGE)
    for quoted in (_STRING, _LIST):
        words = re.sub(quoted, lambda found: printable(found[0]), words)
    return printable(words, _MOST_OF_MESSAGE)
