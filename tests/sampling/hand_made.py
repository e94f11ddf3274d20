"""Two clients drawn of four, with every number chosen by hand; and the same two by a sampler without probabilities."""

import numpy as np

from fedpcs.sampling import Draw

TWO = Draw(
    clients=np.array([0, 2]),
    weights=np.array([0.7, 0.4]),
    inclusion=np.array([0.2, 0.5, 0.8, 0.5]),
    expansion=np.array([5.0, 1.25]),
    draw_probability=np.array([0.3, 0.1, 0.4, 0.2]),
    num_draws=2,
)
BIASED = Draw(TWO.clients, TWO.weights, None, None, None, 2)
