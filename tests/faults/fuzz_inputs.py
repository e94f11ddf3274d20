"""Every file that a user may give, made wrong in thousands of ways: no traceback, no hang, and the right exit code.

    python tests/faults/fuzz_inputs.py --configs 10000 --games 2000 --runs 2000 --archives 500 --seed 0

Each case is made from (seed, kind, number) alone: `--configs 1 --first 4711` runs one again. A file of a run is made
wrong only for a verb that reads it, which is checked. Exit code 1 if anything was found.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "faults")]

import numpy as np
from command_line import fedpcs, fedpcs_process
from forked import MOST_SECONDS, Case, Outcome, doing, run_all
from fuzz_archives import archive_case, pack_data
from matplotlib.figure import Figure
from mutations import as_toml, mutate_bytes, mutate_tree, put_something_else, strange_value

from fedpcs._chain import START, hash_at_end, sealed_line
from fedpcs._outside import message
from fedpcs.errors import FedpcsError, NotConverged
from fedpcs.game import equilibrium
from fedpcs.game.assemble import game_of_file
from fedpcs.game.config import load_game_file
from fedpcs.studies.flags import read_sweep
from fedpcs.studies.grid import make_cells
from fedpcs.trial.assemble import load_for
from fedpcs.trial.config import RunConfig, load_run_config, read_tables
from fedpcs.trial.config import as_toml as as_run_toml
from fedpcs.trial.preflight import dry_run

BAD_INPUT = frozenset({0, 2})
DAMAGED = frozenset({0, 6})
BOTH = frozenset({0, 2, 6})
Rng = np.random.Generator
OPENED: set[str] = set()

TINY: dict[str, Any] = {
    "name": "tiny",
    "rounds": 3,
    "seeds": [0],
    "data": {"num_clients": 8, "partition": "iid"},
    "training": {"learning_rate": 0.5, "batch_size": 40},
    "privacy": {"mode": "client", "clip_norm": 0.5},
    "game": {"budget_unit": 0.01, "reward": 20.0},
    "sampling": {"samplers": ["fedpcs", "random"], "sampling_ratio": 0.5},
    "engine": {"kind": "in-process"},
}
EVERY_KEY: dict[str, Any] = {
    **RunConfig().model_dump(mode="json", exclude_none=True),
    "presence": [{"client": 1, "joins": 2, "leaves": 5}, {"client": 3, "joins": 1}],
    "federation": {
        "wait_seconds": 10.0,
        "prior": {"privacy_aversion": [0.2, 0.8], "initial_budget": [1.0, 3.0], "weight": [1.0, 2.0]},
        "reannounce": "never",
    },
}
SETTINGS: dict[str, Any] = {
    "rounds": 4,
    "data": {"num_clients": 20},
    "game": {"reward": [1.0, 2.0, 3.0, 4.0]},
    "sampling": {
        "samplers": ["fedpcs", "oort", "delta", "power-of-choice"],
        "settings": {"fedpcs": {"design": "pivotal"}, "power-of-choice": {"num_candidates": 12}},
    },
}
SWEEP: dict[str, Any] = {
    "name": "sweep",
    "base": "default",
    "samplers": ["fedpcs", "random"],
    "seeds": [0, 1],
    "set": {"rounds": 3, "training": {"batch_size": 8}},
    "grid": {"data.partition": ["iid", "dirichlet"], "sampling.sampling_ratio": [0.2, 0.5]},
    "per_sampler": {"fedpcs": {"privacy.clip_norm": 4.0}},
    "variants": [{"label": "static", "set": {"game.behaviour": "static"}, "samplers": ["random"]}, {"label": "-"}],
}
GAMES: tuple[dict[str, Any], ...] = (
    {"num_clients": 12, "last_round": 4, "cohort_size": 3, "reward": 6.0, "population": {"seed": 3}},
    {"last_round": 3, "reward": [1.0, 2.0, 3.0, 2.0], "budget_cap": 9.0, "sampling_ratio": 0.4},
    {"last_round": 3, "reward": 5.0, "population": {"privacy_aversion": [0.2, 0.5], "initial_budget": [1.0, 3.0]}},
    {
        "num_clients": 1000,
        "last_round": 3,
        "reward": 5.0,
        "population": {
            "privacy_aversion": [0.2, 0.5],
            "initial_budget": [1.0, 3.0],
            "num_samples": [10, 20],
            "weight": [1.0, 0.5],
        },
    },
    {"num_clients": 1000, "last_round": 3, "reward": 5.0, "population": {"bins": [4, 3]}},
    {"last_round": 3, "reward": 4.0, "population": {"file": "crowd.csv"}},
)
IN_TRIAL = ("manifest.json", "rounds.jsonl", "result.json", "seconds.json", "ledger.sqlite")
# What each verb reads: of the trials as of the run.
READ: dict[str, tuple[str, ...]] = {
    "report": ("config.toml", "manifest.json", *(f"trials/*/{name}" for name in IN_TRIAL)),
    "sweep": ("sweep.json", *(f"trials/*/{name}" for name in IN_TRIAL)),
    "resume": (
        *("config.toml", "manifest.json", "lock", "games/*.npz", "trials/*/manifest.json", "trials/*/rounds.jsonl"),
        *("trials/*/checkpoints/000002.ckpt", "trials/*/ledger.sqlite", "trials/*/lock"),
    ),
    "theory": ("config.toml", "manifest.json", "result.json", "trials/*/rounds.jsonl"),
}
CROWD = "privacy_aversion,initial_budget,num_samples\n0.2,1.0,10\n0.5,3.0,20\n0.9,11.5,7\n"
TOML_BOMBS = (
    "a." * 30_000 + "a = 1",
    "x = " + "[" * 100_000,
    "[" + "a." * 100_000 + "a]",
    "rounds = 0x" + "f" * 9000,
    "rounds = " + "9" * 9000,
    "rounds = 1e999999999",
    "x = '" + "a" * 2_000_000 + "'",
    "[[presence]]\nclient = 1\n" * 20_000,
    "\ufeffrounds = 3",
    "rounds = 3\r\nname = 'x'\r",
)


@sys.addaudithook
def _note_opened(event: str, given: tuple[Any, ...]) -> None:
    if event in ("open", "sqlite3.connect"):
        OPENED.add(str(given[0]))


class Bench:
    """The files that are made wrong, and the folder they are made wrong in."""

    def __init__(self, folder: Path, seed: int, kinds: set[str]) -> None:
        self.folder, self.seed, self.kinds = folder, seed, kinds
        self.work = folder / "work"
        self.work.mkdir()
        if kinds & {"runs", "games"}:  # so that no case's time is spent on compiling
            (folder / "game.toml").write_text(as_toml(GAMES[0]))
            _make("solve", folder / "game.toml", "--out", folder / "equilibrium.npz")
        if "runs" in kinds:
            self._make_runs()
        if "archives" in kinds:
            pack_data(folder / "data")
        self.dataset = load_for(RunConfig(), None)

    def _make_runs(self) -> None:
        kept = self.folder
        (kept / "tiny.toml").write_text(as_toml(TINY))
        _make("run", kept / "tiny.toml", "--out", kept / "done")
        _make("compare", kept / "tiny.toml", "--out", kept / "sweep", "--jobs", 1)
        shutil.copytree(kept / "done", kept / "stopped")  # killed in the last round
        for written_last in ("result.json", "model.pt", "000003.ckpt"):
            for path in (kept / "stopped").rglob(written_last):
                path.unlink()

    def rng(self, kind: str, index: int) -> Rng:
        """The generator of one case."""
        return np.random.default_rng([self.seed, *kind.encode(), index])

    def empty(self) -> Path:
        """The folder of a case, emptied."""
        shutil.rmtree(self.work)
        self.work.mkdir()
        return self.work


def _make(*words: object) -> None:
    made = fedpcs_process(*words, seconds=1200.0)  # in a process of its own: threads do not survive a fork
    assert made.returncode == 0, made.stderr


def caught(call: Callable[[], object]) -> tuple[int, str]:
    """Call as the command line does: its exit code, and the line it prints."""
    try:
        call()
    except FedpcsError as error:
        return error.exit_code, message(error)
    return 0, ""


def spoiled_file(path: Path, content: bytes, rng: Rng) -> str:
    """Write a file that is whole most of the time; else its bytes are changed, or something else is there."""
    path.write_bytes(content)
    if (chance := rng.random()) < 0.03:
        return put_something_else(path, rng)
    if chance < 0.15:
        changed, how = mutate_bytes(content, rng)
        path.write_bytes(changed)
        return how
    return ""


def config_case(bench: Bench, index: int) -> tuple[int, frozenset[int], str]:
    """A run's or a sweep's file; a run that can be read is tried out as before its first round."""
    rng, path = bench.rng("configs", index), bench.empty() / "config.toml"
    if rng.random() < 0.02:
        path.write_text(TOML_BOMBS[index % len(TOML_BOMBS)])
        what, is_sweep = "bomb", False
    else:
        is_sweep = rng.random() < 0.25
        tree, what = mutate_tree(SWEEP if is_sweep else (TINY, EVERY_KEY, SETTINGS)[rng.integers(3)], rng)
        what = f"{what}; {spoiled_file(path, as_toml(tree).encode('utf-8', 'surrogatepass'), rng)}"
    doing(what)

    def read() -> None:
        if is_sweep:
            make_cells(read_sweep(str(path)), where=str(path))
            return
        config = load_run_config(str(path))
        path.write_text(as_run_toml(config))
        assert load_run_config(str(path)) == config, "a run's file does not say what the run is"
        if config.data.name == "digits":
            dry_run(config, bench.dataset)

    return _judged(read, BAD_INPUT)


def game_case(bench: Bench, index: int) -> tuple[int, frozenset[int], str]:
    """A game's file, or the population beside it; small games that can be read are solved."""
    rng, folder = bench.rng("games", index), bench.empty()
    game = GAMES[rng.integers(len(GAMES))]
    crowd, what = CROWD, ""
    if "file" in game.get("population", {}) and rng.random() < 0.8:
        crowd, what = _mutated_crowd(rng)
    else:
        game, what = mutate_tree(game, rng)
    what += spoiled_file(folder / "crowd.csv", crowd.encode("utf-8", "surrogatepass"), rng)
    what += spoiled_file(folder / "game.toml", as_toml(game).encode("utf-8", "surrogatepass"), rng)
    doing(what)

    def read() -> None:
        settings = load_game_file(folder / "game.toml")
        built = game_of_file(settings, folder)
        if built.population.num_types * built.last_round <= 60 and isinstance(settings.reward, float):
            equilibrium.solve(built, settings.reward, tolerance=settings.tolerance)

    return _judged(read, BAD_INPUT | {NotConverged.exit_code})


