"""What Flower's own FedAvg does with the faults of test_deployment.py: the last column of a table in docs/faults.md.

Three clients in this process, over a grid without a network; the second of them misbehaves in the first of two rounds.
An honest client of round t returns its model plus one, so that after two good rounds every number is 2.
"""

import pickle
import random
import time

import numpy as np
import pytest
from fault_injection import Payload
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.exception import InconsistentMessageReplies
from flwr.serverapp.strategy import FedAvg
from local_grid import LocalGrid

NODES = (11, 12, 13)
FIRST = {"weight": np.zeros((2, 3), np.float32), "bias": np.zeros(3, np.float32)}
HUGE = np.float32(1e30)


def stock_run(fault=lambda arrays, size: (arrays, size), grid=LocalGrid, struck=(12,), num_rounds=2):
    """Return the model after two rounds of stock FedAvg."""
    app = ClientApp()

    @app.train()
    def train(message, context):
        arrays = {name: one.numpy() + 1 for name, one in message.content["arrays"].items()}
        size = 10
        if context.node_id in struck and message.content["config"]["server-round"] == 1:
            arrays, size = fault(arrays, size)
        if isinstance(arrays, RecordDict):
            return Message(arrays, reply_to=message)
        values = ArrayRecord(
            {name: one if isinstance(one, Array) else Array(np.asarray(one)) for name, one in arrays.items()}
        )
        return Message(
            RecordDict({"arrays": values, "metrics": MetricRecord({"num-examples": size})}), reply_to=message
        )

    first = ArrayRecord({name: Array(one) for name, one in FIRST.items()})
    found = FedAvg(fraction_evaluate=0.0).start(grid(app, NODES), first, num_rounds=num_rounds, timeout=1.0)
    return {name: one.numpy() for name, one in found.arrays.items()}


def raises(arrays, size):
    raise RuntimeError("injected")


def with_bias(value):
    return lambda arrays, size: ({**arrays, "bias": value(arrays["bias"])}, size)


def with_size(value):
    return lambda arrays, size: (arrays, value)


def test_without_faults_every_number_is_two():
    found = stock_run()
    assert all((one == 2).all() for one in found.values())


def test_an_error_reply_costs_the_round_only_that_client():
    """F1, F27: as with us."""
    assert (stock_run(raises)["bias"] == 2).all()


def test_a_number_that_is_none_makes_the_whole_model_none():
    """F6."""
    assert np.isnan(stock_run(with_bias(lambda bias: bias * np.nan))["bias"]).all()


def test_an_enormous_update_takes_the_model_over():
    """F7."""
    assert (stock_run(with_bias(lambda bias: bias * HUGE))["bias"] > 1e29).all()


def test_a_shape_that_broadcasts_is_averaged_in():
    """F8: of a bias of one number, a third is added to each of the three."""
    random.seed(1)  # Flower draws the order of nodes from it
    found = stock_run(with_bias(lambda bias: np.full(1, 7.0, np.float32)))["bias"]
    np.testing.assert_allclose(found, np.full(3, (1 + 7 + 1) / 3 + 1), rtol=1e-6)


def test_a_shape_that_broadcasts_ends_the_run_if_it_comes_first():
    """F8."""
    random.seed(0)
    with pytest.raises(ValueError, match="broadcast"):
        stock_run(with_bias(lambda bias: np.full(1, 7.0, np.float32)))


@pytest.mark.parametrize("shape", [(5,), (2, 2)])
def test_a_shape_that_does_not_ends_the_run(shape):
    """F8."""
    with pytest.raises(ValueError, match="broadcast"):
        stock_run(with_bias(lambda bias: np.ones(shape, np.float32)))


def test_another_type_is_averaged_in():
    """F8."""
    assert (stock_run(with_bias(lambda bias: (bias + 6).astype(np.int64)))["bias"] > 2).all()


@pytest.mark.parametrize(
    "fault",
    [
        lambda arrays, size: ({"bias": arrays["bias"]}, size),
        lambda arrays, size: ({**arrays, "extra": np.ones(1, np.float32)}, size),
        lambda arrays, size: (RecordDict(), size),
    ],
    ids=["missing key", "extra key", "empty"],
)
def test_a_key_too_few_or_too_many_or_nothing_at_all_ends_the_run(fault):
    """F8, F11, F27."""
    with pytest.raises(InconsistentMessageReplies):
        stock_run(fault)


@pytest.mark.parametrize("size", [10**18, -15])
def test_a_forged_number_of_records_is_believed(size):
    """F9: with 10¹⁸ the client's model is the federation's, with a negative number the others' are subtracted."""
    found = stock_run(lambda arrays, _: ({**arrays, "bias": arrays["bias"] * 7}, size))["bias"]
    expected = (20 * 1 + size * 7) / (20 + size) + 1
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_number_of_records_that_makes_the_sum_nothing_ends_the_run():
    """F9."""
    with pytest.raises(ZeroDivisionError):
        stock_run(with_size(-20))


def test_a_number_of_records_that_is_none_makes_the_model_none():
    """F9."""
    assert np.isnan(stock_run(with_size(float("nan")))["bias"]).all()


@pytest.mark.parametrize("what", ["garbage", "pickle"])
def test_bytes_that_are_no_array_end_the_run_and_are_not_executed(what, tmp_path):
    """F11."""
    made = tmp_path / "executed"
    content = b"no array" if what == "garbage" else pickle.dumps(np.array([Payload(str(made))], dtype=object))
    bad = Array("float32", (3,), "numpy.ndarray", content)
    with pytest.raises(ValueError, match=r"pickled|magic|file"):
        stock_run(with_bias(lambda bias: bad))
    assert not made.exists()


class Silent(LocalGrid):
    """A grid on which one node never answers."""

    def send_and_receive(self, messages, *, timeout=None):
        pushed = {number: message.metadata.dst_node_id for number, message in self.sent(messages)}
        time.sleep(timeout)
        return self.pull_messages([number for number, node in pushed.items() if node != 12])

    def sent(self, messages):
        messages = list(messages)
        return zip(self.push_messages(messages), messages, strict=True)


@pytest.mark.slow
def test_a_client_that_hangs_is_waited_for_as_long_as_start_was_told():
    """F2: an hour, unless `timeout` says otherwise. The round then goes on."""
    began = time.monotonic()
    assert (stock_run(grid=Silent)["bias"] == 2).all()
    assert time.monotonic() - began > 2.0


def test_a_round_in_which_nobody_is_heard_counts_as_a_round():
    """F12: the model is as it was, and one round has gone by."""
    assert (stock_run(raises, struck=NODES)["bias"] == 1).all()


def test_one_that_is_heard_is_the_average():
    """F12."""
    assert (stock_run(raises, struck=(11, 12))["bias"] == 2).all()


def test_a_server_that_starts_again_starts_from_the_beginning():
    """F15: there is no resume; the rounds before are paid for again."""
    trained = []

    class Counting(LocalGrid):
        def push_messages(self, messages):
            messages = list(messages)
            trained.extend(message.content["config"]["server-round"] for message in messages)
            return super().push_messages(messages)

    stock_run(grid=Counting, num_rounds=1)
    stock_run(grid=Counting, num_rounds=2)
    assert trained == [1] * 3 + [1] * 3 + [2] * 3
