"""What the tests of whole runs share: a server of `fedpcs` processes, and what two runs must have in common."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faulty_federation import charges, rewards

from fedpcs.trial.run_store import RunStore
from fedpcs.trial.store import TrialStore


class Commands:
    """The server of `run_worker.py`, asked one line at a time."""

    def __init__(self, process: Any, folder: Path) -> None:
        self._process, self.folder = process, folder

    def run(self, *arguments: Any, **more: Any) -> dict[str, Any]:
        """Run one command to its end; return its exit status, and what it said."""
        return self.together([arguments], **more)[0]

    def together(self, commands: list[Any], **more: Any) -> list[dict[str, Any]]:
        jobs = [
            {
                "arguments": [str(part) for part in one],
                "folder": str(self.folder),
                "talk": str(self.folder / f"talk{k}"),
            }
            | more
            for k, one in enumerate(commands)
        ]
        for job in jobs:
            Path(job["talk"]).write_text("")
        self._process.stdin.write(json.dumps(jobs) + "\n")
        self._process.stdin.flush()
        answers = json.loads(self._process.stdout.readline())
        return [{**answer, "said": Path(job["talk"]).read_text()} for answer, job in zip(answers, jobs, strict=True)]


@contextmanager
def serving(folder: Path):
    script = Path(__file__).with_name("run_worker.py")
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, str(script)], **pipes) as process:
        yield Commands(process, folder)
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def outcome(folder: Path) -> dict[str, Any]:
    """All of a run that a crash must not change."""
    store = RunStore(folder)
    found: dict[str, Any] = {"result": store.result}
    for path in sorted((folder / "trials").iterdir()):
        trial = TrialStore(path)
        found[path.name] = {
            "model": (path / "model.pt").read_bytes(),
            "log": trial.log.read_bytes(),
            "charges": charges(trial),
            "rewards": rewards(trial),
            "result": trial.result,
        }
    return found


def left_behind(folder: Path) -> list[str]:
    """Files that are half written."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*.partial")]


def finish(commands: Commands, folder: Path, config: Path) -> dict[str, Any]:
    """Go on with a run that was killed; start it anew if it says that it had not begun."""
    answer = commands.run("resume", folder)
    if answer["status"] in (2, 6) and not (folder / "trials").exists():
        answer = commands.run("run", config, "--out", folder)
    assert answer["status"] == 0, answer
    return answer


def kill_and_finish(
    commands: Commands, folder: Path, config: Path, whole: dict[str, Any], **how: Any
) -> tuple[bool, float]:
    """Start a run, kill it, let it finish, and hold it against the one that never stopped.

    Returns:
        Whether the kill struck, and after how many seconds the run ended, one way or the other.
    """
    answer = commands.run("run", config, "--out", folder, **how)
    assert answer["status"] in (0, -signal.SIGKILL), answer
    finish(commands, folder, config)
    found = outcome(folder)
    assert found.keys() == whole.keys()
    for name in found:
        assert found[name] == whole[name], f"{name} differs after a kill at {how}"
    return answer["status"] == -signal.SIGKILL, answer["seconds"]
