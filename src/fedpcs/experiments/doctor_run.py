"""What a run will meet, before it is begun: its data, its time, what clipping takes, what noise adds, what ε it costs.

Norms are measured on some clients' records at the untrained model, in clear: for a federation of real people give
data that anyone may see.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedpcs import _format
from fedpcs._threads import num_cores
from fedpcs._validate import FloatArray
from fedpcs.experiments.arm_plan import client_plan, dealt_out, device_of, load_for, sampler_of
from fedpcs.experiments.doctor import Check
from fedpcs.experiments.run_config import RunConfig
from fedpcs.experiments.run_report_promise import promise
from fedpcs.experiments.schedule import Schedule, make_schedule
from fedpcs.experiments.sweep_estimate import measure, seconds_of
from fedpcs.experiments.try_out import try_out, untrained_classes
from fedpcs.learning.client import ClientSide
from fedpcs.learning.client_data import PartitionedData
from fedpcs.learning.datasets import Dataset
from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.models import make_model
from fedpcs.learning.noise_plan import noise_power
from fedpcs.learning.protocol import Task
from fedpcs.learning.threads import one_thread
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.conversion import to_epsilon

_MOST_CLIENTS = 10
_MOST_RECORDS = 10  # of each
# Seen on Fashion-MNIST with the paper's network, ten rounds: at 6 runs still train, at 9 many run away.
_LOUD = 5.0
_NOISELESS = Rho.at_most(9e9)
_MOST_EPSILON = 10.0


@dataclass(frozen=True)
class Norms:
    """What clipping meets at the untrained model.

    Attributes:
        what: Whose norms: `updates` of clients, or `gradients` of records.
        before: (clients or records,) norms before clipping.
        update: (clients,) norms of whole updates after clipping, before noise.
        num_parameters: d.
    """

    what: str
    before: FloatArray
    update: FloatArray
    num_parameters: int


def check_run(config: RunConfig, data_dir: Path | None) -> list[Check]:
    """Look at what a run will meet.

    Raises:
        InvalidInput: It could not be begun.
        NotConverged: A game it needs has no certified equilibrium.
    """
    device_of(config)
    dataset = load_for(config, data_dir)
    try_out(config, dataset)
    data = dealt_out(config, dataset, config.seeds[0])
    found = [_clients(config, data), *_classes(dataset), _time(config, dataset)]
    schedules = {name: make_schedule(config, sampler_of(config, name)) for name in config.sampling.samplers}
    if config.privacy.mode == "none":
        return [*found, Check("privacy", "note", promise(config.privacy))]
    norms = measured_norms(config, data)
    found.append(_clipping(config, norms))
    for name, schedule in schedules.items():
        found += [_noise(name, config, schedule, data, norms), _epsilon(name, config, schedule)]
    return [*found, Check("promise", "fine", promise(config.privacy))]


def measured_norms(config: RunConfig, data: PartitionedData) -> Norms:
    """Measure norms on clients of all sizes, before clipping and after it."""
    seed = config.seeds[0]
    plan = client_plan(config, seed)
    model = make_model(config.training.model, data.input_shape, data.num_classes, seed=seed)
    parameters = torch.from_numpy(flat_parameters(model))
    order = np.argsort(data.num_samples, kind="stable")
    clients = order[np.linspace(0, order.size - 1, min(_MOST_CLIENTS, order.size)).astype(int)].tolist()
    with one_thread():
        if plan.mode == "record":
            what, before = "gradients", _gradient_norms(model, data, clients)
        else:
            whole = ClientSide(replace(plan, mode="none"), model, data)
            what, before = "updates", [_update_norm(whole, client, parameters) for client in clients]
        side = ClientSide(plan, model, data)
        after = [_update_norm(side, client, parameters) for client in clients]
    return Norms(what, np.array(before), np.array(after), parameters.numel())


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


def _update_norm(side: ClientSide, client: int, parameters: Tensor) -> float:
    """Return the norm of a client's update, with a budget so large that there is next to no noise in it."""
    out = torch.empty_like(parameters)
    side.answer(Task("doctor", 0, client, "", _NOISELESS), parameters, out)
    return float(out.double().norm())


