"""One sampler, one colour and one stroke, in every figure of every page."""

import numpy as np
import pytest
from fedpcs.report.figures.curves import accuracy_figure, loss_figure
from fedpcs.report.figures.draws import draws_figure
from fedpcs.report.figures.noise import noise_figure
from fedpcs.report.figures.spent import epsilon_figure
from fedpcs.report.spent import spent_figure
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from test_run_report import configuration, write_run

from fedpcs.exhibits.drawings import lines_figure
from fedpcs.report.figures.caps import Usage, _draw_usage
from fedpcs.report.figures.study import curves_figure
from fedpcs.report.figures.theory import account_figure
from fedpcs.report.palette import pens
from fedpcs.sampling import SAMPLERS
from fedpcs.studies.points import Curve
from fedpcs.studies.run_files import read_run
from fedpcs.studies.theory_run import ERRORS, TrialTheory

NAMES = sorted(SAMPLERS)
ROUNDS = np.arange(1.0, 5.0)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run with every sampler there is, its files written by hand."""
    samplers = [f"sampling.samplers={NAMES}"]
    accuracy = {name: [0.5 + 0.01 * k, 0.51, 0.52] for k, name in enumerate(NAMES)}
    return read_run(write_run(tmp_path_factory.mktemp("run"), configuration(*samplers), accuracy).store)


def is_drawn_as_everywhere(figure: Figure, name: str) -> bool:
    """Say whether a sampler's label has its colour, and a line of that colour its stroke."""
    pen = pens([name])[name]
    labels = {text.get_color() for axes in figure.axes for text in axes.texts if text.get_text() == pen.label}
    lines = [line for axes in figure.axes for line in axes.lines if line.get_color() == pen.colour]
    return labels == {pen.colour} and any((line.get_linestyle() != "-") == pen.is_hollow for line in lines)


def look(name: str) -> tuple[str, bool]:
    pen = pens([name])[name]
    return pen.colour, not pen.is_hollow


@pytest.mark.parametrize("draw", [accuracy_figure, loss_figure, draws_figure, noise_figure, epsilon_figure])
def test_a_run_s_figures_have_the_palette_s_colours(run, draw):
    figure = draw(run)
    assert [name for name in NAMES if not is_drawn_as_everywhere(figure, name)] == []


def test_a_sweep_s_figures_have_the_same():
    flat = np.full(ROUNDS.size, 0.01)
    curves = [Curve(name, ROUNDS, np.full(ROUNDS.size, 0.1 * k), flat) for k, name in enumerate(NAMES)]
    spent = {name: np.array([0.5, 1.0 + 0.1 * k]) for k, name in enumerate(NAMES)}
    for figure in (curves_figure(curves, "accuracy", "A finding"), spent_figure(spent)):
        assert [name for name in NAMES if not is_drawn_as_everywhere(figure, name)] == []


def test_theory_s_bars_have_the_same():
    parts = ("descent", *ERRORS)
    account = {part: np.array([-1.0 if part == "descent" else 0.1]) for part in parts}
    trials = [
        TrialTheory(name, 1, np.array([1.0, 0.5]), None, account, ROUNDS, ROUNDS, None, 1.0, True)  # no bound is drawn
        for name in NAMES
    ]
    bars = [to_hex(bar.get_edgecolor()).upper() for bar in account_figure(trials).axes[0].patches]
    assert bars == [look(name)[0] for name in NAMES] * len(parts)


def test_figures_of_games_draw_fedpcs_and_budget_blind_sampling_as_others_do():
    """Budget-blind stands for all baselines: it looks as random sampling does."""
    for baseline in ("budget-blind, same rewards", "random, same cohorts"):
        figure = lines_figure({"FedPCS": np.full((2, 4), 1.0), baseline: np.full((2, 4), 2.0)}, "Cost", "cost")
        named = {line.get_label(): (line.get_color(), line.get_linestyle() == "-") for line in figure.axes[0].lines}
        assert (named["FedPCS"], named[baseline]) == (look("fedpcs"), look("random"))


def test_the_figure_of_caps_has_the_same():
    figure = Figure()
    _draw_usage(figure.subplots(), Usage(np.array([0.9, 0.8])), Usage(np.array([0.7, 0.6])), 0)
    named = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    assert (named["FedPCS"], named["random"]) == (look("fedpcs")[0], look("random")[0])
