"""The runs behind the paper's accuracy table, its curves and its non-IID figure: which, and with which clipping bound.

The paper does not print its clipping bound W, and the noise grows with it. So every sampler is shown twice. `tuned`: W
chosen for each sampler and split on validation records, as a practitioner would. `calibrated`: W chosen once, on random
sampling alone and on an IID split, so that it lands on the accuracy the paper prints for it, then the same for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fedpcs.errors import InvalidInput
from fedpcs.experiments.cell_store import Done
from fedpcs.experiments.exhibits.paper_numbers import SAMPLERS, SPLITS, printed_accuracy
from fedpcs.experiments.sweep_config import Cell, make_cells, make_sweep_config

Profile = Literal["quick", "paper"]
Run = Callable[[Sequence[Cell]], list[Done]]
TUNED, CALIBRATED = "W tuned for each sampler", "W calibrated on random"

_VALIDATION_SHARE = 0.1
_TUNING_SEEDS = (100,)
# Values of W that are tried.
_TRIED = (0.3, 1.0, 3.0)
_CALIBRATION_SEEDS = (0,)
_CLOSE_ENOUGH = 0.01
_MOST_STEPS = 6


@dataclass(frozen=True)
class Setting:
    """What a profile of the accuracy table runs.

    Attributes:
        base: The preset.
        changes: Keys of it that are changed.
        ratios: Sampling ratios.
        seeds: Seeds of the table.
        shrunk: What is smaller than in the paper, one sentence each.
    """

    base: str
    changes: dict[str, Any]
    ratios: tuple[float, ...]
    seeds: tuple[int, ...]
    shrunk: tuple[str, ...]


_QUICK_ROUNDS = {"fashion-mnist": 6, "cifar-10": 8, "svhn": 4, "cifar-100": 3, "cinic-10": 3, "tiny-imagenet": 2}
_PAPER_ROUNDS = {
    "fashion-mnist": 30,
    "cifar-10": 80,
    "svhn": 120,
    "cifar-100": 100,
    "cinic-10": 60,
    "tiny-imagenet": 20,
}


def setting_of(dataset: str, profile: Profile) -> Setting:
    """Return what a profile runs on a data set.

    Raises:
        InvalidInput: The paper has no such data set.
    """
    if dataset not in _QUICK_ROUNDS:
        raise InvalidInput(f"dataset must be one of {', '.join(_QUICK_ROUNDS)}, got {dataset!r}.")
    if profile == "paper":
        return Setting(dataset, {}, (0.2, 0.5, 0.8), (0, 1, 2, 3, 4), ())
    rounds = _QUICK_ROUNDS[dataset]
    shrunk = (
        f"{rounds} rounds instead of {_PAPER_ROUNDS[dataset]}: accuracies are those of an unfinished training.",
        "Sampling ratio 0.2 only; the paper has 0.5 and 0.8 too.",
        "3 seeds.",
    )
    return Setting(dataset, {"rounds": rounds}, (0.2,), (0, 1, 2), shrunk)


def table_cells(setting: Setting, bounds: dict[tuple[str, str, str], float]) -> list[Cell]:
    """Return the cells of the table.

    Args:
        setting: What to run.
        bounds: W by (variant, split, sampler).
    """
    cells = []
    for variant, split, sampler in bounds:
        sweep = make_sweep_config(
            {
                "name": "accuracy-table",
                "base": setting.base,
                "samplers": [sampler],
                "seeds": list(setting.seeds),
                "set": {**setting.changes, "privacy.clip_norm": bounds[variant, split, sampler]},
                "grid": {"data.partition": [split], "sampling.sampling_ratio": list(setting.ratios)},
                "variants": [{"label": variant}],
            }
        )
        cells += make_cells(sweep)
    return cells


def tune_bounds(setting: Setting, run: Run, samplers: Sequence[str] = SAMPLERS) -> dict[tuple[str, str, str], float]:
    """Return W for each (variant, split, sampler) by its accuracy on validation records; test records are not read."""
    found: dict[tuple[str, str, str], float] = {}
    cells = {(split, sampler): _tuning_cells(setting, split, sampler) for split in SPLITS for sampler in samplers}
    done = {one.cell.key: one for one in run([cell for some in cells.values() for cell in some])}
    for (split, sampler), tried in cells.items():
        results = [done[cell.key] for cell in tried if cell.key in done]
        if not results:
            raise InvalidInput(f"no tuning run of {sampler} on {split} came to its end; see why, and try again.")
        found[TUNED, split, sampler] = best_bound(results)
    return found


def best_bound(results: Sequence[Done]) -> float:
    """Return the W of the highest mean accuracy over seeds; of equals, the least: less noise."""
    scores: dict[float, list[float]] = {}
    for one in results:
        scores.setdefault(float(one.cell.config.privacy.clip_norm), []).append(one.result["accuracy"])
    return max(sorted(scores), key=lambda bound: math.fsum(scores[bound]) / len(scores[bound]))


def calibrate_bound(
    setting: Setting, run: Run, samplers: Sequence[str] = SAMPLERS
) -> dict[tuple[str, str, str], float]:
    """Return the W at which random sampling on an IID split has the paper's accuracy, for every sampler and split.

    Accuracy falls as W grows: W is doubled until random sampling is below the paper's number, then the bracket is
    halved, on a logarithmic scale, until it is within a point of it.
    """
    wanted = printed_accuracy(setting.base, 0.2, "iid", "random")
    if wanted is None:
        raise InvalidInput(f"the paper prints no accuracy of random sampling on {setting.base!r}.")
    target = wanted.mean / 100.0

    def accuracy(bound: float) -> float:
        results = run(_cells(setting, "iid", "random", [bound], _CALIBRATION_SEEDS, 0.0))
        if not results:
            raise InvalidInput(f"random sampling with W = {bound:g} came to no end; W cannot be calibrated.")
        return math.fsum(one.result["accuracy"] for one in results) / len(results)

    bound = bracketed(accuracy, target)
    return {(CALIBRATED, split, sampler): bound for split in SPLITS for sampler in samplers}


def bracketed(accuracy: Callable[[float], float], target: float, start: float = 16.0) -> float:
    """Return a bound at which a falling accuracy is near its target, rounded to two digits as it was tried.

    Args:
        accuracy: Of a bound.
        target: What it should be.
        start: The first bound tried.
    """
    low, high = start, start
    if accuracy(start) >= target:
        while accuracy(high := _round(2.0 * high)) >= target and high < 1e6:
            low = high
    else:
        while accuracy(low := _round(0.5 * low)) < target and low > 1e-3:
            high = low
    best = min((low, high), key=lambda bound: abs(accuracy(bound) - target))
    for _ in range(_MOST_STEPS):
        middle = _round(math.sqrt(low * high))
        if abs(accuracy(best) - target) <= _CLOSE_ENOUGH or middle in (low, high):
            break
        low, high = (middle, high) if accuracy(middle) >= target else (low, middle)
        best = min((best, middle), key=lambda bound: abs(accuracy(bound) - target))
    return best


def _round(bound: float) -> float:
    return float(f"{bound:.2g}")


def _tuning_cells(setting: Setting, split: str, sampler: str) -> list[Cell]:
    return _cells(setting, split, sampler, _TRIED, _TUNING_SEEDS, _VALIDATION_SHARE)


def _cells(
    setting: Setting, split: str, sampler: str, bounds: Sequence[float], seeds: Sequence[int], share: float
) -> list[Cell]:
    sweep = make_sweep_config(
        {
            "name": "clip-norm",
            "base": setting.base,
            "samplers": [sampler],
            "seeds": list(seeds),
            "set": {**setting.changes, "data.partition": split, "data.validation_share": share},
            "grid": {"privacy.clip_norm": list(bounds)},
        }
    )
    return make_cells(sweep)
