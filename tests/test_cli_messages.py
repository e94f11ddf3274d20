"""What a first user gets wrong: each mistake is one line that names the true cause and what was meant."""

import html
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import fedpcs
from made_records import a_manifest, a_result

from fedpcs.cli.interrupts import goes_on_by
from fedpcs.errors import Interrupted
from fedpcs.learning.datasets import load_dataset
from fedpcs.report.warnings import noted
from fedpcs.studies.grid import make_cells, make_sweep_config
from fedpcs.studies.promise import paid_for_nothing
from fedpcs.studies.results import TrialData
from fedpcs.trial.config import RunConfig

HEAVY = {"torch", "numba", "scipy", "matplotlib", "sklearn", "pooch", "jinja2"}
# Command, and what its one line must say.
MISSPELT = [
    (("run", "defualt"), "no such file or preset. Did you mean 'default'?"),
    (("run", "fashion_mnist"), "Did you mean 'fashion-mnist'?"),
    (("run", "--set", "rounbs=3"), "unknown key 'rounbs'. Did you mean 'rounds'?"),
    (("run", "--set", "data.patition=iid"), "Did you mean 'data.partition'?"),
    (("run", "--set", "lr=0.1"), "Did you mean 'training.learning_rate'?"),
    (("run", "--set", "clients=20"), "Did you mean 'data.num_clients'?"),
    (("run", "--set", 'samplers=["fedpsc"]'), "Did you mean 'sampling.samplers'?"),
    (("run", "--set", 'sampling.samplers=["fedpsc"]'), "got 'fedpsc'. Did you mean 'fedpcs'?"),
    (("run", "--set", "sampling.settings.fedpcs.desing=pivotal"), "no setting 'desing'; it has design"),
    (("run", "--set", "sampling.rule=hayek"), "got 'hayek'. Did you mean 'hajek'?"),
    (("run", "--engine", "flowr"), "Did you mean 'flower'?"),
    (("run", "--set", "federation.prior.weigth=[1]"), "Did you mean 'federation.prior.weight'?"),
    (("compare", "--samplers", "fedpsc,random"), "got 'fedpsc'. Did you mean 'fedpcs'?"),
    (("compare", "--grid", "data.patition=iid,dirichlet"), "Did you mean 'data.partition'?"),
    (("doctor", "defualt"), "Did you mean 'default'?"),
    (("solve", "game.toml"), "unknown key 'num_clints'. Did you mean 'num_clients'?"),
    (("verify", "any.npz", "--game", "game.toml"), "Did you mean 'num_clients'?"),
    (("audit", "--mode", "recrd"), "got 'recrd'. Did you mean 'record'?"),
    (("run", "--set", "data.name=digit"), "got 'digit'. Did you mean 'digits'?"),
    (("run", "--set", "training.model=lineer"), "got 'lineer'. Did you mean 'linear'?"),
    (("data", "check", "fashon-mnist"), "got 'fashon-mnist'. Did you mean 'fashion-mnist'?"),
    (("data", "fetch", "fashon-mnist"), "got 'fashon-mnist'. Did you mean 'fashion-mnist'?"),
    (("reproduce", "accuracy-table", "--dataset", "svhnn"), "got 'svhnn'. Did you mean 'svhn'?"),
    (("reproduce", "welfar"), "got 'welfar'. Did you mean 'welfare'?"),
    (("resume", "nowhere"), "nowhere: no run there"),
    (("report", "nowhere"), "nowhere: no run there"),
    (("theory", "nowhere"), "nowhere: no run there"),
    (("samplers", "fedpsc"), "Did you mean 'fedpcs'?"),
]


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    """For every misspelt command: exit code, stderr, and the heavy modules that are loaded after it."""
    folder = tmp_path_factory.mktemp("misspelt")
    (folder / "game.toml").write_text("num_clints = 10\n")
    code = (
        "import json, sys; from command_line import fedpcs; found = []\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    done = fedpcs(*words)\n"
        f"    found.append((done.returncode, done.stderr, sorted({HEAVY!r} & set(sys.modules))))\n"
        "print(json.dumps(found))"
    )
    asked = json.dumps([words for words, _ in MISSPELT])
    paths = [path for path in sys.path if path]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}\n{code}", asked],
        capture_output=True,
        text=True,
        cwd=folder,
        check=True,
    )
    return dict(zip((words for words, _ in MISSPELT), json.loads(done.stdout), strict=True))


