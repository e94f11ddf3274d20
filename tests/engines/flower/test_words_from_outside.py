"""Words of a client, on their way to the operator: no line of their own, no escape codes, no half characters."""

import json

import lying_client_app
import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, RecordDict
from lying_client_app import FORGED
from test_federation import RUN, Wire

from fedpcs.deploy.client_app import Members
from fedpcs.deploy.server_app import serve
from fedpcs.engines.flower import messages
from fedpcs.engines.flower.client_app import make_client_app
from fedpcs.errors import QuorumNotReached
from fedpcs.learning.wire import MessageRefused
from fedpcs.report.study import write_report_safely
from fedpcs.trial.config import load_run_config


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Runs a federation of which client 1 tells these lies; returns what the operator was told, and the folder."""
    (tmp_path / "run.toml").write_text(RUN.replace("sampling_ratio = 0.67", "sampling_ratio = 1.0"))
    monkeypatch.setattr(lying_client_app, "honest", make_client_app(Members(str(tmp_path / "run.toml"))))

    def run(lies):
        (tmp_path / "faults").write_text(lies)
        wire, said = Wire(lying_client_app.app, tmp_path), []
        config = load_run_config(str(tmp_path / "run.toml"), ["data.num_clients=3", "rounds=2"])
        try:
            serve(wire, config, tmp_path / "run", say=said.append, when_done=write_report_safely, poll_seconds=0.0)
        except QuorumNotReached as error:
            said.append(str(error))
        return said, tmp_path / "run"

    return run


def is_one_line(words):
    return isinstance(words, str) and words.isprintable() and len(words) <= 600


def test_reports_and_errors_of_a_liar_are_escaped_in_the_log_and_on_the_terminal(served):
    said, folder = served("train0:words train1:error")
    assert all(map(is_one_line, said)), said
    assert not any("\\xa0" in words for words in said)  # of our own: 39.4 %
    text = next(folder.glob("trials/*/rounds.jsonl")).read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    reasons = [item["reason"] for line in lines for item in [*line["failed"], *line["refused"]]]
    assert len(reasons) >= 2
    assert all(map(is_one_line, reasons)), reasons
    assert "\x1b" not in (folder / "report.html").read_text()


@pytest.mark.parametrize("lie", ["hello:error", "terms:error"])
def test_who_does_not_say_who_it_is_forges_no_line(served, lie):
    said, _ = served(lie)
    told = [words for words in said if "round 9: 3 of 3 heard" in words]
    assert told
    assert all(map(is_one_line, said)), said


BAD_NAMES = {
    "none": "",
    "too long": "x" * 101,
    "lines": "a\nb",
    "codes": "a\x1b[2J",
    "half": "a\ud800",
    "turned": "a\u202eb",
}


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES)
def test_a_name_is_plain_text(name):
    content = RecordDict({"text": ConfigRecord({"json": json.dumps({"name": name, "num_samples": 3})})})
    with pytest.raises(MessageRefused, match=r"1 to 100 printable characters") as refused:
        messages.read_hello(content)
    assert is_one_line(str(refused.value))


@pytest.mark.parametrize("name", ["clinic-a", "Käthe's Labor №2", "x" * 100, "診療所"])
def test_other_alphabets_are_plain_text_too(name):
    assert messages.read_hello(messages.hello_content(messages.Hello(name, 3))).name == name


def servers_words():
    """Messages whose words a server has made up, by what they are."""
    task = {"run": FORGED, "round_index": FORGED, "client": 0, "nonce": FORGED, "budget": 10, "measures": [FORGED]}
    task["max_samples"] = None
    terms = {"reward": [1.0], "mean_budget": [1.0], "cohort_size": [1], FORGED: FORGED}
    model = messages.model_record(np.zeros(650, dtype=np.float32))

    def content(values, **more):
        return RecordDict({"text": ConfigRecord({"json": json.dumps(values)}), **more})

    return {
        "a task": (messages.TRAIN, content(task, numbers=model)),
        "no measures": (messages.TRAIN, content({**task, "measures": []}, numbers=model)),
        "a budget": (messages.TRAIN, content({**task, "round_index": 0, "budget": FORGED}, numbers=model)),
        "terms": (messages.TERMS, content(terms)),
        "a question": (messages.QUESTION, content({"question": FORGED, "task": task}, numbers=model)),
        "no JSON": (
            messages.TRAIN,
            RecordDict({"text": ConfigRecord({"json": FORGED.encode("utf-8", "replace").decode()})}),
        ),
    }


@pytest.mark.parametrize("what", servers_words())
def test_words_of_a_server_are_escaped_in_the_log_of_a_node(what, tmp_path, capfd):
    (tmp_path / "run.toml").write_text(RUN)
    wire = Wire(make_client_app(Members(str(tmp_path / "run.toml"))), tmp_path)
    kind, content = servers_words()[what]
    with pytest.raises(Exception, match=r".") as raised:  # Flower logs and sends whatever it is
        wire.app(Message(content, 71, kind), wire.contexts[71])
    assert is_one_line(str(raised.value))
    assert raised.value.__suppress_context__ or is_one_line(str(raised.value.__context__ or ""))
    assert all(map(str.isprintable, capfd.readouterr().err.splitlines()))