def _clients(config: RunConfig, data: PartitionedData) -> Check:
    sizes = data.num_samples
    least, middle, most = (int(value) for value in np.quantile(sizes, (0.0, 0.5, 1.0)))
    each = f"{least:,}" if least == most else f"{least:,} to {most:,} (median {middle:,})"
    where = f"{config.data.name}, {config.data.partition}"
    return Check(
        "clients", "fine", f"{where}: {sizes.size} clients with {each} records each, {data.num_tests:,} to test on"
    )


def _classes(dataset: Dataset) -> list[Check]:
    words, remedy = untrained_classes(dataset), "Add such training records, or leave those classes out of the test."
    return [Check("classes", "note", words, remedy)] if words else []


def _time(config: RunConfig, dataset: Dataset) -> Check:
    pace = measure(config, dataset)
    seconds = len(config.seeds) * sum(seconds_of(config, name, pace) for name in config.sampling.samplers)
    side_by_side = min(config.engine.num_workers, num_cores()) if config.engine.kind == "workers" else 1
    words = (
        f"about {_format.duration(seconds / side_by_side)}: a client trains for "
        f"{_format.duration(pace.train_seconds)} on one core; "
        f"{len(config.sampling.samplers)} samplers × {len(config.seeds)} seeds × {config.rounds} rounds"
    )
    return Check("time", "fine", words)


def _clipping(config: RunConfig, norms: Norms) -> Check:
    bound, middle = float(config.privacy.clip_norm), float(np.median(norms.before))
    above = float((norms.before > bound).mean())
    words = (
        f"privacy.clip_norm = {bound:g}; {100 * above:.0f} % of {norms.what} are longer at the untrained model "
        f"(median {middle:.3g}, longest {norms.before.max():.3g})"
    )
    if bound > norms.before.max():
        remedy = f"Noise grows with it and nothing is clipped: try a privacy.clip_norm near {middle:.2g}."
        return Check("clipping", "note", words, remedy)
    return Check("clipping", "fine", words)


def _noise(sampler: str, config: RunConfig, schedule: Schedule, data: PartitionedData, norms: Norms) -> Check:
    plan = client_plan(config, config.seeds[0])
    first, last = (
        float(np.median(np.sqrt(noise_power(plan, budget, data.num_samples, norms.num_parameters))))
        / float(np.median(norms.update))
        for budget in (schedule.budget[0], schedule.budget[-1])
    )
    cohort = int(schedule.cohort_size[-1])
    together = last / np.sqrt(cohort)
    words = (
        f"the median client's noise is {first:.2g} times its update in the first round, {last:.2g} times in the last; "
        f"averaged over {cohort} drawn clients {together:.2g} times"
    )
    if together > _LOUD:
        remedy = (
            "Training may not get off the ground. Lower privacy.clip_norm, raise budgets (game.reward, "
            "game.budget_unit), draw more clients, or take a smaller network."
        )
        return Check(f"noise, {sampler}", "note", words, remedy)
    return Check(f"noise, {sampler}", "fine", words)


def _epsilon(sampler: str, config: RunConfig, schedule: Schedule) -> Check:
    delta = float(config.privacy.delta)
    method: Literal["exact", "tight"] = "tight" if config.privacy.noise == "exact" else "exact"
    always = schedule.budget.sum(axis=0)
    share = (schedule.cohort_size / config.data.num_clients)[:, np.newaxis]
    usual = (share * schedule.budget).sum(axis=0)
    typical = to_epsilon(float(np.median(usual)), delta, method)
    most = to_epsilon(float(always.max()), delta, method)
    words = (
        f"ε of the median client, drawn as often as others, {_format.rounded_up(typical)}; of whoever is always "
        f"drawn, at most {_format.rounded_up(most)} (δ = {_format.amount(delta)})"
    )
    if config.privacy.limit_epsilon is not None:
        words += f"; nobody goes beyond privacy.limit_epsilon = {config.privacy.limit_epsilon:g}"
    if typical > _MOST_EPSILON:
        remedy = (
            f"An ε above {_MOST_EPSILON:g} protects little: lower game.budget_unit or rewards, or run fewer rounds."
        )
        return Check(f"privacy, {sampler}", "note", words, remedy)
    return Check(f"privacy, {sampler}", "fine", words)
