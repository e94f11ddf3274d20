"""10,000 malformed updates: none is admitted, none is executed, and none stops the server."""

import dataclasses
import json
import math
import pickle
import struct
from collections import Counter

import numpy as np
import pytest
from fault_injection import MESSAGES, Payload
from faulty_federation import engine_with, tiny
from tiny_runs import prepared

from fedpcs.learning import wire
from fedpcs.learning.admission import Admitted, Expected, admit
from fedpcs.learning.layout import Layout, flat_parameters
from fedpcs.learning.protocol import ClientReport, Task
from fedpcs.privacy.budget import Rho

NUMBER = 10_000
BAD_NUMBERS = (math.nan, math.inf, -math.inf, -math.nan)
ODD = (None, "", "many", b"x", [], {}, (), object(), True, False, 0, -1, 1.5, math.nan, math.inf, -math.inf, 1e18)
ODD += (10**18, 2**63, -(2**63), 10**5000, np.int64(7), np.float32(3.0), 1j, Rho(1), Rho.of(1e9), ["a"], {"loss": 1.0})


@pytest.fixture(scope="module")
def honest():
    """(what the server expects, the report of an honest client)."""
    config = tiny()
    ready = prepared(config)
    task = Task("tiny/random/0", 1, 4, "0123456789abcdef", Rho.of(0.05))
    with engine_with("in-process", config) as engine:
        (report,) = engine.run(flat_parameters(ready.model), [task])
    expected = Expected(task, int(ready.plan.num_samples[4]), ready.plan.layout, ready.plan.client)
    assert isinstance(admit(report, expected), Admitted)
    return expected, report


def other_than(rng, right):
    """A value of the wrong kind or the wrong one of its kind."""
    while True:
        value = ODD[rng.integers(len(ODD))]
        if type(value) is not type(right) or value != right:
            return value


def with_bad_numbers(report, rng):
    values = report.values.copy()
    where = rng.choice(values.size, int(rng.integers(1, values.size + 1)), replace=False)
    values[where] = BAD_NUMBERS[rng.integers(len(BAD_NUMBERS))]
    return dataclasses.replace(report, values=values)


def with_storm(report, rng):
    values = report.values.copy()
    values[rng.choice(values.size, int(values.size * rng.uniform(0.55, 1.0)), replace=False)] = 1e-40 * rng.uniform(
        0.1, 1
    )
    return dataclasses.replace(report, values=values)


def with_enormous_norm(report, rng):
    factor = np.float32(10.0 ** rng.uniform(2.0, 37.0))
    return dataclasses.replace(report, values=np.clip(report.values * factor, -3e38, 3e38).astype(np.float32))


def with_odd_values(report, rng):
    size = report.values.size
    choices = [
        report.values.astype(np.float64),
        report.values.astype(">f4"),
        report.values[:-1],
        np.append(report.values, np.float32(0)),
        report.values.reshape(1, -1),
        np.repeat(report.values, 2)[::2],
        np.float32(1.0),
        np.zeros(0, np.float32),
        np.zeros(1, np.float32),
        report.values.astype(np.int64),
        report.values.astype(np.complex64),
        np.array(["a"] * size),
        np.array([None] * size),
        report.values.tolist(),
        None,
    ]
    return dataclasses.replace(report, values=choices[rng.integers(len(choices))])


def with_odd_layout(report, rng):
    names, shapes = report.layout.names, report.layout.shapes
    choices = [
        Layout(names[:-1], shapes[:-1]),
        Layout((*names, "extra"), (*shapes, ())),
        Layout(names[::-1], shapes[::-1]),
        Layout((names[0], names[0]), shapes),
        Layout(names, (shapes[0],)),
        Layout(names, ((1, 64), shapes[1])),
        Layout(names, ((640,), shapes[1])),
        Layout(names, ((64, 10), shapes[1])),
        Layout(names, (shapes[0], (1,))),
        Layout(names, (shapes[0], (0,))),
        Layout(names, (shapes[0], (-10,))),
        Layout(names, (shapes[0], (10, 1))),
        Layout(("w" * 10**6, names[1]), shapes),
        Layout((), ()),
        Layout(names, (None, None)),
        Layout(([], {}), shapes),
        Layout(None, None),
        Layout(7, 8),
        None,
        "layout",
    ]
    return dataclasses.replace(report, layout=choices[rng.integers(len(choices))])


def with_odd_field(report, rng):
    name = ("run", "round_index", "client", "nonce", "num_samples", "budget")[rng.integers(6)]
    return dataclasses.replace(report, **{name: other_than(rng, getattr(report, name))})


