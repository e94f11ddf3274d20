"""What a run found, in a sentence that its seeds bear out.

Samplers are compared seed by seed: with the same seed they share the partition, the first model and the test records,
so the difference of two accuracies varies less than either. Of n differences with mean d and standard deviation s the
interval is d ± t·s/√n, with t from Student's law with n − 1 degrees of freedom. If several samplers are compared with
one, each interval is widened so that all hold together with 95 % confidence (Bonferroni). What an interval with zero in
it does not show is not claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fedpcs import _format
from fedpcs.experiments.paired import paired_difference
from fedpcs.experiments.run_report_files import RunFiles, SamplerFiles

_CONFIDENCE = 0.95
_REFERENCE = "random"


@dataclass(frozen=True)
class Comparison:
    """How one sampler ends beside another.

    Attributes:
        sampler: Whose accuracy.
        reference: Minus whose accuracy.
        num_seeds: Seeds with which both are done.
        difference: Mean of the differences, as a share; None without a common seed.
        half_width: Of the interval; None with fewer than two common seeds.
    """

    sampler: str
    reference: str
    num_seeds: int
    difference: float | None
    half_width: float | None

    @property
    def verdict(self) -> Literal["above", "below", "within noise of", "unknown"]:
        """What the seeds show."""
        if self.difference is None or self.half_width is None:
            return "unknown"
        if abs(self.difference) <= self.half_width:
            return "within noise of"
        return "above" if self.difference > 0.0 else "below"

    @property
    def words(self) -> str:
        """The difference in percentage points, and the ends of its interval."""
        if self.difference is None:
            return "no seed in common yet"
        if self.half_width is None:
            return f"{_format.points(self.difference)} points; one seed tells no more"
        low, high = self.difference - self.half_width, self.difference + self.half_width
        return f"{_format.points(self.difference)} points, {_format.points(low)} to {_format.points(high)}"


def reference_of(run: RunFiles) -> SamplerFiles:
    """Return the sampler others are compared with: random if it takes part, else the first."""
    return next((one for one in run.samplers if one.name == _REFERENCE), run.samplers[0])


def compare_all(run: RunFiles) -> list[Comparison]:
    """Compare every sampler with the reference, in the order of the configuration."""
    reference = reference_of(run)
    others = [sampler for sampler in run.samplers if sampler is not reference]
    # Records of the test set are counted in whole numbers: seeds that agree by chance do not make a sure thing.
    resolution = 1.0 / max(int(run.manifest.get("data", {}).get("num_test") or 1), 1)
    confidence = 1.0 - (1.0 - _CONFIDENCE) / max(len(others), 1)
    return [_compared(sampler, reference, resolution, confidence) for sampler in others]


def _compared(sampler: SamplerFiles, reference: SamplerFiles, resolution: float, confidence: float) -> Comparison:
    pairs = zip(sampler.arms, reference.arms, strict=True)
    both = [(a.result["accuracy"], b.result["accuracy"]) for a, b in pairs if a.result and b.result]
    if not both:
        return Comparison(sampler.name, reference.name, 0, None, None)
    ours, theirs = zip(*both, strict=True)
    found = paired_difference(ours, theirs, confidence, resolution=resolution)
    half_width = found.high - found.mean if found.num_pairs > 1 else None
    return Comparison(sampler.name, reference.name, found.num_pairs, found.mean, half_width)


def headline(run: RunFiles) -> str:
    """Return the sentence at the top of the page: what the arms that are done show."""
    if run.num_done == 0:
        return "No arm of this run is done yet; the figures show the rounds so far."
    if len(run.samplers) == 1:
        return _alone(run.samplers[0])
    compared = compare_all(run)
    return _pair(run, compared[0]) if len(compared) == 1 else _many(run, compared)


def _alone(sampler: SamplerFiles) -> str:
    return f"{sampler.name} ends at {ended_at(sampler)} accuracy {over_seeds(len(sampler.done))}."


def _pair(run: RunFiles, found: Comparison) -> str:
    sampler = next(one for one in run.samplers if one.name == found.sampler)
    reference = reference_of(run)
    if found.difference is None:
        ended = [f"{one.name} at {ended_at(one)}" for one in (sampler, reference) if one.done]
        return f"So far {' and '.join(ended)} accuracy: no seed is done with both samplers."
    shared = _on_shared_seeds(sampler, reference), _on_shared_seeds(reference, sampler)
    numbers = f"{shared[0]} against {shared[1]} accuracy {over_seeds(found.num_seeds)}"
    if found.half_width is None:
        return f"{sampler.name} and {reference.name} end at {numbers}, which cannot tell them apart."
    finding = f"{sampler.name} ends {found.verdict} {reference.name}"
    if found.verdict == "within noise of":
        finding = f"{sampler.name} and {reference.name} end within noise of each other"
    low, high = found.difference - found.half_width, found.difference + found.half_width
    interval = f"95\N{NO-BREAK SPACE}% interval {_format.points(low)} to {_format.points(high)}"
    return f"{finding}: {numbers}, a difference of {_format.points(found.difference)} points ({interval})."


def _many(run: RunFiles, compared: list[Comparison]) -> str:
    reference = reference_of(run)
    if not reference.done:
        ended = [f"{one.name} at {ended_at(one)}" for one in run.samplers if one.done]
        return f"So far {_listed(ended)} accuracy; {reference.name}, the measure of the others, has no finished seed."
    verdicts = ("above", "below", "within noise of", "unknown")
    groups = [[found for found in compared if found.verdict == verdict] for verdict in verdicts]
    parts = [_group(group) for group in groups if group]
    where = f"{reference.name} ends at {ended_at(reference)} accuracy {over_seeds(len(reference.done))}"
    return f"{where}; {'; '.join(parts)}."


def _group(group: list[Comparison]) -> str:
    names, verdict = _listed([one.sampler for one in group]), group[0].verdict
    if verdict == "unknown":
        return f"seeds are too few to tell {names} from it"
    return f"{names} {'ends' if len(group) == 1 else 'end'} {verdict} it"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def ended_at(sampler: SamplerFiles) -> str:
    """Return the mean accuracy of a sampler's finished arms, with its standard deviation."""
    return _format.mean_and_spread([result["accuracy"] for result in sampler.done])


def _on_shared_seeds(sampler: SamplerFiles, other: SamplerFiles) -> str:
    pairs = zip(sampler.arms, other.arms, strict=True)
    return _format.mean_and_spread([a.result["accuracy"] for a, b in pairs if a.result and b.result])


def over_seeds(num_seeds: int) -> str:
    """Return the words for so many seeds."""
    return "with one seed" if num_seeds == 1 else f"over {num_seeds} seeds"
