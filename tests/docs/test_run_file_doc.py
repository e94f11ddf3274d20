"""docs/run-file.md: every key with its type, default and range, every preset, every file, every field; nothing else."""

from __future__ import annotations

import ast
import json
import re
import tomllib
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fedpcs.deploy import announcer as announcing
from fedpcs.learning.admission import RefusalKind
from fedpcs.learning.models import MODELS
from fedpcs.learning.protocol import FailureKind
from fedpcs.report.study import write_study
from fedpcs.trial import replanning
from fedpcs.trial.config import (
    DataConfig,
    EngineConfig,
    FederationConfig,
    Presence,
    PrivacyConfig,
    RunConfig,
    RunGameConfig,
    SamplingConfig,
    TrainingConfig,
    load_run_config,
    preset_names,
)
from fedpcs.trial.run import start_run
from fedpcs.trial.run_store import RunStore

TEXT = (Path(__file__).parents[2] / "docs" / "run-file.md").read_text(encoding="utf-8")
TABLES: dict[str, type[BaseModel]] = {
    "The run": RunConfig,
    "`[data]`": DataConfig,
    "`[training]`": TrainingConfig,
    "`[privacy]`": PrivacyConfig,
    "`[game]`": RunGameConfig,
    "`[sampling]`": SamplingConfig,
    "`[engine]`": EngineConfig,
    "`[federation]`": FederationConfig,
    "`[[presence]]`": Presence,
}
SOMETIMES = [
    "replanned",
    "because",
    "exploitability",
    "budget_drift",
    "announced_anew",
    "greatest_drift",
    "unsolved",
]
SIGNS = (("gt", "> {}"), ("ge", "≥ {}"), ("lt", "< {}"), ("le", "≤ {}"))


def rows(heading: str, number: int = 0) -> dict[str, list[str]]:
    """Return the n-th table under a heading: first cell without its quotes → the other cells."""
    found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no heading {heading}"
    tables = re.findall(r"(?:^\|.*\n?)+", found[1], re.MULTILINE)
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in tables[number].strip().splitlines()[2:]]
    cells = [[cell.strip() for cell in line] for line in lines]
    assert len({line[0] for line in cells}) == len(cells)
    return {line[0].strip("`"): line[1:] for line in cells}


def fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the keys a table has for itself; tables within the run have headings of their own."""
    nested = (
        {"data", "training", "privacy", "game", "sampling", "engine", "federation", "presence"}
        if model is RunConfig
        else set()
    )
    return {name: field for name, field in model.model_fields.items() if name not in nested}


def kind_of(annotation: Any) -> str:
    if get_origin(annotation) in (Union, types.UnionType):
        parts = {kind_of(part) for part in get_args(annotation) if part is not type(None)}
        return {
            frozenset({"number", "whole number"}): "number",
            frozenset({"number", "list of numbers", "text"}): "number, text or list",
        }.get(frozenset(parts)) or parts.pop()
    if get_origin(annotation) is Annotated:  # with a check of its own
        return kind_of(get_args(annotation)[0])
    if get_origin(annotation) is list:
        return f"list of {kind_of(get_args(annotation)[0])}s"
    if get_origin(annotation) is Literal:
        return "text"
    if get_origin(annotation) is dict:
        return "table"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    return {str: "text", int: "whole number", float: "number", bool: "true or false"}[annotation]


def words_of(annotation: Any) -> set[str]:
    """Return the only texts a key may have."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return set().union(*(words_of(part) for part in get_args(annotation)))


