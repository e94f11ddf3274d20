"""Norms of gradients and updates at the untrained model, before clipping and after it.

They are measured on some clients' records, in clear: for a federation of real people give data that anyone may see.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedpcs._validate import FloatArray
from fedpcs.learning.client import ClientSide
from fedpcs.learning.device import one_thread
from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.models import make_model
from fedpcs.learning.protocol import Task
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.modes.no_privacy import NO_PRIVACY
from fedpcs.trial.assemble import client_plan

if TYPE_CHECKING:
    from fedpcs.learning.client_data import PartitionedData
    from fedpcs.trial.config import RunConfig

_MOST_CLIENTS = 10
_MOST_RECORDS = 10  # of each
_NOISELESS = Rho.at_most(9e9)


@dataclass(frozen=True)
class Norms:
    """What clipping meets at the untrained model.

    Attributes:
        what: Whose norms: `updates` of clients, or `gradients` of records.
        before: (clients or records,) norms before clipping.
        update: (clients,) norms of whole updates after clipping, before noise.
        drift: Mean squared distance of these updates from the clients' mean.
        num_parameters: d.
    """

    what: str
    before: FloatArray
    update: FloatArray
    drift: float
    num_parameters: int


def measured_norms(config: RunConfig, data: PartitionedData) -> Norms:
    """Measure norms on clients of all sizes, before clipping and after it."""
    seed = config.seeds[0]
    plan = client_plan(config, seed)
    model = make_model(config.training.model, data.input_shape, data.num_classes, seed=seed)
    parameters = torch.from_numpy(flat_parameters(model))
    order = np.argsort(data.num_samples, kind="stable")
    clients = order[np.linspace(0, order.size - 1, min(_MOST_CLIENTS, order.size)).astype(int)].tolist()
    with one_thread():
        if plan.has_noisy_steps:
            what, before = "gradients", _gradient_norms(model, data, clients)
        else:
            whole = ClientSide(replace(plan, mode=NO_PRIVACY.name), model, data)
            what, before = "updates", _update_norms(whole, clients, parameters)[0]
        side = ClientSide(plan, model, data)
        after, drift = _update_norms(side, clients, parameters)
    return Norms(what, np.array(before), np.array(after), drift, parameters.numel())


def _gradient_norms(model: nn.Module, data: PartitionedData, clients: list[int]) -> list[float]:
    """Return the norms of the gradients of clients' first records, one by one."""
    trained = [value for value in model.parameters() if value.requires_grad]
    found = []
    for client in clients:
        inputs, targets = data.records(client)
        for index in range(min(_MOST_RECORDS, len(targets))):
            one = slice(index, index + 1)
            loss = functional.cross_entropy(model(inputs[one]), targets[one])
            gradients = torch.autograd.grad(loss, trained, allow_unused=True, materialize_grads=True)
            found.append(float(torch.stack([part.double().norm() for part in gradients]).norm()))
    return found


def _update_norms(side: ClientSide, clients: list[int], parameters: Tensor) -> tuple[list[float], float]:
    """Return norms of updates and their spread, with budgets so large that there is next to no noise in them."""
    out, total = torch.empty_like(parameters), torch.zeros_like(parameters, dtype=torch.float64)
    norms = []
    for client in clients:
        side.answer(Task("doctor", 0, client, "", _NOISELESS), parameters, out)
        total += out
        norms.append(float(out.double().norm()))
    apart = sum(norm**2 for norm in norms) - float(total.norm()) ** 2 / len(norms)
    return norms, max(0.0, apart) / max(1, len(norms) - 1)
