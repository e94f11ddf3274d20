"""A game as files describe it: one schema for `fedpcs solve` and for the table [game] of a run.

`GameConfig` is what every game says. `GameFile` adds what a run knows from elsewhere: who plays, for how long, how many
are drawn. What only a run has is added in `fedpcs.trial.config`. Types and ranges are declared here once;
`fedpcs.game.make_game` is held to the same ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from fedpcs._keys import checked
from fedpcs._toml import read_toml
from fedpcs.errors import InvalidInput
from fedpcs.game.population import AVERSION_BOUNDS, BUDGET_BOUNDS, MOST_CLIENTS, MOST_SAMPLES, MOST_TYPES, MOST_WEIGHT

STRICT = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
MOST_ROUNDS = 100_000
MOST_REWARD = 1_000_000_000_000  # beyond, sums of squares leave the range of floats


def _as_float_can(value: int) -> int:
    try:
        float(value)
    except OverflowError:
        raise PydanticCustomError("too_large", "a whole number below 1e308") from None
    return value


# A key that stands for a number may be written as a whole one, though not with hundreds of digits.
Number = float | Annotated[int, AfterValidator(_as_float_can)]
Aversion = Annotated[Number, Field(ge=AVERSION_BOUNDS[0], le=AVERSION_BOUNDS[1])]
InitialBudget = Annotated[Number, Field(gt=0.0)]
NumSamples = Annotated[Number, Field(ge=1.0, le=MOST_SAMPLES, multiple_of=1.0)]
Weight = Annotated[Number, Field(ge=0.0, le=MOST_WEIGHT)]
_Bound = Annotated[Number, Field(ge=BUDGET_BOUNDS[0], le=BUDGET_BOUNDS[1])]
_Reward = Annotated[Number, Field(ge=0.0)]
_Cap = Annotated[Number, Field(gt=0.0)]
_Bins = Annotated[int, Field(ge=1, le=MOST_TYPES)]


class GameConfig(BaseModel):
    """What every game says: the server's weights, its rewards, the bounds of budgets."""

    model_config = STRICT
    budget_bounds: list[_Bound] = Field(
        [0.01, 12.0], min_length=2, max_length=2, description="Least and greatest budget, in game units."
    )
    reward: _Reward | list[_Reward] | Literal["commitment", "per-round"] = Field(
        "commitment",
        description="What the server pays for a unit of budget: a policy, a number, or one for each round.",
    )
    reward_max: Number = Field(100.0, gt=0.0, le=MOST_REWARD, description="Most it can announce.")
    accuracy_priority: Number = Field(
        0.5, gt=0.0, lt=1.0, description="γ: accuracy against payments in the server's cost."
    )
    accuracy_scale: Number = Field(10_000.0, gt=0.0, le=MOST_REWARD, description="What accuracy is worth.")
    tolerance: Number = Field(
        1e-3,
        gt=0.0,
        description="Most that deviating may gain in an equilibrium, as a share of utility; mean budgets are at rest "
        "when they move by no more.",
    )

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> GameConfig:
        low, high = self.budget_bounds
        if not low < high:
            raise ValueError(f"budget_bounds must be two numbers above 0 that rise, got [{low:g}, {high:g}]")
        path = self.reward if isinstance(self.reward, list) else [] if isinstance(self.reward, str) else [self.reward]
        if not all(value <= self.reward_max for value in path):
            raise ValueError(f"reward must lie in [0, reward_max = {self.reward_max:g}], got {self.reward}")
        return self

    @property
    def bounds(self) -> tuple[float, float]:
        """[ρ_L, ρ_H]."""
        return float(self.budget_bounds[0]), float(self.budget_bounds[1])


class PopulationConfig(BaseModel):
    """Who plays: drawn from a seed, listed, read from a CSV file, or the uniform density in bins."""

    model_config = STRICT
    seed: int | None = Field(None, ge=0, description="Draws aversions, then initial budgets, evenly.")
    privacy_aversion: list[Aversion] | None = Field(None, description="ψ of each client or type.")
    initial_budget: list[InitialBudget] | None = Field(None, description="ρ⁰ of each, within budget_bounds.")
    num_samples: list[NumSamples] | None = Field(None, description="How many records each has.")
    weight: list[Weight] | None = Field(None, description="How common each type is.")
    file: str | None = Field(None, description="A CSV file with these lists as columns.")
    bins: list[_Bins] | None = Field(
        None, min_length=2, max_length=2, description="Cells of the uniform density: aversion, budget."
    )

    @model_validator(mode="after")
    def _one_source(self) -> PopulationConfig:
        sources = {
            "seed": self.seed,
            "lists": self.initial_budget if self.privacy_aversion is None else self.privacy_aversion,
            "file": self.file,
            "bins": self.bins,
        }
        given = [name for name, source in sources.items() if source is not None]
        if len(given) > 1:
            raise ValueError(f"population takes one source, got {' and '.join(given)}; keep one")
        if (self.privacy_aversion is None) != (self.initial_budget is None):
            raise ValueError("population needs both privacy_aversion and initial_budget, got one of them")
        if given != ["lists"] and (self.num_samples is not None or self.weight is not None):
            raise ValueError("population: num_samples and weight go with the lists privacy_aversion and initial_budget")
        return self


class GameFile(GameConfig):
    """Everything `fedpcs solve` needs; an empty file is the default game."""

    num_clients: int | None = Field(None, ge=1, le=MOST_CLIENTS, description="N; 100, or as many as are listed.")
    last_round: int = Field(30, ge=1, le=MOST_ROUNDS, description="T: rounds are 0…T.")
    cohort_size: int | None = Field(None, ge=1, description="K; or else sampling_ratio.")
    sampling_ratio: Number | None = Field(None, gt=0.0, le=1.0, description="τ: K = max(1, round(τN)); 0.2 if absent.")
    response: Literal["exact", "costate", "paper", "paper-backward"] = Field(
        "exact", description="How clients answer: exactly, or by Theorem 1 corrected, as printed, or computed backward."
    )
    selection: Literal["budget-aware", "budget-blind"] = Field(
        "budget-aware", description="Whether the draw favours larger budgets."
    )
    budget_cap: _Cap | list[_Cap] | None = Field(
        None, description="Most a cohort's budgets may add up to, in every round or each."
    )
    population: PopulationConfig = Field(PopulationConfig(seed=0), description="Who plays.")

    @model_validator(mode="after")
    def _one_cohort(self) -> GameFile:
        if self.cohort_size is not None and self.sampling_ratio is not None:
            raise ValueError("the game takes cohort_size or sampling_ratio, got both; keep one")
        return self


def load_game_file(path: Path | None) -> GameFile:
    """Read a game's TOML file; without one, the default game.

    Raises:
        InvalidInput: The file is missing, is not TOML, or has an unknown key or a value that is not allowed.
    """
    if path is None:
        return GameFile()
    try:
        return checked(GameFile, read_toml(path), str(path))
    except (FileNotFoundError, IsADirectoryError) as error:
        what = "is a folder" if isinstance(error, IsADirectoryError) else "no such file"
        raise InvalidInput(f"{path}: {what}. Give the path of a game's TOML file, or none for the default.") from None
