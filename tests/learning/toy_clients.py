"""Clients small enough to train thousands of times, and training written down the plain way to compare with."""

import copy
import functools

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from fedpcs import _random
from fedpcs.learning.client import ClientPlan, ClientSide
from fedpcs.learning.client_data import made_data
from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.protocol import Task
from fedpcs.privacy.budget import Rho

FEATURES, CLASSES = 6, 3
SIZES = (12, 7, 20, 5)
WIDE = 260  # a dense layer of 260 × 260 is large enough to move itself


def records_of(sizes, shape, client):
    rng = np.random.default_rng([7, client])
    inputs = rng.normal(size=(sizes[client], *shape)).astype(np.float32)
    return torch.from_numpy(inputs), torch.from_numpy(rng.integers(CLASSES, size=sizes[client]))


def toy_data(sizes=SIZES, shape=(FEATURES,), num_tests=1100):
    rng = np.random.default_rng(11)
    tests = rng.normal(size=(num_tests, *shape)).astype(np.float32), rng.integers(CLASSES, size=num_tests)
    test = torch.from_numpy(tests[0]), torch.from_numpy(tests[1])
    return made_data(functools.partial(records_of, sizes, shape), sizes, test, CLASSES)


def seeded(make):
    """A model whose weights do not depend on what was drawn before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return make()


def linear():
    return seeded(lambda: nn.Sequential(nn.Linear(FEATURES, CLASSES)))


def wide():
    return seeded(
        lambda: nn.Sequential(
            nn.Linear(FEATURES, WIDE), nn.Tanh(), nn.Linear(WIDE, WIDE), nn.Tanh(), nn.Linear(WIDE, CLASSES)
        )
    )


def task(client=0, round_index=0, budget=None, measures=(), max_samples=None):
    rho = None if budget is None else Rho.of(budget)
    return Task("toy", round_index, client, "nonce", rho, tuple(measures), max_samples)


def side_of(plan=None, model=None, data=None):
    return ClientSide(ClientPlan() if plan is None else plan, model or linear(), data or toy_data())


def answer(side, model, work):
    """The update a client sends, as a copy."""
    parameters = torch.from_numpy(flat_parameters(model))
    return side.answer(work, parameters, torch.empty_like(parameters))


def batch_order(plan, work):
    return _random.generator(plan.seed, "batches", work.round_index, work.client)


def plain_sgd(model, data, *, learning_rate, batch_size, num_epochs, order):
    """`torch.optim.SGD` in a loop, on a copy; returns it, and every batch's gradient before its step."""
    model = copy.deepcopy(model)
    optimiser = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=learning_rate)
    inputs, targets = data
    size = batch_size or len(inputs)
    gradients, losses = [], []
    model.train()
    for _ in range(num_epochs):
        shuffled = order.permutation(len(inputs))
        for start in range(0, len(inputs), size):
            chosen = shuffled[start : start + size]
            optimiser.zero_grad()
            loss = functional.cross_entropy(model(inputs[chosen]), targets[chosen])
            loss.backward()
            gradients.append([None if one.grad is None else one.grad.clone() for one in model.parameters()])
            losses.append(loss.item())
            optimiser.step()
    return model, gradients, losses
