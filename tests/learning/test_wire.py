"""Whatever a report holds comes back from its bytes as it was; bytes that are no report are refused in one line."""

import dataclasses
import json
import math
import struct

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from toy_clients import CLASSES, FEATURES, answer, linear, side_of, task

from fedpcs.learning.client import ClientPlan
from fedpcs.learning.client_data import made_data
from fedpcs.learning.layout import Layout
from fedpcs.learning.protocol import MEASURES, ClientReport
from fedpcs.learning.wire import MAGIC, MessageRefused, decode, encode, header_of, parse_header
from fedpcs.privacy.budget import Rho

layouts = st.lists(st.tuples(st.text(max_size=8), st.lists(st.integers(0, 5), max_size=4).map(tuple)), max_size=4).map(
    lambda pairs: Layout(tuple(name for name, _ in pairs), tuple(shape for _, shape in pairs))
)
reports = st.builds(
    ClientReport,
    run=st.text(max_size=12),
    round_index=st.integers(-1, 2**32),
    client=st.integers(-1, 2**40),
    nonce=st.text(max_size=20),
    budget=st.none() | st.integers(0, 2**63 - 1).map(Rho),
    num_samples=st.integers(0, 2**40),
    layout=layouts,
    values=npst.arrays(st.sampled_from([np.float32, np.float64, np.float16, np.int32, np.int64]), st.integers(0, 30)),
    measures=st.dictionaries(st.sampled_from(MEASURES), st.floats(allow_nan=False)),
)


@settings(max_examples=60, deadline=None)
@given(reports)
def test_a_report_comes_back_as_it_was(report):
    found = decode(encode(report))
    assert header_of(found) == header_of(report)
    assert found.layout == report.layout
    assert found.budget == report.budget
    assert found.values.dtype == report.values.dtype
    assert found.values.tobytes() == report.values.tobytes()


def example(**changes):
    told = {
        "run": "run",
        "round_index": 3,
        "client": 5,
        "nonce": "aa",
        "budget": Rho.of(0.5),
        "num_samples": 10,
        "layout": Layout(("weight",), ((3,),)),
        "values": np.array([1.0, -0.0, math.nan], np.float32),
        "measures": {"loss": 0.5},
    }
    return ClientReport(**{**told, **changes})


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_changed_byte_is_noticed(data):
    message = bytearray(encode(example()))
    place = data.draw(st.integers(0, len(message) - 1))
    message[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(MessageRefused):
        decode(bytes(message))


def test_any_length_but_its_own_is_refused():
    message = encode(example())
    for cut in range(len(message)):
        with pytest.raises(MessageRefused):
            decode(message[:cut])
    with pytest.raises(MessageRefused):
        decode(message + b"x")
    with pytest.raises(MessageRefused, match="at most 20"):
        decode(message, most_bytes=20)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_noise_is_no_report(content):
    for message in (content, MAGIC + content):
        with pytest.raises(MessageRefused):
            decode(message)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run", 3),
        ("round_index", 3.0),
        ("client", True),
        ("budget", -1),
        ("budget", 2**63),
        ("num_samples", None),
        ("names", [1]),
        ("shapes", [[-1]]),
        ("shapes", [[True]]),
        ("measures", []),
        ("dtype", 4),
    ],
)
def test_headers_with_a_wrong_field_are_refused(name, value):
    header = {**header_of(example()), name: value}
    with pytest.raises(MessageRefused) as refused:
        parse_header(json.dumps(header).encode())
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"{}", b"\xff", b"[" * 100_000])
def test_headers_that_are_none_are_refused(text):
    with pytest.raises(MessageRefused):
        parse_header(text)


# All that a report holds. A new field must be public, or protected, or asked for by name; then it is listed here.
PUBLIC_BEFOREHAND = {"run", "round_index", "client", "nonce", "budget", "names", "shapes", "dtype"}
OF_THE_RECORDS = {"num_samples"}
IF_ASKED = {"measures"}


def sent(mode, size, seed):
    """The bytes that a client with records of its own sends: their header, and how many bytes there are in all."""
    rng = np.random.default_rng(seed)
    records = torch.from_numpy(rng.normal(size=(size, FEATURES)).astype(np.float32)), torch.arange(size) % CLASSES
    side = side_of(ClientPlan(mode=mode, batch_size=None), data=made_data(lambda _: records, (size,), records, CLASSES))
    message = encode(answer(side, linear(), task(budget=1.0)))
    (length,) = struct.unpack(">I", message[len(MAGIC) : len(MAGIC) + 4])
    return json.loads(message[len(MAGIC) + 4 : len(MAGIC) + 4 + length]), len(message)


@pytest.mark.parametrize("mode", ["paper", "client", "record"])
def test_beside_the_perturbed_update_only_the_number_of_records_speaks_of_them(mode):
    (one, one_length), (other, other_length), (larger, _) = (sent(mode, *kind) for kind in ((9, 1), (9, 2), (12, 1)))
    assert (one, one_length) == (other, other_length)
    assert set(one) == PUBLIC_BEFOREHAND | OF_THE_RECORDS | IF_ASKED
    assert {name for name in one if one[name] != larger[name]} == OF_THE_RECORDS
    assert one["num_samples"] == 9
    assert one["measures"] == {}


def test_a_report_has_no_field_that_its_bytes_do_not_show():
    fields = {field.name for field in dataclasses.fields(ClientReport)}
    shown = (PUBLIC_BEFOREHAND - {"names", "shapes", "dtype"}) | {"layout"} | OF_THE_RECORDS | IF_ASKED
    assert fields == shown | {"values"}  # clipped and perturbed
    assert set(MEASURES) == {"loss", "loss_energy", "gradient_variance"}  # private: every report says who hears them