@pytest.mark.parametrize(("words", "said"), MISSPELT, ids=lambda one: " ".join(one) if isinstance(one, tuple) else "")
def test_a_misspelt_name_is_refused_in_one_line_before_anything_heavy_is_imported(refusals, words, said):
    code, err, heavy = refusals[words]
    assert said in err
    assert "cannot be run with rule" not in err
    assert (code, len(err.splitlines()), heavy) == (2, 1, [])


def test_a_misspelt_command_is_asked_about_once():
    said = fedpcs("rnu").stderr
    assert said.count("Did you mean 'run'?") == 1


def test_privacy_says_what_to_give():
    nothing, both = fedpcs("privacy"), fedpcs("privacy", 1, "--epsilon", 2)
    assert "missing" in nothing.stderr
    assert "not both" not in nothing.stderr
    for done in (nothing, both):
        assert "`fedpcs privacy 0.5`" in done.stderr
        assert "`fedpcs privacy --epsilon 8`" in done.stderr
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


@pytest.fixture
def strange_files(tmp_path):
    """Files that are no equilibrium, by name; `cut.npz` and `flipped.npz` once were one."""
    (tmp_path / "game.toml").write_text("num_clients = 10\n")
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "words.txt").write_text("just words\n")
    (tmp_path / "pickled.npz").write_bytes(pickle.dumps({"budget": [1.0]}))
    (tmp_path / "folder.npz").mkdir()
    np.savez(tmp_path / "objects.npz", budget=np.array([{}], dtype=object))
    np.savez(tmp_path / "whole.npz", budget=np.arange(1000.0))
    whole = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[:2000])
    (tmp_path / "flipped.npz").write_bytes(whole[:3000] + bytes([whole[3000] ^ 255]) + whole[3001:])
    return tmp_path


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("game.toml", 2, "not an equilibrium file. Give the .npz file that `fedpcs solve --out` writes"),
        ("empty.npz", 2, "not an equilibrium file"),
        ("words.txt", 2, "not an equilibrium file"),
        ("pickled.npz", 2, "not an equilibrium file"),
        ("folder.npz", 2, "cannot be read: Is a directory"),
        ("absent.npz", 2, "no such file. Write one with `fedpcs solve --out"),
        ("whole.npz", 2, "lacks retention"),
        ("cut.npz", 6, "damaged"),
        ("flipped.npz", 6, "damaged"),
        ("objects.npz", 6, "damaged, or not an equilibrium file"),
    ],
)
def test_verify_says_what_it_was_given_and_never_how_to_load_it_unsafely(strange_files, name, code, said):
    done = fedpcs("verify", strange_files / name)
    assert said in done.stderr
    assert "pickle" not in done.stderr.replace("pickled.npz", "")
    assert (done.returncode, len(done.stderr.splitlines())) == (code, 1)


@pytest.mark.parametrize("damage", ["rounds = = 3\n", "rounds = 1\n", "rounds = 7\n", "roundz = 3\n", "\x00\xff", ""])
@pytest.mark.parametrize("verb", ["resume", "report", "theory"])
def test_a_damaged_configuration_of_a_run_exits_6_and_is_named(verb, damage, tmp_path):
    (tmp_path / "config.toml").write_text(damage, encoding="latin-1")
    (tmp_path / "manifest.json").write_text(a_manifest(RunConfig(rounds=9)).model_dump_json())
    (tmp_path / "result.json").write_text('{"name": "run", "trials": [], "is_exhausted": false}')
    done = fedpcs(verb, tmp_path)
    assert str(tmp_path / "config.toml") in done.stderr
    assert "Put back a copy" in done.stderr
    assert (done.returncode, len(done.stderr.splitlines())) == (6, 1)


def test_audit_draws_only_when_asked(tmp_path):
    few = ("audit", "--canaries", 20, "--noise", "fast")
    assert fedpcs(*few, cwd=tmp_path).returncode == 0
    assert list(tmp_path.iterdir()) == []
    assert fedpcs(*few, "--figure", "roc.png", cwd=tmp_path).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["roc.png"]


