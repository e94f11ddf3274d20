"""All that a client sends through Flower, field by field. A new one must be listed here, with what makes it public."""

import json
import tracemalloc

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord, Message
from local_grid import LocalGrid
from node_files import announcement, make_books

from fedpcs.engines.flower import messages
from fedpcs.engines.flower.client_app import Member, make_client_app
from fedpcs.engines.flower.named_arrays import array_of
from fedpcs.learning.client import ClientPlan, ClientSide
from fedpcs.learning.client_data import made_data
from fedpcs.learning.models import make_model
from fedpcs.learning.protocol import Task
from fedpcs.learning.wire import MessageRefused
from fedpcs.privacy.budget import Rho

CLASSES, FEATURES = 3, (1, 2, 2)
TOLD = announcement(mode="client")
REPORT = {"run", "round_index", "client", "nonce", "budget", "num_samples", "names", "shapes", "dtype", "measures"}
# The JSON of each reply. Of a client's records it tells how many there are. Its budgets follow from its own two
# numbers, not from records. A question is answered by clients that allow it, and reports say so.
SENT = {
    messages.HELLO: {"name", "num_samples"},
    messages.TERMS: {"budgets"},
    messages.QUESTION: {"answer"},
    messages.TRAIN: REPORT,
}


@pytest.fixture
def replies(tmp_path):
    """Return a function that gives all replies of a client with `size` records drawn from `seed`, by kind."""

    def ask(size, seed):
        rng = np.random.default_rng(seed)
        records = torch.from_numpy(rng.normal(size=(size, *FEATURES)).astype(np.float32)), torch.arange(size) % CLASSES
        model = make_model("linear", FEATURES, CLASSES, seed=0)
        data = made_data(lambda _: records, (size,), records, CLASSES)
        side = ClientSide(ClientPlan(mode="client", batch_size=None), model, data)
        books = make_books(tmp_path / f"{size}-{seed}", mode="client")
        member = Member("ada", side, size, books, may_be_asked=True)
        work = Task("run", 0, 0, "nonce", Rho(int(books.agree(TOLD)[0])))
        parameters = messages.model_record(np.zeros(sum(one.numel() for one in model.parameters()), np.float32))
        contents = {
            messages.HELLO: messages.hello_content(messages.Hello("server", 1)),
            messages.TERMS: messages.announcement_content(TOLD),
            messages.QUESTION: messages.question_content("loss", work, parameters),
            messages.TRAIN: messages.task_content(work, parameters),
        }
        grid = LocalGrid(make_client_app(lambda context, run: member), [11])
        return {
            kind: grid.send_and_receive([Message(content, 11, kind, ttl=60.0)])[0].content
            for kind, content in contents.items()
        }

    return ask


def text_of(content):
    """The JSON of a reply, and nothing beside it but arrays."""
    (record,) = [content[name] for name in content if not isinstance(content[name], ArrayRecord)]
    assert set(record) == {"json"}
    return json.loads(record["json"])


def test_beside_the_perturbed_update_only_the_number_of_records_speaks_of_them(replies):
    one, other, larger = replies(9, 1), replies(9, 2), replies(12, 1)
    assert {kind: set(text_of(content)) for kind, content in one.items()} == SENT
    for kind in set(SENT) - {messages.QUESTION}:
        assert text_of(one[kind]) == text_of(other[kind])
        changed = {name for name, value in text_of(one[kind]).items() if text_of(larger[kind])[name] != value}
        assert changed <= {"num_samples"}


def test_of_arrays_a_client_sends_its_update_alone(replies):
    for kind, content in replies(9, 1).items():
        arrays = [content[name] for name in content if isinstance(content[name], ArrayRecord)]
        assert [list(record) for record in arrays] == ([["values"]] if kind == messages.TRAIN else [])


def test_these_are_all_the_kinds_of_messages_there_are():
    texts = [value for value in vars(messages).values() if isinstance(value, str)]
    assert {text for text in texts if text.startswith(("query.", "train"))} == set(SENT)


def header(text, data=b""):
    body = text.encode() + b"\n"
    return Array("float32", (1,), "numpy.ndarray", b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body + data)


LYING = {
    "claims 400 GB": header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,), }"),
    "claims more than memory has addresses": header("{'descr': '<f4', 'fortran_order': False, 'shape': (10**30,), }"),
    "claims 2 GB": header("{'descr': '<f4', 'fortran_order': False, 'shape': (500000000,), }"),
    "negative": header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -1), }", bytes(4)),
    "objects": header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "text": header("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", bytes(4)),
    "one byte less": header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", bytes(3)),
    "one byte more": header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", bytes(5)),
    "nested": header("(" * 5000),
    "another kind": Array("float32", (1,), "torch", b""),
    "nothing": Array("float32", (1,), "numpy.ndarray", b""),
}


@pytest.mark.parametrize("lie", LYING)
def test_an_array_that_is_not_what_its_header_says_is_refused_before_memory_is_taken(lie):
    tracemalloc.start()
    with pytest.raises(MessageRefused, match=r"an array cannot be read"):
        array_of(LYING[lie])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**22


@pytest.mark.parametrize("kind", ["<f4", "<f8", "<f2", "<i8", "|u1", "|b1", ">f4"])
def test_an_array_comes_as_flower_reads_it(kind):
    sent = np.arange(24).reshape(2, 3, 4).astype(kind)
    for array in (sent, sent.T, sent[0, 0, 0:1], np.asfortranarray(sent), sent[:0], np.asarray(sent[1, 1, 1])):
        told = Array(np.asarray(array))
        found, wanted = array_of(told), told.numpy()
        assert (found.dtype, found.shape, found.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())
        assert found.flags.writeable
