"""Which bits of an SQLite file no answer depends on: read from its pages by the format's description alone.

https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import struct

# Of the header: format for writing, counters of changes, schema cookie, file format, cache size, the upper bits of the
# encoding, zeros for later use, the version of SQLite.
_HEADER = [*range(18, 20), *range(24, 28), *range(40, 52), *range(56, 60), *range(64, 68), *range(72, 100)]
_TABLE_LEAF, _TABLE_INTERIOR, _INDEX_INTERIOR = 13, 5, 2


def idle_bits(content: bytes) -> set[int]:
    """Return the bits of header fields that change nothing, of bytes in pages that nothing uses, and of row numbers.

    A table's row is known by a number that stands before it. In the row itself, the column of that number is of type
    NULL, 0, and SQLite never looks whether it is: type 8, one bit away, has no content either.
    """
    size = struct.unpack(">H", content[16:18])[0]
    found = {8 * index + bit for index in _HEADER for bit in range(8)}
    for start in range(0, len(content), size):
        used, number_types = _page(content[start : start + size], 100 if start == 0 else 0)
        idle = (start + index for index in range(size) if index not in used)
        found |= {8 * index + bit for index in idle for bit in range(8)}
        found |= {8 * (start + index) + 3 for index in number_types}
    return found


def _page(page: bytes, at: int) -> tuple[set[int], list[int]]:
    """Return the bytes of a page that are used, and those that are the type of a row's number."""
    kind, free, num_cells = struct.unpack_from(">BHH", page, at)
    first_cell = at + (12 if kind in (_INDEX_INTERIOR, _TABLE_INTERIOR) else 8)
    used = {*range(first_cell + 2 * num_cells)}
    number_types = []
    while free:
        used |= {*range(free, free + 4)}
        (free,) = struct.unpack_from(">H", page, free)
    for cell in struct.unpack_from(f">{num_cells}H", page, first_cell):
        payload, end = _varint(page, cell + (4 if kind in (_INDEX_INTERIOR, _TABLE_INTERIOR) else 0))
        if kind == _TABLE_LEAF:
            _, end = _varint(page, end)
            number_types.append(_varint(page, end)[1])
        used |= {*range(cell, end if kind == _TABLE_INTERIOR else end + payload)}
    return used, number_types


def _varint(page: bytes, index: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, and where it ends."""
    number = 0
    while page[index] & 0x80:
        number = number << 7 | page[index] & 0x7F
        index += 1
    return number << 7 | page[index], index + 1
