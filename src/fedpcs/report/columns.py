"""The columns of a study's tables: for each a heading, what it means in a sentence, and a sampler's cell."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fedpcs import _format
from fedpcs.studies.paired import SPENT_MEANING, spent_over_seeds
from fedpcs.studies.results import Group, Series, summary
from fedpcs.trial.records import RoundRecord, TrialResult

_NOT_YET = "not yet"
_PLAYED = {
    "rational": "yes: best responses",
    "static": "no: each kept its first budget",
    "selfish": "no: all spent the least allowed",
    "raised": "no: each scaled its first budget to the equilibrium's mean",
}
# So many standard deviations of the noise's squared norm must an update's square stand out by, to be seen at all.
_SEEN = 4.0


@dataclass(frozen=True)
class Column:
    """One column: its heading, what it means in a sentence, and the cell of a sampler that has begun."""

    heading: str
    meaning: str
    cell: Callable[[Series], str]


def accuracy_text(series: Series, reference: Series | None = None) -> str:
    """Return a series' accuracy with its spread, and its seeds where they are not those it is compared over."""
    if not series.done:
        return _NOT_YET
    text = _format.share_and_spread(*summary(series))
    if reference is None or series.seeds == reference.seeds:
        return text
    return f"{text} (seeds {', '.join(map(str, series.seeds))})"


def seed_text(seeds: Sequence[int]) -> str:
    """Return which seeds; a long row of them by its ends.

    Example:
        >>> seed_text([7]), seed_text([0, 1, 2]), seed_text(range(12))
        ('seed 7', 'seeds 0, 1, 2', 'seeds 0 to 11')
    """
    if len(seeds) < 2:
        return f"seed {seeds[0]}" if seeds else "no seed"
    is_row = len(seeds) > 6 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    return f"seeds {seeds[0]} to {seeds[-1]}" if is_row else f"seeds {', '.join(map(str, seeds))}"


def noise_to_signal(sent: float, noise: float, num_parameters: int) -> str:
    """Return noise over signal, of the norms of what was sent and of the noise in it.

    The squared norm of d normal variables has a relative standard deviation of √(2/d): a signal below that is not seen.

    Example:
        >>> noise_to_signal(5.0, 4.0, 1_000_000), noise_to_signal(226.13, 226.11, 1_663_370)
        ('1.3', 'above 15')
    """
    if noise == 0.0:
        return "no noise"
    signal, least = sent**2 / noise**2 - 1.0, _SEEN * math.sqrt(2.0 / num_parameters)
    return f"{signal**-0.5:.2g}" if signal > least else f"above {least**-0.5:.2g}"


def _seeds(series: Series) -> str:
    return seed_text(series.seeds).partition(" ")[2] if series.done else _NOT_YET


def _mean(number: Callable[[TrialResult], float | None], write: Callable[[float], str]) -> Callable[[Series], str]:
    def cell(series: Series) -> str:
        known = [value for one in series.results if (value := number(one)) is not None]  # None: it has diverged
        return _format.with_spread(known, write) if known else _NOT_YET

    return cell


def _amount(number: Callable[[TrialResult], float]) -> Callable[[Series], str]:
    return lambda series: (
        _format.amount_and_spread([number(one) for one in series.results]) if series.done else _NOT_YET
    )


def _rounds(series: Series) -> str:
    done, planned = [len(trial.rounds) for trial in series.trials], series.trials[0].cell.config.rounds
    found = f"{min(done):,}" if min(done) == max(done) else f"{min(done):,}–{max(done):,}"
    early = sum(result.ended_by == "budget" for result in series.results)
    return f"{found} of {planned:,}" + (f"; {early} ended as nobody could afford another round" if early else "")


def _spent(unit: str) -> Callable[[Series], str]:
    def cell(series: Series) -> str:
        if not series.trials[0].cell.config.privacy.is_private:
            return "no noise"
        spreads = [getattr(result.spent, unit) for result in series.results if result.spent.num_clients]
        if not spreads:
            return "nothing" if series.done else _NOT_YET
        return _format.least_middle_greatest(spent_over_seeds(spreads))

    return cell


def _exploitability(series: Series) -> str:
    if not series.done:
        return _NOT_YET
    solved = [line for trial in series.trials for line in trial.rounds if line.replanned]
    gains = [one.game.exploitability for one in series.results if one.game.behaviour == "rational"]
    known = [gain for gain in (*gains, *(line.exploitability for line in solved)) if gain is not None]
    if not known:
        return "not played"
    kept = sum(line.exploitability is None for line in solved)
    anew = f"; solved anew {_times(len(solved) - kept)}" if len(solved) > kept else ""
    return _format.gain(max(known)) + anew + (f"; not solved {_times(kept)}, the last schedule kept" if kept else "")


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _played(series: Series) -> str:
    games = [result.game for result in series.results]
    texts = [
        "no game: nothing depends on budgets" if game.standing == "not-played" else _PLAYED[game.behaviour]
        for game in games
    ]
    return "; ".join(dict.fromkeys(texts)) or _NOT_YET


def _reads(series: Series) -> str:
    return "; ".join(dict.fromkeys(one.disclosure for one in series.results if one.disclosure)) or "nothing"


def _left(series: Series) -> str:
    known = [
        trial.result.num_left if trial.result else len({who for line in trial.rounds for who in line.left})
        for trial in series.trials
    ]
    return f"{sum(known):,}"


