"""The peer to beat: federated averaging in plain PyTorch, two processes with one thread each, tuned by hand.

Needs only torch and NumPy (`pip install 'torch>=2.6,<2.14' numpy`). What it does:

- clients are handed out one by one, so that neither process waits for the other longer than one client takes;
- parameters and sums are flat float32 vectors in shared memory; each process adds up its own clients;
- pooling comes before ReLU: the same function on a quarter of the values;
- the first convolution and both poolings work on channels-last images, which makes the first convolution's gradient
  four times as fast. The second convolution does so only on processors with AVX-512, where that saves 8 % of a
  training; without, it costs 11 %. `--layout` overrules this choice;
- the dense layers' gradients go straight into the weights (`addmm_`), without being stored first;
- glibc keeps freed memory and asks for huge pages instead of returning every activation to the kernel.

`--plain` is the same loop as one writes it first: a module, `torch.optim.SGD`, no tuning. Sums depend on which process
trained whom, so two runs agree up to float32 rounding only.
"""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from typing import Protocol, TypeAlias

import torch
from round_time import (
    BATCH_SIZE,
    COHORT_SIZE,
    IMAGES_PER_CLIENT,
    LEARNING_RATE,
    NUM_CLASSES,
    SEED,
    Data,
    Report,
    cohort,
    load,
    peer_parser,
)
from torch import Tensor, nn
from torch import multiprocessing as processes
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

NUM_PROCESSES = 2
# Activations are 3 MB and the largest gradient 6 MB: below the first threshold malloc does not map them anew each time.
MALLOC = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=1073741824:glibc.malloc.hugetlb=1"
SHAPES = ((32, 1, 5, 5), (32,), (64, 32, 5, 5), (64,), (512, 3136), (512,), (NUM_CLASSES, 512), (NUM_CLASSES,))
LAYOUTS = {"mixed": torch.contiguous_format, "channels-last": torch.channels_last}
BEST_LAYOUT = "channels-last" if "AVX512" in torch.backends.cpu.get_cpu_capability() else "mixed"

Counter: TypeAlias = "Synchronized[int]"


class Trainer(Protocol):
    """How a client trains; a model is a flat vector in whatever order of parameters the trainer likes."""

    def initial(self) -> Tensor:
        """Return a freshly initialised model."""

    def train(self, model: Tensor, images: Tensor, labels: Tensor) -> Tensor:
        """Return the model after one epoch; valid until the next call."""

    def scores(self, model: Tensor, images: Tensor) -> Tensor:
        """Return the class scores of images."""


