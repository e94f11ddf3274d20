"""Losses whose constants are known exactly: quadratics, and logistic regression.

A problem answers for many models at once, which is what simulating thousands of trajectories needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from fedpcs import _validate
from fedpcs._random import generator
from fedpcs._validate import FloatArray
from fedpcs.theory.federation import Constants


@dataclass(frozen=True)
class Quadratic:
    """F_i(w) = ½ scale_i (w − centre_i)ᵀ diag(curvature) (w − centre_i).

    Attributes:
        data_weight: (clients,) θ_i.
        curvature: (dimension,) eigenvalues of the Hessian of F.
        centres: (clients, dimension) where each client's loss is least.
        scale: (clients,) how much more curved than F a client's loss is; Σ θ_i scale_i = 1.
    """

    data_weight: FloatArray
    curvature: FloatArray
    centres: FloatArray
    scale: FloatArray

    @property
    def optimum(self) -> FloatArray:
        """w*, a weighted mean of centres."""
        return np.asarray((self.data_weight * self.scale) @ self.centres)

    def gaps(self, models: FloatArray) -> FloatArray:
        """Return F(w) − F* of (models, dimension)."""
        return np.asarray(0.5 * ((models - self.optimum) ** 2 @ self.curvature))

    def client_gradients(self, models: FloatArray) -> FloatArray:
        """Return ∇F_i(w), (models, clients, dimension), of (models, dimension) or a model for each client."""
        each = models[:, None, :] if models.ndim == 2 else models
        return np.asarray(self.scale[:, None] * self.curvature * (each - self.centres))

    def summed_gradients(self, models: FloatArray, factors: FloatArray) -> FloatArray:
        """Return Σ_i factor_i ∇F_i(w), (models, dimension), never forming them all."""
        scaled = factors * self.scale
        return np.asarray(self.curvature * (models * scaled.sum(axis=1, keepdims=True) - scaled @ self.centres))

    def gradient_norms(self, models: FloatArray) -> FloatArray:
        """Return ‖∇F_i(w)‖, (models, clients), by ‖a − b‖² = ‖a‖² − 2a·b + ‖b‖²."""
        ahead, centres = self.curvature * models, self.curvature * self.centres
        squares = (ahead**2).sum(axis=1)[:, None] - 2.0 * ahead @ centres.T + (centres**2).sum(axis=1)
        return np.asarray(self.scale * np.sqrt(np.maximum(squares, 0.0)))

    def constants(self, start: FloatArray) -> Constants:
        """Return the exact constants; gradients have no bound, but by how far clients' optima lie apart."""
        largest, least = float(self.curvature.max()), float(self.curvature.min())
        apart = self.client_gradients(self.optimum[None])[0]
        return Constants(
            smoothness=largest,
            mean_curvature=min(float(self.curvature.mean()), largest),
            pl=least,
            strong_convexity=least,
            gradient_at_optimum=np.linalg.norm(apart, axis=1),
            client_smoothness=largest * self.scale,
            initial_gap=float(self.gaps(start[None])[0]),
            initial_distance=float(np.linalg.norm(start - self.optimum)),
        )


@dataclass(frozen=True)
class Logistic:
    """F_i(w) = mean over records of log(1 + exp(−y x·w)) + (ridge/2)‖w‖².

    Attributes:
        data_weight: (clients,) θ_i.
        features: (clients, records, dimension) x, times the label y of ±1.
        ridge: What makes it strongly convex.
        optimum: (dimension,) w*.
    """

    data_weight: FloatArray
    features: FloatArray
    ridge: float
    optimum: FloatArray

    def gaps(self, models: FloatArray) -> FloatArray:
        """Return F(w) − F* of (models, dimension)."""
        return np.maximum(self._losses(models) - self._losses(self.optimum[None]), 0.0)

    def client_gradients(self, models: FloatArray) -> FloatArray:
        """Return ∇F_i(w), (models, clients, dimension)."""
        each = np.broadcast_to(models[:, None, :] if models.ndim == 2 else models, (len(models), *self._shape))
        margins = np.einsum("mcd,crd->mcr", each, self.features, optimize=True)
        push = -special.expit(-margins) / self.features.shape[1]
        return np.asarray(np.einsum("mcr,crd->mcd", push, self.features, optimize=True) + self.ridge * each)

    def summed_gradients(self, models: FloatArray, factors: FloatArray) -> FloatArray:
        """Return Σ_i factor_i ∇F_i(w), (models, dimension)."""
        return np.asarray(np.einsum("mc,mcd->md", factors, self.client_gradients(models)))

    def gradient_norms(self, models: FloatArray) -> FloatArray:
        """Return ‖∇F_i(w)‖, (models, clients)."""
        return np.asarray(np.linalg.norm(self.client_gradients(models), axis=2))

    def constants(self, start: FloatArray) -> Constants:
        """Return constants that hold everywhere: the logistic loss bends by at most a quarter."""
        second = np.einsum("crd,cre->cde", self.features, self.features) / self.features.shape[1]
        each = 0.25 * np.linalg.eigvalsh(second)[:, -1] + self.ridge
        whole = 0.25 * float(np.linalg.eigvalsh(np.tensordot(self.data_weight, second, axes=1))[-1]) + self.ridge
        apart = self.client_gradients(self.optimum[None])[0]
        return Constants(
            smoothness=whole,
            mean_curvature=0.25 * float(self.data_weight @ np.trace(second, axis1=1, axis2=2)) / second.shape[1]
            + self.ridge,
            pl=self.ridge,
            strong_convexity=self.ridge,
            gradient_at_optimum=np.linalg.norm(apart, axis=1),
            client_smoothness=each,
            initial_gap=float(self.gaps(start[None])[0]),
            initial_distance=float(np.linalg.norm(start - self.optimum)),
        )

    @property
    def _shape(self) -> tuple[int, int]:
        return self.features.shape[0], self.features.shape[2]

    def _losses(self, models: FloatArray) -> FloatArray:
        margins = np.einsum("md,crd->mcr", models, self.features, optimize=True)
        each = -special.log_expit(margins).mean(axis=2) @ self.data_weight
        return np.asarray(each + 0.5 * self.ridge * (models**2).sum(axis=1))