def default_of(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    return "none" if field.default is None else f"`{json.dumps(field.default)}`"


@pytest.mark.parametrize("heading", TABLES)
def test_every_key_is_there_with_its_type_default_and_range(heading: str) -> None:
    found, fields = rows(heading), fields_of(TABLES[heading])
    assert list(found) == list(fields)
    for name, field in fields.items():
        kind, default, allowed, meaning = found[name]
        assert kind == kind_of(field.annotation), name
        assert default == default_of(field), name
        assert meaning.endswith("."), name
        words = words_of(field.annotation)
        assert not words or words == set(re.findall(r"`([^`:.\[]+)`", allowed)), name
        limits = [
            sign.format(f"{limit:,g}" if limit < 1000 else f"{limit:,}")
            for mark, sign in SIGNS
            for limit in (getattr(item, mark, None) for item in field.metadata)
            if limit is not None
        ]
        assert all(limit in allowed for limit in limits), (name, limits, allowed)


def test_models_and_presets_are_all_there() -> None:
    assert set(re.findall(r"`([\w-]+)`", rows("`[training]`")["model"][2])) == set(MODELS)
    assert set(rows("Presets")) == set(preset_names())


def test_the_example_is_a_run(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert example is not None
    tomllib.loads(example[1])
    (tmp_path / "run.toml").write_text(example[1], encoding="utf-8")
    assert load_run_config(str(tmp_path / "run.toml")).name == "mine"


class Silent:
    def say(self, words: str) -> None: ...

    def begin(self, trial: str, num_rounds: int, num_done: int) -> None: ...

    def round_done(self, record: dict[str, Any], seconds: float) -> None: ...


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """A tiny real run; one client comes late, so that the game is solved anew."""
    changes = ["seeds=[0]", "rounds=4", "data.num_clients=10", "game.reward=6.0", "engine.kind=in-process"]
    late = ['game.replan="on-change"', "presence=[{client=3, joins=1}]"]
    config = load_run_config(None, [*changes, *late])
    store = start_run(config, tmp_path_factory.mktemp("doc") / "run", None, Silent())
    write_study(store.folder)
    return store


def test_fields_of_a_line_are_the_documented_ones(store: RunStore) -> None:
    lines = store.trial("fedpcs", 0).rounds()
    documented = list(rows("A line of `rounds.jsonl`"))
    assert documented[-len(SOMETIMES) :] == SOMETIMES
    for line in lines:
        assert line.model_fields_set - set(SOMETIMES) == set(documented[: -len(SOMETIMES)])
        assert set(line.draw.model_dump()) == set(rows("A line of `rounds.jsonl`", 1))
    assert "exploitability" in lines[0].model_fields_set


def test_what_planners_add_to_a_line_is_documented() -> None:
    found = set()
    for module, names in ((replanning, ("__call__",)), (announcing, ("__call__", "_corrected"))):
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        added = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in names]
        keys = [key for one in added for node in ast.walk(one) if isinstance(node, ast.Dict) for key in node.keys]
        found |= {ast.literal_eval(key) for key in keys if key is not None}
    assert found == set(SOMETIMES)


def test_kinds_of_failure_and_refusal_are_all_there() -> None:
    found = rows("A line of `rounds.jsonl`")
    assert set(re.findall(r"`(\w+)`", found["failures"][0])) == set(get_args(FailureKind))
    assert set(re.findall(r"`(\w+)`", found["refusals"][0])) == set(get_args(RefusalKind))


def test_fields_of_results_are_the_documented_ones(store: RunStore) -> None:
    trial = store.trial("fedpcs", 0).result
    assert trial is not None
    assert store.result is not None
    assert set(trial.model_dump()) == set(rows("`result.json`"))
    assert set(trial.game.model_dump()) == set(rows("`result.json`", 1))
    page = TEXT.split("### `result.json`")[1]
    assert all(f"`{name}`" in page for name in store.result.model_dump())


def test_the_files_of_a_run_are_the_documented_ones(store: RunStore) -> None:
    found = set()
    for path in store.folder.rglob("*"):
        name = re.sub(
            r"^trials/[^/]+-seed0-[^/]+/", "trials/…-SAMPLER-seedN-KEY/", path.relative_to(store.folder).as_posix()
        )
        if path.is_file():
            name = re.sub(r"checkpoints/\d{6}\.ckpt$", "checkpoints/", name)
            found.add(re.sub(r"games/\w+\.npz$", "games/", name))
    assert found == set(rows("The run's folder"))
