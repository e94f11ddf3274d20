"""An audit as a picture: what the attack finds at each rate of false alarms, and what the claim lets it find.

A claim of Gaussian noise is a curve that no attack can rise above, Φ(μ + Φ⁻¹(f)). What an attack scores on so many
canaries strays from its true curve by chance, so the band is where a claim just kept would put it.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from fedpcs import _format, _random
from fedpcs._validate import FloatArray
from fedpcs.privacy.audit import Claim
from fedpcs.privacy.standing import noise_standing
from fedpcs.report import style
from fedpcs.studies.audit.attack import Audit

_BAND = (0.025, 0.975)
_NUM_SIMULATED = 2000
_NUM_POINTS = 400
_LEAST_RATE = 1e-4
_NBSP = "\N{NO-BREAK SPACE}"


def roc_figure(audit: Audit) -> Figure:
    """Draw the attack's ROC curve beside the claim's, on a logarithmic axis: few false alarms are where it hurts."""
    figure, (axes,) = style.new_figure("What an attack finds", note=_note(audit), height_inches=4.9)
    least = max(1.0 / audit.result.num_canaries, _LEAST_RATE)
    _draw_curves(axes, audit, np.geomspace(least, 1.0, _NUM_POINTS))
    axes.set_xscale("log")
    axes.set_xlim(least, 1.0)
    axes.set_ylim(0.0, 1.03)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: _format.percent(rate)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    style.percent_ticks(axes.yaxis)
    axes.set_xlabel("held-out canaries taken for held-in (log scale)")
    axes.set_ylabel("held-in canaries found")
    axes.legend(frameon=False, fontsize=8.5, reverse=True)
    return figure


def claim_band(claim: Claim, num_canaries: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return false positive rates, and what lies under and over 95 % of attacks on a claim just kept.

    The k-th highest of n held-out scores is passed by a Beta(k, n − k + 1) share of further ones; of the held-in, a
    binomial number passes it.
    """
    rng = _random.generator(0, "audit-figure")
    num_points = min(num_canaries, 200)
    ranks = np.unique(np.geomspace(1, num_canaries, num_points).astype(int))
    shares = rng.beta(ranks, num_canaries - ranks + 1, (_NUM_SIMULATED, ranks.size))
    found = rng.binomial(num_canaries, claim.true_positive_rate(shares)) / num_canaries
    low, high = np.quantile(found, _BAND, axis=0)
    return np.append((ranks - 1) / num_canaries, 1.0), np.append(low, 1.0), np.append(high, 1.0)


def _note(audit: Audit) -> str:
    result, plan = audit.result, audit.plan
    shown, claimed = _format.rounded_down(result.bounds.gaussian), _format.rounded_up(result.claim.epsilon)
    rounds = "one round" if plan.num_rounds == 1 else f"{plan.num_rounds} rounds"
    source = "" if audit.is_guarantee else f" The noise is {noise_standing(plan.noise)}."
    return (
        f"The attack shows ε{_NBSP}≥{_NBSP}{shown}; mode {audit.scenario.mode} claims {claimed} at "
        f"δ{_NBSP}={_NBSP}{_format.amount(result.claim.delta)}. {result.num_canaries:,} canaries held in and as many "
        f"held out, {rounds}. The bound assumes a Gaussian trade-off and holds with confidence "
        f"{_format.percent(result.bounds.confidence)}; assuming nothing it is "
        f"{_format.rounded_down(result.bounds.clopper_pearson)}.{source}"
    )


def _draw_curves(axes: Axes, audit: Audit, rates: FloatArray) -> None:
    result = audit.result
    allowed = result.claim.true_positive_rate(rates)
    axes.fill_between(rates, allowed, 1.0, color=style.VERMILION, alpha=0.10, lw=0, label="impossible if it is kept")
    band = f"95{_NBSP}% of attacks if it is just kept"
    axes.fill_between(*claim_band(result.claim, result.num_canaries), color=style.GREY, alpha=0.30, lw=0, label=band)
    axes.plot(rates, rates, color=style.PALE, linewidth=1.0)
    text = f"most the claim allows, AUC {result.claim.auc:.3f}"
    axes.plot(rates, allowed, color=style.INK, linewidth=1.4, linestyle=style.DASHES, label=text)
    axes.step(*result.roc, where="post", color=style.BLUE, linewidth=1.8, label=f"the attack, AUC {result.auc:.3f}")
