"""The trials of the exhibits of useful privacy: every sampler and rule, at one plan of the game or at several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from fedpcs.errors import InvalidInput
from fedpcs.exhibits.paper_numbers import SAMPLERS as PAPER_SAMPLERS
from fedpcs.sampling import make_sampler
from fedpcs.studies.grid import Cell, make_cells, make_sweep_config
from fedpcs.trial.preflight import try_sampler

if TYPE_CHECKING:
    from fedpcs.exhibits.registry import Profile

SAMPLERS = ("fedpcs", "random", "aocs", "fed-cbs", "delta", "power-of-choice", "oort", "clustered")
RULES = ("hajek", "precision", "normalised", "horvitz-thompson", "paper")
MAIN_RULE = "precision"  # the rule made for noise that is known; goals are held to it, whatever does best here
NETWORK = f"{MAIN_RULE}, tanh-cnn"
_UNIT, _WORTH = 0.005, 10_000.0  # where both ways of planning meet
# The plans that lead from little to much of a cost: a unit of budgets in ρ, and what accuracy is worth.
PLANS: dict[Literal["epsilon", "paid"], list[tuple[float, float]]] = {
    "epsilon": [(0.00125, _WORTH), (_UNIT, _WORTH), (0.02, _WORTH)],
    "paid": [(_UNIT, 1_000.0), (_UNIT, _WORTH), (_UNIT, 100_000.0)],
}


def planned_label(rule: str, plan: tuple[float, float]) -> str:
    """Return the label of a rule under a plan."""
    return f"{rule}: unit ρ = {plan[0]:g}, accuracy worth {plan[1]:,.0f}"


def _cells(
    name: str,
    profile: Profile,
    variants: Iterable[tuple[str, Sequence[str], Mapping[str, object]]],
    base: str = "fashion-mnist-useful",
) -> list[Cell]:
    seeds = [0, 1, 2] if profile == "quick" else [0, 1, 2, 3, 4]
    each = [{"label": label, "samplers": list(samplers), "set": changes} for label, samplers, changes in variants]
    sweep = {"name": name, "base": base, "seeds": seeds, "set": {"evaluate_every": 5}, "variants": each}
    return make_cells(make_sweep_config(sweep))


def useful_cells(profile: Profile) -> list[Cell]:
    """Return every sampler under every rule that can weigh it on fixed features, and the network made for noise.

    The quick profile has fewer rules, and the network for two samplers only.
    """
    rules, few = (RULES, SAMPLERS) if profile == "paper" else (("hajek", "precision"), ("fedpcs", "random"))
    precision = {"sampling.rule": "precision"}
    features: list[tuple[str, Sequence[str], dict[str, str]]] = [
        *((rule, weighable(rule), {"sampling.rule": rule}) for rule in rules),
        *((f"precision, {how} clients", few, {**precision, "game.behaviour": how}) for how in ("static", "selfish")),
    ]
    return [
        *_cells("useful-privacy", profile, features),
        *_cells("useful-privacy", profile, [(NETWORK, few, precision)], "fashion-mnist-private"),
    ]


def planned_cells(profile: Profile) -> list[Cell]:
    """Return every sampler under every plan; the quick profile has those of the paper, and one rule."""
    rules = {MAIN_RULE: list(PAPER_SAMPLERS)} if profile == "quick" else {rule: weighable(rule) for rule in RULES}
    plans = dict.fromkeys([*PLANS["epsilon"], *PLANS["paid"]])
    variants = [
        (
            planned_label(rule, plan),
            samplers,
            {"sampling.rule": rule, "game.budget_unit": plan[0], "game.accuracy_scale": plan[1]},
        )
        for rule, samplers in rules.items()
        for plan in plans
    ]
    return _cells("trade-off", profile, variants)


def weighable(rule: str) -> list[str]:
    """Return the samplers that a rule can weigh: not every one has the probabilities it needs."""

    def can(name: str) -> bool:
        try:
            try_sampler(make_sampler(name), rule, num_clients=20, cohort_size=4, num_classes=10)
        except InvalidInput:
            return False
        return True

    return [name for name in SAMPLERS if can(name)]
