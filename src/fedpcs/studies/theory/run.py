"""A run held against theory: it is made again, and each round's step is measured as it is taken.

What a log keeps of a round does not tell how the loss bends under it. A run of the same configuration and seed is the
same, bit for bit, so that it is cheap to have it once more and look closely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.learning.datasets import Dataset
from fedpcs.studies.theory.again import made_again, session_of
from fedpcs.studies.theory.steps import watched_rounds
from fedpcs.theory.account import ERRORS, WatchedRounds, account, progress_bound
from fedpcs.theory.bound import Bound
from fedpcs.theory.estimates import Estimates, from_log
from fedpcs.trial.assemble import dealt_out
from fedpcs.trial.config import RunConfig
from fedpcs.trial.identity import alone
from fedpcs.trial.run_store import RunStore

ADVICE = {
    "noise": "Reduce it first: raise budgets (higher rewards, or fewer rounds to spend them in), give clients more "
    "records, shrink the model, or weigh by precision (sampling.rule) where that is not done yet.",
    "sampling": "Clients differ; draw more of them (sampling.sampling_ratio), draw them more evenly, or weigh by hajek "
    "or precision.",
    "overshoot": "Steps are too long; lower training.learning_rate, training.server_rate or training.server_momentum.",
    "drift": "Clients go together where the gradient does not; take fewer local steps (training.local_epochs, larger "
    "training.batch_size), or clip less.",
}
_FINE = "All errors together take back less than a tenth: train for longer, or with longer steps."
_LITTLE = 0.1


@dataclass(frozen=True)
class TrialTheory:
    """One sampler against theory: means over seeds, of each round.

    Attributes:
        sampler: Who drew.
        num_seeds: How many runs.
        loss: (rounds + 1,) on training records, before each round and after the last.
        bound: On each round's change of the loss.
        account: Where each round's change came from; (rounds,) each.
        top_curvature: (rounds,) largest eigenvalue of the Hessian.
        mean_curvature: (rounds,) mean of its eigenvalues.
        estimates: Constants as the log of the first seed tells them; None if it tells too
            little, or of clipped gradients.
        kept: How much of what steps along the whole gradient would gain was gained: the rest went to clipping, local
            steps and weights.
        is_same: Whether the runs made again logged the same losses.
    """

    sampler: str
    num_seeds: int
    loss: FloatArray
    bound: Bound
    account: dict[str, FloatArray]
    top_curvature: FloatArray
    mean_curvature: FloatArray
    estimates: Estimates | None
    kept: float
    is_same: bool

    @property
    def change(self) -> FloatArray:
        """(rounds,) what each round did to the loss."""
        return np.diff(self.loss)

    @property
    def totals(self) -> dict[str, float]:
        """What each part did to the loss over the whole run."""
        return {name: float(value.sum()) for name, value in self.account.items()}

    @property
    def largest(self) -> str:
        """Which of the errors took back most."""
        return max(ERRORS, key=lambda name: self.totals[name])

    @property
    def shares(self) -> dict[str, float]:
        """What each took back over the run, as a share of what descent gained."""
        gained = -self.totals["descent"]
        return {name: self.totals[name] / gained if gained > 0.0 else float("inf") for name in ERRORS}

    @property
    def num_under(self) -> int:
        """In how many rounds the loss changed by no more than its bound."""
        return int((self.change <= self.bound.value + 1e-12).sum())

    @property
    def advice(self) -> str:
        """What to do first."""
        return ADVICE[self.largest] if sum(max(one, 0.0) for one in self.shares.values()) >= _LITTLE else _FINE


def assess_run(folder: Path, data_dir: Path | None = None) -> list[TrialTheory]:
    """Make a finished run again and hold every sampler of it against theory.

    Args:
        folder: The run's.
        data_dir: Where data sets lie; where they lay for the run if absent.

    Raises:
        InvalidInput: The folder is not that of a finished run.
    """
    if not (folder / "config.toml").exists() or RunStore(folder).result is None:
        raise InvalidInput(f"{folder} must be the folder of a finished run. `fedpcs resume` finishes one.")
    store, found = RunStore(folder), []
    config, session = store.config(), session_of(store, data_dir)
    dataset = session.dataset
    for sampler in config.sampling.samplers:
        watched, is_same = [], True
        for seed in config.seeds:
            trial = alone(config, sampler, seed)
            lines, models = made_again(trial, session)
            logged = [line.loss for line in store.trial(sampler, seed).rounds()]
            is_same = is_same and logged == [line.loss for line in lines]
            watched.append(watched_rounds(trial, dataset, lines, models))
        one = _mean(sampler, watched, _step_size(config, dataset), is_same)
        # A log of clipped gradients tells nothing of the gradients themselves.
        found.append(replace(one, estimates=None) if config.privacy.has_noisy_steps else one)
    return found


def _mean(sampler: str, watched: Sequence[WatchedRounds], step_size: FloatArray, is_same: bool) -> TrialTheory:
    """Return means over seeds; only the rounds that all have."""
    length = min(one.loss.size for one in watched)

    def mean(values: Sequence[FloatArray]) -> FloatArray:
        return np.asarray(np.mean([value[:length] for value in values], axis=0))

    bounds, accounts = [progress_bound(one) for one in watched], [account(one) for one in watched]
    loss, change = mean([one.loss for one in watched]), mean([one.change for one in watched])
    steepness, gain = mean([one.gradient_norm**2 for one in watched]), mean([one.gain for one in watched])
    return TrialTheory(
        sampler=sampler,
        num_seeds=len(watched),
        loss=np.append(loss, loss[-1] + change[-1]),
        bound=Bound(
            "valid",
            {name: mean([one.terms[name] for one in bounds]) for name in bounds[0].terms},
            bounds[0].premises,
        ),
        account={name: mean([one[name] for one in accounts]) for name in accounts[0]},
        top_curvature=mean([one.top_curvature for one in watched]),
        mean_curvature=mean([one.mean_curvature for one in watched]),
        estimates=_from_log(watched[0], float(step_size[-1])),
        kept=float(gain.sum() / (step_size[:length] @ steepness)),
        is_same=is_same,
    )


def _from_log(rounds: WatchedRounds, step_size: float) -> Estimates | None:
    try:
        return from_log(
            loss=np.append(rounds.loss, rounds.loss[-1] + rounds.change[-1]),
            signal=rounds.signal,
            spread=rounds.spread,
            noise=rounds.noise,
            client_spread=rounds.client_spread,
            step_size=step_size,
        )
    except InvalidInput:  # too few rounds, or none that moved the model
        return None


def _step_size(config: RunConfig, dataset: Dataset) -> FloatArray:
    """(rounds,) local rate × local steps of the median client × the server's rate × what momentum has built up."""
    training = config.training
    size = int(np.median(dealt_out(config, dataset, config.seeds[0]).num_samples))
    steps = training.local_epochs * -(-size // min(training.batch_size or size, size))
    built_up = np.cumsum(float(training.server_momentum) ** np.arange(config.rounds))
    return np.asarray(float(training.learning_rate) * steps * float(training.server_rate) * built_up)
