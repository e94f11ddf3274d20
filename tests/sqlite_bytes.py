"""Which bits of an SQLite file no answer depends on: read from its pages by the format's description alone."""

from __future__ import annotations

import struct

# Of the header: format for writing, counters of changes, schema cookie, file format, cache size, the upper bits of the
# encoding, zeros for later use, the version of SQLite. https://www.sqlite.org/fileformat2.html, "The Database Header".
_HEADER = [*range(18, 20), *range(24, 28), *range(40, 52), *range(56, 60), *range(64, 68), *range(72, 100)]


def idle_bits(content: bytes) -> set[int]:
    """Return the bits of header fields that change nothing, of gaps and free blocks in pages, and of row numbers.

    A table's row is known by a number that stands before it. In the row itself, the column of that number is of type
    NULL, 0, and SQLite never looks whether it is: type 8, one bit away, has no content either.
    """
    size = struct.unpack(">H", content[16:18])[0]
    found = {8 * index + bit for index in _HEADER for bit in range(8)}
    for start in range(0, len(content), size):
        page = content[start : start + size]
        at = 100 if start == 0 else 0
        kind, free, num_cells, first = struct.unpack_from(">BHHH", page, at)
        cells = at + (12 if kind in (2, 5) else 8)
        bytes_idle = set(range(cells + 2 * num_cells, first))
        while free:
            following, length = struct.unpack_from(">HH", page, free)
            bytes_idle |= set(range(free + 4, free + length))
            free = following
        found |= {8 * (start + index) + bit for index in bytes_idle for bit in range(8)}
        if kind == 13:
            for cell in struct.unpack_from(f">{num_cells}H", page, cells):
                found.add(8 * (start + _after_varints(page, cell, 3)) + 3)
    return found


def _after_varints(page: bytes, index: int, count: int) -> int:
    for _ in range(count):
        while page[index] & 0x80:
            index += 1
        index += 1
    return index
