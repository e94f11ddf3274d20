"""What crosses the wire between a Flower server and its clients, record by record. Nothing else does.

    kind            to the client                                from the client
    query.hello     –                                            `Hello`: its name, how many records it has
    query.terms     `Announcement`: rewards, mean budgets, …     budgets it will spend if drawn, in billionths of ρ
    query.question  a task, the model, what is asked             one number; only from a client that allows it
    train           a task, the model                            a report's header, the clipped and perturbed update

A model and an update are one flat array of numbers; everything else is JSON in a string, checked field by field.
Python's pickle has no part in it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from numpy.typing import NDArray

from fedpcs.engines.flower.announcement import Announcement, announcement_of, announcement_values
from fedpcs.engines.flower.named_arrays import array_of
from fedpcs.errors import InvalidInput
from fedpcs.game.population import MOST_SAMPLES
from fedpcs.learning import wire
from fedpcs.learning.layout import Values
from fedpcs.learning.protocol import ClientReport, Task

HELLO, TERMS, QUESTION, TRAIN = "query.hello", "query.terms", "query.question", "train"
_MOST_TEXT = 2**20
_LONGEST_NAME = 100
_NUMBERS, _TEXT, _FLAT = "numbers", "text", "values"


@dataclass(frozen=True)
class Hello:
    """What a client says of itself when it is first asked.

    Attributes:
        name: Its own, the same after a restart: what the server knows it by.
        num_samples: |D_i|.
    """

    name: str
    num_samples: int


def model_record(parameters: Values) -> ArrayRecord:
    """Return a model as Flower carries it; one record serves a whole cohort, and is sent once to a SuperLink."""
    return ArrayRecord({_FLAT: Array(np.ascontiguousarray(parameters))})


def task_content(task: Task, model: ArrayRecord) -> RecordDict:
    """Return what a drawn client is sent."""
    return RecordDict({_NUMBERS: model, _TEXT: _json_record(wire.task_values(task))})


def read_task(content: RecordDict) -> tuple[Task, Values]:
    """Return the task and the model of a message."""
    return wire.task_of(_json(content)), _values(content)


def question_content(question: str, task: Task, model: ArrayRecord) -> RecordDict:
    """Return what a client is asked before a draw."""
    return RecordDict({_NUMBERS: model, _TEXT: _json_record({"question": question, "task": wire.task_values(task)})})


def read_question(content: RecordDict) -> tuple[str, Task, Values]:
    """Return the question, the task and the model of a message."""
    found = _json(content)
    return found.get("question", ""), wire.task_of(found.get("task")), _values(content)


def report_content(report: ClientReport) -> RecordDict:
    """Return what a client sends back."""
    values = ArrayRecord({_FLAT: Array(np.ascontiguousarray(report.values))})
    return RecordDict({_NUMBERS: values, _TEXT: _json_record(wire.header_of(report))})


def read_report(content: RecordDict) -> ClientReport:
    """Return the report of a message; whether it is right is decided by `fedpcs.learning.admission`.

    Raises:
        MessageRefused: It is none.
    """
    return wire.report_of(wire.parse_header(_text(content).encode()), _values(content))


def hello_content(hello: Hello) -> RecordDict:
    """Return a client's first words."""
    return RecordDict({_TEXT: _json_record(asdict(hello))})


def read_hello(content: RecordDict) -> Hello:
    """Return a client's first words, checked."""
    found = _json(content)
    name, size = found.get("name"), found.get("num_samples")
    if not (isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable()):
        raise wire.MessageRefused(
            f"a client's name must have 1 to {_LONGEST_NAME} printable characters, got {str(name)[:40]!r}."
        )
    if type(size) is not int or not 1 <= size <= MOST_SAMPLES:
        raise wire.MessageRefused(
            f"num_samples must be a whole number from 1 to {MOST_SAMPLES:,}, got {str(size)[:40]!r}."
        )
    return Hello(name, size)


def announcement_content(announcement: Announcement) -> RecordDict:
    """Return an announcement as a message."""
    return RecordDict({_TEXT: _json_record(announcement_values(announcement))})


def read_announcement(content: RecordDict) -> Announcement:
    """Return the announcement of a message, checked.

    Raises:
        InvalidInput: It is none, or no game can be so.
    """
    return announcement_of(_json(content))


def budgets_content(nanos: NDArray[np.int64]) -> RecordDict:
    """Return a client's budgets, one for each round announced, in billionths of ρ."""
    return RecordDict({_TEXT: _json_record({"budgets": [int(one) for one in nanos]})})


def read_budgets(content: RecordDict, num_rounds: int) -> NDArray[np.int64]:
    """Return a client's budgets, checked."""
    found = _json(content).get("budgets")
    if not (
        isinstance(found, list)
        and len(found) == num_rounds
        and all(type(one) is int and 0 < one < 2**62 for one in found)
    ):
        raise wire.MessageRefused(f"budgets must be {num_rounds} whole numbers above 0, got {str(found)[:60]}.")
    return np.array(found, dtype=np.int64)


def number_content(answer: float) -> RecordDict:
    """Return the answer to a question."""
    return RecordDict({_TEXT: _json_record({"answer": answer})})


def read_number(content: RecordDict) -> float:
    """Return the answer to a question."""
    answer = _json(content).get("answer")
    if not isinstance(answer, int | float):
        raise wire.MessageRefused(f"answer must be a number, got {str(answer)[:40]!r}.")
    return float(answer)


def _json_record(values: dict[str, Any]) -> ConfigRecord:
    return ConfigRecord({"json": json.dumps(values)})


def _text(content: RecordDict) -> str:
    record = content.config_records.get(_TEXT)
    text = None if record is None else record.get("json")
    if not isinstance(text, str) or len(text) > _MOST_TEXT:
        raise wire.MessageRefused(
            f"message must hold at most {_MOST_TEXT:,} characters of JSON, got {str(text)[:40]!r}."
        )
    return text


def _json(content: RecordDict) -> dict[str, Any]:
    try:
        found = json.loads(_text(content))
    except InvalidInput:
        raise
    except (ValueError, RecursionError):
        raise wire.MessageRefused("message's text is not JSON.") from None
    if not isinstance(found, dict):
        raise wire.MessageRefused(f"message's text must be an object, got a {type(found).__name__}.")
    return found


def _values(content: RecordDict) -> Values:
    record = content.array_records.get(_NUMBERS)
    if record is None or list(record) != [_FLAT]:
        raise wire.MessageRefused("message must hold one array of numbers.")
    return array_of(record[_FLAT])