def with_odd_measures(report, rng):
    choices = [None, 7, "loss", {"loss": 1.0}, {"loss": math.nan}, {1: 2.0}, {"loss": "x", 3: None}, [1], {(): 1.0}]
    return dataclasses.replace(report, measures=choices[rng.integers(len(choices))])


def not_a_report(report, rng):
    return ODD[rng.integers(len(ODD))]


MALFORMED = [
    with_bad_numbers,
    with_storm,
    with_enormous_norm,
    with_odd_values,
    with_odd_layout,
    with_odd_field,
    with_odd_measures,
    not_a_report,
]


def test_none_of_ten_thousand_malformed_reports_is_admitted(honest):
    expected, report = honest
    rng = np.random.default_rng(10)
    verdicts = Counter()
    for number in range(NUMBER):
        make = MALFORMED[number % len(MALFORMED)]
        verdict = admit(make(report, rng), expected)
        verdicts[getattr(verdict, "kind", "admitted")] += 1
        assert not isinstance(verdict, Admitted), make.__name__
        assert len(verdict.reason) < 1000  # it goes to the log
    assert sum(verdicts.values()) == NUMBER
    assert {"layout", "size", "contract", "numbers", "norm", "stale"} <= set(verdicts)


def random_bytes(message, rng):
    return rng.bytes(int(rng.integers(0, 4000)))


def random_after_the_magic(message, rng):
    return signed(wire.MAGIC + rng.bytes(int(rng.integers(0, 400))))


def lengthened(message, rng):
    return message + rng.bytes(int(rng.integers(1, 100)))


def spliced(message, rng):
    cut = int(rng.integers(1, len(message)))
    return signed(message[:cut] + rng.bytes(8) + message[cut:-16])


def pickled(message, rng):
    return pickle.dumps(Payload("/nonexistent/executed"))


def pickled_inside(message, rng):
    return signed(wire.MAGIC + struct.pack(">I", 40) + pickle.dumps(Payload("/nonexistent/executed")))


def with_odd_header(message, rng):
    """Well signed, so that only its content can give it away."""
    (length,) = struct.unpack(">I", message[8:12])
    header = json.loads(message[12 : 12 + length])
    name = list(header)[rng.integers(len(header))]
    if rng.random() < 0.2:
        del header[name]
    else:
        odd = [
            None,
            "",
            "x",
            [],
            {},
            True,
            0,
            -1,
            1.5,
            math.nan,
            math.inf,
            10**18,
            10**4000,
            [[]],
            [None],
            {"loss": 1.0},
        ]
        odd += [["weight", 7], [[10, 64], [10.0]], [[10, 64], [-1]], "float64", "object", "V4", "O", "float128"]
        value = odd[rng.integers(len(odd))]
        if value == header[name] and type(value) is type(header[name]):
            value = "changed"
        header[name] = value
    text = json.dumps(header).encode()
    return signed(message[:8] + struct.pack(">I", len(text)) + text + message[12 + length : -16])


def signed(body):
    return body + wire._digest(body)


MAKERS = [
    lambda message, rng: MESSAGES["flipped"](message, None, rng),
    lambda message, rng: MESSAGES["truncated"](message, None, rng),
    random_bytes,
    random_after_the_magic,
    lengthened,
    spliced,
    pickled,
    pickled_inside,
    with_odd_header,
    with_odd_header,
]


def test_none_of_ten_thousand_malformed_messages_is_admitted(honest):
    expected, report = honest
    message = wire.encode(report)
    rng = np.random.default_rng(11)
    refused = Counter()
    for number in range(NUMBER):
        damaged = MAKERS[number % len(MAKERS)](message, rng)
        assert damaged != message
        try:
            found = wire.decode(damaged, most_bytes=2**20)
        except wire.MessageRefused:
            refused["message"] += 1
            continue
        assert isinstance(found, ClientReport)
        verdict = admit(found, expected)
        assert not isinstance(verdict, Admitted), (MAKERS[number % len(MAKERS)].__name__, verdict)
        refused[verdict.kind] += 1
    assert sum(refused.values()) == NUMBER
    assert refused["message"] > NUMBER // 2


def test_a_message_beyond_the_limit_is_refused_before_it_is_read(honest):
    _, report = honest
    message = wire.encode(report)
    with pytest.raises(wire.MessageRefused, match="at most"):
        wire.decode(message, most_bytes=len(message) - 1)
    assert wire.decode(message, most_bytes=len(message)).values.tobytes() == report.values.tobytes()