def _judged(call: Callable[[], object], right: frozenset[int]) -> tuple[int, frozenset[int], str]:
    code, words = caught(call)
    return code, right, words


def _mutated_crowd(rng: Rng) -> tuple[str, str]:
    rows = [line.split(",") for line in CROWD.splitlines()]
    row, column = int(rng.integers(len(rows))), int(rng.integers(3))
    value = strange_value(rng)
    how = ("cell", "cell", "cell", "drop", "more", "quote", "many", "long")[rng.integers(8)]
    if how == "cell":
        rows[row][column] = str(value) if not isinstance(value, str) else value
    elif how == "drop":
        del rows[row][column]
    elif how == "more":
        rows[row].append("1")
    elif how == "quote":
        rows[row][column] = '"' + rows[row][column]
    elif how == "many":
        rows += [rows[-1]] * 30_000
    else:
        rows[row] += [""] * 100_000
    return "\n".join(map(",".join, rows)) + "\n", f"crowd {how} {row},{column} {str(value)[:30]!r}"


def run_case(bench: Bench, index: int) -> tuple[int, frozenset[int], str]:
    """A file of a run, a sweep or an equilibrium, and a verb that reads it."""
    rng, folder = bench.rng("runs", index), bench.empty()
    verb = ("report", "report", "resume", "resume", "sweep", "sweep", "theory", "verify", "verify")[rng.integers(9)]
    if verb == "verify":
        return verify_case(bench, rng, folder)
    shutil.copytree(bench.folder / {"resume": "stopped", "sweep": "sweep"}.get(verb, "done"), folder / "run")
    files = sorted(path for name in READ[verb] for path in (folder / "run").glob(name))
    path = files[rng.integers(len(files))]
    content, right = path.read_bytes(), DAMAGED
    if is_another := rng.random() < 0.05:
        # What is not there cannot be told from what was never begun; and a folder cannot be written over.
        how, right = put_something_else(path, rng), BOTH | {1}
    else:
        how = _spoil_content(path, rng)
        if path.suffix == ".jsonl" and how.startswith("flip") and path.read_bytes() != content:
            right = frozenset({6})
    if verb == "resume":  # a run that is not what it was is refused as bad input
        right |= {2, 3, 4, 5}
    if verb == "theory":
        right |= {2}
    # All of our own code runs every time; Matplotlib turns figures into pixels, which takes seconds, now and then.
    is_drawn = rng.random() < 0.05
    doing(f"{verb}: {path.relative_to(folder / 'run')}: {how}", 30.0 if is_drawn else MOST_SECONDS)
    is_there = not is_another and path.stat().st_size > 0
    OPENED.clear()
    with contextlib.nullcontext() if is_drawn else patch.object(Figure, "savefig", _not_drawn):
        done = fedpcs({"sweep": "report"}.get(verb, verb), folder / "run")
    assert not is_there or str(path) in OPENED, "the file that was made wrong was not read"
    return done.returncode, right, done.stderr


