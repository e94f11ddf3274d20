"""What the bounds need to know: how a round is run, and how steep, curved and varied clients' losses are.

One round of local gradient steps, a draw, and weights that undo it:

    w(t+1) = w(t) − η_t Σ_i m_i θ_i/c_i · (ḡ_i(t) + n_i(t)),   E[m_i] = c_i,   E‖n_i(t)‖² = noise power,

where m_i counts how often client i is drawn, and ḡ_i is the mean of its local gradients: ∇F_i(w(t)) itself if it takes
one step. A client that is drawn twice sends one update, with one noise, that counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput

Design = Literal["with-replacement", "fixed-size", "poisson"]
DESIGNS: tuple[Design, ...] = ("with-replacement", "fixed-size", "poisson")
_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Federation:
    """How rounds are run.

    Attributes:
        data_weight: (clients,) θ_i, sums to one.
        design: `with-replacement`, as the paper's weights suppose; `fixed-size`, without, where no two clients' draws
            are positively correlated (pivotal, conditional Poisson, simple random); or `poisson`.
        expected_count: (rounds, clients) how often a client is expected in the cohort: K·x_i, or π_i without
            replacement.
        noise_power: (rounds, clients) expected squared norm of a client's noise, d·σ_i², as a gradient: what is added
            to an update, divided by the step size.
        step_size: (rounds,) η_t: the server's whole step, which is local rate times local steps.
        local_steps: How many gradient steps a client takes in a round, each of η_t ÷ local_steps.
    """

    data_weight: FloatArray
    design: Design
    expected_count: FloatArray
    noise_power: FloatArray
    step_size: FloatArray
    local_steps: int = 1

    @property
    def num_rounds(self) -> int:
        """Rounds."""
        return int(self.step_size.size)

    @property
    def num_clients(self) -> int:
        """N."""
        return int(self.data_weight.size)

    @property
    def cohort_size(self) -> FloatArray:
        """(rounds,) K, in expectation."""
        return np.asarray(self.expected_count.sum(axis=1))


@dataclass(frozen=True)
class Constants:
    """What is known of the losses. Constants that a bound does not use may be left out.

    Attributes:
        smoothness: β, of F, and of every F_i for which `client_smoothness` says nothing else.
        mean_curvature: The largest tr H/d there is, H the Hessian of F: all that isotropic Gaussian noise meets, and
            often far below β. None: β.
        pl: μ of the Polyak–Łojasiewicz inequality ½‖∇F‖² ≥ μ(F − F*); zero if there is none.
        strong_convexity: ψ of F; zero if it is not strongly convex.
        gradient_bound: (clients,) D_i with ‖∇F_i‖ ≤ D_i wherever training goes, or infinite.
        gradient_at_optimum: (clients,) ‖∇F_i(w*)‖, which says how clients differ; None if it is not known.
        client_smoothness: (clients,) β_i of F_i. With `gradient_at_optimum` it is taken for that of *convex* F_i.
        gradient_variance: (clients,) M_i, of a client's stochastic gradient around ∇F_i.
        relative_variance: M_V: variance that grows with ‖∇F‖². Only printed bounds use it.
        alignment: κ with ∇F·∇F_i ≥ κ‖∇F‖² for all i. Only printed bounds use it.
        alignment_bound: κ_G with ‖∇F_i‖ ≤ κ_G‖∇F‖ for all i. Only printed bounds use it.
        initial_gap: F(w(0)) − F*; None if it is not known.
        initial_distance: ‖w(0) − w*‖; None if it is not known.
    """

    smoothness: float
    mean_curvature: float | None = None
    pl: float = 0.0
    strong_convexity: float = 0.0
    gradient_bound: FloatArray | None = None
    gradient_at_optimum: FloatArray | None = None
    client_smoothness: FloatArray | None = None
    gradient_variance: FloatArray | None = None
    relative_variance: float = 0.0
    alignment: float = 1.0
    alignment_bound: float = 1.0
    initial_gap: float | None = None
    initial_distance: float | None = None

    @property
    def noise_curvature(self) -> float:
        """What noise meets: the mean curvature if it is known, else β."""
        return self.smoothness if self.mean_curvature is None else self.mean_curvature


def make_federation(
    *,
    data_weight: ArrayLike,
    draw_probability: ArrayLike,
    cohort_size: float,
    num_rounds: int,
    step_size: ArrayLike,
    noise_power: ArrayLike = 0.0,
    design: Design = "with-replacement",
    local_steps: int = 1,
) -> Federation:
    """Check and fill in; what is given for one round is taken for all, and what is given for one client too.

    Args:
        data_weight: (clients,) θ_i.
        draw_probability: (clients,) or (rounds, clients) x_i, sums to one: K·x_i is how often a client is expected.
        cohort_size: K.
        num_rounds: Rounds.
        step_size: η, one or one for each round.
        noise_power: d·σ_i²: one number, one per client, or (rounds, clients).
        design: How the cohort is drawn.
        local_steps: Gradient steps of a client in a round.

    Raises:
        InvalidInput: Something is out of its range.
    """
    rounds = _validate.integer("num_rounds", num_rounds, low=1)
    weight = _validate.vector("data_weight", data_weight, low=0.0)
    size = _validate.positive("cohort_size", cohort_size)
    shape = (rounds, weight.size)
    chance = _spread("draw_probability", draw_probability, shape)
    for name, sums in (("data_weight", weight.sum()), ("draw_probability", chance.sum(axis=1))):
        if np.abs(sums - 1.0).max() > _SUM_TOLERANCE:
            raise InvalidInput(f"{name} must sum to 1, got {float(np.atleast_1d(sums)[0])!r}. Divide it by its sum.")
    count = size * chance
    if not ((count > 0.0) | (weight == 0.0)).all():
        raise InvalidInput("draw_probability must be positive for clients with data: no weight makes up for a zero.")
    _validate.choice("design", design, DESIGNS)
    if design != "poisson" and size != round(size):
        raise InvalidInput(f"cohort_size must be a whole number if the cohort is of fixed size, got {cohort_size!r}.")
    if design != "with-replacement" and count.max() > 1.0 + _SUM_TOLERANCE:
        raise InvalidInput(
            f"cohort_size × draw_probability must be at most 1 without replacement, got {float(count.max())!r}. Give "
            "inclusion probabilities ÷ cohort_size."
        )
    steps = np.full(rounds, step_size) if np.ndim(step_size) == 0 else step_size
    steps = _validate.vector("step_size", steps, length=rounds, low=np.finfo(float).tiny)
    power = _spread("noise_power", noise_power, shape)
    return Federation(weight, design, count, power, steps, _validate.integer("local_steps", local_steps, low=1))


def known(constants: Constants, name: str) -> float:
    """Return a constant that a bound cannot do without.

    Raises:
        InvalidInput: It is not known.
    """
    value: float | None = getattr(constants, name)
    if value is None:
        raise InvalidInput(f"{name} is missing: the bound begins with it.")
    return value


def check_constants(constants: Constants, federation: Federation) -> None:
    """Raise InvalidInput if a constant is out of its range."""
    _validate.positive("smoothness", constants.smoothness)
    for name in ("pl", "strong_convexity", "noise_curvature"):
        _validate.number(name, getattr(constants, name), low=0.0, high=constants.smoothness)
    for name in ("initial_gap", "initial_distance"):
        if getattr(constants, name) is not None:
            _validate.number(name, getattr(constants, name), low=0.0)
    for name in ("gradient_at_optimum", "client_smoothness", "gradient_variance", "gradient_bound"):
        value = getattr(constants, name)
        if value is not None:
            _validate.vector(name, value, length=federation.num_clients, low=0.0)


def _spread(name: str, value: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    """Return a (rounds, clients) table of finite, non-negative numbers."""
    array = np.asarray(value, dtype=np.float64)
    try:
        table = np.broadcast_to(array, shape)
    except ValueError:
        raise InvalidInput(f"{name} must be one number, {shape[1]} of them or {shape}, got {array.shape}.") from None
    return _validate.matrix(name, table, num_rows=shape[0], low=0.0)
