"""A Flower client app around our client: it answers tasks as in any other engine, and keeps its own books.

Its aversion and its records never leave it. Its own settings are the law on its machine: it agrees to nothing outside
of them. It tells its budgets once, in answer to what the server announces; it refuses a task that names another budget
than it agreed to; and it charges its own ledger before anything is released, whatever the server's says.
"""

from __future__ import annotations

import faulthandler
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedpcs import _validate
from fedpcs._outside import printable
from fedpcs.engines.flower import messages
from fedpcs.engines.flower.client_books import ClientBooks
from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.errors import BudgetExhausted, CorruptFile, FedpcsError, InvalidInput, WrongDevice
from fedpcs.learning.client import ClientSide, Question
from fedpcs.learning.device import no_mistaken_device, one_thread
from fedpcs.learning.layout import Values, as_tensor
from fedpcs.learning.protocol import ClientReport, Task

_GRACE_SECONDS = 5.0
_LONGEST_LINE = 600
Handler = Callable[[Message, Context], Message]
_MOST_SECONDS = 1e6  # as engine.deadline_seconds


@dataclass(frozen=True)
class Member:
    """One client of a federation, as its own process has it.

    Attributes:
        name: What the server knows it by.
        side: Its records and how it trains: the same client as in every other engine.
        num_samples: |D_i|.
        books: Its budgets and its ledger on disk; None in a simulation, where the server keeps them.
        may_be_asked: Whether it tells what samplers ask or measure of its records, which is charged to nobody.
    """

    name: str
    side: Any
    num_samples: int
    books: ClientBooks | None = None
    may_be_asked: bool = False


def make_client_app(member_of: Callable[[Context, str], Member]) -> ClientApp:
    """Return the client app of a federation.

    Args:
        member_of: The client a node plays in a run, from the node's context and the run's name; called for every
            message. The name is empty when a node is only asked who it is.
    """
    app = ClientApp()

    @app.query("hello")
    @_fails_in_one_line
    def hello(message: Message, context: Context) -> Message:
        member = member_of(context, "")
        return Message(messages.hello_content(messages.Hello(member.name, member.num_samples)), reply_to=message)

    @app.query("terms")
    @_fails_in_one_line
    def terms(message: Message, context: Context) -> Message:
        announcement = messages.read_announcement(message.content)
        member = member_of(context, announcement.run)
        books = member.books
        if books is None:
            raise InvalidInput("this client has no books: in a simulation its budgets are the server's to know.")
        with refusals_logged(member.name):
            budgets = books.agree(announcement)
        return Message(messages.budgets_content(budgets), reply_to=message)

    @app.query("question")
    @_fails_in_one_line
    def question(message: Message, context: Context) -> Message:
        asked, task, parameters = messages.read_question(message.content)
        member = member_of(context, task.run)
        _validate.choice("question", asked, get_args(Question))
        _check_allowed(member, asked)
        _check_model(member, parameters)
        named: Question = "loss" if asked == "loss" else "update_norm"
        with one_thread(), no_mistaken_device():
            answer = member.side.ask(named, task, as_tensor(parameters))
        return Message(messages.number_content(answer), reply_to=message)

    @app.train()
    @_fails_in_one_line
    def train(message: Message, context: Context) -> Message:
        task, parameters = messages.read_task(message.content)
        member = member_of(context, task.run)
        with refusals_logged(member.name):
            seconds = _validate.number("a task's time to live", message.metadata.ttl, low=0.0, high=_MOST_SECONDS)
            _check_model(member, parameters)
            if task.measures:
                _check_allowed(member, ", ".join(task.measures))
            if member.books is not None:
                _agree_and_charge(member, member.books, task)
        report = _answer(member, task, np.asarray(parameters, dtype=np.float32), seconds)
        return Message(messages.report_content(report), reply_to=message)

    return app


def _fails_in_one_line(handler: Handler) -> Handler:
    """Return a handler whose errors Flower may log as they are: a message of the server has a part in their words."""

    @functools.wraps(handler)
    def handled(message: Message, context: Context) -> Message:
        try:
            return handler(message, context)
        except Exception as error:
            words = str(error)
            if len(words) <= _LONGEST_LINE and words.isprintable():
                raise
            raise FedpcsError(printable(f"{type(error).__name__}: {words}", _LONGEST_LINE)) from None

    return handled


def _answer(member: Member, task: Task, parameters: Values, seconds: float) -> ClientReport:
    """Train, for as long as the message lives: a SuperNode takes no other message before this one is answered."""
    try:
        with _ended_after(seconds + _GRACE_SECONDS, member.books is not None):
            (reply,) = InProcessEngine(member.side, seconds).run(parameters, [task])
    except WrongDevice as error:
        if member.books is None:
            raise
        raise kept_here(member.name, WrongDevice.__name__, str(error)) from None
    if isinstance(reply, ClientReport):
        return reply
    if member.books is None:
        raise FedpcsError(reply.reason)
    raise kept_here(member.name, f"{reply.kind}: {reply.reason.partition(':')[0]}", reply.reason)


@contextmanager
def refusals_logged(name: str) -> Iterator[None]:
    """Let a refusal go to the server, which must know why, and say it in this node's log too.

    What is wrong with the client's own files stays on its machine.
    """
    try:
        yield
    except InvalidInput as error:
        print(f"fedpcs: {name} refuses: {printable(error, 1000)}", file=sys.stderr, flush=True)
        raise
    except CorruptFile as error:
        raise kept_here(name, "its own books are damaged", str(error)) from None


def kept_here(name: str, summary: str, words: str) -> FedpcsError:
    """Write words to this node's log, and return an error that tells less: they may speak of records or limits."""
    print(f"fedpcs: {printable(f'{name} fails: {words}', _LONGEST_LINE)}", file=sys.stderr, flush=True)
    return FedpcsError(f"{summary}; why is in the log of {name}")


@contextmanager
def _ended_after(seconds: float, has_own_process: bool) -> Iterator[None]:
    """End this process if the block takes longer: a client that hangs in C would hold its node up for ever."""
    if not has_own_process or sys.__stderr__ is None:
        yield
        return
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _agree_and_charge(member: Member, books: ClientBooks, task: Task) -> None:
    """Hold a task to what was agreed, and write its cost down: from here on, the release may leave."""
    side: ClientSide = member.side
    books.check(task, is_perturbed=side.plan.is_perturbed)
    if not side.plan.is_perturbed:
        return
    try:
        books.charge(task, side.plan.release_event(task, member.num_samples, side.plan.source()))
    except BudgetExhausted as error:  # says what it has spent in all runs, and its limit
        raise kept_here(member.name, "it has reached its limit", str(error)) from None


def _check_model(member: Member, parameters: Values) -> None:
    """Refuse a model that is not the run's before anything is charged for it."""
    wanted = (member.side.layout.num_parameters,)
    if parameters.shape != wanted or parameters.dtype != np.float32 or not np.isfinite(parameters).all():
        raise InvalidInput(
            f"the model must be {wanted[0]:,} finite numbers of type float32, got {parameters.dtype} of shape "
            f"{parameters.shape}. Nothing is trained or charged."
        )


def _check_allowed(member: Member, asked: str) -> None:
    if not member.may_be_asked:
        raise InvalidInput(
            f"{member.name} does not tell {asked}: it is computed from its records and charged to nobody."
        )