def _spoil_content(path: Path, rng: Rng) -> str:
    """Change the values of a file of text three times of four, else its bytes; say how."""
    is_log, is_text = path.suffix == ".jsonl", path.suffix in (".json", ".jsonl", ".toml")
    if not is_text or rng.random() < 0.25:
        changed, how = mutate_bytes(path.read_bytes(), rng)
    elif path.suffix == ".toml":
        tree, how = mutate_tree(read_tables(str(path)), rng)
        changed = as_toml(tree).encode("utf-8", "surrogatepass")
    else:
        lines = [json.loads(line) for line in (path.read_bytes().splitlines() if is_log else [path.read_bytes()])]
        place = int(rng.integers(len(lines)))
        lines[place], how = mutate_tree(lines[place], rng)
        changed = b"".join(_sealed(lines)) if is_log else json.dumps(lines[0]).encode()
    path.write_bytes(changed)
    return how


def _sealed(lines: list[Any]) -> Iterator[bytes]:
    """Give the lines of a log with hashes that fit: whoever changes one by hand can compute them too."""
    before = START
    for line in lines:
        if isinstance(line, dict) and set(line) - {"hash"}:
            with contextlib.suppress(ValueError):  # NaN, which no log holds
                sealed = sealed_line({key: value for key, value in line.items() if key != "hash"}, before)
                before = hash_at_end(sealed)
                yield sealed
                continue
        yield json.dumps(line).encode() + b"\n"