Problem = Quadratic | Logistic  # F = Σ θ_i F_i over vectors of some length


def make_quadratic(
    num_clients: int = 100,
    dimension: int = 20,
    *,
    condition: float = 10.0,
    heterogeneity: float = 1.0,
    even: bool = True,
    smoothness: float = 1.0,
    curvature_spread: float = 0.0,
    seed: int = 0,
) -> Quadratic:
    """Return a random quadratic: curvatures spread evenly in logarithm, clients' centres around the origin.

    Args:
        num_clients: N.
        dimension: Of the model.
        condition: Largest curvature over least.
        heterogeneity: Root mean squared distance of clients' centres from the origin; zero if clients are alike.
        even: Whether clients have as many records as one another.
        smoothness: The largest curvature of F.
        curvature_spread: How much clients' curvatures differ: standard deviation of their logarithm.
        seed: Of the draws.
    """
    rng = generator(seed, "theory-problem")
    clients = _validate.integer("num_clients", num_clients, low=1)
    length = _validate.integer("dimension", dimension, low=1)
    ratio = _validate.number("condition", condition, low=1.0)
    spread = _validate.number("heterogeneity", heterogeneity, low=0.0)
    curvature = _validate.positive("smoothness", smoothness) * np.geomspace(1.0 / ratio, 1.0, length)
    centres = rng.standard_normal((clients, length)) * spread / np.sqrt(length)
    sizes = np.ones(clients) if even else rng.lognormal(sigma=0.7, size=clients)
    weight = sizes / sizes.sum()
    scale = rng.lognormal(sigma=_validate.number("curvature_spread", curvature_spread, low=0.0), size=clients)
    return Quadratic(weight, curvature, centres, scale / float(weight @ scale))


def make_logistic(
    num_clients: int = 100,
    dimension: int = 5,
    *,
    num_records: int = 20,
    ridge: float = 0.1,
    heterogeneity: float = 1.0,
    seed: int = 0,
) -> Logistic:
    """Return random logistic regression: each client's labels follow a direction of its own.

    Args:
        num_clients: N.
        dimension: Of the model.
        num_records: Records of each client.
        ridge: Weight of ½‖w‖²; above zero.
        heterogeneity: How far clients' directions are from the common one.
        seed: Of the draws.
    """
    rng = generator(seed, "theory-problem")
    shape = (_validate.integer("num_clients", num_clients, low=1), _validate.integer("num_records", num_records, low=1))
    length = _validate.integer("dimension", dimension, low=1)
    weight = _validate.positive("ridge", ridge)
    points = rng.standard_normal((*shape, length)) / np.sqrt(length)
    directions = 3.0 * (np.ones(length) + heterogeneity * rng.standard_normal((shape[0], length))) / np.sqrt(length)
    chance = special.expit(np.einsum("crd,cd->cr", points, directions))
    signs = np.where(rng.random(shape) < chance, 1.0, -1.0)
    problem = Logistic(np.full(shape[0], 1.0 / shape[0]), points * signs[:, :, None], weight, np.zeros(length))

    def whole_gradient(model: FloatArray) -> FloatArray:
        return np.asarray(problem.data_weight @ problem.client_gradients(model[None])[0])

    found = optimize.root(whole_gradient, np.zeros(length), tol=1e-14)
    return Logistic(problem.data_weight, problem.features, weight, found.x)
