"""Proposition 4 and Theorem 6: what it costs that clients choose their budgets for themselves.

Welfare is SW(ρ) = Σ_t Σ_i (ρ_i^t R_t − ψ_i (ρ_i^t)²); the price of anarchy is the best welfare over that of what
clients do. Proposition 4 holds: with everyone at ρ_L it is at least Σ R_t Σ 1/ψ_i ÷ (4 N ρ_L (T+1)), by Cauchy and
Schwarz.

Theorem 6 does not. In its proof the denominator N ρ_H ΣR − (T+1) ρ_H² Σψ is divided by ρ_H and the numerator is not;
the last term should grow with ρ_H and is made to vanish. What can be said of clients whose budgets lie in
[low_t, high_t]: ρR − ψρ² is concave, so that it is least at one of the two ends, and

    SW ≥ Σ_t Σ_i min(low_t R_t − ψ_i low_t², high_t R_t − ψ_i high_t²).

In this game budgets only ever move towards their mean, so that the widest interval is that of the first round.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.theory.bound import Bound, Premise

_LEAST_AVERSION = 1e-12


def valid_selfish_price(reward: ArrayLike, aversion: ArrayLike, *, lowest_budget: float) -> Bound:
    """Bound from *below* the price of everyone at ρ_L, against the unbounded optimum: Proposition 4, which holds."""
    paid, dislikes, low = _inputs(reward, aversion, lowest_budget)
    value = paid.mean() * (1.0 / dislikes).mean() / (4.0 * low)
    welfare = _welfare(np.full(paid.size, low), paid, dislikes).sum()
    premise = Premise("welfare at the lowest budget is positive", bool(welfare > 0.0))
    return Bound("valid", {"price": np.asarray(value)}, (premise,))


def paper_selfish_price(reward: ArrayLike, aversion: ArrayLike, *, lowest_budget: float) -> Bound:
    """Proposition 4 as printed: the same."""
    return replace(valid_selfish_price(reward, aversion, lowest_budget=lowest_budget), version="paper")


def paper_private_price(reward: ArrayLike, aversion: ArrayLike, *, highest_budget: float) -> Bound:
    """Theorem 6 as printed, its last line before the limit: R_max Σ1/ψ ÷ 2(N − (T+1)Σψ/(ρ_H ΣR))."""
    paid, dislikes, high = _inputs(reward, aversion, highest_budget)
    left = dislikes.size - paid.size * dislikes.sum() / (high * paid.sum())
    value = paid.max() * (1.0 / dislikes).sum() / (2.0 * left)
    welfare = _welfare(np.full(paid.size, high), paid, dislikes).sum()
    is_small = bool(dislikes.size * paid.sum() <= paid.size * dislikes.sum())
    premises = (
        Premise("N ΣR ≤ (T+1) Σψ, which step (a) of the proof uses", is_small),
        Premise("welfare at the highest budget is positive", bool(welfare > 0.0)),
    )
    return Bound("paper", {"price": np.asarray(value)}, premises)


def valid_private_price(
    reward: ArrayLike, aversion: ArrayLike, *, lowest_budget: ArrayLike, highest_budget: ArrayLike
) -> Bound:
    """Bound the price of any budgets within [low_t, high_t], against the best budgets within the same bounds.

    Args:
        reward: (rounds,) R_t.
        aversion: (clients,) ψ_i.
        lowest_budget: low_t, one or one for each round.
        highest_budget: high_t, likewise.
    """
    paid, dislikes = _validate.vector("reward", reward, low=0.0), _aversions(aversion)
    low = _validate.vector("lowest_budget", np.broadcast_to(lowest_budget, paid.shape), low=0.0)
    high = _validate.vector("highest_budget", np.broadcast_to(highest_budget, paid.shape), low=0.0)
    if (high < low).any():
        t = int(np.flatnonzero(high < low)[0])
        raise InvalidInput(f"highest_budget[{t}] must be at least lowest_budget[{t}], {low[t]:g}, got {high[t]:g}.")
    best = np.clip(paid[:, None] / (2.0 * dislikes), low[:, None], high[:, None])
    most = (paid[:, None] * best - dislikes * best**2).sum()
    least = np.minimum(_welfare(low, paid, dislikes), _welfare(high, paid, dislikes)).sum()
    premise = Premise("welfare is positive at whichever end of the interval is worse", bool(least > 0.0))
    return Bound("valid", {"price": np.asarray(most / least if least > 0.0 else np.inf)}, (premise,))


def _welfare(budget: FloatArray, reward: FloatArray, aversion: FloatArray) -> FloatArray:
    """(rounds, clients) welfare if everyone has the round's budget."""
    return np.asarray((budget * reward)[:, None] - aversion * (budget**2)[:, None])


def _inputs(reward: ArrayLike, aversion: ArrayLike, budget: float) -> tuple[FloatArray, FloatArray, float]:
    paid = _validate.vector("reward", reward, low=0.0)
    return paid, _aversions(aversion), _validate.positive("budget", budget)


def _aversions(aversion: ArrayLike) -> FloatArray:
    return _validate.vector("aversion", aversion, low=_LEAST_AVERSION, high=1.0)
