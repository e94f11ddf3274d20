"""Every sampler in several settings, a world to draw from and rounds with feedback: what the contract is tried on."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fedpcs.sampling import DESIGNS, draw, make_feedback, make_sampler, make_view, remember, start


class Case(NamedTuple):
    """A sampler, its settings, and how its world differs from the usual one."""

    name: str
    settings: dict[str, Any]
    asks_for_loss: bool = False
    knows_durations: bool = True

    def make(self):
        return make_sampler(self.name, **self.settings)

    def __str__(self):
        told = [f"{key}={value}" for key, value in self.settings.items()]
        told += ["asked"] * self.asks_for_loss + ["no-durations"] * (not self.knows_durations)
        return "-".join([self.name, *told])


CASES = [
    Case("random", {}),
    *[Case("fedpcs", {"design": design}) for design in DESIGNS],
    Case("fedpcs", {"floor": 0.2}),
    Case("aocs", {}),
    Case("aocs", {"design": "pivotal"}),
    Case("aocs", {"design": "systematic"}),
    Case("aocs", {"subtract_noise": True, "design": "pivotal"}),
    Case("aocs", {"probabilities": "aggregation-only"}),
    Case("aocs", {"probabilities": "aggregation-only", "design": "pivotal", "iterations": 0}),
    Case("aocs", {"norms": "last-known"}),
    Case("aocs", {"norms": "last-known", "design": "pivotal", "subtract_noise": True}),
    Case("aocs", {"norms": "last-known", "probabilities": "aggregation-only"}),
    Case("fed-cbs", {}),
    Case("fed-cbs", {"first_pick": "argmax", "exploration": 0.0}),
    Case("fed-cbs", {"restarts": 3, "last_exponent": 10.0}),
    Case("fed-cbs", {"num_candidates": 8}),
    Case("delta", {}),
    Case("delta", {"design": "poisson"}),
    Case("delta", {"variance_ratio": 0.05}),
    Case("delta", {"score": "authors-code"}),
    Case("delta", {"score": "authors-code", "mode": "paper"}),
    Case("delta", {"mode": "paper", "subtract_noise": False}),
    Case("delta", {"variance_ratio": 0.0, "design": "with-replacement"}),
    Case("delta", {"information": "ideal", "design": "gumbel"}),
    Case("delta", {"information": "ideal", "variance_ratio": 0.0, "floor": 0.0}),
    Case("power-of-choice", {}),
    Case("power-of-choice", {}, asks_for_loss=True),
    Case("power-of-choice", {"num_candidates": 6, "weights": "normalised"}),
    Case("power-of-choice", {"losses": "last-known"}),
    Case("oort", {}),
    Case("oort", {}, knows_durations=False),
    Case("oort", {"most_rounds": 3, "pacer_rounds": 2, "exploration": (0.9, 0.5, 0.2)}),
    *[Case("clustered", {"strata": strata}) for strata in ("independent", "systematic", "none")],
    Case("optimal", {}),
    Case("optimal", {"design": "systematic", "floor": 0.0}),
    Case("optimal", {"norms": "current"}),
]


def size_promise(case):
    """How large a cohort is: "exact" K, K on "average", or at "most" K."""
    design = case.settings.get("design", "poisson" if case.name == "aocs" else "pivotal")
    if case.name == "clustered" or design == "with-replacement":
        return "most"
    if case.settings.get("probabilities") == "aggregation-only":
        return "average" if design == "poisson" else "most"
    return "average" if design == "poisson" else "exact"


def make_world(num_clients=12, cohort_size=4, seed=0):
    """Everything there is to know about some clients, no two of them alike."""
    rng = np.random.default_rng(seed)
    num_samples = 40 + 5 * rng.permutation(num_clients)
    mixes = rng.dirichlet(np.full(5, 0.5), num_clients)
    return {
        "cohort_size": cohort_size,
        "num_samples": num_samples.astype(float),
        "budget": rng.uniform(0.5, 4.0, num_clients),
        "noise_power": rng.uniform(0.1, 0.5, num_clients),
        "label_counts": np.array([rng.multinomial(n, mix) for n, mix in zip(num_samples, mixes, strict=True)], float),
        "update_norm": rng.uniform(1.0, 3.0, num_clients),
        "gradient_distance": rng.uniform(0.5, 2.0, num_clients),
        "gradient_variance": rng.uniform(0.1, 2.0, num_clients),
        "local_steps": 2.0 * np.ceil(num_samples / 8),
        "loss": rng.uniform(0.5, 3.0, num_clients),
    }


def view_of(case, world, **others):
    """A view of everything in the world, none of it writeable."""
    known = {**world, **others}
    if case.asks_for_loss:
        losses = known["loss"]
        known["loss"] = lambda clients: losses[clients]
    view = make_view(known.pop("cohort_size"), known.pop("num_samples"), **known)
    for value in [*vars(view).values(), *view.memory.values()]:
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return view


def feedback_of(case, world, clients, rng, **others):
    """What these clients send back, none of it writeable."""
    directions = rng.normal(size=(clients.size, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    told = {
        "updates": directions * world["update_norm"][clients, None],
        "data_weight": world["num_samples"][clients],
        "noise_power": world["noise_power"][clients],
        "gradient_variance": world["gradient_variance"][clients],
        "loss": world["loss"][clients],
        "loss_energy": world["loss"][clients] ** 2,
        "duration": rng.uniform(1.0, 9.0, clients.size) if case.knows_durations else None,
        "local_steps": world["local_steps"][clients],
        "learning_rate": 0.3,
    }
    feedback = make_feedback(clients, **{**told, **others})
    for value in vars(feedback).values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return feedback


def play(case, world, rounds, *, memory=None, seed=0, someone_missing=True):
    """Run rounds, some clients away and some answers lost; return the draws and the memory after them.

    Each round has a generator of its own, so rounds 4 to 8 can be run without rounds 0 to 4.
    """
    sampler, num_clients = case.make(), world["num_samples"].size
    memory = start(sampler, num_clients) if memory is None else memory
    draws = []
    for t in rounds:
        rng = np.random.default_rng([seed, t])
        is_here = rng.random(num_clients) < (0.8 if someone_missing else 1.0)
        is_here[rng.integers(num_clients)] = True
        view = view_of(case, world, is_available=is_here, round_index=t, memory=memory)
        drawn = draw(sampler, view, rng)
        heard = drawn.clients[rng.random(drawn.clients.size) < 0.8]
        memory = remember(sampler, view, drawn, feedback_of(case, world, heard, rng))
        draws.append((view, drawn))
    return draws, memory


def experience(case):
    """What the sampler remembers after seven rounds in the usual world in which everybody was there."""
    return _experience(str(case))


@cache
def _experience(name):
    case = next(case for case in CASES if str(case) == name)
    return play(case, make_world(), range(7), someone_missing=False)[1]


def bits(drawn):
    """A draw as bytes: equal only if equal to the last bit."""
    return [part.tobytes() if isinstance(part, np.ndarray) else part for part in vars(drawn).values()]


def memory_bits(memory):
    return {name: value.tobytes() for name, value in memory.items()}
