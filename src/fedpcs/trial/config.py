"""A run from a TOML file: one frozen tree, checked key by key before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import AfterValidator, BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from fedpcs import _validate
from fedpcs._keys import checked, read_override, set_key
from fedpcs._toml import parse_toml, read_toml
from fedpcs.errors import InvalidInput
from fedpcs.game.config import STRICT, GameConfig, Number
from fedpcs.game.population import MOST_SAMPLES
from fedpcs.game.schedule import Behaviour
from fedpcs.learning.datasets.catalogue import DATASETS
from fedpcs.learning.models.catalogue import MODELS
from fedpcs.privacy.modes import MODES, RECORD, Clips, PrivacyMode, mode_named
from fedpcs.sampling import make_sampler
from fedpcs.trial.presets import preset_names, preset_text


def _known_mode(name: str) -> str:
    if name not in MODES:
        *most, last = map(repr, MODES)
        expected = f"{', '.join(most)} or {last}"
        raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": expected})
    return name


ModeName = Annotated[str, AfterValidator(_known_mode)]


def _known_dataset(name: str) -> str:
    return name if ":" in name else _validate.choice("data.name", name, DATASETS, or_else="package.module:function")


def _known_model(name: str) -> str:
    return name if ":" in name else _validate.choice("training.model", name, MODELS, or_else="package.module:function")


class DataConfig(BaseModel):
    """Which records, and how they are dealt out to clients."""

    model_config = STRICT
    name: Annotated[str, AfterValidator(_known_dataset)] = "digits"
    num_clients: int = Field(50, ge=1, le=10_000_000)
    partition: Literal["iid", "dirichlet", "shards", "quantity"] = "dirichlet"
    alpha: Number = Field(0.5, ge=1e-9, le=1_000_000_000)
    shards_per_client: int = Field(2, ge=1)
    features: Literal["pixels", "oriented-gradients"] = "pixels"
    validation_share: Number = Field(0.0, ge=0.0, lt=1.0)  # of the training records, evaluated on instead of the test

    @property
    def evaluated_on(self) -> str:
        """What accuracies are measured on."""
        return "validation records" if self.validation_share > 0.0 else "test records"


class TrainingConfig(BaseModel):
    """How clients train, and how the server moves the model."""

    model_config = STRICT
    model: Annotated[str, AfterValidator(_known_model)] = "linear"
    learning_rate: Number = Field(0.1, ge=1e-9, le=1_000_000_000)
    batch_size: int = Field(32, ge=0)  # 0: all records at once
    local_epochs: int = Field(1, ge=1)
    server_rate: Number = Field(1.0, ge=1e-9, le=1_000_000_000)
    server_momentum: Number = Field(0.0, ge=0.0, lt=1.0)
    averaging: Number = Field(0.0, ge=0.0, lt=1.0)


class PrivacyConfig(BaseModel):
    """What is promised to clients."""

    model_config = STRICT
    mode: ModeName = RECORD.name
    clip_norm: Number = Field(1.0, ge=1e-9, le=1_000_000_000)
    noise: Literal["fast", "secure", "exact"] = "fast"
    delta: Number = Field(1e-5, gt=0.0, lt=1.0)
    limit_epsilon: Number | None = Field(None, gt=0.0)

    @property
    def protection(self) -> PrivacyMode:
        """The privacy mode."""
        return mode_named(self.mode)

    @property
    def is_private(self) -> bool:
        """Whether updates carry noise and cost budget."""
        return self.protection.level is not None

    @property
    def has_noisy_steps(self) -> bool:
        """Whether every local step is clipped and perturbed, and not the update."""
        return self.protection.clips is Clips.GRADIENTS


class RunGameConfig(GameConfig):
    """The game that sets budgets and rewards; the run says who plays, for how long, and how many are drawn."""

    behaviour: Behaviour = Field(
        "rational",
        description="Clients best-respond; keep their initial budget; sit at the lower bound; or, for ablations, scale "
        "their initial budgets so that the mean is the equilibrium's.",
    )
    selection: Literal["as-drawn", "budget-aware", "budget-blind"] = Field(
        "as-drawn",
        description="How clients believe to be drawn when they respond: as the sampler draws, or, for ablations, as "
        "given.",
    )
    budget_unit: Number = Field(1.0, ge=1e-6, le=1_000_000, description="ρ that one unit of the game stands for.")
    population_seed: int = Field(
        0, ge=0, description="Of privacy aversions and initial budgets: the same clients for all seeds and samplers."
    )
    replan: Literal["never", "on-change"] = Field(
        "never", description="Whether the rest of the game is solved anew when clients have come or gone."
    )
    if_unsolved: Literal["stop", "keep"] = Field(
        "stop",
        description="If that finds no equilibrium: stop the run, or keep the last certified schedule and say so.",
    )

    @model_validator(mode="after")
    def _budgets_fit_the_ledger(self) -> RunGameConfig:
        low, high = (bound * float(self.budget_unit) for bound in self.bounds)
        if not (low >= 1e-9 and high <= 1e6):
            raise ValueError(
                f"budget_bounds times budget_unit must lie in [1e-9, 1e6], got {self.budget_bounds} times "
                f"{self.budget_unit}"
            )
        return self


class SamplingConfig(BaseModel):
    """Who is drawn, and how updates are weighed."""

    model_config = STRICT
    samplers: list[str] = Field(["fedpcs", "random"], min_length=1)
    sampling_ratio: Number = Field(0.2, gt=0.0, le=1.0)
    rule: Literal["default", "horvitz-thompson", "hajek", "normalised", "paper", "precision", "own"] = "default"
    weight_cap: Number | None = Field(None, ge=1.0, le=1_000_000_000)
    by_design: bool = False
    settings: dict[str, dict[str, Any]] = {}


class EngineConfig(BaseModel):
    """Where clients run, and what is done when they fail."""

    model_config = STRICT
    kind: Literal["workers", "in-process", "flower"] = "workers"
    num_workers: int = Field(2, ge=1, le=1024)
    deadline_seconds: Number = Field(600.0, gt=0.0, le=1_000_000)
    quorum: Number = Field(0.5, ge=0.0, le=1.0)
    redraws: int = Field(3, ge=0)
    outlier_factor: Number = Field(10.0, ge=1.0)
    device: str = "cpu"
    if_device_lost: Literal["stop", "cpu"] = "stop"

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> EngineConfig:
        device = _validate.device("engine.device", self.device)
        if self.kind == "flower" and ":" in device:
            raise ValueError(
                f"engine.device = {device!r} cannot be had with engine.kind = 'flower', where Ray hands cards out. Set "
                "engine.device = 'cuda', and CUDA_VISIBLE_DEVICES to choose among cards"
            )
        return self


class Prior(BaseModel):
    """Whom a server believes in that does not know its clients: types, and how common each is."""

    model_config = STRICT
    privacy_aversion: list[Number] = Field(min_length=1)
    initial_budget: list[Number] = Field(min_length=1)
    weight: list[Number] = Field(min_length=1)


class FederationConfig(BaseModel):
    """A deployment, whose server does not know its clients' private numbers."""

    model_config = STRICT
    wait_seconds: Number = Field(600.0, gt=0.0, le=1_000_000)
    prior: Prior | None = None
    reannounce: Literal["never", "on-drift"] = "on-drift"
    drift_tolerance: Number = Field(0.05, ge=0.0)
    bind_names: bool = False
    max_samples: int | None = Field(None, ge=1, le=MOST_SAMPLES)
    largest_weight: Number = Field(0.5, ge=0.5, le=1.0)


