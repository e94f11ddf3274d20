"""`fedpcs theory`: a run under its bound, a quadratic under all of them, and what is refused."""

import json

import pytest
from command_line import fedpcs

from fedpcs.cli.theory import show_run
from fedpcs.report.figures import theory as theory_figures
from fedpcs.studies.theory.quadratic import assess_quadratic
from fedpcs.studies.theory.run import assess_run
from fedpcs.trial.config import load_run_config
from fedpcs.trial.run import start_run

SEEDS = 2
CHANGES = (
    "rounds=6",
    "data.num_clients=12",
    'engine.kind="in-process"',
    "sampling.sampling_ratio=0.5",
    "game.reward=6.0",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Returns the folder of a small run."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    config = load_run_config("default", [*CHANGES, f"seeds={list(range(SEEDS))}"])
    return start_run(config, folder).folder


@pytest.fixture(scope="module")
def assessed(finished):
    """Returns that run held against theory."""
    return assess_run(finished)


def test_a_run_made_again_is_the_same_and_its_account_adds_up(assessed):
    for one in assessed:
        assert one.is_same
        assert one.num_seeds == SEEDS
        assert one.loss.size == 7
        assert sum(one.totals.values()) == pytest.approx(one.loss[-1] - one.loss[0], abs=1e-5)
        assert one.totals["descent"] < 0.0 < one.totals["noise"]
        assert abs(one.totals["rest"]) < 0.2 * -one.totals["descent"]
        assert one.num_under >= 4
        assert (one.mean_curvature < one.top_curvature).all()
        assert 0.0 < one.kept < 1.0


@pytest.mark.slow
def test_the_command_prints_json_and_draws_figures(finished, tmp_path):
    shown = fedpcs("theory", finished, "--figures", tmp_path / "figures", "--json")
    assert shown.returncode == 0, shown.stderr
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"progress.png", "account.png"}
    told = json.loads(shown.stdout)
    assert [one["sampler"] for one in told["samplers"]] == ["fedpcs", "random"]
    assert told["samplers"][0]["largest"] in ("noise", "sampling", "overshoot")


@pytest.mark.slow
def test_without_noise_noise_takes_nothing(tmp_path):
    folder = tmp_path / "run"
    quiet = (*CHANGES, "seeds=[0]", 'privacy.mode="none"', 'sampling.samplers=["random"]')
    quiet += ('game.behaviour="static"', "training.learning_rate=0.05", 'sampling.rule="hajek"')
    done = fedpcs("run", "default", "--out", folder, *(word for one in quiet for word in ("--set", one)))
    assert done.returncode == 0, done.stderr
    (one,) = assess_run(folder)
    assert one.totals["noise"] == 0.0
    assert one.estimates is not None
    assert one.estimates.gradient_bound.value > 0.0
    assert one.largest in ("sampling", "overshoot")


def test_the_quadratic_is_under_its_bound_and_drawn(tmp_path):
    shown = fedpcs("theory", "--quadratic", "--rounds", 30, "--trajectories", 200, "--figures", tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "times what is measured" in shown.stdout
    assert (tmp_path / "quadratic.png").exists()
    told = json.loads(fedpcs("theory", "--quadratic", "--rounds", 30, "--trajectories", 200, "--json").stdout)
    assert 1.0 < told["largest_ratio"] < 100.0
    assert told["premises_missing"] == []


def test_tables_and_figures_say_what_they_show(assessed, capsys):
    trials = assessed
    show_run(trials)
    said = capsys.readouterr().out
    assert "takes back" in said
    assert "From the log alone" not in said  # its gradients are clipped
    found = assess_quadratic(num_rounds=30, num_trajectories=100)
    for figure, words in (
        (theory_figures.progress_figure(trials), "under its bound"),
        (theory_figures.account_figure(trials), "took it back"),
        (theory_figures.quadratic_figure(found), "under its bounds"),
    ):
        assert words in figure.get_suptitle().replace("\n", " ")


def test_what_is_not_a_finished_run_is_refused(tmp_path):
    for arguments, words in (
        ((tmp_path,), "no run there"),
        ((tmp_path / "nowhere",), "no run there"),
        ((), "either RUN or --quadratic"),
        ((tmp_path, "--quadratic"), "either RUN or --quadratic"),
        ((tmp_path, "--rounds", 5), "are of --quadratic"),
        (("--quadratic", "--figures", __file__), "cannot be made"),
    ):
        refused = fedpcs("theory", *arguments)
        assert refused.returncode == 2
        assert words in refused.stderr
