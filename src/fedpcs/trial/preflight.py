"""Try a configuration out: find what cannot work before anything is written, solved or charged."""

from __future__ import annotations

import numpy as np
import torch

from fedpcs import _format, _random
from fedpcs.errors import InvalidInput
from fedpcs.game.rules import cohort_from_ratio
from fedpcs.learning.datasets import Dataset, normalised
from fedpcs.learning.layout import layout_of
from fedpcs.learning.models import make_model
from fedpcs.learning.server import refuse_unsent
from fedpcs.privacy.per_sample import refuse_mixing_layers
from fedpcs.sampling import Sampler, draw, make_view, settle_rule, weigh
from fedpcs.trial.assemble import dealt_out, sampler_of
from fedpcs.trial.config import RunConfig

_MOST_CLASSES = 10  # so many are named


def dry_run(config: RunConfig, dataset: Dataset) -> None:
    """Find what cannot work before anything is written, solved or charged.

    Raises:
        InvalidInput: A sampler, its rule, the model or the partition cannot be had as configured.
    """
    _try_model(config, dataset)
    for seed in config.seeds:
        dealt_out(config, dataset, seed)
    try_rules(config, dataset.num_classes)


def untrained_classes(dataset: Dataset) -> str:
    """Return a warning that names the classes tested and never trained on; empty if there are none."""
    trained = torch.bincount(dataset.train_targets, minlength=dataset.num_classes) > 0
    tested = torch.bincount(dataset.test_targets, minlength=dataset.num_classes)
    missing = ((tested > 0) & ~trained).nonzero().flatten().tolist()
    if not missing:
        return ""
    named = ", ".join(map(str, missing[:_MOST_CLASSES])) + (", …" if len(missing) > _MOST_CLASSES else "")
    which = f"class {named}" if len(missing) == 1 else f"any of the {len(missing)} classes {named}"
    share = _format.share(float(tested[missing].sum()) / len(dataset.test_targets))
    return f"{dataset.name}: no training record is of {which}, but {share} of the test records are, and will be wrong."


def try_rules(config: RunConfig, num_classes: int) -> None:
    """Find samplers that cannot draw as configured, or be weighed by the rule.

    Raises:
        InvalidInput: There is one.
    """
    num_clients = config.data.num_clients
    cohort_size = cohort_from_ratio(float(config.sampling.sampling_ratio), num_clients)
    sampling, is_noisy = config.sampling, config.privacy.is_private
    rule = settle_rule(sampling.rule, np.full(1, float(is_noisy)))
    for name in config.sampling.samplers:
        sampler = sampler_of(config, name)
        try:
            try_sampler(sampler, rule, num_clients, cohort_size, num_classes, by_design=sampling.by_design)
        except InvalidInput as error:
            how = " and by_design" if sampling.by_design else ""
            raise InvalidInput(f"sampler {name!r} cannot be run with rule {sampling.rule!r}{how}: {error}") from None


def try_sampler(
    sampler: Sampler, rule: str, num_clients: int, cohort_size: int, num_classes: int, *, by_design: bool = False
) -> None:
    """Draw one cohort of clients that are all alike, and weigh it.

    Raises:
        InvalidInput: The sampler cannot draw, or the rule cannot weigh what it draws.
    """
    refuse_unsent(sampler)
    ones = np.ones(num_clients)
    view = make_view(
        cohort_size,
        ones,
        budget=ones,
        noise_power=ones,
        update_norm=ones,
        loss=ones,
        label_counts=np.ones((ones.size, num_classes)),
    )
    weigh(rule, draw(sampler, view, _random.generator(0, "try-out")), view, drift=1.0, by_design=by_design)


def _try_model(config: RunConfig, dataset: Dataset) -> None:
    model = make_model(config.training.model, dataset.input_shape, dataset.num_classes, seed=0)
    try:
        layout_of(model)
        if config.privacy.has_noisy_steps:
            refuse_mixing_layers(model)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):  # a layer may draw
            shape = tuple(model(normalised(dataset, dataset.test_inputs[:2])).shape)
    except InvalidInput:
        raise
    except Exception as error:  # a user's network may fail in any way
        raise InvalidInput(f"model {config.training.model!r} fails on records of this data set: {error}") from error
    if shape != (min(2, len(dataset.test_inputs)), dataset.num_classes):
        raise InvalidInput(
            f"model {config.training.model!r} must return {dataset.num_classes} scores for each record, got {shape}."
        )
