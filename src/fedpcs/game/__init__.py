"""The two-stage Stackelberg game of FedPCS: rewards, budgets, equilibrium, certificate. NumPy, SciPy, Numba; no torch.

**Players.** A server and N clients. Client i has a privacy aversion ψ_i in (0, 1) and an initial budget ρ_i^0.

**Stage I.** The server announces rewards R_0…R_T, and the mean budgets φ(0)…φ(T) it expects.

**Stage II.** Each client chooses retentions α^0…α^{T−1} in [0, 1]: the share of its own budget it keeps while the
rest moves to the crowd's mean, ρ^{t+1} = (1−α^t) φ(t) + α^t ρ^t. It earns Σ_t P^t (ρ^t R_t − ψ (ρ^t)² − (1−ψ)(α^t)²),
where P^t is its chance of being drawn.

**Equilibrium.** Clients best-respond to (R, φ), and φ is the mean of the budgets they choose. The server's rewards
minimise its expected cost given that response. Neither is taken on trust: `certify` recomputes what any client
could gain.

Example:
    >>> from fedpcs.game import make_game, solve, uniform
    >>> found = solve(make_game(uniform(100, seed=0)), 10.0)
    >>> found.profile.mean_budget[[0, 1, 2, 30]].round(2).tolist()
    [6.38, 7.32, 7.8, 8.36]
    >>> found.certificate.is_equilibrium(1e-4)
    True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedpcs.game.equilibrium import Equilibrium as Equilibrium
    from fedpcs.game.equilibrium import solve as solve
    from fedpcs.game.exact import Answer as Answer
    from fedpcs.game.exact import best_response as best_response
    from fedpcs.game.payoffs import Profile as Profile
    from fedpcs.game.payoffs import accuracy_scale_from_constants as accuracy_scale_from_constants
    from fedpcs.game.population import Population as Population
    from fedpcs.game.population import compress as compress
    from fedpcs.game.population import histogram as histogram
    from fedpcs.game.population import individuals as individuals
    from fedpcs.game.population import uniform as uniform
    from fedpcs.game.population import uniform_density as uniform_density
    from fedpcs.game.rules import Game as Game
    from fedpcs.game.rules import Terms as Terms
    from fedpcs.game.rules import announce as announce
    from fedpcs.game.rules import cohort_from_ratio as cohort_from_ratio
    from fedpcs.game.rules import make_game as make_game
    from fedpcs.game.verify import Certificate as Certificate
    from fedpcs.game.verify import certify as certify

# Read at first use, so that a game file with a misspelt key is refused before Numba is imported.
_HOMES = {
    "equilibrium": ("Equilibrium", "solve"),
    "exact": ("Answer", "best_response"),
    "payoffs": ("Profile", "accuracy_scale_from_constants"),
    "population": ("Population", "compress", "histogram", "individuals", "uniform", "uniform_density"),
    "rules": ("Game", "Terms", "announce", "cohort_from_ratio", "make_game"),
    "verify": ("Certificate", "certify"),
}

__all__ = [name for names in _HOMES.values() for name in names]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"fedpcs.game.{module}"), name)
    raise AttributeError(f"module 'fedpcs.game' has no attribute {name!r}")
