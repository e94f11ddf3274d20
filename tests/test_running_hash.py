"""Lines that carry a running hash: what they say is read back, and no bit of them changes unseen."""

import hashlib
import json

import pytest

from fedpcs._chain import START, hash_at_end, sealed_line, unsealed

RECORDS = [{"round": 0, "hash": "mine"}, {"round": 1, "cohort": [3, 4], "loss": None}, {"name": 'a "b" ρ \n'}]


def sealed():
    lines, before = [], START
    for record in RECORDS:
        lines.append(sealed_line(record, before))
        before = hash_at_end(lines[-1])
    return lines


def opened(lines):
    found, before = [], START
    for line in lines:
        record, before = unsealed(line, before)
        found.append(record)
    return found


def test_what_was_sealed_is_read_back():
    assert opened(sealed()) == RECORDS


def test_a_line_is_json_and_its_hash_is_that_of_all_up_to_it():
    before = bytes(32)
    for line in sealed()[1:2]:
        before = hashlib.sha256(before + json.dumps(RECORDS[0]).encode()).digest()
        text = json.dumps(RECORDS[1])
        expected = hashlib.sha256(before + text.encode()).hexdigest()
        assert json.loads(line) == {**RECORDS[1], "hash": expected}
        assert line.count(b"\n") == 1


def test_no_flipped_bit_passes_unnoticed():
    lines = sealed()
    for number, line in enumerate(lines):
        for bit in range(8 * len(line)):
            changed = bytearray(line)
            changed[bit // 8] ^= 1 << bit % 8
            with pytest.raises(ValueError, match="it does not fit its hash"):
                opened([*lines[:number], bytes(changed), *lines[number + 1 :]])


def test_no_line_is_removed_added_or_moved_unnoticed():
    first, second, third = sealed()
    for lines in ([second, third], [first, third], [first, second, second, third], [second, first, third], [b"{}\n"]):
        with pytest.raises(ValueError, match="it does not fit its hash"):
            opened(lines)


def test_what_is_sealed_and_no_object_is_refused():
    body = b"[" * 70
    line = body + b', "hash": "' + hashlib.sha256(START + body + b"}").hexdigest().encode() + b'"}\n'
    with pytest.raises(ValueError, match="Expecting"):
        unsealed(line)


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"{}\n", b'{"round": 0}\n', b"x" * 200, b'"hash": "' + b"x" * 64 + b'"}\n']
)
def test_a_line_without_a_hash_is_refused(line):
    for read in (unsealed, hash_at_end):
        with pytest.raises(ValueError, match="hash"):
            read(line)