def _not_drawn(figure: Figure, place: Any, **_: object) -> None:
    content = b"\x89PNG\r\n\x1a\n"
    place.write_bytes(content) if isinstance(place, Path) else place.write(content)


def verify_case(bench: Bench, rng: Rng, folder: Path) -> tuple[int, frozenset[int], str]:
    """An equilibrium's file whose arrays or bytes are changed: a changed array is never certified."""
    path = folder / "equilibrium.npz"
    if rng.random() < 0.3:
        changed, how = mutate_bytes((bench.folder / "equilibrium.npz").read_bytes(), rng)
        path.write_bytes(changed)
        right = frozenset({0, 2, 3, 6})
    else:
        with np.load(bench.folder / "equilibrium.npz") as stored:
            arrays = dict(stored)
        name = sorted(arrays)[rng.integers(len(arrays))]
        before = arrays[name]
        arrays[name], how = _changed_array(before, rng)
        right = frozenset({2, 3, 6} if not np.array_equal(before, arrays[name]) else {0})
        np.savez(path, **arrays)
        how = f"{name} {how}"
    doing(f"verify: {how}")
    done = fedpcs("verify", path, "--game", bench.folder / "game.toml")
    return done.returncode, right, done.stderr


def _changed_array(array: Any, rng: Rng) -> tuple[Any, str]:
    how = ("nan", "inf", "-1", "0", "huge", "shape", "scalar", "words", "complex", "longer")[rng.integers(10)]
    if how in ("nan", "inf", "-1", "0", "huge"):
        changed = array.copy()
        changed.flat[rng.integers(array.size)] = {"huge": 1e300}.get(how) or float(how)
        return changed, how
    made = {
        "shape": array.reshape(-1, 1),
        "scalar": np.float64(1.0),
        "words": array.astype(str),
        "complex": array + 1j,
        "longer": np.concatenate([array, array[:1]]),
    }
    return made[how], how


