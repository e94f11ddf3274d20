"""The server's side: which rewards to announce. Three policies: `fixed`, `per-round`, `commitment`.

- fixed: a number or a path from the user.
- per-round: the paper's lemma, round by round (`fedpcs.game.per_round`). It seldom settles.
- commitment: announce the whole path that minimises Σ_t U_t while clients play their equilibrium against it, as
  a Stackelberg leader does (`fedpcs.game.commitment`).
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from fedpcs.errors import InvalidInput
from fedpcs.game.commitment import commit
from fedpcs.game.per_round import per_round
from fedpcs.game.reward_plan import RewardPlan
from fedpcs.game.rules import Game


def plan_rewards(game: Game, policy: str | float | ArrayLike) -> RewardPlan:
    """Return the rewards that `policy` announces: "commitment", "per-round", a number or a path.

    The server plans against clients who answer exactly, whatever mode they are then played in.
    """
    if not isinstance(policy, str):
        return RewardPlan(game.reward_path(policy), "fixed")
    if policy == "commitment":
        return commit(game)
    if policy == "per-round":
        return per_round(game)
    raise InvalidInput(f"reward must be 'commitment', 'per-round', a number or a list, got {policy!r}.")
