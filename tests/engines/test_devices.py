"""On an accelerator a client does what it does on the CPU, and nothing is left behind on either side.

No card is needed: `pretend_device` refuses what a real one refuses. A run on a real card has still to be made.
"""

import functools
import json
import re
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from pretend_device import pretend
from tiny_runs import tiny
from torch import nn

from fedpcs.engines.flower.simulation import _backend
from fedpcs.engines.workers import WorkerEngine
from fedpcs.errors import InvalidInput, WrongDevice
from fedpcs.learning.client import ClientPlan, ClientSide
from fedpcs.learning.client_data import made_data
from fedpcs.learning.device import device_of_worker, no_mistaken_device, one_thread
from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.models import MODELS, make_model
from fedpcs.learning.protocol import MEASURES, Task
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.modes import MODES
from fedpcs.studies.doctor.run import check_run
from fedpcs.trial.run import start_run

KINDS = ("cuda", "mps")
# Sizes at which a network can be built, by what it was made for; and networks too large for a quick test.
SHAPES = {"cnn-fashion": (1, 28, 28), "tanh-cnn": (1, 14, 14), "linear": (20,), "small-mlp": (20,)}
LARGE = {"vgg-11", "vgg-16", "resnet-18", "cnn-fashion", "cnn-cifar", "cnn-cinic"}
FAMILIES = [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in MODELS]
ROUNDING = 1e-4  # of an update's norm: convolutions lie otherwise in memory on the CPU


def records_of(shape, sizes, client):
    rng = np.random.default_rng([3, client])
    inputs = rng.normal(size=(sizes[client], *shape)).astype(np.float32)
    return torch.from_numpy(inputs), torch.from_numpy(rng.integers(10, size=len(inputs)))


def clients(shape, sizes=(7, 5)):
    make = functools.partial(records_of, shape, (*sizes, 9))
    return made_data(make, sizes, make(len(sizes)), 10)


def network(shape=(20,)):
    """A chain with a dense layer large enough to move itself, and with dropout, which draws for itself."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return nn.Sequential(
            nn.Linear(*shape, 260), nn.Dropout(0.2), nn.Tanh(), nn.Linear(260, 260), nn.Linear(260, 10)
        )


def everything(plan, model, shape, measures):
    """All a client can be asked for: its update and measures, answers to questions, an evaluation."""
    side = ClientSide(plan, model, clients(shape))
    parameters = torch.from_numpy(flat_parameters(model))
    out = torch.empty_like(parameters)
    budget = None if plan.mode == "none" else Rho.of(0.4)
    with one_thread():
        report = side.answer(Task("toy", 2, 1, "nonce", budget, measures), parameters, out)
        assert type(report.values) is np.ndarray
        assert report.values.dtype == np.float32
        answers = [side.ask(one, Task("toy", 2, 0, "", budget), parameters) for one in ("loss", "update_norm")]
        right, loss = side.score(1, 8, parameters)
    return report.values.copy(), dict(report.measures), answers, right, loss


def same_on(kind, plan, model, shape, measures=()):
    """Hold what a client does on a device against what it does on the CPU."""
    expected = everything(plan, model, shape, measures)
    with pretend(kind):
        found = everything(ClientPlan(**{**vars(plan), "device": kind}), model, shape, measures)
    away = np.linalg.norm(found[0] - expected[0]) / np.linalg.norm(expected[0])
    assert away < ROUNDING
    assert found[1:3] == tuple(pytest.approx(one, rel=1e-4) for one in expected[1:3])
    assert found[3] == expected[3]
    assert found[4] == pytest.approx(expected[4], rel=1e-5)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_size", [3, None])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_trains_measures_answers_and_evaluates_on_a_device(mode, batch_size, kind):
    plan = ClientPlan(seed=1, mode=mode, batch_size=batch_size, local_epochs=2, clip_norm=0.5)
    model = network()[:1].append(nn.Linear(260, 10)) if mode == "record" else network()
    assert set(same_on(kind, plan, model, (20,), MEASURES)[1]) == set(MEASURES)


@pytest.mark.parametrize("mode", ["none", "record"])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_of_networks_trains_on_a_device(name, mode):
    shape = SHAPES.get(name, (3, 32, 32))
    plan = ClientPlan(seed=1, mode=mode, batch_size=3, clip_norm=0.5)
    same_on("cuda", plan, make_model(name, shape, 10, seed=1), shape)


@pytest.mark.parametrize("mode", ["paper", "client", "record"])
def test_seeded_noise_is_the_same_bits_on_a_device(mode):
    """An update of records that teach nothing is noise alone: a model of zeros, on inputs of zeros."""
    model = nn.Sequential(nn.Linear(20, 10, bias=False))
    nn.init.zeros_(model[0].weight)
    inputs, targets = torch.zeros(6, 20), torch.zeros(6, dtype=torch.int64)
    data = made_data(lambda _: (inputs, targets), [6], (inputs, targets), 10)
    parameters = torch.from_numpy(flat_parameters(model))

    def update(device):
        side = ClientSide(ClientPlan(mode=mode, batch_size=None, device=device), model, data)
        return side.answer(Task("toy", 0, 0, "", Rho.of(0.1)), parameters, torch.empty_like(parameters)).values

    expected = update("cpu").copy()
    with pretend("cuda"):
        assert update("cuda").tobytes() == expected.tobytes()
    assert expected.all()


@contextmanager
def cards(monkeypatch, count):
    """Let torch find some pretend cards."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with pretend("cuda"):
        yield


