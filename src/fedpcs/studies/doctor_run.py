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

from fedpcs import _format, _random
from fedpcs._threads import num_cores
from fedpcs._validate import FloatArray
from fedpcs.game.schedule import Schedule
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
from fedpcs.privacy.modes.no_privacy import NO_PRIVACY
from fedpcs.sampling import disclosure, draw, make_view, settle_rule, start, weigh
from fedpcs.studies.estimate import measure, seconds_of
from fedpcs.studies.promise import promise
from fedpcs.trial.assemble import (
    client_plan,
    counts_of,
    dealt_out,
    delta_note,
    device_of,
    load_for,
    sampler_of,
)
from fedpcs.trial.check import Check
from fedpcs.trial.config import RunConfig
from fedpcs.trial.preflight import try_out, untrained_classes
from fedpcs.trial.schedule import make_schedule

_MOST_CLIENTS = 10
_MOST_RECORDS = 10  # of each
# The cohort's noise over a client's update. In 22 settings of Fashion-MNIST (docs/how-to-choose.md): at 16 and less all
# trainings end at 70 to 78 %, at 20 to 21 some drown, at 23 and more all end at 12 to 36 %.
_DROWNS, _DROWNS_SURELY = 20.0, 23.0
_DRAWS = 100
_NOISELESS = Rho.at_most(9e9)
_MOST_EPSILON = 10.0


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
    if words := delta_note(config):
        found.append(Check("delta", "note", words))
    schedules = {name: make_schedule(config, sampler_of(config, name)) for name in config.sampling.samplers}
    if not config.privacy.is_private:
        return [*found, Check("privacy", "note", promise(config.privacy))]
    norms = measured_norms(config, data)
    found.append(_clipping(config, norms))
    for name, schedule in schedules.items():
        found += [_noise(name, config, schedule, data, norms), _epsilon(name, config, schedule)]
    disclosures = [{"disclosure": disclosure(sampler_of(config, name)).label} for name in config.sampling.samplers]
    return [*found, Check("promise", "fine", promise(config.privacy, disclosures))]


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
    plan, update = client_plan(config, config.seeds[0]), float(np.median(norms.update))
    first, last = (
        float(np.median(np.sqrt(noise_power(plan, budget, data.num_samples, norms.num_parameters)))) / update
        for budget in (schedule.budget[0], schedule.budget[-1])
    )
    rule = settle_rule(config.sampling.rule, np.ones(1))
    together = aggregated_noise(sampler, rule, config, schedule, data, norms) / update
    words = (
        f"the median client's noise is {_format.amount(first)} times its update in the first round, "
        f"{_format.amount(last)} times in the last; that of the whole cohort, weighed by {rule}, "
        f"{_format.amount(together)} times"
    )
    if not together > _DROWNS:
        return Check(f"noise, {sampler}", "fine", words)
    best = aggregated_noise(sampler, "precision", config, schedule, data, norms) / update
    how_sure = "may" if together <= _DROWNS_SURELY else "is expected to"
    remedy = f"Above {_DROWNS:g} training {how_sure} drown. " + (
        f"Set sampling.rule = 'precision': {_format.amount(best)} times."
        if best <= _DROWNS
        else "Lower privacy.clip_norm, raise budgets (game.reward, game.budget_unit), draw more clients, or take a "
        "smaller network."
    )
    return Check(f"noise, {sampler}", "note", words, remedy)


def aggregated_noise(
    sampler: str, rule: str, config: RunConfig, schedule: Schedule, data: PartitionedData, norms: Norms
) -> float:
    """Return the norm of the noise in the weighted sum of a cohort's updates, root mean square over draws and rounds.

    Draws are those of a sampler that has not heard anybody yet, from clients whose updates are alike. Budgets settle
    early: four rounds are looked at, those between are interpolated.
    """
    last, weighing = schedule.cohort_size.size - 1, config.sampling
    rounds = sorted({0, min(1, last), last // 2, last})
    num_draws = max(3, min(_DRAWS, 1_000_000 // data.num_samples.size))
    made, plan = sampler_of(config, sampler), client_plan(config, config.seeds[0])
    power = []
    for now in rounds:
        noise = noise_power(plan, schedule.budget[now], data.num_samples, norms.num_parameters)
        view = make_view(
            int(schedule.cohort_size[now]),
            data.num_samples,
            round_index=now,
            budget=schedule.budget[now],
            noise_power=noise,
            update_norm=np.ones(noise.size),
            loss=np.ones(noise.size),
            label_counts=counts_of(data) if "label_counts" in made.reads else None,
            memory=start(made, noise.size),
            local_steps=plan.local_steps(data.num_samples),
        )
        found = []
        for attempt in range(num_draws):
            cohort = draw(made, view, _random.generator(config.seeds[0], "doctor", now, attempt))
            by_design = weighing.by_design and rule == "precision"
            weights = weigh(rule, cohort, view, drift=norms.drift, by_design=by_design, cap=weighing.weight_cap)
            found.append(float(weights**2 @ noise[cohort.clients]))
        power.append(float(np.mean(found)))
    return float(np.sqrt(np.interp(np.arange(last + 1), rounds, power).mean()))


def _epsilon(sampler: str, config: RunConfig, schedule: Schedule) -> Check:
    delta = float(config.privacy.delta)
    method: Literal["exact", "tight"] = "tight" if config.privacy.noise == "exact" else "exact"
    always = schedule.budget.sum(axis=0)
    share = (schedule.cohort_size / config.data.num_clients)[:, np.newaxis]
    usual = (share * schedule.budget).sum(axis=0)
    middle = [float(np.quantile(usual, 0.5, method=end)) for end in ("lower", "higher")]
    typical = sum(to_epsilon(rho, delta, method) for rho in middle) / 2.0
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