LACKING = """
from fedpcs.learning.datasets import load_dataset, make_dataset

def load():
    all = load_dataset("digits")
    kept = (all.train_targets != 3) & (all.train_targets != 7)
    train = all.train_inputs[kept], all.train_targets[kept]
    return make_dataset("lacking", train, (all.test_inputs, all.test_targets), 10, all.mean, all.stddev)
"""


@pytest.fixture
def lacking(tmp_path, monkeypatch):
    """A folder with a data set that is tested on 3s and 7s, and has none to train on; and the words of a run on it."""
    (tmp_path / "lacking_digits.py").write_text(LACKING)
    monkeypatch.syspath_prepend(tmp_path)
    keys = ("data.name=lacking_digits:load", "data.num_clients=6", "data.partition=iid", "rounds=2", "seeds=[0]")
    none = ("engine.kind=in-process", "privacy.mode=none", "game.reward=5.0", "sampling.samplers=['fedpcs']")
    return tmp_path, [part for key in (*keys, *none) for part in ("--set", key)]


def test_classes_without_training_records_and_pay_without_privacy_are_said_in_the_terminal_and_on_the_page(lacking):
    folder, keys = lacking
    done = fedpcs("run", "--out", "run", *keys, cwd=folder)
    assert done.returncode == 0, done.stderr
    page = html.unescape((folder / "run" / "report.html").read_text(encoding="utf-8"))
    digits = load_dataset("digits").test_targets
    share = 100.0 * float(((digits == 3) | (digits == 7)).double().mean())
    for said in (" ".join(done.stderr.split()), page):
        assert "no training record is of any of the 2 classes 3, 7" in said
        assert f"{share:.1f}" in said
    for said in (" ".join(done.stdout.split()), page):
        assert "Rewards are paid all the same, for budgets that clients announce: no noise is added" in said


def test_doctor_notes_classes_without_training_records(lacking):
    folder, keys = lacking
    done = fedpcs("doctor", "default", "--json", *keys, cwd=folder)
    found = {one["subject"]: one for one in json.loads(done.stdout)}
    assert found["classes"]["standing"] == "note"
    assert "3, 7" in found["classes"]["found"]


def result_of(paid, charged):
    return a_result(paid=paid, spent=a_result().spent.model_copy(update={"num_clients": charged}))


def test_the_page_of_a_sweep_says_what_was_noted_of_its_cells():
    cells = make_cells(make_sweep_config({"samplers": ["fedpcs"], "seeds": [0, 1], "set": {"privacy.mode": "none"}}))
    result = result_of(paid=7.0, charged=0)
    done = [TrialData(cell, result, (), a_manifest(notes=["lacking: no 3s"]), None, Path()) for cell in cells]
    assert noted(done) == ("lacking: no 3s", paid_for_nothing([result]))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Interrupted("stopped in round 3; all before it is saved."), "stopped in round 3; all before it is saved."),
        (KeyboardInterrupt(), "stopped."),  # a second Ctrl-C
    ],
)
def test_an_interrupted_command_names_its_folder_and_what_goes_on_with_it(error, words, tmp_path):
    again, begun = "fedpcs resume 'my run'", tmp_path / "begun"
    with pytest.raises(Interrupted) as answer, goes_on_by(again, tmp_path, begun):
        raise error
    assert str(answer.value) == f"{tmp_path}: {words} Nothing was saved yet."
    begun.touch()
    with pytest.raises(Interrupted) as answer, goes_on_by(again, tmp_path, begun):
        raise error
    assert str(answer.value) == f"{tmp_path}: {words} Go on with `{again}`."
    with pytest.raises(ValueError, match="my own"), goes_on_by(again, tmp_path, begun):
        raise ValueError("my own")


def test_commands_that_install_extras_name_what_a_package_index_has():
    """fedpcs itself is on none: `pip install 'fedpcs[flower]'` would find nothing, or somebody else's package."""
    source = Path(__file__).parents[1]
    for path in [*source.glob("src/**/*.py"), *source.glob("docs/**/*.md"), source / "README.md"]:
        assert not re.search(r"pip install[^`\n]*fedpcs\[", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("verb", ["node", "superlink"])
def test_without_flower_its_verbs_say_what_to_install(verb, monkeypatch):
    for name in [name for name in sys.modules if name == "flwr" or name.startswith(("flwr.", "fedpcs.engines.flower"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flwr", None)  # as where it is not installed
    done = fedpcs(verb)
    assert "Run `pip install 'flwr[simulation]" in done.stderr
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
