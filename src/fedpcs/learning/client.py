"""The client's side of a round: train on one's own records, clip, perturb, report.

A client sees its own data, the model and the task it was sent. Nothing here knows of other clients, and nothing leaves
but what `answer` returns, which the server has charged to the client's budget before it sent the task.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fedpcs import _random, _validate
from fedpcs.learning import chain
from fedpcs.learning.client_data import ClientData, Records
from fedpcs.learning.layout import Layout, Values, layout_of, load_parameters, write_update
from fedpcs.learning.local import Spread, local_sgd, losses
from fedpcs.learning.protocol import ClientReport, Task, budget_of
from fedpcs.privacy.clipping import clip_update
from fedpcs.privacy.mechanism import RecordMechanism, UpdateMechanism
from fedpcs.privacy.modes import mode_named
from fedpcs.privacy.modes.mode import Clips, PrivacyMode
from fedpcs.privacy.modes.no_privacy import NO_PRIVACY
from fedpcs.privacy.noise import NAMES, NoiseSource, noise_source
from fedpcs.privacy.per_sample import PerSampleGradient, per_sample_gradient
from fedpcs.privacy.private_training import LocalPlan, signal_by_record, train_by_record

Question = Literal["loss", "update_norm"]


@dataclass(frozen=True)
class ClientPlan:
    """How every client trains and protects itself; announced before the first round.

    Attributes:
        seed: Of batches, and of the noise if it is `fast`.
        mode: Of privacy, by name: one of `fedpcs.privacy.modes.MODES`; see docs/guarantees.md.
        learning_rate: Step size.
        batch_size: b; None: all records at once.
        local_epochs: E.
        clip_norm: W of the update, or C of a record's gradient in mode `record`.
        noise: `fast` (seeded, for simulation), `secure` or `exact`.
        device: Where training and evaluation run: `cpu`, `cuda`, `cuda:N` or `mps`. Noise is always drawn on the CPU.
    """

    seed: int = 0
    mode: str = NO_PRIVACY.name
    learning_rate: float = 0.1
    batch_size: int | None = 32
    local_epochs: int = 1
    clip_norm: float = 1.0
    noise: str = "fast"
    device: str = "cpu"

    def __post_init__(self) -> None:
        _validate.integer("seed", self.seed, low=0)
        mode_named(self.mode)
        _validate.positive("learning_rate", self.learning_rate)
        if self.batch_size is not None:
            _validate.integer("batch_size", self.batch_size, low=1, remedy="Leave it out to use all records at once.")
        _validate.integer("local_epochs", self.local_epochs, low=1)
        _validate.positive("clip_norm", self.clip_norm, remedy="Set it near the median norm of what is clipped.")
        _validate.choice("noise", self.noise, NAMES)
        _validate.device("device", self.device)

    @property
    def is_perturbed(self) -> bool:
        """Whether releases carry noise and cost budget."""
        return self.protection.level is not None

    @property
    def protection(self) -> PrivacyMode:
        """The privacy mode."""
        return mode_named(self.mode)

    @property
    def has_noisy_steps(self) -> bool:
        """Whether every local step is clipped and perturbed, and not the update."""
        return self.protection.clips is Clips.GRADIENTS

    def local_steps(self, num_samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return (clients,) how many steps clients with so many records take in a round: epochs × batches.

        Example:
            >>> ClientPlan(batch_size=20, local_epochs=3).local_steps(np.array([10, 64, 30])).tolist()
            [3, 12, 6]
        """
        size = num_samples if self.batch_size is None else np.minimum(num_samples, self.batch_size)
        return np.asarray(self.local_epochs * -(-num_samples // size))


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
        trained = local_sgd(
            self._model,
            records,
            learning_rate=self.plan.learning_rate,
            batch_size=self.plan.batch_size,
            num_epochs=self.plan.local_epochs,
            order=self._order(task),
            wants_variance=self._wants_variance(task, records),
        )
        write_update(parameters, self._model, out)
        return trained.gradient_variance

    def _perturb(self, task: Task, num_samples: int, out: Tensor) -> None:
        clipped = clip_update([out.numpy()], self.plan.clip_norm)
        mechanism = self.plan.protection.mechanism(self.plan, budget_of(task), num_samples)
        assert isinstance(mechanism, UpdateMechanism)
        _write(out, mechanism.release(clipped, self._noise(task)).value)

    def _train_by_record(self, task: Task, parameters: Tensor, records: Records, out: Tensor) -> float | None:
        spread = Spread() if self._wants_variance(task, records) else None
        mechanism = self.plan.protection.mechanism(self.plan, budget_of(task), len(records[1]))
        assert isinstance(mechanism, RecordMechanism)
        update = train_by_record(
            self._loaded_gradient(parameters, records),
            records,
            plan=self._local_plan,
            mechanism=mechanism,
            source=self._noise(task),
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

    def _noise(self, task: Task) -> NoiseSource:
        seed = self.plan.seed if self.plan.noise == "fast" else None
        return noise_source(self.plan.noise, seed=seed, round_index=task.round_index, client=task.client)


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
