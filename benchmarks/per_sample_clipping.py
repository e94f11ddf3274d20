"""Clipped mean gradients: fedpcs against opacus and a loop over records, on the paper's CNN and on `tanh-cnn`.

Each way computes the same thing from the same batch of 28×28 images: per-sample gradients of a cross-entropy, clipped
to norm 1, averaged. opacus runs twice, with gradients formed (its default) and with ghost clipping (its fastest).
"plain" is an ordinary gradient without clipping, the floor. Each way runs in a process of its own, so that peak memory
is its own; opacus works in float32 throughout, fedpcs clips and sums in float64.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable

import numpy as np
import torch
from timing import median_seconds, table
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedpcs._validate import FloatArray
from fedpcs.privacy import per_sample_gradient

WAYS = ("plain", "loop", "opacus", "opacus ghost", "fedpcs")
SIZES = {"cnn": (32, 256), "tanh-cnn": (32, 256)}


def network(name: str) -> nn.Module:
    """Return the paper's CNN (1,663,370 parameters) or the one for private training (26,010)."""
    if name == "cnn":
        return nn.Sequential(
            *(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10)),
        )
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 8, stride=2, padding=3), nn.Tanh(), nn.MaxPool2d(2, stride=1)),
        *(nn.Conv2d(16, 32, 4, stride=2), nn.Tanh(), nn.MaxPool2d(2, stride=1)),
        *(nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10)),
    )


Tensors = list[Tensor]


def flat(found: Tensors | FloatArray) -> Tensor:
    """Return a gradient as one vector; not part of what is timed."""
    if isinstance(found, np.ndarray):
        return torch.tensor(found)
    return torch.cat([tensor.detach().reshape(-1).double() for tensor in found])


def stepper(way: str, model: nn.Module, inputs: Tensor, targets: Tensor) -> Callable[[], Tensors | FloatArray]:
    """Return a function that computes the clipped mean gradient once, as this way returns it."""
    if way == "plain":
        return lambda: list(torch.autograd.grad(cross_entropy(model(inputs), targets), list(model.parameters())))
    if way == "loop":
        return lambda: [looped(model, inputs, targets)]
    if way == "fedpcs":
        gradient = per_sample_gradient(model, cross_entropy, inputs, targets)
        return lambda: gradient.clipped_mean(inputs, targets, 1.0).value
    return opacus_ghost(model, inputs, targets) if way == "opacus ghost" else opacus_formed(model, inputs, targets)


def looped(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    total = torch.zeros(sum(parameter.numel() for parameter in model.parameters()))
    for row, label in zip(inputs, targets, strict=True):
        parts = torch.autograd.grad(cross_entropy(model(row[None]), label[None]), list(model.parameters()))
        gradient = torch.cat([part.reshape(-1) for part in parts])
        total.add_(gradient, alpha=min(1.0, 1.0 / float(gradient.norm())))
    return (total / len(inputs)).double()


def opacus_formed(model: nn.Module, inputs: Tensor, targets: Tensor) -> Callable[[], Tensors]:
    from opacus.grad_sample import GradSampleModule

    wrapped = GradSampleModule(model, loss_reduction="sum")

    def step() -> Tensors:
        for parameter in wrapped.parameters():
            parameter.grad_sample = parameter.grad = None
        cross_entropy(wrapped(inputs), targets, reduction="sum").backward()  # type: ignore[no-untyped-call]
        formed = [parameter.grad_sample for parameter in wrapped.parameters()]
        norm = torch.stack([value.flatten(1).norm(dim=1) for value in formed]).norm(dim=0)
        scale = (1.0 / norm).clamp(max=1.0)
        return [torch.einsum("n,n...->...", scale, value) / len(inputs) for value in formed]

    return step


def opacus_ghost(model: nn.Module, inputs: Tensor, targets: Tensor) -> Callable[[], Tensors]:
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    wrapped = GradSampleModuleFastGradientClipping(
        model, loss_reduction="sum", max_grad_norm=1.0, use_ghost_clipping=True
    )
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.SGD(wrapped.parameters(), lr=0.1),
        noise_multiplier=0.0,
        max_grad_norm=1.0,
        expected_batch_size=len(inputs),
        loss_reduction="sum",
    )
    criterion = DPLossFastGradientClipping(
        wrapped, optimizer, nn.CrossEntropyLoss(reduction="sum"), loss_reduction="sum"
    )

    def step() -> Tensors:
        optimizer.zero_grad()
        criterion(wrapped(inputs), targets).backward()
        return [parameter.grad / len(inputs) for parameter in wrapped.parameters()]

    return step


def measure(way: str, name: str, batch_size: int, repeats: int) -> dict[str, float]:
    """Time one way in this process, and say how far its gradient is from a loop over records."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    model = network(name)
    inputs, targets = torch.randn(batch_size, 1, 28, 28), torch.randint(0, 10, (batch_size,))
    step = stepper(way, model, inputs, targets)
    step()
    seconds = median_seconds(step, repeats)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    torch.manual_seed(0)
    error = float((flat(step()) - looped(network(name), inputs, targets)).abs().max())
    return {"seconds": seconds, "mebibytes": peak, "error": error}


def measure_apart(way: str, name: str, batch_size: int, repeats: int) -> dict[str, float]:
    """Do the same in a process of its own."""
    command = [sys.executable, __file__, "--only", way, name, str(batch_size), str(repeats)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def rows(name: str, batch_size: int, repeats: int) -> list[list[str]]:
    found = {way: measure_apart(way, name, batch_size, repeats) for way in WAYS}
    ours = found["fedpcs"]["seconds"]
    return [
        [
            way,
            f"{1e3 * one['seconds']:.1f}",
            f"{one['seconds'] / ours:.2f}",
            f"{one['mebibytes']:.0f}",
            "–" if way == "plain" else f"{one['error']:.0e}",
        ]
        for way, one in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs=4, metavar=("WAY", "NETWORK", "BATCH", "REPEATS"))
    chosen = parser.parse_args().only
    if chosen:
        print(json.dumps(measure(chosen[0], chosen[1], int(chosen[2]), int(chosen[3]))))
        return
    header = ["way", "ms", "÷ fedpcs", "peak MiB", "largest error"]
    for name, sizes in SIZES.items():
        for batch_size in sizes:
            print(table(f"{name}, batch of {batch_size}", header, rows(name, batch_size, repeats=9)))


if __name__ == "__main__":
    main()
