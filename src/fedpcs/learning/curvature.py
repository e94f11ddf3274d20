"""How curved a network's loss is where it stands: along a step, at most, and on average over all directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedpcs import _random
from fedpcs._validate import FloatArray

_MOST_STEPS = 40
_CLOSE_ENOUGH = 1e-3


@dataclass(frozen=True)
class Bend:
    """The second derivatives of a mean cross-entropy, felt through products with vectors.

    Attributes:
        loss: Its value.
        gradient: (parameters,) its slope.
        graph: What products are taken from.
        parameters: The network's.
    """

    loss: float
    gradient: FloatArray
    graph: Tensor
    parameters: tuple[nn.Parameter, ...]

    def times(self, way: FloatArray) -> FloatArray:
        """Return the Hessian times a vector."""
        along = self.graph @ torch.from_numpy(way).to(self.graph.dtype)
        parts = torch.autograd.grad(along, self.parameters, retain_graph=True)
        return torch.cat([part.reshape(-1) for part in parts]).double().numpy()


def bend_of(model: nn.Module, inputs: Tensor, targets: Tensor) -> Bend:
    """Return how the loss of some records bends at a model; the model is left as it is."""
    parameters = tuple(one for one in model.parameters() if one.requires_grad)
    loss = cross_entropy(model(inputs), targets)
    parts = torch.autograd.grad(loss, parameters, create_graph=True)
    graph = torch.cat([part.reshape(-1) for part in parts])
    return Bend(float(loss.detach()), graph.detach().double().numpy(), graph, parameters)


def top_curvature(bend: Bend, *, seed: int = 0) -> float:
    """Return the Hessian's largest eigenvalue, by power iteration, to a thousandth or so and from below.

    Example:
        >>> linear = nn.Linear(2, 2, bias=False)
        >>> _ = nn.init.zeros_(linear.weight)
        >>> round(top_curvature(bend_of(linear, torch.tensor([[2.0, 0.0]]), torch.tensor([0]))), 3)
        2.0
    """
    value = _largest_in_size(bend, 0.0, seed)
    # The largest in size may be a negative one; shifted by it, the largest of all is the largest in size.
    return value if value >= 0.0 else value + _largest_in_size(bend, value, seed)


def _largest_in_size(bend: Bend, shift: float, seed: int) -> float:
    """Return the eigenvalue of H − shift·I that is largest in size."""
    way = _random.generator(seed, "curvature").standard_normal(bend.gradient.size)
    value = 0.0
    for _ in range(_MOST_STEPS):
        length = float(np.linalg.norm(way))
        if not length > 0.0:
            return 0.0
        way = way / length
        bent = bend.times(way) - shift * way
        before, value, way = value, float(way @ bent), bent
        if abs(value - before) <= _CLOSE_ENOUGH * abs(value):
            break
    return value


def mean_curvature(bend: Bend, *, num_probes: int = 16, seed: int = 0) -> float:
    """Estimate the mean of the Hessian's eigenvalues, which is what isotropic noise meets (Hutchinson 1990).

    Example:
        >>> linear = nn.Linear(2, 2, bias=False)
        >>> _ = nn.init.zeros_(linear.weight)
        >>> round(mean_curvature(bend_of(linear, torch.tensor([[2.0, 0.0]]), torch.tensor([0])), num_probes=500), 1)
        0.5
    """
    rng = _random.generator(seed, "curvature")
    signs = rng.choice([-1.0, 1.0], size=(num_probes, bend.gradient.size))
    return float(np.mean([way @ bend.times(way) for way in signs])) / bend.gradient.size