def _weighed(series: Series) -> str:
    lines = _lines(series)
    if not lines:
        return _NOT_YET
    largest = max(line.draw.largest_weight for line in lines)
    text = f"{', '.join(dict.fromkeys(line.rule for line in lines))}; at most {_format.amount(largest)}"
    cut = [line.num_capped for line in lines if line.num_capped is not None]
    return f"{text}; {sum(cut):,} of {sum(len(line.heard) for line in lines):,} cut" if cut else text


def _counts(name: str) -> Callable[[Series], str]:
    def cell(series: Series) -> str:
        kinds: Counter[str] = Counter()
        for line in _lines(series):
            for attempt in (line, *line.given_up):
                kinds.update(getattr(attempt, name))
        each = ", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items()))
        return f"{kinds.total():,}" + (f" ({each})" if each else "")

    return cell


def _last(number: Callable[[RoundRecord], float | None]) -> Callable[[Series], str]:
    def cell(series: Series) -> str:
        if not _lines(series):
            return _NOT_YET
        found = [float(track.values[-1]) for track in series.settled_tracks(number)]
        return f"{statistics.fmean(found):.2f}" if found else "none"

    return cell


def _lines(series: Series) -> list[RoundRecord]:
    return [line for trial in series.trials for line in trial.rounds]


def _norms(series: Series) -> tuple[float, float] | None:
    """Return the norms of what was sent and of its noise: the median client's in the last round, mean over seeds."""
    last = [trial.rounds[-1] for trial in series.done or series.trials if trial.rounds]
    if not last:
        return None
    return (
        statistics.fmean(line.update_norm.median for line in last),
        statistics.fmean(line.noise_norm.median for line in last),
    )


def _norm(which: int) -> Callable[[Series], str]:
    return lambda series: _NOT_YET if (found := _norms(series)) is None else f"{found[which]:.3g}"


def _ratio(series: Series) -> str:
    found = _norms(series)
    return _NOT_YET if found is None or not series.done else noise_to_signal(*found, series.results[0].num_parameters)


REWARDS = Column(
    "rewards",
    "What drawn clients were paid over the run, in the game's money (budget in units of game.budget_unit times R_t): "
    "mean ± standard deviation over seeds.",
    _amount(lambda one: one.paid),
)
GAIN = Column(
    "exploitability",
    "The certificate of the game: what a client gains by leaving the announced budgets, as a share of its utility, on "
    "average over clients. The greatest over seeds, and where the game was solved anew.",
    _exploitability,
)
COST = (
    Column("ρ spent", f"zCDP of all releases of a client together: {SPENT_MEANING}.", _spent("rho")),
    Column("ε spent", f"The same as (ε, δ) at privacy.delta: {SPENT_MEANING}.", _spent("epsilon")),
    Column(
        "clients charged",
        "How many clients released anything, mean ± standard deviation.",
        _amount(lambda one: one.spent.num_clients),
    ),
    GAIN,
    Column("clients played rationally", "Whether they spent what the equilibrium asks.", _played),
    Column("reads in clear", "What the sampler learns about clients beyond what the noise protects.", _reads),
)
NOISE = (
    Column("W", "Clipping bound.", lambda series: f"{float(series.trials[0].cell.config.privacy.clip_norm):g}"),
    Column(
        "sent",
        "Norm of what the median drawn client sent, update and noise, in the last round, mean over seeds.",
        _norm(0),
    ),
    Column("noise", "Norm of that client's noise, likewise.", _norm(1)),
    Column(
        "noise ÷ signal",
        "Noise over the clipped update, whose square is that of what was sent less that of the noise; a lower bound "
        "where the noise's own chance hides it.",
        _ratio,
    ),
)
ANSWERS = (
    Column("left", "Clients that had left for good by the end; sum over seeds.", _left),
    Column("drop-outs", "Drawn clients that failed or never answered, by kind; sum over seeds.", _counts("failures")),
    Column("refusals", "Updates the server did not admit, by kind; sum over seeds.", _counts("refusals")),
    Column(
        "drawn again",
        "Draws repeated because fewer than engine.quorum answered; sum over seeds.",
        lambda series: f"{sum(line.attempt for line in _lines(series)):,}",
    ),
    Column(
        "evenness",
        "Jain's index of how often clients were drawn: 1 if all equally often, 1/N if always the same one; mean over "
        "seeds.",
        _last(lambda line: line.draw.evenness),
    ),
    Column(
        "against design",
        "Root mean square of (drawn − designed) in standard deviations, over clients: near 1 if draws follow the "
        'sampler\'s own probabilities, "none" if it has none; mean over seeds.',
        _last(lambda line: line.draw.inclusion_score),
    ),
)


def learned(groups: Sequence[Group]) -> tuple[Column, ...]:
    """Return what was learned, on the records these groups were evaluated on."""
    configs = [series.trials[0].cell.config for found in groups for series in found.series]
    records = " or ".join(dict.fromkeys(config.data.evaluated_on for config in configs))
    return (
        Column(
            "accuracy",
            f"Of the last model, on {records}: mean ± standard deviation over seeds. Bold only where paired intervals "
            "that hold together with 95 % confidence put it above every other sampler.",
            accuracy_text,
        ),
        Column(
            "loss",
            f"Cross-entropy of the last model on {records}.",
            _mean(lambda one: one.loss, _format.three_decimals),
        ),
        REWARDS,
        Column("seeds", "Of finished trials.", _seeds),
        Column("rounds", "Rounds done of those planned, least and most over seeds.", _rounds),
        Column(
            "weighed by",
            "The rule of aggregation, and the largest weight of any round and seed; where weights are capped, how many "
            "were cut.",
            _weighed,
        ),
    )
