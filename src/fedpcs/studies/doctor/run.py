"""What a run will meet, before it is begun: its data, its time, what clipping takes, what noise adds, what ε costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedpcs import _format
from fedpcs._check import Check, noted
from fedpcs._threads import num_cores
from fedpcs.privacy.conversion import to_epsilon
from fedpcs.sampling import disclosure, settle_rule
from fedpcs.studies.doctor.noise import aggregated_noise, median_noise
from fedpcs.studies.doctor.norms import Norms, measured_norms
from fedpcs.studies.estimate import measure, seconds_of
from fedpcs.studies.promise import promise
from fedpcs.trial.assemble import dealt_out, delta_note, device_of, load_for, sampler_of
from fedpcs.trial.preflight import dry_run, untrained_classes
from fedpcs.trial.schedule import make_schedule

if TYPE_CHECKING:
    from fedpcs.game.schedule import Schedule
    from fedpcs.learning.client_data import PartitionedData
    from fedpcs.learning.datasets import Dataset
    from fedpcs.trial.config import RunConfig

# The cohort's noise over a client's update. In 22 settings of Fashion-MNIST (docs/how-to-choose.md): at 16 and less all
# trainings end at 70 to 78 %, at 20 to 21 some drown, at 23 and more all end at 12 to 36 %.
_DROWNS, _DROWNS_SURELY = 20.0, 23.0
_MOST_EPSILON = 10.0


def check_run(config: RunConfig, data_dir: Path | None) -> list[Check]:
    """Look at what a run will meet.

    Raises:
        InvalidInput: It could not be begun.
        NotConverged: A game it needs has no certified equilibrium.
    """
    device_of(config)
    dataset = load_for(config, data_dir)
    dry_run(config, dataset)
    data = dealt_out(config, dataset, config.seeds[0])
    found = [_clients(config, data), *_classes(dataset), _time(config, dataset)]
    if note := delta_note(config):
        found.append(Check("delta", "note", note))
    schedules = {name: make_schedule(config, sampler_of(config, name)) for name in config.sampling.samplers}
    if not config.privacy.is_private:
        return [*found, Check("privacy", "note", promise(config.privacy))]
    norms = measured_norms(config, data)
    found.append(_clipping(config, norms))
    for name, schedule in schedules.items():
        found += [_noise(name, config, schedule, data, norms), _epsilon(name, config, schedule)]
    disclosures = [disclosure(sampler_of(config, name)).label for name in config.sampling.samplers]
    return [*found, Check("promise", "fine", promise(config.privacy, disclosures))]


def _clients(config: RunConfig, data: PartitionedData) -> Check:
    least, middle, most = (int(value) for value in np.quantile(data.num_samples, (0.0, 0.5, 1.0)))
    each = f"{least:,}" if least == most else f"{least:,} to {most:,} (median {middle:,})"
    clients = f"{data.num_samples.size} clients with {each} records each, {data.num_tests:,} to test on"
    return noted("clients", f"{config.data.name}, {config.data.partition}: {clients}")


def _classes(dataset: Dataset) -> list[Check]:
    text, remedy = untrained_classes(dataset), "Add such training records, or leave those classes out of the test."
    return [noted("classes", text, remedy)] if text else []


def _time(config: RunConfig, dataset: Dataset) -> Check:
    pace, samplers = measure(config, dataset), config.sampling.samplers
    seconds = len(config.seeds) * sum(seconds_of(config, name, pace) for name in samplers)
    side_by_side = min(config.engine.num_workers, num_cores()) if config.engine.kind == "workers" else 1
    return noted(
        "time",
        f"about {_format.duration(seconds / side_by_side)}: a client trains for {_format.duration(pace.train_seconds)} "
        f"on one core; {len(samplers)} samplers × {len(config.seeds)} seeds × {config.rounds} rounds",
    )


def _clipping(config: RunConfig, norms: Norms) -> Check:
    bound, middle, longest = float(config.privacy.clip_norm), float(np.median(norms.before)), norms.before.max()
    text = (
        f"privacy.clip_norm = {_format.setting(bound)}; {_format.percent(float((norms.before > bound).mean()))} of "
        f"{norms.what} are longer at the untrained model (median {_format.amount(middle)}, longest "
        f"{_format.amount(longest)})"
    )
    advice = f"Noise grows with it and nothing is clipped: try a privacy.clip_norm near {_format.amount(middle)}."
    return noted("clipping", text, advice if bound > longest else "")


def _noise(sampler: str, config: RunConfig, schedule: Schedule, data: PartitionedData, norms: Norms) -> Check:
    update, rule = float(np.median(norms.update)), settle_rule(config.sampling.rule, np.ones(1))
    first, last = (noise / update for noise in median_noise(config, schedule, data, norms))
    together = aggregated_noise(sampler, rule, config, schedule, data, norms) / update
    text = (
        f"the median client's noise is {_format.amount(first)} times its update in the first round, "
        f"{_format.amount(last)} times in the last; that of the whole cohort, weighed by {rule}, "
        f"{_format.amount(together)} times"
    )
    if not together > _DROWNS:
        return noted(f"noise, {sampler}", text)
    best = aggregated_noise(sampler, "precision", config, schedule, data, norms) / update
    how_sure = "may" if together <= _DROWNS_SURELY else "is expected to"
    advice = (
        f"Set sampling.rule = 'precision': {_format.amount(best)} times."
        if best <= _DROWNS
        else "Lower privacy.clip_norm, raise budgets (game.reward, game.budget_unit), draw more clients, or take a "
        "smaller network."
    )
    return noted(f"noise, {sampler}", text, f"Above {_format.setting(_DROWNS)} training {how_sure} drown. {advice}")


def _epsilon(sampler: str, config: RunConfig, schedule: Schedule) -> Check:
    delta, limit = float(config.privacy.delta), config.privacy.limit_epsilon
    method: Literal["exact", "tight"] = "tight" if config.privacy.noise == "exact" else "exact"
    share = (schedule.cohort_size / config.data.num_clients)[:, np.newaxis]
    usual = (share * schedule.budget).sum(axis=0)
    middle = [float(np.quantile(usual, 0.5, method=end)) for end in ("lower", "higher")]
    typical = sum(to_epsilon(rho, delta, method) for rho in middle) / 2.0
    most = to_epsilon(float(schedule.budget.sum(axis=0).max()), delta, method)
    text = (
        f"ε of the median client, drawn as often as others, {_format.rounded_up(typical)}; of whoever is always "
        f"drawn, at most {_format.rounded_up(most)} (δ = {_format.amount(delta)})"
    )
    if limit is not None:
        text += f"; nobody goes beyond privacy.limit_epsilon = {_format.setting(limit)}"
    advice = (
        f"An ε above {_format.setting(_MOST_EPSILON)} protects little: lower game.budget_unit or rewards, or run fewer "
        "rounds."
    )
    return noted(f"privacy, {sampler}", text, advice if typical > _MOST_EPSILON else "")
