"""Erratum 10: the printed weights and selection probability under the draws the text describes.

Clients arrive as exponential clocks of rates x_i ring, and the first K are drawn: that is drawing one by one without
replacement. So π_i = ∫ x_i·exp(−x_i·t)·P(fewer than K others by t) dt, computed to eight digits.
"""

from __future__ import annotations

import numpy as np
from _markdown import table
from scipy.optimize import brentq

from fedpcs._validate import FloatArray

NUM_CLIENTS = 100
COHORTS = (20, 50, 80)
_NODES = 400


def successive_inclusion_exact(draw_probability: FloatArray, cohort_size: int) -> FloatArray:
    """Return π_i under successive draws without replacement, by quadrature."""
    # With t = −ln(1 − s)·T, T the time by which K clocks have rung on average, the clocks' whole life is s in (0, 1).
    s, weight = np.polynomial.legendre.leggauss(_NODES)
    s, weight = 0.5 * (s + 1.0), 0.5 * weight
    scale = brentq(lambda time: cohort_size + np.expm1(-draw_probability * time).sum(), 0.0, 1e9)
    t, jacobian = -np.log1p(-s) * scale, scale / (1.0 - s)
    arrived = -np.expm1(-np.outer(draw_probability, t))
    found = np.empty(draw_probability.size)
    for i, x in enumerate(draw_probability):
        others = np.zeros((cohort_size, t.size))  # probability that exactly k others have arrived
        others[0] = 1.0
        for j, p in enumerate(arrived):
            if j != i:
                others[1:] = others[1:] * (1.0 - p) + others[:-1] * p
                others[0] *= 1.0 - p
        found[i] = np.sum(weight * jacobian * x * np.exp(-x * t) * others.sum(axis=0))
    return found


def main() -> None:
    """Print one row per kind of budgets and τ."""
    rng = np.random.default_rng(3)
    kinds = {"uniform [0.01, 12]": rng.uniform(0.01, 12.0, NUM_CLIENTS)}
    kinds["log-uniform [0.01, 12]"] = np.exp(rng.uniform(np.log(0.01), np.log(12.0), NUM_CLIENTS))
    rows = []
    for name, budget in kinds.items():
        x = budget / budget.sum()
        for K in COHORTS:
            π = successive_inclusion_exact(x, K)
            ratio, printed = π / (K * x), 1.0 - (1.0 - x) ** K
            rows.append(
                [
                    name,
                    f"{K / NUM_CLIENTS:g}",
                    f"{ratio.mean():.3g}",
                    f"{ratio.min():.2f} … {ratio.max():.3g}",
                    f"{np.abs(printed - π).max():.2f}",
                    f"{printed.sum():.1f} of {K}",
                ]
            )
    header = ["budgets", "τ", "E[Σ weights]", "π_i/(K x_i)", "largest error of 1 − (1−x)^K", "distinct if replaced"]
    print(table(header, rows))


if __name__ == "__main__":
    main()
