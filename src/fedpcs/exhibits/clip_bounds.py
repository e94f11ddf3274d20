"""How the accuracy table comes by its clipping bound W: tuned on validation records, or calibrated on random draws."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedpcs import _format
from fedpcs.errors import Unfinished
from fedpcs.exhibits.exhibit import Request, Run
from fedpcs.exhibits.paper_numbers import printed_accuracy
from fedpcs.exhibits.trials import CALIBRATED, SELFISH, Setting, changes_of, setting_of
from fedpcs.report.page import Table
from fedpcs.studies.grid import Cell, hajek_or_own, make_cells, make_sweep_config
from fedpcs.studies.paired import mean_and_std
from fedpcs.studies.results import TrialData

# Values of W that are tried: updates are about 3 long in the first round and 1 in the last.
_TRIED = (1.0, 3.0, 10.0)
TUNING_SEEDS = (100, 101, 102)
VALIDATION_SHARE = 0.1
_CLOSE_ENOUGH = 0.01
_MOST_STEPS = 8
# Where the search for W begins, near where earlier ones ended. A selfish client's noise is thirty times a paid one's.
_START = {CALIBRATED: 150.0, SELFISH: 6.0}
_FIRST_STEP = 1.5


@dataclass(frozen=True)
class TriedBounds:
    """What one sampler came to on validation records by W, one accuracy for each seed."""

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


@dataclass(frozen=True)
class Calibration:
    """The accuracy sought for random sampling, and what it came to by W, one accuracy for each seed of the table."""

    target: float
    accuracy: Mapping[float, tuple[float, ...]]

    @property
    def taken(self) -> float:
        """The W whose mean accuracy is nearest to the target."""
        return min(self.accuracy, key=self._distance)

    @property
    def is_near(self) -> bool:
        """Whether that is near enough to end the search."""
        return self._distance(self.taken) <= _CLOSE_ENOUGH

    def _distance(self, bound: float) -> float:
        return abs(statistics.fmean(self.accuracy[bound]) - self.target)

    @property
    def table(self) -> Table:
        """What random sampling came to with each W that was tried."""
        rows = tuple(
            (f"{bound:g}", accuracy_text(self.accuracy[bound]), "taken" if bound == self.taken else "")
            for bound in sorted(self.accuracy)
        )
        note = f"Random sampling, IID, the table's seeds, test records; sought was {_format.share(self.target)}."
        return Table("Values of W that were tried", ("W", "random", ""), rows, note=note)

    def warnings(self, dataset: str) -> list[str]:
        """Say where W is not found as the paper has it."""
        printed = printed_accuracy(dataset, 0.2, "iid", "random")
        sought, sentences = _format.share(self.target), []
        if self.target < printed.mean / 100.0:
            sentences.append(
                f"So short a training does not come to the {printed.mean} % the paper prints for random sampling: W "
                f"was sought for {sought}, and is not the paper's."
            )
        if not self.is_near:
            sentences.append(
                f"Random sampling has {accuracy_text(self.accuracy[self.taken])} where {sought} were sought; no W that "
                "was tried brought it nearer. What this page says, it says of another noise."
            )
        return sentences


def accuracy_text(reached: Sequence[float]) -> str:
    """Return the accuracy of some seeds with its spread."""
    return _format.share_and_spread(*mean_and_std(reached))


def tuned_table(tuned: Mapping[str, TriedBounds]) -> Table:
    """Return what each sampler came to with each W that was tried."""
    bounds = next(iter(tuned.values())).accuracy
    return Table(
        "Values of W that were tried, on validation records",
        ("sampler", *(f"W = {bound:g}" for bound in bounds), "taken"),
        tuple(
            (name, *(accuracy_text(one.accuracy[bound]) for bound in bounds), f"{one.taken:g}")
            for name, one in tuned.items()
        ),
        note="Taken is the least whose mean is within one standard error of the highest. "
        f"{len(TUNING_SEEDS)} trainings each, IID, τ = 0.2, seeds that no table has; no test record was read.",
    )


def tune_bounds(setting: Setting, run: Run, samplers: Sequence[str]) -> dict[str, TriedBounds]:
    """Return what each W came to for each sampler on validation records of an IID split; no test record is read."""
    cells = {name: validation_cells(setting, name, _TRIED) for name in samplers}
    done = run([cell for some in cells.values() for cell in some])
    return {name: TriedBounds(_by_bound(tried, done, f"tuned for {name}")) for name, tried in cells.items()}


def accuracies_of(cells: Sequence[Cell], done: Sequence[TrialData], what: str) -> list[float]:
    """Return the accuracies of some trainings, in their order; all must be done."""
    reached = {one.cell.key: float(one.outcome.accuracy) for one in done}
    if missing := sum(cell.key not in reached for cell in cells):
        raise Unfinished(f"{missing} of the {len(cells)} trainings by which {what} are not done.")
    return [reached[cell.key] for cell in cells]


def _by_bound(cells: Sequence[Cell], done: Sequence[TrialData], what: str) -> dict[float, tuple[float, ...]]:
    """Return the accuracies of some trainings by W, those of one W in the order of their seeds."""
    found: dict[float, tuple[float, ...]] = {}
    for cell, accuracy in zip(cells, accuracies_of(cells, done, f"W is {what}"), strict=True):
        bound = float(cell.config.privacy.clip_norm)
        found[bound] = (*found.get(bound, ()), accuracy)
    return found


def target_of(dataset: str, tuned: TriedBounds) -> float:
    """Return the accuracy that random sampling is calibrated to.

    The paper's own, if so short a training reaches it at all. Otherwise the same share of what it reaches, tuned, as
    the paper's random sampling has of the paper's FedPCS.
    """
    random, fedpcs = (printed_accuracy(dataset, 0.2, "iid", name) for name in ("random", "fedpcs"))
    wanted = random.mean / 100.0
    return wanted if tuned.reached > wanted else tuned.reached * random.mean / fedpcs.mean


def tune_and_calibrate(request: Request, variant: str) -> tuple[Setting, Calibration]:
    """Return the W at which random sampling has the accuracy it is calibrated to, its clients as in a variant."""
    setting = setting_of(request.dataset, request.profile)
    tuned = tune_bounds(setting, request.run, ("random",))["random"]
    return setting, calibrate_bound(setting, variant, target_of(request.dataset, tuned), request.run)


def calibrate_bound(setting: Setting, variant: str, target: float, run: Run) -> Calibration:
    """Return the W at which random sampling on an IID split has an accuracy, its clients as in a variant.

    The accuracy is the mean over the seeds of the table: near a cliff one seed may be over it, and another not.
    """

    def accuracies(bounds: Sequence[float]) -> dict[float, tuple[float, ...]]:
        changes = changes_of(setting, variant, "random")
        cells = _cells(setting, "random", bounds, setting.seeds, 0.0, changes)
        return _by_bound(cells, run(cells), "next calibrated")

    return search(accuracies, target, _START[variant])


def search(
    accuracies: Callable[[Sequence[float]], Mapping[float, tuple[float, ...]]], target: float, start: float
) -> Calibration:
    """Try bounds, from `start` on, until the mean of accuracies that fall as bounds grow is near its target.

    Two bounds are tried at a time, for machines of several cores: four times as large or small until the target lies
    between two of them, then a third and two thirds of the way. No line is laid through accuracies: they may fall off a
    cliff. A bound so small that clipping costs accuracy is not mistaken for one whose noise does.
    """
    tried: dict[float, tuple[float, ...]] = {}

    def ask(bounds: Sequence[float]) -> bool:
        fresh = [bound for bound in dict.fromkeys(float(f"{one:.2g}") for one in bounds) if bound not in tried]
        tried.update(accuracies(fresh) if fresh else {})
        return bool(fresh)

    ask([start, _FIRST_STEP * start])
    for _ in range(_MOST_STEPS):
        if Calibration(target, tried).is_near:
            break
        mean = {bound: statistics.fmean(reached) for bound, reached in tried.items()}
        low = max((bound for bound in mean if mean[bound] >= target), default=None)
        if low is None:
            ask([min(mean) / 16.0, min(mean) / 4.0])
            continue
        high = min((bound for bound in mean if bound > low), default=None)  # below the target, or low would be it
        if high is None:
            ask([4.0 * low, 16.0 * low])
        elif not ask([low * (high / low) ** share for share in (1 / 3, 2 / 3)]):
            break
    return Calibration(target, tried)


def validation_cells(
    setting: Setting,
    sampler: str,
    bounds: Sequence[float],
    changed: Mapping[str, str] | None = None,
) -> list[Cell]:
    """Return trainings by which something is tuned: each bound with each tuning seed, scored on validation records."""
    changes = {**setting.changes, **setting.shorter, **(changed or {})}
    return _cells(setting, sampler, bounds, TUNING_SEEDS, VALIDATION_SHARE, changes)


def _cells(
    setting: Setting,
    sampler: str,
    bounds: Sequence[float],
    seeds: Sequence[int],
    validation_share: float,
    changes: Mapping[str, Any],
) -> list[Cell]:
    sweep = make_sweep_config(
        {
            "name": "clip-norm",
            "base": setting.base,
            "samplers": [sampler],
            "seeds": list(seeds),
            "set": {
                "sampling.rule": hajek_or_own(sampler),
                **changes,
                "data.partition": "iid",
                "data.validation_share": validation_share,
            },
            "grid": {"privacy.clip_norm": list(bounds)},
        }
    )
    return make_cells(sweep)