def network() -> nn.Sequential:
    """Return the CNN as a module."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 512),
        nn.ReLU(),
        nn.Linear(512, NUM_CLASSES),
    )


def batches(images: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(torch.split(images, BATCH_SIZE), torch.split(labels, BATCH_SIZE), strict=True)


def train_module(module: nn.Module, images: Tensor, labels: Tensor) -> None:
    """Train a module in place for one epoch, as every tutorial does."""
    optimizer = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE)
    for some_images, some_labels in batches(images, labels):
        optimizer.zero_grad()
        torch.autograd.backward(functional.cross_entropy(module(some_images), some_labels))
        optimizer.step()


class PlainTrainer:
    """The untuned loop."""

    def __init__(self) -> None:
        self.module = network()

    def initial(self) -> Tensor:
        torch.manual_seed(SEED)
        return parameters_to_vector(network().parameters()).detach()

    def train(self, model: Tensor, images: Tensor, labels: Tensor) -> Tensor:
        vector_to_parameters(model.clone(), self.module.parameters())
        train_module(self.module, images, labels)
        return parameters_to_vector(self.module.parameters()).detach()

    def scores(self, model: Tensor, images: Tensor) -> Tensor:
        vector_to_parameters(model.clone(), self.module.parameters())
        scores: Tensor = self.module(images)
        return scores


class TunedTrainer:
    """The tuned loop: views into one flat vector, laid out as the kernels read them."""

    def __init__(self, second_layout: torch.memory_format) -> None:
        self.layouts = (torch.channels_last, second_layout)
        self.flat = torch.empty(sum(math.prod(shape) for shape in SHAPES))
        self.views = self.views_of(self.flat)
        self.kernels = [view.requires_grad_() for view in self.views[:4]]

    def views_of(self, flat: Tensor) -> list[Tensor]:
        """Return the parameters within a flat vector."""
        parts = torch.split(flat, [math.prod(shape) for shape in SHAPES])
        views = [part.view(shape) for part, shape in zip(parts, SHAPES, strict=True)]
        for index, layout in zip((0, 2), self.layouts, strict=True):
            if layout == torch.channels_last:
                shape = views[index].permute(0, 2, 3, 1).shape
                views[index] = parts[index].view(shape).permute(0, 3, 1, 2)
        return views

    def initial(self) -> Tensor:
        torch.manual_seed(SEED)
        flat = torch.empty_like(self.flat)
        for view, parameter in zip(self.views_of(flat), network().parameters(), strict=True):
            view.copy_(parameter.detach())
        return flat

    def features(self, views: list[Tensor], images: Tensor) -> Tensor:
        """Return what the dense layers see: (n, 3136)."""
        hidden = images
        for (kernel, bias), layout in zip((views[:2], views[2:4]), self.layouts, strict=True):
            hidden = functional.conv2d(hidden.contiguous(memory_format=layout), kernel, bias, padding=2)
            hidden = functional.max_pool2d(hidden.contiguous(memory_format=torch.channels_last), 2).relu_()
        return hidden.flatten(1)

    def train(self, model: Tensor, images: Tensor, labels: Tensor) -> Tensor:
        self.flat.copy_(model)
        for some_images, some_labels in batches(images, labels):
            self.step(some_images, some_labels)
        return self.flat

    def step(self, images: Tensor, labels: Tensor) -> None:
        """Take one step: autograd for the convolutions, the chain rule by hand for the dense layers."""
        features = self.features(self.views, images)
        inputs = features.detach()
        first, first_bias, last, last_bias = self.views[4:]
        hidden = torch.addmm(first_bias, inputs, first.t()).relu_()
        # The gradient of cross-entropy with respect to the scores is softmax − 1[label].
        error = torch.addmm(last_bias, hidden, last.t()).softmax(1)
        error[torch.arange(len(labels)), labels] -= 1
        error /= len(labels)
        hidden_error = (error @ last).mul_(hidden > 0)
        gradients = torch.autograd.grad(features, self.kernels, hidden_error @ first)
        with torch.no_grad():
            torch._foreach_add_(self.kernels, gradients, alpha=-LEARNING_RATE)
            last.addmm_(error.t(), hidden, alpha=-LEARNING_RATE)
            last_bias.sub_(error.sum(0), alpha=LEARNING_RATE)
            first.addmm_(hidden_error.t(), inputs, alpha=-LEARNING_RATE)
            first_bias.sub_(hidden_error.sum(0), alpha=LEARNING_RATE)

    def scores(self, model: Tensor, images: Tensor) -> Tensor:
        views = self.views_of(model)
        hidden = functional.linear(self.features(views, images), *views[4:6]).relu_()
        return functional.linear(hidden, *views[6:])


def client_tensors(data: Data, client: int, round_index: int) -> tuple[Tensor, Tensor]:
    """Return a client's images and labels, shuffled for this round."""
    images, labels = data.of_client(client, round_index)
    return torch.from_numpy(images), torch.from_numpy(labels)


def first_images(data: Data) -> tuple[Tensor, Tensor]:
    """Return a batch of either size that occurs, to warm up on: a process's first step costs up to two seconds."""
    count = BATCH_SIZE + IMAGES_PER_CLIENT % BATCH_SIZE
    images, labels = client_tensors(data, client=0, round_index=0)
    return images[:count], labels[:count]


