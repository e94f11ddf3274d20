"""Theory you can run: each bound of the paper as printed (`paper_…`) and as it can be proved (`valid_…`).

A `Bound` is a sum of named terms, so that one sees what dominates, with the premises it rests on. `simulate` trains
problems whose constants are known exactly, thousands of times over, to hold bounds against. NumPy and SciPy; no torch.

Example:
    >>> from fedpcs.theory import make_federation, make_quadratic, valid_rate
    >>> import numpy as np
    >>> problem = make_quadratic(num_clients=100)
    >>> federation = make_federation(
    ...     data_weight=problem.data_weight, draw_probability=np.full(100, 0.01), cohort_size=20, num_rounds=300,
    ...     step_size=0.2, noise_power=1.0,
    ... )
    >>> bound = valid_rate(federation, problem.constants(np.full(20, 2.0)))
    >>> bound.has_premises, bound.dominating(round_index=10), bound.dominating()
    (True, 'start', 'noise')
"""

from fedpcs.theory.accuracy_loss import falling_steps, paper_accuracy_loss, valid_accuracy_loss
from fedpcs.theory.anarchy import paper_private_price, paper_selfish_price, valid_private_price, valid_selfish_price
from fedpcs.theory.bound import Bound, Premise
from fedpcs.theory.convergence import paper_error, paper_rate, valid_error, valid_rate
from fedpcs.theory.estimates import Estimate, Estimates, from_log, probe
from fedpcs.theory.federation import Constants, Federation, make_federation
from fedpcs.theory.optimality_gap import (
    paper_distance,
    paper_distance_not_convex,
    paper_reach,
    valid_distance,
    valid_distance_not_convex,
    valid_reach,
)
from fedpcs.theory.problems import Logistic, Problem, Quadratic, make_logistic, make_quadratic
from fedpcs.theory.progress import paper_progress, valid_progress
from fedpcs.theory.sampling_ratio import CappedCohort, RatioPlan, paper_ratio, valid_ratio
from fedpcs.theory.trajectories import Trajectories, simulate

__all__ = ["falling_steps", "paper_accuracy_loss", "valid_accuracy_loss"]
__all__ += ["paper_private_price", "paper_selfish_price", "valid_private_price", "valid_selfish_price"]
__all__ += ["Bound", "Premise"]
__all__ += ["paper_error", "paper_rate", "valid_error", "valid_rate"]
__all__ += ["Estimate", "Estimates", "from_log", "probe"]
__all__ += ["Constants", "Federation", "make_federation"]
__all__ += [
    "paper_distance",
    "paper_distance_not_convex",
    "paper_reach",
    "valid_distance",
    "valid_distance_not_convex",
    "valid_reach",
]
__all__ += ["Logistic", "Problem", "Quadratic", "make_logistic", "make_quadratic"]
__all__ += ["paper_progress", "valid_progress"]
__all__ += ["CappedCohort", "RatioPlan", "paper_ratio", "valid_ratio"]
__all__ += ["Trajectories", "simulate"]
