"""Apple's pfl with two processes on the work of `round_time.py`: its simulated backend and its federated averaging.

Install it apart from fedpcs and Flower, whose dp-accounting is newer than pfl allows:
`pip install 'pfl[pytorch]>=0.6,<0.7' 'torch>=2.6,<2.14' numpy`.

The script starts itself twice under `torchrun`, one thread each; the processes reduce over gloo. pfl's own trainer runs
the plain module of `peer_tuned_loop.py`, its central optimizer is SGD at rate 1, which is averaging. pfl would evaluate
every client before and after training in the first round; that is switched off. A round lasts from one call of pfl's
end-of-iteration callback to the next.
"""

# mypy: disable-error-code="import-not-found,misc"
# pfl is not installed where mypy runs.

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from peer_tuned_loop import NUM_PROCESSES, accuracy_of, client_tensors, network, warm_up
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam import NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from round_time import BATCH_SIZE, COHORT_SIZE, LEARNING_RATE, SEED, Report, cohort, load, peer_parser
from torch import Tensor, nn
from torch.nn import functional

LAUNCHED = "ROUND_TIME_LAUNCHED"  # when the two processes were started, in seconds since the epoch


class Network(nn.Module):
    """The CNN with the two methods pfl asks of a module."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = network()

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """Return the mean loss, to be minimised."""
        return functional.cross_entropy(self.layers(images), labels)

    def metrics(self, images: Tensor, labels: Tensor) -> dict[str, Any]:
        """Return the loss as pfl adds it up over clients."""
        return {"loss": Weighted(float(self.loss(images, labels)) * len(labels), len(labels))}


class Averaging(FederatedAveraging):
    """pfl's federated averaging without its evaluation of clients, and without training if they are idle."""

    def __init__(self, *, is_idle: bool) -> None:
        super().__init__()
        self.is_idle = is_idle

    def get_next_central_contexts(self, *arguments: Any, **options: Any) -> Any:
        """Return pfl's plan for the next round, evaluation struck out."""
        contexts, model, metrics = super().get_next_central_contexts(*arguments, **options)
        if contexts is not None:
            contexts = tuple(dataclasses.replace(context, do_evaluation=False) for context in contexts)
        return contexts, model, metrics

    def train_one_user(self, initial_model_state: Any, model: Any, user_dataset: Any, central_context: Any) -> Any:
        """Return the client's update."""
        if self.is_idle:
            return model.get_model_difference(initial_model_state), Metrics()
        return super().train_one_user(initial_model_state, model, user_dataset, central_context)


class Clock(TrainingProcessCallback):
    """Notes when each round ended."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_train_begin(self, *, model: Any) -> Any:
        """Note the beginning of the first round."""
        self.times.append(time.perf_counter())
        return Metrics()

    def after_central_iteration(self, aggregate_metrics: Any, model: Any, *, central_iteration: int) -> Any:
        """Note the end of a round."""
        self.times.append(time.perf_counter())
        return False, Metrics()


def clients_in_turn() -> Callable[[], tuple[int, int]]:
    """Return a sampler for pfl that walks through the cohorts: (round, client) by (round, client)."""
    pairs = ((number // COHORT_SIZE, cohort(number // COHORT_SIZE)[number % COHORT_SIZE]) for number in range(10**9))
    return lambda: next(pairs)


def measure(rounds: int, source: str, *, is_idle: bool) -> Report:
    """Run the rounds in this process, one of the two."""
    torch.set_num_threads(1)
    warm_up(source)
    torch.manual_seed(SEED)
    module, clock = Network(), Clock()
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0))

    def dataset(who: tuple[int, int]) -> PyTorchTensorDataset:
        round_index, client = who
        return PyTorchTensorDataset(client_tensors(load(source), client, round_index))

    clients = FederatedDataset(dataset, clients_in_turn())
    backend = SimulatedBackend(clients, clients, postprocessors=[WeightByDatapoints()])
    plan = NNAlgorithmParams(rounds, evaluation_frequency=1, train_cohort_size=COHORT_SIZE, val_cohort_size=None)
    local = NNTrainHyperParams(local_batch_size=BATCH_SIZE, local_num_epochs=1, local_learning_rate=LEARNING_RATE)
    torch.distributed.barrier()
    startup = time.time() - float(os.environ[LAUNCHED])
    Averaging(is_idle=is_idle).run(plan, backend, model, local, callbacks=[clock], send_metrics_to_platform=False)
    seconds = [after - before for before, after in zip(clock.times, clock.times[1:], strict=False)]
    accuracy = None if is_idle else accuracy_of(module.layers, load(source))
    return Report("pfl", importlib.metadata.version("pfl"), seconds, startup, accuracy)


def launch() -> int:
    """Start this script in two processes and return how they ended."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={NUM_PROCESSES}"]
    environment = {**os.environ, LAUNCHED: str(time.time()), "OMP_NUM_THREADS": "1"}
    return subprocess.run([*torchrun, *sys.argv], env=environment, check=False).returncode


def main() -> None:
    options = peer_parser(__doc__).parse_args()
    if LAUNCHED not in os.environ:
        sys.exit(launch())
    report = measure(options.rounds, options.data, is_idle=options.idle)
    if torch.distributed.get_rank() == 0:
        report.show()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
