"""Aggregation rules: from a draw to the weights of the cohort's updates.

The target is ḡ = Σ θ_i u_i over all clients; the estimate is Σ w_i ũ_i over the cohort, ũ_i = u_i + noise. With e_i the
expansion of the design (1/π_i, or what stands in its place) and x_i the probability of one draw:

    horvitz-thompson   w_i = θ_i e_i                     unbiased over draws, whatever the design
    hajek              w_i = θ_i e_i / Σ θ_j e_j         ratio estimate: slightly biased, far steadier
    normalised         w_i = θ_i / Σ θ_j                 federated averaging; biased towards whoever is drawn often
    paper              w_i = θ_i / (K x_i) for each draw as printed: right for draws with replacement, wrong for others
    precision          see `fedpcs.sampling.precision`   least mean-squared error, given the noise and clients' drift

After drop-outs θ_i e_i is divided by the chance s_i that a client answers, and so is θ_i in `normalised`; `precision`
lets the heard speak for the others in proportion to 1/s_i. Chances that all clients share cancel in `hajek`,
`normalised` and `precision`.

`default` is no rule of its own: it is `precision` where noise is known and `normalised` where there is none, whoever
draws. By draws in proportion to budgets `hajek` gives the noisiest clients the most say: docs/how-to-choose.md.

`cap` truncates: w_i ≤ cap·θ_i·N/(K·s_i). It limits what one client can do to the model and takes E[Σw] below one, so
the estimate leans towards zero and away from the clients that are rarely drawn.
"""

from __future__ import annotations

import numpy as np

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.sampling.drawn import Draw
from fedpcs.sampling.precision import precision_weights
from fedpcs.sampling.view import View

# Nobody speaks for more than this many times as many clients as under uniform draws.
_MOST_LIKE = 3.0

RULES = ("horvitz-thompson", "hajek", "normalised", "paper", "precision")


def settle_rule(rule: str, noise_power: FloatArray) -> str:
    """Return the rule itself, or what `default` stands for: see above.

    Args:
        rule: One of `RULES`, "own", or "default".
        noise_power: (clients,) d·σ_i² of the updates that are weighed, zero where there is no noise.

    Example:
        >>> settle_rule("default", np.ones(3)), settle_rule("default", np.zeros(3)), settle_rule("hajek", np.ones(3))
        ('precision', 'normalised', 'hajek')
    """
    if rule != "default":
        return rule
    return "precision" if np.any(np.asarray(noise_power) > 0.0) else "normalised"


def weigh(
    rule: str,
    draw: Draw,
    view: View,
    *,
    noise_power: FloatArray | None = None,
    drift: float | FloatArray | None = None,
    by_design: bool = False,
    cap: float | None = None,
) -> FloatArray:
    """Return the weights of the drawn clients' updates.

    Args:
        rule: One of `RULES`, or "own" for what the sampler itself proposes.
        draw: Who was drawn; after drop-outs, what `arrived` returned.
        view: What the draw was made from.
        noise_power: (cohort,) d·σ_i² in each update, for `precision`; the view's own if absent.
        drift: Mean squared distance of a client's update from the clients' mean, for `precision`: one number, see
            `estimate_drift`, or (cohort,).
        by_design: For `precision`: whether the heard speak for the others in proportion to their expansion, up to three
            times N/K, instead of alike. Dearer where being drawn says nothing about an update, cheaper where it does.
        cap: Most a weight may exceed that of uniform draws by, as a factor; no cap if absent.

    Example:
        >>> from fedpcs.sampling import make_sampler, make_view
        >>> view = make_view(2, [50, 30, 20], budget=[1.0, 1.0, 4.0])
        >>> draw = make_sampler("fedpcs").draw(view, np.random.default_rng(1))
        >>> draw.clients.tolist(), weigh("hajek", draw, view).round(3).tolist()
        ([1, 2], [0.75, 0.25])
    """
    _validate.choice("rule", rule, (*RULES, "own"))
    if _validate.boolean("by_design", by_design) and rule != "precision":
        raise InvalidInput(f"by_design is a setting of precision, got it with {rule}.")
    if draw.clients.size == 0:
        return np.zeros(0)
    weight = view.data_weight[draw.clients]
    if rule == "own":
        found = draw.weights.copy()
    elif rule == "normalised":
        found = weight / _survival(draw)
        found = found / found.sum()
    elif rule == "precision":
        if drift is None:
            raise InvalidInput("precision needs the clients' drift, got none. Pass drift=…; see estimate_drift.")
        if noise_power is None and view.noise_power is None:
            raise InvalidInput("precision needs noise_power, got none. If updates carry no noise, pass zeros.")
        noise = np.asarray(view.noise_power)[draw.clients] if noise_power is None else noise_power
        found = precision_weights(weight, noise, drift, _likeness(draw, view, by_design))
    elif rule == "paper":
        times = 1 if draw.times is None else draw.times
        found = weight * times / (draw.num_draws * _draw_probability(draw) * _survival(draw))
    else:
        found = weight * _expansion(rule, draw)
        if rule == "hajek":
            found = found / found.sum()
    return found if cap is None else np.minimum(found, _ceiling(cap, weight, draw, view))


