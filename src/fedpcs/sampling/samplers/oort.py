"""`oort`: clients whose records still cost the most loss, discounted by how slow they are, with some that are new.

A client's utility is |D_i|·√(mean squared loss) when it last took part. Scores are utilities, clipped at a high
percentile and scaled to [0, 1], plus √(0.1·ln R/L_i) for clients last seen in round L_i, times (T/t_i)^α for those
slower than T. A share 1 − ε of the cohort is drawn by score from the best, the rest from clients never seen, by size. T
is a percentile of durations that a pacer moves. Without durations all clients are equally fast, and this is Oort's
statistical half.

References:
    F. Lai, X. Zhu, H. Madhyastha, M. Chowdhury, Oort: Efficient Federated Learning via Guided Participant Selection,
    OSDI 2021. arXiv 2010.06081.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.sampling.designs import earliest
from fedpcs.sampling.drawn import Draw, biased_draw, share_by_size
from fedpcs.sampling.feedback import Feedback
from fedpcs.sampling.view import BoolArray, IntArray, Memory, View

_STALENESS = 0.1
_EXPLORE_WIDTH = 5
_LEAST_SCORE = 1e-12
# The pacer: judged against the window before, relax if utility stands still, tighten if it jumps.
_STILL, _JUMP, _PACE = 0.1, 5.0, 5.0
_MOST_BLACKLISTED = 0.3


@dataclass(frozen=True)
class OortSampler:
    """Exploit the best scores, explore the rest.

    Attributes:
        exploration: (first ε, decay per round, least ε).
        clip_percentile: Utilities above this percentile count as it.
        cutoff: Clients at least this share of the last exploited score compete for its place.
        slowness_exponent: α.
        duration_percentile: Where T starts, as a percentile of known durations.
        pacer_rounds: How many rounds the pacer's window has.
        most_rounds: Clients that took part this often sit out, at most 30 % of all; nobody if absent.
    """

    exploration: tuple[float, float, float] = (0.9, 0.98, 0.3)
    clip_percentile: float = 90.0
    cutoff: float = 0.95
    slowness_exponent: float = 2.0
    duration_percentile: float = 30.0
    pacer_rounds: int = 20
    most_rounds: int | None = None

    name: ClassVar[str] = "oort"
    reads: ClassVar[tuple[str, ...]] = ()
    hears: ClassVar[tuple[str, ...]] = ("loss_energy", "duration")

    def __post_init__(self) -> None:
        _validate.vector("exploration", self.exploration, length=3, low=0.0, high=1.0)
        _validate.number("clip_percentile", self.clip_percentile, low=0.0, high=100.0)
        _validate.number("cutoff", self.cutoff, low=0.0, high=1.0)
        _validate.number("slowness_exponent", self.slowness_exponent, low=0.0)
        _validate.number("duration_percentile", self.duration_percentile, low=0.0, high=100.0)
        _validate.integer("pacer_rounds", self.pacer_rounds, low=1)
        if self.most_rounds is not None:
            _validate.integer("most_rounds", self.most_rounds, low=1)

    def draw(self, view: View, rng: np.random.Generator) -> Draw:
        """Draw the cohort of one round."""
        allowed = self._allowed(view, rng)
        is_seen = ~np.isnan(view.memory["utility"])
        seen, unseen = np.flatnonzero(allowed & is_seen), np.flatnonzero(allowed & ~is_seen)
        cohort_size = min(view.cohort_size, seen.size + unseen.size)
        first, decay, least = self.exploration
        share = 1.0 - max(least, first * decay**view.round_index)
        num_exploited = int(share * cohort_size + 1e-9)  # 1 − 0.9 of ten is one, whatever floats say
        num_exploited = min(max(num_exploited, cohort_size - unseen.size), seen.size)
        exploited = self._exploit(view, seen, num_exploited, rng)
        explored = self._explore(view, unseen, cohort_size - num_exploited, rng)
        clients = np.concatenate([exploited, explored])
        return biased_draw(clients, share_by_size(view, clients))

    def start(self, num_clients: int) -> Memory:
        """Nobody has been seen."""
        return {
            "utility": np.full(num_clients, np.nan),
            "duration": np.full(num_clients, np.nan),
            "last_round": np.zeros(num_clients),
            "times": np.zeros(num_clients),
            "percentile": np.array([self.duration_percentile]),
            "utility_by_round": np.zeros(0),
        }

    def remember(self, view: View, draw: Draw, feedback: Feedback) -> Memory:
        """Keep utility, duration and round of those who answered, and let the pacer look at the rounds so far."""
        heard = feedback.clients
        memory = {name: value.copy() for name, value in view.memory.items()}
        gained = 0.0
        if heard.size:
            was_seen = ~np.isnan(memory["utility"][heard])
            memory["utility"][heard] = view.num_samples[heard] * np.sqrt(feedback.need("loss_energy"))
            if feedback.duration is not None:
                memory["duration"][heard] = feedback.duration
            memory["last_round"][heard] = view.round_index + 1.0
            memory["times"][heard] += 1.0
            gained = float(memory["utility"][heard[was_seen]].sum())  # exploited: those who had been seen before
        memory["utility_by_round"] = np.append(memory["utility_by_round"], gained)
        memory["percentile"] = self._paced(memory["percentile"], memory["utility_by_round"])
        return memory

    def _allowed(self, view: View, rng: np.random.Generator) -> BoolArray:
        """Return who may be drawn: available, and not among those who took part too often, if others are left."""
        if self.most_rounds is None:
            return view.is_available
        times = view.memory["times"]
        worn = np.flatnonzero(view.is_available & (times >= self.most_rounds))
        spare = int(np.count_nonzero(view.is_available)) - view.cohort_size
        num_resting = min(int(_MOST_BLACKLISTED * view.num_clients), max(spare, 0))
        most_worn_first = np.lexsort((rng.random(worn.size), -times[worn]))
        allowed = view.is_available.copy()
        allowed[worn[most_worn_first[:num_resting]]] = False
        return allowed

    def _exploit(self, view: View, seen: IntArray, num_wanted: int, rng: np.random.Generator) -> IntArray:
        if num_wanted == 0:
            return seen[:0]
        score = self._score(view, seen)
        last = np.partition(score, score.size - num_wanted)[score.size - num_wanted]
        is_near = score >= self.cutoff * last
        return np.asarray(seen[is_near][earliest(score[is_near], num_wanted, rng)[0]])

    def _score(self, view: View, seen: IntArray) -> FloatArray:
        utility = view.memory["utility"][seen]
        utility = np.minimum(utility, np.percentile(utility, self.clip_percentile))
        width = float(np.ptp(utility))
        score = (utility - utility.min()) / width if width > 0.0 else np.ones_like(utility)
        score = score + np.sqrt(_STALENESS * np.log(view.round_index + 1.0) / view.memory["last_round"][seen])
        duration = view.memory["duration"][seen]
        if not np.isnan(duration).all():
            preferred = np.nanpercentile(duration, view.memory["percentile"][0])
            # A client whose duration is unknown compares false, so it is not called slow.
            is_slow = duration > preferred
            score[is_slow] *= (preferred / duration[is_slow]) ** self.slowness_exponent
        return np.asarray(np.maximum(score, _LEAST_SCORE))

    def _explore(self, view: View, unseen: IntArray, num_wanted: int, rng: np.random.Generator) -> IntArray:
        if num_wanted == 0:
            return unseen[:0]
        size = view.num_samples[unseen]
        largest = np.lexsort((rng.random(unseen.size), -size))[: _EXPLORE_WIDTH * num_wanted]
        return np.asarray(unseen[largest][earliest(size[largest], num_wanted, rng)[0]])

    def _paced(self, percentile: FloatArray, utility_by_round: FloatArray) -> FloatArray:
        window = self.pacer_rounds
        if utility_by_round.size < 2 * window or utility_by_round.size % window:
            return percentile
        now, before = utility_by_round[-window:].sum(), utility_by_round[-2 * window : -window].sum()
        if abs(now - before) <= _STILL * before:
            return np.minimum(percentile + _PACE, 100.0)
        if abs(now - before) >= _JUMP * before:
            return np.maximum(percentile - _PACE, self.duration_percentile)
        return percentile
