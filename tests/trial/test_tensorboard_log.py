"""TensorBoard shows what `rounds.jsonl` says, each round once, and its absence is told before a run begins."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from made_records import a_round

from fedpcs.errors import InvalidInput
from fedpcs.trial import tensorboard_log
from fedpcs.trial.progress import Silent
from fedpcs.trial.tensorboard_log import check_installed

is_installed = importlib.util.find_spec("tensorboard") is not None
needs_tensorboard = pytest.mark.skipif(not is_installed, reason="tensorboard is not installed")

# TensorBoard warns about NumPy and protobuf as it is imported: in a process of its own, that is its own affair.
WRITE = """
import json, sys
from pathlib import Path
from fedpcs.trial.progress import Silent
from fedpcs.trial.records import RoundRecord
from fedpcs.trial.tensorboard_log import tensorboard_log
with tensorboard_log(Path(sys.argv[1]), Silent()) as observer:
    for record in json.loads(sys.argv[2]):
        observer.round_done(RoundRecord.model_validate(record), 1.0)
"""
READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1]).Reload()
names = found.Tags()["scalars"]
print(json.dumps({name: [[item.step, item.value] for item in found.Scalars(name)] for name in names}))
"""


def line(number: int, accuracy: float | None) -> dict[str, object]:
    spread = {"minimum": 1.0, "median": 2.0 + number, "maximum": 3.0 + number}
    fields = {
        "accuracy": accuracy,
        "loss": None if accuracy is None else 1.0 - accuracy,
        "spent": {"rho": spread, "epsilon": spread, "num_clients": 3},
        "reward": 6.0,
        "mean_budget": 0.5,
        "realised_mean_budget": 0.25,
        "cohort_budget": 1.5,
        "paid_so_far": 10.0 * number,
        "update_norm": spread,
        "noise_norm": spread,
        "step_norm": 0.125,
        "draw": {**a_round(0).draw.model_dump(), "num_heard": 4, "effective_sample_size": 3.5},
    }
    return a_round(number, **fields).model_dump()


def python(code: str, *words: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(folder: Path, lines: list[dict[str, object]]) -> None:
    python(WRITE, str(folder), json.dumps(lines))


def shown(folder: Path) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = json.loads(python(READ, str(folder / "tensorboard")))
    return found


@pytest.mark.slow
@needs_tensorboard
def test_every_round_is_shown_as_the_log_has_it(tmp_path: Path) -> None:
    write(tmp_path, [line(0, 0.25), line(1, None), line(2, 0.75)])
    found = shown(tmp_path)
    assert set(found) == set(tensorboard_log._SCALARS)
    assert found["test/accuracy"] == [[0, 0.25], [2, 0.75]]  # round 1 was not evaluated
    assert found["privacy/epsilon_maximum"] == [[0, 3.0], [1, 4.0], [2, 5.0]]
    assert found["norms/update_median"] == [[0, 2.0], [1, 3.0], [2, 4.0]]
    assert found["game/realised_mean_budget"] == [[0, 0.25], [1, 0.25], [2, 0.25]]


@pytest.mark.slow
@needs_tensorboard
def test_a_resumed_run_shows_each_round_once(tmp_path: Path) -> None:
    """Killed after round 2, resumed from the checkpoint of round 1: what comes later is what counts."""
    write(tmp_path, [line(0, 0.1), line(1, 0.2), line(2, 0.3)])
    write(tmp_path, [line(1, 0.5), line(2, 0.625)])
    steps = shown(tmp_path)["test/accuracy"]
    assert [step for step, _ in steps] == [0, 1, 2]
    assert [value for _, value in steps[1:]] == [0.5, 0.625]


def test_without_the_package_a_run_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'tensorboard>="):
        check_installed()
    with pytest.raises(InvalidInput, match="tensorboard"), tensorboard_log.tensorboard_log(tmp_path, Silent()):
        pass
    assert not list(tmp_path.iterdir())