CASES: dict[str, Callable[[Bench, int], tuple[int, frozenset[int], str]]] = {
    "configs": config_case,
    "games": game_case,
    "runs": run_case,
    "archives": lambda bench, index: archive_case(bench.folder / "data", bench.empty(), bench.rng("archives", index)),
}


def fuzz(counts: dict[str, int], seed: int, *, first: int = 0) -> dict[str, list[Outcome]]:
    """Run so many cases of each kind; return what became of them."""
    wanted = {kind for kind, count in counts.items() if count}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), seed, wanted)
        found: dict[str, list[Outcome]] = {}
        for kind in CASES:
            if kind in wanted:

                def case(index: int, kind: str = kind) -> tuple[int, frozenset[int], str]:
                    return CASES[kind](bench, index)

                found[kind] = _followed(kind, case, range(first, first + counts[kind]))
        return found


def _followed(kind: str, case: Case, numbers: range) -> list[Outcome]:
    outcomes = []
    for outcome in run_all(case, numbers):
        outcomes.append(outcome)
        if len(outcomes) % 100 == 0:
            print(f"{kind}: {len(outcomes)} of {len(numbers)}", file=sys.stderr, flush=True)
        if outcome.problem:
            print(f"{kind} {outcome.index} {outcome.problem}: {outcome.what} (exit {outcome.code})", flush=True)
            print(f"    {outcome.detail.strip()}", flush=True)
    return outcomes


def main() -> None:
    """Run what is asked for, and print how many cases came to what."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for kind in CASES:
        parser.add_argument(f"--{kind}", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="Number of the first case of each kind.")
    given = vars(parser.parse_args())
    found = fuzz({kind: given[kind] for kind in CASES}, given["seed"], first=given["first"])
    for kind, outcomes in found.items():
        codes = dict(sorted(Counter(str(one.code) for one in outcomes).items()))
        problems = dict(Counter(one.problem for one in outcomes if one.problem))
        slowest, largest = max(one.seconds for one in outcomes), max(one.growth_mb for one in outcomes)
        print(f"{kind}: {len(outcomes)} cases, exit codes {codes}, found {problems or 'nothing'}; ", end="")
        print(f"slowest {slowest:.1f} s, largest growth {largest:.0f} MB")
    sys.exit(any(one.problem for outcomes in found.values() for one in outcomes))


if __name__ == "__main__":
    main()
