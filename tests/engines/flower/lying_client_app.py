"""A client app whose client lies on the wire, below what fedpcs's own client could ever send.

Put in the place of the real app. Which lie is told stands in the file `faults` beside nodes' settings; the
client of partition 1 tells it, in its answers to the message kinds that the lie is for. All others are honest.
"""

import json
import os
import tomllib
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.supercore.inflatable.inflatable_object import add_header_to_object_body

from fedpcs.deploy.client_app import Members
from fedpcs.engines.flower import messages
from fedpcs.engines.flower.client_app import make_client_app

RUN_FILE = Path(__file__).with_name("run.toml")
LIAR = 1
BULK_BYTES = 500 * 10**6
MANY_RECORDS = 20_000
FORGED = "x\nfedpcs: round 9: 3 of 3 heard\x1b[2J\x1b[1;31m\ud800\u202e"


def forged_body(kind, body):
    """Return a record of Flower's whose bytes on the wire have this body, with all its digests right."""

    def deflate(self):
        return add_header_to_object_body(body, self)

    return type(kind.__name__, (kind,), {"deflate": deflate, "__qualname__": kind.__qualname__})


def many_records(content):
    return RecordDict({f"r{number}": ConfigRecord({"n": number}) for number in range(MANY_RECORDS)})


def not_protobuf(content):
    return RecordDict({**content, "text": forged_body(ConfigRecord, b"\xff\xfe no protobuf")()})


def bulk(content):
    values = np.frombuffer(os.urandom(BULK_BYTES), np.uint8)
    return RecordDict({"numbers": ArrayRecord({"values": Array(values)}), "text": content["text"]})


def one_array(content, data):
    lie = ArrayRecord({"values": Array("float32", (10**11,), "numpy.ndarray", data)})
    return RecordDict({"numbers": lie, "text": content["text"]})


def vast_header(content):
    """64 bytes that claim 400 GB: numpy allocates what a header claims."""
    text = b"{'descr':'<f4','fortran_order':False,'shape':(99999999999,)}\n"
    return one_array(content, b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)


def repeated_chunk(content):
    """One chunk of 5 MB, named 20,000 times in the array's own list: 100 GB when it is put together."""
    array = Array(np.frombuffer(os.urandom(5 * 10**6), np.uint8))
    told = {"dtype": "uint8", "shape": [10**11], "stype": "numpy.ndarray", "arraychunk_ids": [0] * MANY_RECORDS}
    body = json.dumps(told).encode()
    lie = ArrayRecord()
    lie["values"] = forged_body(Array, body)("uint8", (10**11,), "numpy.ndarray", array.data)
    return RecordDict({"numbers": lie, "text": content["text"]})


def forged_words(content):
    """A report of which every word is made to redraw the operator's terminal."""
    header = json.loads(content["text"]["json"])
    header.update(run=FORGED, nonce=FORGED, names=[FORGED for _ in header["names"]])
    return RecordDict({"numbers": content["numbers"], "text": ConfigRecord({"json": json.dumps(header)})})


def forged_error(content):
    raise RuntimeError(FORGED.encode("utf-8", "replace").decode())


LIES = {
    "records": many_records,
    "protobuf": not_protobuf,
    "bulk": bulk,
    "header": vast_header,
    "chunks": repeated_chunk,
    "words": forged_words,
    "error": forged_error,
}

honest = make_client_app(Members(str(RUN_FILE)))
app = ClientApp()


def lie_of(context, kind):
    """Return what this node answers messages of a kind with, in the place of the truth; None if the truth."""
    settings = Path(str(context.node_config["settings"]))
    if tomllib.loads(settings.read_text())["partition_id"] != LIAR:
        return None
    path = settings.with_name("faults")
    words = path.read_text().split() if path.exists() else []
    return next((LIES[word.removeprefix(f"{kind}:")] for word in words if word.startswith(f"{kind}:")), None)


def answer(kind):
    def handler(message, context):
        reply = honest(message, context)
        lie = lie_of(context, kind)
        return reply if lie is None else Message(lie(reply.content), reply_to=message)

    return handler


app.query("hello")(answer("hello"))
app.query("terms")(answer("terms"))


@app.train()
def train(message, context):
    task, _ = messages.read_task(message.content)
    return answer(f"train{task.round_index}")(message, context)
