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

from fedpcs.theory.accuracy_loss import falling_steps as falling_steps
from fedpcs.theory.accuracy_loss import paper_accuracy_loss as paper_accuracy_loss
from fedpcs.theory.accuracy_loss import valid_accuracy_loss as valid_accuracy_loss
from fedpcs.theory.anarchy import paper_private_price as paper_private_price
from fedpcs.theory.anarchy import paper_selfish_price as paper_selfish_price
from fedpcs.theory.anarchy import valid_private_price as valid_private_price
from fedpcs.theory.anarchy import valid_selfish_price as valid_selfish_price
from fedpcs.theory.bound import Bound as Bound
from fedpcs.theory.bound import Premise as Premise
from fedpcs.theory.convergence import paper_error as paper_error
from fedpcs.theory.convergence import paper_rate as paper_rate
from fedpcs.theory.convergence import valid_error as valid_error
from fedpcs.theory.convergence import valid_rate as valid_rate
from fedpcs.theory.estimates import Estimate as Estimate
from fedpcs.theory.estimates import Estimates as Estimates
from fedpcs.theory.estimates import from_log as from_log
from fedpcs.theory.estimates import probe as probe
from fedpcs.theory.federation import Constants as Constants
from fedpcs.theory.federation import Federation as Federation
from fedpcs.theory.federation import make_federation as make_federation
from fedpcs.theory.optimality_gap import paper_distance as paper_distance
from fedpcs.theory.optimality_gap import paper_distance_not_convex as paper_distance_not_convex
from fedpcs.theory.optimality_gap import paper_reach as paper_reach
from fedpcs.theory.optimality_gap import valid_distance as valid_distance
from fedpcs.theory.optimality_gap import valid_distance_not_convex as valid_distance_not_convex
from fedpcs.theory.optimality_gap import valid_reach as valid_reach
from fedpcs.theory.problems import Logistic as Logistic
from fedpcs.theory.problems import Problem as Problem
from fedpcs.theory.problems import Quadratic as Quadratic
from fedpcs.theory.problems import make_logistic as make_logistic
from fedpcs.theory.problems import make_quadratic as make_quadratic
from fedpcs.theory.progress import paper_progress as paper_progress
from fedpcs.theory.progress import valid_progress as valid_progress
from fedpcs.theory.sampling_ratio import CappedCohort as CappedCohort
from fedpcs.theory.sampling_ratio import RatioPlan as RatioPlan
from fedpcs.theory.sampling_ratio import paper_ratio as paper_ratio
from fedpcs.theory.sampling_ratio import valid_ratio as valid_ratio
from fedpcs.theory.trajectories import Trajectories as Trajectories
from fedpcs.theory.trajectories import simulate as simulate