class Presence(BaseModel):
    """When a client can be reached: from round `joins` on, until before round `leaves`."""

    model_config = STRICT
    client: int = Field(ge=0)
    joins: int = Field(0, ge=0)
    leaves: int | None = Field(None, ge=0)


class RunConfig(BaseModel):
    """Everything `fedpcs run` needs; an empty file is a run on the embedded digits."""

    model_config = STRICT
    name: str = Field("run", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    seeds: list[int] = Field([0], min_length=1)
    rounds: int = Field(30, ge=2, le=100_000)
    evaluate_every: int = Field(1, ge=1)
    checkpoint_every: int = Field(1, ge=1)
    tensorboard: bool = False
    data: DataConfig = DataConfig()
    training: TrainingConfig = TrainingConfig()
    privacy: PrivacyConfig = PrivacyConfig()
    game: RunGameConfig = RunGameConfig()
    sampling: SamplingConfig = SamplingConfig()
    engine: EngineConfig = EngineConfig()
    federation: FederationConfig = FederationConfig()
    presence: list[Presence] = []

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> RunConfig:
        if any(seed < 0 for seed in self.seeds) or len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds must be distinct whole numbers of at least 0, got {self.seeds}")
        if len(set(self.sampling.samplers)) < len(self.sampling.samplers):
            raise ValueError(f"sampling.samplers must be distinct, got {self.sampling.samplers}")
        if unknown := sorted(set(self.sampling.settings) - set(self.sampling.samplers)):
            meant = _validate.did_you_mean(unknown[0], self.sampling.samplers)
            raise ValueError(f"sampling.settings names {unknown[0]!r}, not one of sampling.samplers. {meant}".strip())
        for name in self.sampling.samplers:
            if ":" not in name:  # one of the user's own is imported where it is used
                make_sampler(name, **self.sampling.settings.get(name, {}))
        if self.sampling.by_design and not self.is_weighed_by_precision:
            raise ValueError(
                "sampling.by_design is a setting of the rule precision, got it with sampling.rule = "
                f"{self.sampling.rule!r} and privacy.mode = {self.privacy.mode!r}; set sampling.rule = 'precision'"
            )
        if isinstance(reward := self.game.reward, list) and len(reward) != self.rounds:
            raise ValueError(
                f"game.reward must be one number, or one for each of {self.rounds} rounds, got {len(reward)}"
            )
        if never := [one for one in self.presence if one.leaves is not None and one.leaves <= one.joins]:
            raise ValueError(f"presence of client {never[0].client} ends before it begins; leaves must be above joins")
        if len({one.client for one in self.presence}) < len(self.presence):
            raise ValueError("presence must name each client once; a client comes and goes once in a run")
        if strangers := [one.client for one in self.presence if one.client >= self.data.num_clients]:
            raise ValueError(f"presence names client {strangers[0]}; clients are 0…{self.data.num_clients - 1}")
        if self.presence and all(
            any(one.client == client and one.joins > 0 for one in self.presence)
            for client in range(self.data.num_clients)
        ):
            raise ValueError("presence lets nobody in before the first round; somebody must be there in round 0")
        return self

    @property
    def named(self) -> tuple[str, ...]:
        """Names of data, model and samplers; those with a colon are the user's own code."""
        return (self.data.name, self.training.model, *self.sampling.samplers)

    @property
    def is_weighed_by_precision(self) -> bool:
        """Whether clients' noise decides what their updates weigh: by name, or by default where there is noise."""
        return self.sampling.rule == "precision" or (self.sampling.rule == "default" and self.privacy.is_private)


def load_run_config(source: str | None, overrides: list[str] | None = None) -> RunConfig:
    """Read a run's TOML file or preset, and change single keys.

    Args:
        source: A path, or the name of a preset; None: the preset `default`.
        overrides: Such as "training.learning_rate=0.2"; what is right of the = is read as TOML, or else as a word. The
            last of a key wins.

    Raises:
        InvalidInput: No such file, not TOML, an unknown key, or a value that is not allowed.

    Example:
        >>> load_run_config(None, ["rounds=3"]).rounds
        3
    """
    source = "default" if source is None else source
    values = read_tables(source)
    for override in overrides or []:
        _set(values, override)
    return make_run_config(values, f"preset {source}" if source in preset_names() else source)


def read_tables(source: str) -> dict[str, Any]:
    """Read a run's TOML file or preset as it stands, unchecked.

    Raises:
        InvalidInput: No such file, or not TOML.
    """
    if source in preset_names():
        return parse_toml(preset_text(source))
    try:
        return read_toml(Path(source))
    except FileNotFoundError:
        meant = _validate.did_you_mean(source, preset_names())
        raise InvalidInput(
            f"{source}: no such file or preset. {meant} Presets are {', '.join(preset_names())}.".replace("  ", " ")
        ) from None
    except IsADirectoryError:
        raise InvalidInput(
            f"{source}: is a folder. Give a TOML file, or go on with a run by `fedpcs resume`."
        ) from None


def make_run_config(values: Mapping[str, Any], where: str = "run") -> RunConfig:
    """Return a checked configuration from nested mappings, as a TOML file would hold them.

    Raises:
        InvalidInput: An unknown key, or a value that is not allowed.

    Example:
        >>> make_run_config({"rounds": 5, "data": {"num_clients": 20}}).data.num_clients
        20
    """
    return checked(RunConfig, dict(values), where)


def as_toml(config: RunConfig) -> str:
    """Return a configuration as TOML, every key written out."""
    return tomli_w.dumps(config.model_dump(exclude_none=True))


def _set(values: dict[str, Any], override: str) -> None:
    for key, value in read_override(override).items():
        try:
            set_key(values, key, value)
        except InvalidInput as error:
            raise InvalidInput(f"--set {override!r}: {error}") from None
