"""The game on a finite grid: for MFGLib as an environment, for us as compiled best-response sweeps.

The state is (privacy-aversion class, budget node), the action a retention level. A budget that lands between
two nodes moves to either neighbour with the linear weights, which keeps the mean budget exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar, cast

import numpy as np
import torch
from mfglib.env import Environment
from numba import njit

from fedpcs._validate import FloatArray
from fedpcs.game import uniform

NUM_CLIENTS = 100
COHORT_SIZE = 20

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True)
class GridGame:
    """One finite game.

    Attributes:
        aversion: (classes,) ψ.
        nodes: (nodes,) budgets, evenly spaced.
        retention: (actions,) α.
        initial: (classes, nodes) share of the clients that start there.
        last_round: T.
        reward: R, the same in every round.
    """

    aversion: FloatArray
    nodes: FloatArray
    retention: FloatArray
    initial: FloatArray
    last_round: int
    reward: float


def discretise(shape: tuple[int, int, int], last_round: int, reward: float) -> GridGame:
    """Put the default population on a grid of shape (classes, nodes, actions).

    Each client is split over its two nearest budget nodes.
    """
    classes, num_nodes, actions = shape
    crowd = uniform(NUM_CLIENTS, seed=0)
    nodes = np.linspace(crowd.initial_budget.min(), crowd.initial_budget.max(), num_nodes)
    place = (crowd.initial_budget - nodes[0]) / (nodes[1] - nodes[0])
    left = np.minimum(place.astype(int), num_nodes - 2)
    row = np.minimum((crowd.privacy_aversion * classes).astype(int), classes - 1)
    initial = np.zeros((classes, num_nodes))
    np.add.at(initial, (row, left), (1 - place + left) / NUM_CLIENTS)
    np.add.at(initial, (row, left + 1), (place - left) / NUM_CLIENTS)
    centres = (np.arange(classes) + 0.5) / classes
    return GridGame(centres, nodes, np.linspace(0, 1, actions), initial, last_round, reward)


def environment(game: GridGame, dtype: torch.dtype, *, is_differentiable: bool = False) -> Environment:
    """Return the game as an MFGLib environment, laid out so that MFGLib copies nothing.

    MFGLib permutes P[s', s, a] to [s, a, s'], so that is the memory order used. Only the diagonal class
    blocks of one buffer are rewritten, which autograd cannot bear: MFOMO needs `is_differentiable`.
    """
    arrays = (game.nodes, game.aversion, game.retention, game.initial)
    nodes, aversion, retention, initial = (torch.tensor(array, dtype=dtype) for array in arrays)
    classes, num_nodes, actions = len(aversion), len(nodes), len(retention)
    buffer = torch.zeros(classes, num_nodes, actions, classes, num_nodes, dtype=dtype)
    blocks = buffer.diagonal(dim1=0, dim2=3)
    budget, kept, dislike = nodes[:, None], retention[None, :], aversion[:, None, None]
    gain = game.reward * budget - dislike * budget**2 - (1 - dislike) * kept**2

    def mean_budget(occupation: torch.Tensor) -> torch.Tensor:
        return (occupation.sum(dim=(0, 2)) * nodes).sum()

    def transition(env: Environment, t: int, L_t: torch.Tensor) -> torch.Tensor:
        mean = mean_budget(L_t)
        following = mean + kept * (budget - mean)
        distance = ((following[..., None] - nodes) / (nodes[1] - nodes[0])).abs()
        weight = (1 - distance).clamp(min=0)
        if is_differentiable:
            same = torch.eye(classes)[:, None, None, :, None]
            return (same * weight[:, :, None]).permute(3, 4, 0, 1, 2)
        blocks.copy_(weight[..., None].expand(-1, -1, -1, classes))
        return buffer.permute(3, 4, 0, 1, 2)

    def payoff(env: Environment, t: int, L_t: torch.Tensor) -> torch.Tensor:
        share = (nodes / (NUM_CLIENTS * mean_budget(L_t))).clamp(max=1)
        return (1 - (1 - share) ** COHORT_SIZE)[:, None] * gain

    return Environment(
        T=game.last_round,
        S=(classes, num_nodes),
        A=(actions,),
        mu0=initial,
        r_max=float(gain.abs().max()),
        reward_fn=payoff,
        transition_fn=transition,
    )


def _compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile with Numba; its own decorator carries no types."""
    return cast(Callable[_P, _R], njit(cache=True)(function))


@_compiled
def _cell(nodes: FloatArray, budget: float) -> tuple[int, float]:
    """Return the cell `budget` lies in and how far along."""
    place = (budget - nodes[0]) / (nodes[1] - nodes[0])
    k = min(max(int(place), 0), len(nodes) - 2)
    return k, place - k


@_compiled
def _look_ahead(
    nodes: FloatArray,
    retention: FloatArray,
    aversion: FloatArray,
    reward: float,
    mean: float,
    onward: FloatArray,
    action_value: FloatArray,
) -> None:
    """Fill action_value[class, node, action] given the crowd's mean and next round's values."""
    for i in range(len(nodes)):
        rho = nodes[i]
        chance = 1 - (1 - min(1.0, rho / (NUM_CLIENTS * mean))) ** COHORT_SIZE
        for j in range(len(retention)):
            k, w = _cell(nodes, mean + retention[j] * (rho - mean))
            for c in range(len(aversion)):
                now = rho * reward - aversion[c] * rho * rho - (1 - aversion[c]) * retention[j] ** 2
                action_value[c, i, j] = chance * now + (1 - w) * onward[c, k] + w * onward[c, k + 1]


@_compiled
def sweep(
    nodes: FloatArray,
    retention: FloatArray,
    aversion: FloatArray,
    initial: FloatArray,
    reward: float,
    announced: FloatArray,
    value: FloatArray,
    choice: FloatArray,
    mean: FloatArray,
) -> None:
    """Answer the announced means: fill value[t] backward, then choice[t] and the crowd's mean[t] in order.

    As in `fedpcs.game.mean_field`, the forward pass meets the mean the crowd has made so far.
    """
    last = len(announced) - 1
    action_value = np.empty((len(aversion), len(nodes), len(retention)))
    for t in range(last, -1, -1):
        _look_ahead(nodes, retention, aversion, reward, announced[t], value[t + 1], action_value)
        for c in range(len(aversion)):
            for i in range(len(nodes)):
                value[t, c, i] = action_value[c, i].max()
    mass = initial.copy()
    for t in range(last + 1):
        mean[t] = (mass.sum(axis=0) * nodes).sum()
        _look_ahead(nodes, retention, aversion, reward, mean[t], value[t + 1], action_value)
        moved = np.zeros_like(mass)
        for c in range(len(aversion)):
            for i in range(len(nodes)):
                j = np.argmax(action_value[c, i])
                choice[t, c, i] = j
                k, w = _cell(nodes, mean[t] + retention[j] * (nodes[i] - mean[t]))
                moved[c, k] += mass[c, i] * (1 - w)
                moved[c, k + 1] += mass[c, i] * w
        mass = moved
