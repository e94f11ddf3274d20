"""Client sampling and aggregation weights: who takes part in a round, and how much each update counts.

A `View` holds what the server knows, a sampler draws from it, a rule weighs the updates that arrive. Weights multiply
updates.

Example:
    >>> import numpy as np
    >>> from fedpcs.sampling import draw, make_sampler, make_view, weigh
    >>> view = make_view(2, [50, 30, 20], budget=[1.0, 1.0, 4.0])
    >>> cohort = draw(make_sampler("fedpcs"), view, np.random.default_rng(1))
    >>> cohort.clients.tolist(), cohort.inclusion.round(3).tolist()
    ([1, 2], [0.5, 0.5, 1.0])
    >>> weigh("horvitz-thompson", cohort, view).tolist()
    [0.6, 0.2]
"""

from __future__ import annotations

from fedpcs._inclusion import inclusion_probability as inclusion_probability
from fedpcs.sampling.contract import check_sampler as check_sampler
from fedpcs.sampling.designs import DESIGNS as DESIGNS
from fedpcs.sampling.designs import draw_cohort as draw_cohort
from fedpcs.sampling.drawn import Draw as Draw
from fedpcs.sampling.drawn import biased_draw as biased_draw
from fedpcs.sampling.drawn import draw_by_size as draw_by_size
from fedpcs.sampling.drawn import mixed_with_uniform as mixed_with_uniform
from fedpcs.sampling.drawn import share_by_size as share_by_size
from fedpcs.sampling.dropouts import arrived as arrived
from fedpcs.sampling.dropouts import survival_rate as survival_rate
from fedpcs.sampling.feedback import Feedback as Feedback
from fedpcs.sampling.feedback import make_feedback as make_feedback
from fedpcs.sampling.feedback import without_noise as without_noise
from fedpcs.sampling.precision import estimate_drift as estimate_drift
from fedpcs.sampling.registry import make_sampler as make_sampler
from fedpcs.sampling.sampler import Disclosure as Disclosure
from fedpcs.sampling.sampler import Sampler as Sampler
from fedpcs.sampling.sampler import disclosure as disclosure
from fedpcs.sampling.sampler import draw as draw
from fedpcs.sampling.sampler import remember as remember
from fedpcs.sampling.sampler import start as start
from fedpcs.sampling.samplers import SAMPLERS as SAMPLERS
from fedpcs.sampling.samplers.fed_cbs import class_imbalance as class_imbalance
from fedpcs.sampling.samplers.fed_cbs import usable_counts as usable_counts
from fedpcs.sampling.tally import RoundReport as RoundReport
from fedpcs.sampling.tally import Tally as Tally
from fedpcs.sampling.tally import count as count
from fedpcs.sampling.tally import report_round as report_round
from fedpcs.sampling.tally import start_tally as start_tally
from fedpcs.sampling.view import View as View
from fedpcs.sampling.view import make_view as make_view
from fedpcs.sampling.weights import RULES as RULES
from fedpcs.sampling.weights import limit_share as limit_share
from fedpcs.sampling.weights import settle_rule as settle_rule
from fedpcs.sampling.weights import weigh as weigh