SAMPLERS = ("aocs", "delta", "power-of-choice", "oort")
PRIVATE = ("aocs", "delta")  # whose measures mode `record` takes from its own steps
FEATURES = {"data": {"features": "oriented-gradients"}, "training": {"server_momentum": 0.9, "batch_size": 0}}
RUNS = {
    **{sampler: {"privacy": {"mode": "none"}, "sampling": {"samplers": [sampler]}} for sampler in SAMPLERS},
    **{
        f"{sampler}, record": {"sampling": {"samplers": [sampler]}, "privacy": {"mode": "record"}}
        for sampler in PRIVATE
    },
    **{f"features and momentum, {mode}": {"privacy": {"mode": mode}, **FEATURES} for mode in MODES},
}


@pytest.mark.parametrize("name", RUNS)
def test_a_whole_run_on_a_device_is_the_run_on_the_cpu(tmp_path, monkeypatch, name):
    """Samplers learn the same from clients' measures, the server evaluates the same, and nobody drops out."""
    on_cpu = start_run(tiny(rounds=2, **RUNS[name]), tmp_path / "cpu")
    engine = {"kind": "in-process", "device": "cuda"}
    with cards(monkeypatch, 2):
        found = start_run(tiny(rounds=2, **RUNS[name], engine=engine), tmp_path / "cuda")
    assert found.manifest["notes"] == ["Trained on cuda: bits may differ from run to run."]
    trials = [next((store.folder / "trials").iterdir()) for store in (on_cpu, found)]
    expected, lines = (
        [json.loads(line) for line in (trial / "rounds.jsonl").read_text().splitlines()] for trial in trials
    )
    for line, wanted in zip(lines, expected, strict=True):
        assert line["failures"] == {}
        assert (line["cohort"], line["accuracy"]) == (wanted["cohort"], wanted["accuracy"])
        assert line["loss"] == pytest.approx(wanted["loss"], rel=1e-5)
    models = [torch.load(trial / "model.pt", weights_only=True)["1.weight"] for trial in trials]
    assert torch.allclose(models[1], models[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("device", "found"), [("cuda", 0), ("cuda:0", 0), ("cuda:2", 2), ("mps", 2)])
def test_a_device_that_is_not_there_is_refused_at_the_start_with_the_remedy(tmp_path, monkeypatch, device, found):
    engine = {"kind": "in-process", "device": device}
    with cards(monkeypatch, found), pytest.raises(InvalidInput) as told:
        start_run(tiny(engine=engine), tmp_path / "run")
    assert f"engine.device is {device!r}" in str(told.value)
    assert "Set engine.device = 'cpu'" in str(told.value)
    assert not (tmp_path / "run").exists()
    with pytest.raises(InvalidInput, match=device):
        check_run(tiny(engine=engine), None)


def test_workers_take_the_cards_in_turn_and_keep_theirs(monkeypatch):
    with cards(monkeypatch, 2):
        assert [device_of_worker("cuda", worker) for worker in range(5)] == [
            "cuda:0",
            "cuda:1",
            "cuda:0",
            "cuda:1",
            "cuda:0",
        ]
        assert [device_of_worker(one, 3) for one in ("cuda:1", "mps", "cpu")] == ["cuda:1", "mps", "cpu"]


def place(plan, model, data):
    """A client's side that says in its first answer where it was to be, and then dies."""
    raise InvalidInput(f"I am on {plan.device}")


def test_a_worker_is_told_its_card(monkeypatch):
    monkeypatch.setattr("fedpcs.engines.workers.device_of_worker", lambda device, worker: f"{device}:{worker + 6}")
    model = nn.Sequential(nn.Linear(20, 10))
    engine = WorkerEngine(ClientPlan(device="cuda"), model, clients((20,)), num_workers=1, side=place)
    try:
        with pytest.raises(InvalidInput, match="I am on cuda:6"):
            engine.ask(flat_parameters(model), "loss", [Task("toy", 0, 0, "")])
    finally:
        engine.close()


def test_what_workers_are_forked_from_starts_no_backward_pass():
    """On a machine with a card it would start threads that forked processes cannot use: none could train at all."""
    code = (
        "import sys, torch; torch.autograd._engine_run_backward = None; import fedpcs.engines.record_warm_up;"
        "before = set(sys.modules); import torch._dynamo; assert set(sys.modules) == before"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr == ""


# What torch says on real devices, copied from its own messages.
MISTAKES = [
    "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
    "Expected all tensors to be on the same device, but got mat2 is on cpu, different from other tensors on cuda:0",
    "Tensor for argument #2 'mat1' is on CPU, but expected it to be on GPU (while checking arguments for addmm)",
    "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
    "indices should be either on cpu or on the same device as the indexed tensor (cuda:0)",
    "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same",
    "Placeholder storage has not been allocated on MPS device!",
    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.",
    "The operator 'aten::foo' is not currently implemented for the MPS device.",
    "Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden tensor at cpu",
    "index_add_(): self, index and source expected to be in the same device, but got (self) on cuda:0",
    "grid_sampler(): expected input and grid to be on same device, but input is on cuda:0 and grid is on cpu",
    "Trying to convert Double to the MPS backend but it does not have support for that dtype.",
    "Could not run 'aten::_sparse_mm' with arguments from the 'CUDA' backend. This could be because the operator",
]
FAILURES = [
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8 GiB",
    "MPS backend out of memory (MPS allocated: 8.00 GB, other allocations: 1.00 GB, max allowed: 9.07 GB)",
    "CUDA error: an illegal memory access was encountered",
    "mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)",
    "index 7 is out of bounds for dimension 0 with size 3",
    "Could not run 'aten::bernoulli_' with arguments from the 'SparseCPU' backend. This could be because the operator",
]


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_about_devices_has_its_own_error(words):
    with pytest.raises(WrongDevice, match="mistake in a program"), no_mistaken_device():
        raise RuntimeError(words)


@pytest.mark.parametrize("words", FAILURES)
def test_other_failures_stay_what_they_are(words):
    with pytest.raises(RuntimeError, match=re.escape(words)) as caught, no_mistaken_device():
        raise RuntimeError(words)
    assert not isinstance(caught.value, WrongDevice)


@pytest.mark.parametrize("num_cards", [1, 2, 3, 8])
@pytest.mark.parametrize("num_workers", [1, 2, 3, 7, 12])
def test_rays_processes_share_all_cards_and_every_process_has_one(num_workers, num_cards):
    """Ray puts as many processes on a card as shares fit on it; a process without a share would see no card."""
    made = _backend(num_workers, num_cards)
    share = made["client_resources"]["num_gpus"]
    assert 0.0 < share <= 1.0
    assert made["init_args"]["num_gpus"] == num_cards
    assert int(1.0 / share) * num_cards >= num_workers
    assert (int(1.0 / share) - 1) * num_cards < num_workers  # and no card has more than its turn


REFUSED = {
    "a tensor of each": lambda here, there: here + there,
    "written to the CPU": lambda here, there: torch.sub(there, here, out=there),
    "added to a scalar of the CPU": lambda here, there: torch.zeros(()).add_(here.sum()),
    "as an array": lambda here, there: np.asarray(here),
    "to NumPy": lambda here, there: here.detach().numpy(),
    "under vmap": lambda here, there: torch.func.vmap(lambda row: row * there)(torch.stack([here, here])),
    "in a gradient": lambda here, there: torch.autograd.grad((here.requires_grad_() * 2).sum(), here)[0] * there,
    "made from numbers": lambda here, there: torch.tensor([1.0, 2.0, 3.0]) @ here,
}


@pytest.mark.parametrize("how", REFUSED)
@pytest.mark.parametrize("kind", KINDS)
def test_the_pretend_device_refuses_what_a_real_one_refuses(kind, how):
    with pretend(kind), pytest.raises((RuntimeError, TypeError), match=f"{kind}:0"):
        REFUSED[how](torch.ones(3).to(kind), torch.ones(3))
