"""How the accuracy table comes by its clipping bound W: tuned on validation records, or calibrated on random draws."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fedpcs.errors import InvalidInput, Unfinished
from fedpcs.experiments.cell_store import Done
from fedpcs.experiments.exhibits.accuracy_cells import CALIBRATED, SELFISH, Run, Setting, behaviour_of
from fedpcs.experiments.exhibits.paper_numbers import printed_accuracy
from fedpcs.experiments.sweep_config import Cell, make_cells, make_sweep_config

# Values of W that are tried: updates are about 3 long in the first round and 1 in the last.
_TRIED = (1.0, 3.0, 10.0)
TUNING_SEEDS = (100, 101, 102)
_CALIBRATION_SEED = 0
VALIDATION_SHARE = 0.1
_CLOSE_ENOUGH = 0.01
_MOST_STEPS = 8
# Where the search for W begins: a selfish client's noise is some thirty times that of a paid one.
_START = {CALIBRATED: 60.0, SELFISH: 4.0}


@dataclass(frozen=True)
class TriedBounds:
    """What each W that was tried came to for one sampler.

    Attributes:
        accuracy: On validation records by W, one for each seed.
    """

    accuracy: Mapping[float, tuple[float, ...]]

    @property
    def taken(self) -> float:
        """The least W whose mean is within one standard error of the highest: less noise, and no luck."""
        best = max(self.accuracy.values(), key=statistics.fmean)
        enough = statistics.fmean(best) - statistics.stdev(best) / math.sqrt(len(best))
        return min(bound for bound, reached in self.accuracy.items() if statistics.fmean(reached) >= enough)

    @property
    def reached(self) -> float:
        """The mean accuracy of the W that is taken."""
        return statistics.fmean(self.accuracy[self.taken])


def tune_bounds(setting: Setting, run: Run, samplers: Sequence[str]) -> dict[str, TriedBounds]:
    """Return what each W came to for each sampler on validation records of an IID split; no test record is read."""
    cells = {name: validation_cells(setting, name, _TRIED) for name in samplers}
    done = {one.cell.key: one for one in run([cell for some in cells.values() for cell in some])}
    found = {}
    for name, tried in cells.items():
        if missing := sum(cell.key not in done for cell in tried):
            raise Unfinished(f"{missing} of the {len(tried)} trainings by which W is tuned for {name} are not done.")
        found[name] = TriedBounds({bound: _accuracies(tried, done, bound) for bound in _TRIED})
    return found


def _accuracies(tried: Sequence[Cell], done: Mapping[str, Done], bound: float) -> tuple[float, ...]:
    chosen = [cell for cell in tried if float(cell.config.privacy.clip_norm) == bound]
    return tuple(done[cell.key].result["accuracy"] for cell in chosen)


def target_of(dataset: str, tuned: TriedBounds) -> float:
    """Return the accuracy that random sampling is calibrated to.

    The paper's own, if so short a training reaches it at all. Otherwise the same share of what it reaches, tuned, as
    the paper's random sampling has of the paper's FedPCS.
    """
    random, fedpcs = (printed_accuracy(dataset, 0.2, "iid", name) for name in ("random", "fedpcs"))
    if random is None or fedpcs is None:
        raise InvalidInput(f"the paper prints no accuracy of random sampling on {dataset!r}.")
    wanted = random.mean / 100.0
    return wanted if tuned.reached > wanted else tuned.reached * random.mean / fedpcs.mean


def tune_and_calibrate(dataset: str, setting: Setting, variant: str, run: Run) -> float:
    """Return the W at which random sampling has the accuracy it is calibrated to, its clients as in a variant."""
    return calibrate_bound(setting, variant, target_of(dataset, tune_bounds(setting, run, ("random",))["random"]), run)


def calibrate_bound(setting: Setting, variant: str, target: float, run: Run) -> float:
    """Return the W at which random sampling on an IID split has an accuracy, its clients as in a variant."""

    def accuracies(bounds: Sequence[float]) -> list[float]:
        changed = behaviour_of(variant, "random")
        results = run(_cells(setting, "random", bounds, [_CALIBRATION_SEED], 0.0, changed))
        if len(results) < len(bounds):
            raise Unfinished(f"W is calibrated by random sampling with W among {list(bounds)}: not all are done.")
        return [one.result["accuracy"] for one in results]

    return bracketed(accuracies, target, _START[variant])


def bracketed(accuracies: Callable[[Sequence[float]], Sequence[float]], target: float, start: float) -> float:
    """Return a bound at which a falling accuracy is near its target.

    Two bounds are tried at a time, one for each core of a small machine: four times as large or small until the target
    lies between two of them, then a third and two thirds of the way. No line is laid through accuracies: they may fall
    off a cliff.

    Args:
        accuracies: Of some bounds.
        target: What it should be.
        start: The first bound tried.
    """
    tried: dict[float, float] = {}

    def ask(bounds: Sequence[float]) -> bool:
        fresh = [bound for bound in dict.fromkeys(float(f"{one:.2g}") for one in bounds) if bound not in tried]
        tried.update(zip(fresh, accuracies(fresh) if fresh else [], strict=True))
        return bool(fresh)

    ask([start, 4.0 * start])
    for _ in range(_MOST_STEPS):
        if min(abs(one - target) for one in tried.values()) <= _CLOSE_ENOUGH:
            break
        above = [bound for bound in tried if tried[bound] >= target]
        below = [bound for bound in tried if tried[bound] < target]
        if not below:
            ask([4.0 * max(above), 16.0 * max(above)])
        elif not above:
            ask([min(below) / 16.0, min(below) / 4.0])
        elif not ask(_thirds(max(above), min(below))):
            break
    return min(tried, key=lambda bound: abs(tried[bound] - target))


def validation_cells(
    setting: Setting,
    sampler: str,
    bounds: Sequence[float],
    changed: Mapping[str, str] | None = None,
) -> list[Cell]:
    """Return trainings by which something is tuned: each bound with each tuning seed, scored on validation records."""
    return _cells(setting, sampler, bounds, TUNING_SEEDS, VALIDATION_SHARE, changed)


def _thirds(low: float, high: float) -> list[float]:
    return [low * (high / low) ** share for share in (1 / 3, 2 / 3)]


def _cells(
    setting: Setting,
    sampler: str,
    bounds: Sequence[float],
    seeds: Sequence[int],
    validation_share: float,
    changed: Mapping[str, str] | None = None,
) -> list[Cell]:
    changes = {
        **setting.changes,
        **setting.shorter,
        "data.partition": "iid",
        "data.validation_share": validation_share,
        **(changed or {}),
    }
    sweep = make_sweep_config(
        {
            "name": "clip-norm",
            "base": setting.base,
            "samplers": [sampler],
            "seeds": list(seeds),
            "set": changes,
            "grid": {"privacy.clip_norm": list(bounds)},
        }
    )
    return make_cells(sweep)
