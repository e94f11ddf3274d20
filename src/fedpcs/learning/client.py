"""The client's side of a round: train on one's own records, clip, perturb, report.

A client sees its own data, the model and the task it was sent. Nothing here knows of other clients, and nothing leaves
but what `answer` returns, which the server has charged to the client's budget before it sent the task.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedpcs import _random, _validate
from fedpcs.learning import chain
from fedpcs.learning.client_data import ClientData, Records
from fedpcs.learning.client_plan import ClientPlan as ClientPlan
from fedpcs.learning.layout import Layout, Values, layout_of, load_parameters, write_update
from fedpcs.learning.local import Spread, local_sgd, losses
from fedpcs.learning.protocol import ClientReport, Task
from fedpcs.privacy.clipping import clip_update
from fedpcs.privacy.mechanism import RecordMechanism, UpdateMechanism
from fedpcs.privacy.per_sample import PerSampleGradient, per_sample_gradient
from fedpcs.privacy.private_training import LocalPlan, signal_by_record, train_by_record

Question = Literal["loss", "update_norm"]


class ClientSide:
    """All clients that one process plays, one at a time: their data, and one model they train in turn.

    What comes in and what goes out is on the CPU: parameters, records, updates, measures. In between it is on the
    device: `load_parameters` and `_records` bring it there, `write_update` and `losses` bring it back. In mode `record`
    each step's mean comes back to be noised.
    """

    def __init__(self, plan: ClientPlan, model: nn.Module, data: ClientData) -> None:
        self.plan = plan
        self.data = data
        self.layout: Layout = layout_of(model)
        self._model = chain.prepared(model, plan.device)
        self._gradient: PerSampleGradient | None = None

    def answer(self, task: Task, parameters: Tensor, out: Tensor) -> ClientReport:
        """Train, clip, perturb; write the update to `out`, which becomes the report's values.

        Args:
            task: What to do.
            parameters: (parameters,) float32, the model as announced.
            out: (parameters,) float32.

        Guarantees:
            What is written is ρ-zCDP at the level of the mode, with ρ the task's budget, if the level is proven and the
            noise is a guarantee. The same task on the same data gives the same bits, if the noise is `fast`.
        """
        records = self._records(task)
        with _seeded(self.plan.seed, task):
            measures = self._measures_before(task, parameters, records)
            if self.plan.has_noisy_steps:
                variance = self._train_by_record(task, parameters, records, out)
            else:
                variance = self._train(task, parameters, records, out)
                if self.plan.is_perturbed:
                    self._perturb(task, len(records[1]), out)
        if "gradient_variance" in task.measures:
            # None: every step takes all records. Then its gradient is no sample, and its variance is zero exactly.
            measures["gradient_variance"] = 0.0 if variance is None else variance
        return ClientReport(
            task.run,
            task.round_index,
            task.client,
            task.nonce,
            task.budget,
            len(records[1]),
            self.layout,
            out.numpy(),
            # Of a model that has run away there is nothing to tell.
            {name: value for name, value in measures.items() if math.isfinite(value)},
        )

    def ask(self, question: Question, task: Task, parameters: Tensor) -> float:
        """Answer a question a sampler asks before it draws. Private, and charged to nobody: reports say so.

        `update_norm` is the norm of the update this task would send, clipped as it would be, before its noise.
        """
        records = self._records(task)
        if question == "loss":
            load_parameters(self._model, parameters)
            return float(losses(self._model, records).double().mean())
        with _seeded(self.plan.seed, task):
            return float(self._signal(task, parameters, records).norm())

    def score(self, start: int, end: int, parameters: Tensor) -> tuple[int, float]:
        """Return how many of the test records start…end − 1 the model gets right, and the sum of their losses."""
        load_parameters(self._model, parameters)
        inputs, targets = (part.to(self.plan.device) for part in self.data.tests(start, end))
        self._model.eval()
        with torch.no_grad():
            scores = chain.forward(self._model, inputs)
            loss = functional.cross_entropy(scores, targets, reduction="none").cpu().double().sum()
        return int((scores.argmax(1) == targets).sum()), float(loss)

    def _records(self, task: Task) -> Records:
        """Return a client's records; where fewer are allowed, the first ones, whatever they hold."""
        inputs, targets = self.data.records(task.client)
        if task.max_samples is not None:
            most = _validate.integer("max_samples", task.max_samples, low=1)
            inputs, targets = inputs[:most], targets[:most]
        return inputs.to(self.plan.device), targets.to(self.plan.device)

    def _measures_before(self, task: Task, parameters: Tensor, records: Records) -> dict[str, float]:
        if not {"loss", "loss_energy"} & set(task.measures):
            return {}
        load_parameters(self._model, parameters)
        found = losses(self._model, records).double()
        both = {"loss": float(found.mean()), "loss_energy": float(found.square().mean())}
        return {name: value for name, value in both.items() if name in task.measures}

    def _signal(self, task: Task, parameters: Tensor, records: Records) -> Tensor:
        """Return (parameters,) what would be sent but for its noise, in float64. It must not leave as it is."""
        if self.plan.has_noisy_steps:
            return signal_by_record(
                self._loaded_gradient(parameters, records),
                records,
                plan=self._local_plan,
                num_epochs=self.plan.local_epochs,
                order=self._order(task),
            )
        out = torch.empty_like(parameters)
        self._train(task, parameters, records, out)
        if not self.plan.is_perturbed:
            return out.double()
        return torch.tensor(clip_update([out.numpy()], self.plan.clip_norm).value)

    def _train(self, task: Task, parameters: Tensor, records: Records, out: Tensor) -> float | None:
        load_parameters(self._model, parameters)
        variance = local_sgd(
            self._model,
            records,
            learning_rate=self.plan.learning_rate,
            batch_size=self.plan.batch_size,
            num_epochs=self.plan.local_epochs,
            order=self._order(task),
            wants_variance=self._wants_variance(task, records),
        )
        write_update(parameters, self._model, out)
        return variance

    def _perturb(self, task: Task, num_samples: int, out: Tensor) -> None:
        clipped = clip_update([out.numpy()], self.plan.clip_norm)
        mechanism = self.plan.mechanism(task, num_samples)
        assert isinstance(mechanism, UpdateMechanism)
        _write(out, mechanism.release(clipped, self.plan.noise_for(task)).value)

    def _train_by_record(self, task: Task, parameters: Tensor, records: Records, out: Tensor) -> float | None:
        spread = Spread() if self._wants_variance(task, records) else None
        mechanism = self.plan.mechanism(task, len(records[1]))
        assert isinstance(mechanism, RecordMechanism)
        update = train_by_record(
            self._loaded_gradient(parameters, records),
            records,
            plan=self._local_plan,
            mechanism=mechanism,
            source=self.plan.noise_for(task),
            order=self._order(task),
            watch=None if spread is None else lambda gradient: spread.add([gradient]),
        )
        _write(out, update.value)
        return None if spread is None else spread.variance()

    def _loaded_gradient(self, parameters: Tensor, records: Records) -> PerSampleGradient:
        load_parameters(self._model, parameters)
        self._model.train()
        if self._gradient is None:
            self._gradient = per_sample_gradient(self._model, functional.cross_entropy, *records)
        return self._gradient

    @property
    def _local_plan(self) -> LocalPlan:
        return LocalPlan(self.plan.clip_norm, self.plan.learning_rate, self.plan.batch_size)

    def _wants_variance(self, task: Task, records: Records) -> bool:
        """Whether to measure the variance of steps' gradients: where each takes all records, it is zero."""
        size = self.plan.batch_size
        return "gradient_variance" in task.measures and size is not None and size < len(records[1])

    def _order(self, task: Task) -> np.random.Generator:
        return _random.generator(self.plan.seed, "batches", task.round_index, task.client)


def _write(out: Tensor, value: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
    target: Values = out.numpy()
    np.copyto(target, value, casting="same_kind")


@contextmanager
def _seeded(seed: int, task: Task) -> Iterator[None]:
    """Let layers that draw for themselves, such as dropout, depend on (seed, round, client) alone."""
    words = _random.generator(seed, "layers", task.round_index, task.client)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(words.integers(2**63)))
        yield
