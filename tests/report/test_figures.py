"""Figures of trade-offs, intervals and curves: what is drawn are the numbers, and nothing is read as mathematics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pages import SAMPLERS

from fedpcs.report.drawing import as_svg
from fedpcs.report.figures.bars import bars_figure
from fedpcs.report.figures.lines import lines_figure, mean_line
from fedpcs.report.figures.tradeoff import tradeoff_figure
from fedpcs.report.page import NothingToDraw
from fedpcs.studies.paired import PairedDifference
from fedpcs.studies.points import TradeOff

NAN = math.nan
ROUNDS = np.arange(1.0, 42.0, 2.0)
VALUES = np.array([0.5, 0.7]) * (1.0 - np.exp(-ROUNDS[:, None] / 9.0))


def test_lines_are_means_in_bands_from_the_least_to_the_greatest() -> None:
    (axes,) = lines_figure("A title", {"fedpcs": mean_line(ROUNDS, VALUES.T)}, "accuracy").axes
    (line,) = axes.lines
    np.testing.assert_allclose(line.get_xydata(), np.column_stack((ROUNDS, VALUES.mean(axis=1))))
    band = axes.collections[0].get_paths()[0].vertices
    for x, values in zip(ROUNDS, VALUES, strict=True):
        at = band[band[:, 0] == x, 1]
        np.testing.assert_allclose((at.min(), at.max()), (values.min(), values.max()))
    assert axes.get_ylim()[0] < band[:, 1].min() < band[:, 1].max() < axes.get_ylim()[1]


def test_long_lines_keep_their_ends_and_a_log_scale_its_floor() -> None:
    places = np.arange(2_000.0)
    (axes,) = lines_figure("A title", {"a": mean_line(places, places[None])}, "loss", log_floor=5.0).axes
    drawn = axes.lines[0].get_xydata()
    assert len(drawn) == 300
    np.testing.assert_array_equal(drawn[[0, -1]], [[0.0, 5.0], [1_999.0, 1_999.0]])


def test_costs_are_on_a_log_scale_where_their_range_exceeds_ten() -> None:
    for most, scale in ((10.0, "linear"), (10.1, "log")):
        points = [TradeOff("a", "r", 1.0, 1.0, 0.5, 0.1), TradeOff("b", "r", most, 1.0, 0.6, 0.1)]
        assert tradeoff_figure(points, "epsilon", "A title").axes[0].get_xscale() == scale


def test_points_are_the_numbers_and_rules_have_shapes() -> None:
    points = [TradeOff(name, rule, 3.0, 1.0, 0.8, 0.01) for name in SAMPLERS for rule in ("hajek", "precision")]
    (axes,) = tradeoff_figure(points, "epsilon", "A title").axes
    drawn = [bar.lines[0] for bar in axes.containers]
    assert {line.get_marker() for line in drawn} == {"o", "s"}
    assert [float(line.get_ydata()[0]) for line in drawn] == [point.accuracy_mean for point in points]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [*SAMPLERS, "hajek", "precision"]


def test_what_has_no_finite_cost_is_named_and_not_drawn() -> None:
    points = [TradeOff("open", "r", math.inf, 1.0, 0.9, 0.1), TradeOff("b", "r", 2.0, 1.0, 0.6, 0.1)]
    figure = tradeoff_figure(points, "epsilon", "A title", "A note.")
    note = figure.get_supxlabel().replace("\n", " ")
    assert note == "A note. Not drawn, having no finite cost or accuracy: open (r)."
    assert len(figure.axes[0].containers) == 1


def test_bars_show_mean_and_interval_and_zero() -> None:
    bars = {
        "gain": PairedDifference(0.02, 0.01, 0.03, 3),
        "unclear": PairedDifference(0.0, -0.01, 0.01, 3),
        "one seed": PairedDifference(0.01, -math.inf, math.inf, 1),
        "loss": PairedDifference(-0.02, -0.03, -0.01, 3),
    }
    (axes,) = bars_figure(bars, "A title").axes
    assert [text.get_text() for text in axes.texts] == [
        "+2.00 [+1.00, +3.00]",
        "+0.00 [−1.00, +1.00]",
        "+1.00",
        "−2.00 [−3.00, −1.00]",
    ]
    intervals = [tuple(line.get_xdata()) for line in axes.lines if line.get_linewidth() == 2.4]
    assert np.allclose(intervals, [(1.0, 3.0), (-1.0, 1.0), (-math.inf, math.inf), (-3.0, -1.0)])
    assert list(axes.lines[-1].get_xdata()) == [0.0, 0.0]


def test_nothing_measured_is_nothing_to_draw() -> None:
    for draw in (
        lambda: tradeoff_figure([TradeOff("a", "r", math.inf, 0.0, 0.5, 0.1)], "epsilon", "A title"),
        lambda: bars_figure({"a": PairedDifference(NAN, NAN, NAN, 1)}, "A title"),
    ):
        with pytest.raises(NothingToDraw):
            draw()


def test_names_are_not_read_as_mathematics_and_equal_figures_are_the_same_bytes() -> None:
    points = [TradeOff("$a_1$", "$r_{$", 1.0, 1.0, 0.5, 0.1), TradeOff("b", "$s$", 2.0, 1.0, 0.6, 0.1)]
    for draw in (
        lambda: tradeoff_figure(points, "epsilon", "A $title_{$"),
        lambda: lines_figure("A title", {"$x_{$": mean_line(ROUNDS, VALUES.T)}, "loss"),
        lambda: bars_figure({"$x^{$": PairedDifference(1.0, 0.0, 2.0, 3)}, "A title"),
    ):
        assert as_svg(draw()) == as_svg(draw())