@functools.cache
def warm_up(source: str) -> None:
    """Load the data and train a throw-away module, once a process."""
    train_module(network(), *first_images(load(source)))


def trainer_of(layout: str | None) -> Trainer:
    """Return the tuned trainer with a layout, or the plain one without."""
    return PlainTrainer() if layout is None else TunedTrainer(LAYOUTS[layout])


def work(pipe: Connection, model: Tensor, total: Tensor, taken: Counter, layout: str | None, source: str) -> None:
    """Train clients as long as there are any, round by round, until told to stop; the sum goes into `total`."""
    torch.set_num_threads(1)
    data, trainer = load(source), trainer_of(layout)
    trainer.train(model, *first_images(data))
    pipe.send("ready")
    while (order := pipe.recv()) is not None:
        round_index, is_idle = order
        clients = cohort(round_index)
        weight = 1 / COHORT_SIZE  # sizes are equal: each client's share of the cohort's images
        total.zero_()
        while (position := take(taken)) < COHORT_SIZE:
            trained = model
            if not is_idle:
                trained = trainer.train(model, *client_tensors(data, clients[position], round_index))
            total.add_(trained, alpha=weight)
        pipe.send("done")


def accuracy_of(scores: Callable[[Tensor], Tensor], data: Data) -> float:
    """Return the share of held-out images whose label has the highest score."""
    with torch.no_grad():
        guess = scores(torch.from_numpy(data.test_images)).argmax(1)
    return float((guess == torch.from_numpy(data.test_labels)).double().mean())


def take(taken: Counter) -> int:
    """Return the next position in the cohort nobody has taken."""
    with taken.get_lock():
        taken.value += 1
        return taken.value - 1


def start(model: Tensor, layout: str | None, source: str) -> tuple[list[Connection], list[Tensor], Counter]:
    """Start the two processes; return their pipes, their sums and the counter they take clients by."""
    if layout is not None:
        os.environ["GLIBC_TUNABLES"] = MALLOC  # read when a process starts
    context = processes.get_context("spawn")
    taken, pipes = context.Value("i", 0), []
    totals = [shared(torch.zeros_like(model)) for _ in range(NUM_PROCESSES)]
    for total in totals:
        pipe, other = context.Pipe()
        arguments = (other, model, total, taken, layout, source)
        context.Process(target=work, args=arguments, daemon=True).start()
        pipes.append(pipe)
    for pipe in pipes:
        pipe.recv()
    return pipes, totals, taken


def shared(tensor: Tensor) -> Tensor:
    """Return the tensor, moved to shared memory."""
    return tensor.share_memory_()  # type: ignore[no-untyped-call, no-any-return]


def main() -> None:
    began = time.perf_counter()
    parser = peer_parser(__doc__)
    parser.add_argument("--plain", action="store_true", help="the loop as one writes it first")
    parser.add_argument("--layout", choices=LAYOUTS, default=BEST_LAYOUT, help="of the second convolution")
    options = parser.parse_args()
    layout = None if options.plain else options.layout
    trainer = trainer_of(layout)
    model = shared(trainer.initial())
    pipes, totals, taken = start(model, layout, options.data)
    startup, seconds = time.perf_counter() - began, []
    for round_index in range(options.rounds):
        began = time.perf_counter()
        taken.value = 0
        for pipe in pipes:
            pipe.send((round_index, options.idle))
        for pipe in pipes:
            pipe.recv()
        torch.add(*totals, out=model)
        seconds.append(time.perf_counter() - began)
    for pipe in pipes:
        pipe.send(None)
    accuracy = None
    if not options.idle:
        accuracy = accuracy_of(functools.partial(trainer.scores, model), load(options.data))
    name = "plain loop" if options.plain else "tuned loop"
    Report(name, torch.__version__, seconds, startup, accuracy).show()


if __name__ == "__main__":
    main()
