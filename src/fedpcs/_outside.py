r"""Text from outside, made fit to print: the one place.

A client's name, a server's reason, a key of a file: whoever wrote it may have put line feeds into it to forge lines of
a log, escape codes to redraw a terminal, or half characters that no terminal can write.
"""

from __future__ import annotations

MOST_SHOWN = 200


def printable(text: object, most: int = MOST_SHOWN) -> str:
    r"""Return text as one line that may be printed: what is no plain character is escaped, what is too long is cut.

    Guarantees:
        At most `most` characters. No line feeds, control or escape codes, marks that turn the direction of writing, or
        halves of characters. Text that has none of them and is short enough comes back as it is.

    Example:
        >>> print(printable("clinic-a\nfedpcs: done \x1b[2J"))
        clinic-a\nfedpcs: done \x1b[2J
        >>> printable("x" * 300, most=5)
        'xxxx…'
    """
    words = str(text)[: most + 1]  # enough to know that it is too long
    escaped = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in words)
    return escaped if len(escaped) <= most else escaped[: most - 1] + "…"