def limit_share(weights: FloatArray, largest: float) -> FloatArray:
    """Return weights of which none is more than a share of their sum; what it loses the others gain, in proportion.

    Where one client would decide nearly all of a step, by its size or by how little noise it has, the others' part of
    the step is then what it would be without that client. At one half two clients weigh alike; one alone keeps its
    weight.

    Args:
        weights: (cohort,) at least zero.
        largest: The share, from one half to one; so no two weights can be beyond it.

    Example:
        >>> limit_share(np.array([0.96, 0.03, 0.01]), 0.5).tolist()
        [0.5, 0.375, 0.125]
    """
    share = _validate.number("largest", largest, low=0.5, high=1.0)
    if weights.size == 0:
        return weights
    top, rest = int(np.argmax(weights)), weights.astype(np.float64)
    rest[top] = 0.0
    total, others = float(weights.sum()), float(rest.sum())
    if not (others > 0.0 and weights[top] > share * total):
        return weights
    limited = rest / others * ((1.0 - share) * total)  # in this order: others may be tiny
    limited[top] = share * total
    return limited


def _likeness(draw: Draw, view: View, by_design: bool) -> FloatArray | None:
    """Return in what proportion drawn clients speak for the others under `precision`; None if alike."""
    if by_design:
        if draw.expansion is None:
            raise InvalidInput(
                "by_design needs inclusion probabilities, which this sampler does not have. Leave it out."
            )
        before_drop_outs = draw.expansion * _survival(draw)
        return np.minimum(before_drop_outs, _MOST_LIKE * _uniform_expansion(view)) / _survival(draw)
    return None if draw.survival is None else 1.0 / draw.survival


def _survival(draw: Draw) -> FloatArray:
    return np.ones(draw.clients.size) if draw.survival is None else draw.survival


def _uniform_expansion(view: View) -> float:
    num_available = int(np.count_nonzero(view.is_available))
    return num_available / min(view.cohort_size, num_available)


def _expansion(rule: str, draw: Draw) -> FloatArray:
    if draw.expansion is None:
        raise InvalidInput(
            f"{rule} needs inclusion probabilities, which this sampler does not have: it is biased by intention. "
            "Use 'own', 'normalised' or 'precision', or another sampler."
        )
    return draw.expansion


def _draw_probability(draw: Draw) -> FloatArray:
    if draw.draw_probability is None:
        raise InvalidInput(
            "paper needs the probability of one draw, which this sampler does not have. Use 'own' or 'normalised'."
        )
    return draw.draw_probability[draw.clients]


def _ceiling(cap: float, weight: FloatArray, draw: Draw, view: View) -> FloatArray:
    factor = _validate.number("cap", cap, low=1.0, remedy="At 1 every weight is at most that of uniform draws.")
    return np.asarray(factor * weight * _uniform_expansion(view) / _survival(draw))
