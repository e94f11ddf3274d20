"""Figures of a sweep: what they draw is what they were given, and no label covers another, wide or narrow."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from pages import SAMPLERS

from fedpcs.errors import InvalidInput
from fedpcs.report import style
from fedpcs.report.dark import DARK, as_dark
from fedpcs.report.figures.bars import bars_figure, curves_figure, tradeoff_figure
from fedpcs.report.labels import place
from fedpcs.report.palette import pens
from fedpcs.report.spent import spent_figure
from fedpcs.report.page import NothingToDraw, as_svg, picture_of
from fedpcs.studies.points import Bar, Curve, TradeOff

ROUNDS = np.arange(1.0, 42.0, 2.0)
NAN = math.nan
# What eyes without red or green cones make of linear RGB: Machado, Oliveira and Fernandes 2009, severity 1.
BLINDNESS = (
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
)


def seen_as(colour: str, blindness: np.ndarray | None = None) -> np.ndarray:
    """A colour's place in CIELAB (D65), where distances are what eyes make of them."""
    share = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    if blindness is not None:
        linear = (blindness @ linear).clip(0.0, 1.0)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = (np.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116 for v in to_xyz @ linear / [0.9505, 1.0, 1.0888])
    return np.array([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])


def curve(label: str, end: float, std: float = 0.01) -> Curve:
    return Curve(label, ROUNDS, end * (1.0 - np.exp(-ROUNDS / 9.0)), np.full(ROUNDS.size, std))


def nine_curves() -> list[Curve]:
    """Nine that end within a point of one another: the worst case for labels at their ends."""
    return [curve(name, 0.85 - 0.001 * k) for k, name in enumerate(SAMPLERS)]


def nine_points(*rules: str) -> list[TradeOff]:
    costs = [3.1, 28.0, 9.0, 8.6, 8.9, 30.0, 33.0, 9.4, 8.1]
    return [
        TradeOff(name, rule, costs[k] * (1.0 + 0.1 * j), 100.0 * (k + 1), 0.86 - 0.002 * k - 0.01 * j, 0.008)
        for k, name in enumerate(SAMPLERS)
        for j, rule in enumerate(rules)
    ]


def a_corner() -> list[TradeOff]:
    """Eight samplers that end in one corner under two rules, and two whose clients are selfish far away from it."""

    def way(epsilon: float, paid: float, accuracy: float) -> tuple[tuple[float, float, float], ...]:
        times = np.linspace(0.1, 1.0, 10)
        return tuple((epsilon * t**0.5, paid * t, accuracy * (1.0 - np.exp(-4.0 * t))) for t in times)

    crowd = [
        (name, rule, 6.7 + 0.1 * ((3 * k + j) % 9), 28_000.0 + 120.0 * ((5 * k + j) % 9), 0.842 - 0.001 * k - 0.008 * j)
        for k, name in enumerate(SAMPLERS[:8])
        for j, rule in enumerate(("hajek", "precision"))
    ]
    far = [(name, "precision, selfish clients", 0.3, 1_500.0, 0.40 - 0.02 * k) for k, name in enumerate(SAMPLERS[:2])]
    return [TradeOff(*one, 0.002, way(*one[2:])) for one in (*crowd, *far)]


def boxes(figure: Figure, panel: int = 0) -> tuple[dict[str, Bbox], Bbox, Bbox]:
    """Draw a figure, and return where a panel's words are, the panel, and the figure, in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    axes = figure.axes[panel]
    words = {text.get_text(): Text.get_window_extent(text, canvas.get_renderer()) for text in axes.texts}
    return words, axes.get_window_extent(), figure.bbox


def narrow(figure: Figure) -> Figure:
    picture_of(figure)
    return figure


def overlapping(words: dict[str, Bbox]) -> list[tuple[str, str]]:
    return [(a, b) for a, b in itertools.combinations(words, 2) if words[a].overlaps(words[b])]


def is_within(inner: Bbox, outer: Bbox) -> bool:
    return bool(
        inner.x0 >= outer.x0 - 0.5
        and inner.x1 <= outer.x1 + 0.5
        and inner.y0 >= outer.y0 - 0.5
        and inner.y1 <= outer.y1 + 0.5
    )


@pytest.mark.parametrize("is_narrow", [False, True])
def test_labels_of_curves_keep_apart_in_order_and_on_the_page(is_narrow: bool) -> None:
    figure = curves_figure(nine_curves(), "accuracy", "Nine samplers end within a point of one another", "A note.")
    words, panel, page = boxes(narrow(figure) if is_narrow else figure)
    assert len(words) == 9
    assert overlapping(words) == []
    assert all(is_within(box, page) and box.x0 > panel.x1 for box in words.values())
    from_the_top = sorted(words, key=lambda name: -words[name].y0)
    assert [name.rpartition(" ")[2] for name in from_the_top] == list(SAMPLERS)


@pytest.mark.parametrize("is_narrow", [False, True])
@pytest.mark.parametrize("against", ["epsilon", "paid"])
def test_labels_of_points_keep_apart_and_inside(against: str, is_narrow: bool) -> None:
    figure = tradeoff_figure(nine_points("hajek", "precision", "paper"), against, "A finding", "A note.")
    words, panel, _ = boxes(narrow(figure) if is_narrow else figure)
    assert set(words) == set(SAMPLERS)
    assert overlapping(words) == []
    assert all(is_within(box, panel) for box in words.values())


@pytest.mark.parametrize("is_narrow", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("against", ["epsilon", pytest.param("paid", marks=pytest.mark.slow)])
def test_a_crowded_corner_is_enlarged_and_its_labels_are_read(against: str, is_narrow: bool) -> None:
    figure = tradeoff_figure(a_corner(), against, "A finding", "A note.")
    if is_narrow:
        picture_of(figure)
    for panel, names in enumerate(({"▲\N{NO-BREAK SPACE}precision, selfish clients"}, set(SAMPLERS[:8]))):
        words, frame, _ = boxes(figure, panel)
        assert set(words) == names
        assert overlapping(words) == []
        assert all(is_within(box, frame) for box in words.values())
    overview, enlarged = figure.axes
    crowd = enlarged.transData.transform(
        [(point.epsilon_median if against == "epsilon" else point.paid, point.accuracy_mean) for point in a_corner()]
    )[:16]
    # The crowd has the panel to itself, and the frame about it in the overview is this panel.
    assert np.all(np.ptp(crowd, axis=0) > np.array([0.7, 0.35]) * enlarged.bbox.size)
    (drawn,) = overview.patches
    assert (drawn.get_x(), drawn.get_y()) == (enlarged.get_xlim()[0], enlarged.get_ylim()[0])
    assert is_within(drawn.get_window_extent(), overview.get_window_extent())


def test_no_marker_of_the_enlarged_corner_lies_under_a_name() -> None:
    figure = narrow(tradeoff_figure(a_corner(), "epsilon", "A finding"))
    words, _, _ = boxes(figure, 1)
    markers = figure.axes[1].transData.transform([(one.epsilon_median, one.accuracy_mean) for one in a_corner()[:16]])
    assert [name for name, box in words.items() for marker in markers if box.contains(*marker)] == []


def test_what_is_not_crowded_is_drawn_once() -> None:
    apart = [TradeOff(name, "r", 1.0 + k, 1.0, 0.1 * k, 0.01) for k, name in enumerate(SAMPLERS[:2])]
    assert len(tradeoff_figure(apart, "epsilon", "A finding").axes) == 1


def test_labels_keep_apart_even_where_all_points_are_one() -> None:
    points = [TradeOff(name, "hajek", 1.0, 1.0, 0.5, NAN) for name in SAMPLERS]
    words, panel, _ = boxes(narrow(tradeoff_figure(points, "epsilon", "A finding")))
    assert overlapping(words) == []
    assert all(is_within(box, panel) for box in words.values())


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(0.0, 300.0), st.floats(0.0, 200.0)), min_size=1, max_size=9))
def test_places_are_clear_inside_and_always_the_same(anchors: list[tuple[float, float]]) -> None:
    points, frame = np.array(anchors), np.array([0.0, 0.0, 300.0, 200.0])
    sizes = np.tile([40.0, 10.0], (len(anchors), 1))
    bar = np.array([1.0, 30.0])
    solid, thin = np.hstack((points - 4.0, points + 4.0)), np.hstack((points - bar, points + bar))
    found = place(points, sizes, frame, solid=solid, thin=thin)
    assert np.array_equal(found, place(points, sizes, frame, solid=solid, thin=thin))
    placed = np.hstack((found - 0.5 * sizes, found + 0.5 * sizes))
    assert np.all(placed[:, :2] >= -1e-9)
    assert np.all(placed[:, 2:] <= frame[2:] + 1e-9)
    for one, other in itertools.combinations(placed, 2):
        assert np.any(np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2]) <= 1e-9)


def test_a_label_stands_off_a_marker_and_rather_crosses_a_thin_line_than_goes_far() -> None:
    frame, size = np.array([0.0, 0.0, 200.0, 100.0]), np.array([[40.0, 10.0]])
    point, box, none = np.array([[100.0, 50.0]]), np.array([[110.0, 0.0, 113.0, 100.0]]), np.empty((0, 4))
    assert place(point, size, frame, solid=none, thin=none)[0, 0] > 100.0  # right of it, where nothing is
    assert place(point, size, frame, solid=box, thin=none)[0, 0] < 100.0
    hemmed_in = np.array([[x, 0.0, x + 3.0, 100.0] for x in (70.0, 110.0)])
    near = place(point, size, frame, solid=none, thin=hemmed_in)
    assert np.hypot(*(near - point)[0]) < 40.0


def test_curves_are_the_means_and_bands_one_standard_deviation() -> None:
    (axes,) = curves_figure([curve("fedpcs", 0.8, 0.05)], "accuracy", "A finding").axes
    (line,) = axes.lines
    assert np.array_equal(line.get_xydata(), np.column_stack((ROUNDS, curve("fedpcs", 0.8).mean)))
    band = axes.collections[0].get_paths()[0].vertices
    at_first = band[band[:, 0] == ROUNDS[0], 1]
    assert (at_first.min(), at_first.max()) == pytest.approx((line.get_ydata()[0] - 0.05, line.get_ydata()[0] + 0.05))
    assert axes.get_ylim()[0] < band[:, 1].min() < band[:, 1].max() < axes.get_ylim()[1]


def test_curves_begin_where_the_first_round_was_evaluated_and_bands_of_few_are_seen() -> None:
    (axes,) = curves_figure([curve("fedpcs", 0.8), curve("random", 0.7)], "accuracy", "A finding").axes
    left, right = axes.get_xlim()
    assert 0.0 < ROUNDS[0] - left < 0.05 * (right - left)
    rival = axes.collections[1]
    assert rival.get_facecolor()[0, 3] > 0.1
    assert rival.get_linewidth()[0] > 0.0


def test_an_accuracy_s_band_ends_at_zero() -> None:
    (axes,) = curves_figure([curve("fedpcs", 0.8, 0.5)], "accuracy", "A finding").axes
    assert axes.get_ylim()[0] > -0.1


def test_every_client_is_in_the_figure_of_what_was_spent() -> None:
    spent = {"fedpcs": np.array([3.0, 0.0, 1.0, 2.0]), "random": np.array([5.0, 4.0, 0.0, 0.0])}
    figure = spent_figure(spent, "A note.")
    assert "ε = 5.00; 25 % of fedpcs's spend nothing" in figure.get_suptitle().replace("\n", " ").replace("\xa0", " ")
    ours, theirs = figure.axes[0].lines
    assert ours.get_xydata().tolist() == [[0.25, 0.0], [0.5, 1.0], [0.75, 2.0], [1.0, 3.0]]
    assert theirs.get_ydata().tolist() == [0.0, 0.0, 4.0, 5.0]
    words, panel, page = boxes(narrow(figure))
    assert overlapping(words) == []
    assert all(is_within(box, page) and box.x0 > panel.x1 for box in words.values())
    many = spent_figure({"fedpcs": np.arange(5_000.0)}).axes[0].lines[0]
    assert (many.get_xydata()[-1].tolist(), len(many.get_xydata())) == ([1.0, 4_999.0], 400)
    with pytest.raises(NothingToDraw):
        spent_figure({"fedpcs": np.zeros(3)})


def test_samplers_whose_clients_spend_far_less_are_seen_beside_the_others() -> None:
    spent = {"fedpcs": np.array([30.0, 0.0, 10.0, 90.0]), "random": np.array([0.5, 0.6, 0.0, 0.9])}
    figure = spent_figure(spent)
    (axes,) = figure.axes
    assert (axes.get_yscale(), "log scale" in axes.get_ylabel()) == ("log", True)
    assert [line.get_ydata()[1:].tolist() for line in axes.lines] == [[10.0, 30.0, 90.0], [0.5, 0.6, 0.9]]
    assert all(np.isnan(line.get_ydata()[0]) for line in axes.lines)
    low, high = axes.get_ylim()
    assert 0.0 < low < 0.5
    assert high > 90.0
    words, _, page = boxes(narrow(figure))
    assert overlapping(words) == []
    assert all(is_within(box, page) for box in words.values())
    idle = spent_figure({"fedpcs": np.array([9.0, 0.0]), "random": np.zeros(2)}).axes[0]
    assert idle.get_yscale() == "linear"


def test_rounds_not_evaluated_are_not_drawn_and_one_seed_has_no_band() -> None:
    mean = np.where(ROUNDS % 4 == 1, 0.5, NAN)
    (axes,) = curves_figure([Curve("fedpcs", ROUNDS, mean, np.full(ROUNDS.size, NAN))], "loss", "A finding").axes
    assert np.array_equal(axes.lines[0].get_xdata(), ROUNDS[ROUNDS % 4 == 1])
    assert np.isfinite(axes.lines[0].get_ydata()).all()


def test_nine_samplers_have_nine_looks_and_fedpcs_the_strong_one() -> None:
    found = pens(SAMPLERS)
    assert len({pen.colour for pen in found.values()}) == 9
    assert found["fedpcs"].colour == style.BLUE
    assert all(found["fedpcs"].width > pen.width for name, pen in found.items() if name != "fedpcs")
    assert [name for name, pen in found.items() if pen.colour == style.BLUE] == ["fedpcs"]


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_samplers_are_told_apart_by_eyes_blind_to_red_or_green_too(is_dark: bool) -> None:
    looks = [(DARK[p.colour.lower()] if is_dark else p.colour, p.is_hollow) for p in pens(SAMPLERS).values()]
    for (one, is_ring), (other, is_other_ring) in itertools.combinations(looks, 2):
        assert np.linalg.norm(seen_as(one) - seen_as(other)) > 20.0
        if is_ring == is_other_ring:
            for blindness in BLINDNESS:
                assert np.linalg.norm(seen_as(one, blindness) - seen_as(other, blindness)) > 12.0


def test_a_sampler_looks_the_same_whoever_stands_beside_it() -> None:
    assert pens(["delta"])["delta"] == pens(["oort", "other", "delta"])["delta"]
    strangers = pens([f"stranger {k}" for k in range(13)])
    assert len({(pen.colour, pen.stroke) for pen in strangers.values()}) == 13


def test_names_are_cut_only_where_they_still_differ() -> None:
    (pen,) = pens(["a sampler that has a rather long name"]).values()
    assert pen.name == "a sampler that has a ra…"
    alike = [f"a sampler that has a rather long name {k}" for k in range(2)]
    assert [pen.name for pen in pens(alike).values()] == alike


@pytest.mark.parametrize(("most", "scale"), [(10.0, "linear"), (10.1, "log")])
def test_costs_are_on_a_log_scale_where_their_range_exceeds_ten(most: float, scale: str) -> None:
    points = [TradeOff("a", "r", 1.0, 1.0, 0.5, 0.1), TradeOff("b", "r", most, 1.0, 0.6, 0.1)]
    assert tradeoff_figure(points, "epsilon", "A finding").axes[0].get_xscale() == scale


def test_rules_have_shapes_and_a_key() -> None:
    (axes,) = tradeoff_figure(nine_points("hajek", "precision"), "epsilon", "A finding").axes
    assert axes.get_title(loc="left").replace("\N{NO-BREAK SPACE}", " ") == "● hajek   ■ precision"
    drawn = [bar.lines[0] for bar in axes.containers]
    assert {line.get_marker() for line in drawn} == {"o", "s"}
    assert [float(line.get_ydata()[0]) for line in drawn] == [point.accuracy_mean for point in nine_points("a", "b")]


def test_what_has_no_finite_cost_is_named_and_not_drawn() -> None:
    points = [TradeOff("open", "r", math.inf, 1.0, 0.9, 0.1), TradeOff("b", "r", 2.0, 1.0, 0.6, 0.1)]
    figure = tradeoff_figure(points, "epsilon", "A finding", "A note.")
    note = figure.get_supxlabel().replace("\n", " ")
    assert note == "A note. Not drawn, having no finite cost or accuracy: open (r)."
    assert len(figure.axes[0].containers) == 1


def test_bars_show_mean_and_interval_and_zero() -> None:
    bars = [Bar("gain", 0.02, 0.01, 0.03), Bar("unclear", 0.0, -0.01, 0.01), Bar("one seed", 0.01, NAN, NAN)]
    figure = bars_figure([*bars, Bar("loss", -0.02, -0.03, -0.01)], "A finding")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == [
        "+2.00 [+1.00, +3.00]",
        "+0.00 [−1.00, +1.00]",
        "+1.00",
        "−2.00 [−3.00, −1.00]",
    ]
    intervals = [tuple(line.get_xdata()) for line in axes.lines if line.get_linewidth() == 2.4]
    assert np.allclose(intervals, [(1.0, 3.0), (-1.0, 1.0), (-3.0, -1.0)])
    zero = axes.lines[-1]
    assert list(zero.get_xdata()) == [0.0, 0.0]
    colours = [text.get_color() for text in axes.texts]
    assert colours[0] == style.BLUE
    assert colours[1] == colours[2] == style.INK
    assert colours[3] not in (style.BLUE, style.INK)


def test_long_names_of_bars_stay_on_the_page() -> None:
    bars = [Bar(f"without the {k}th precision-weighted aggregation rule", 0.01 * k, 0.0, 0.02 * k) for k in range(1, 7)]
    figure = narrow(bars_figure(bars, "A finding"))
    words, _, page = boxes(figure)
    names = {label.get_text(): label.get_window_extent() for label in figure.axes[0].get_yticklabels()}
    assert len(names) == 6
    assert overlapping(names) == []
    assert all(is_within(box, page) for box in (*names.values(), *words.values()))


def test_nothing_measured_is_nothing_to_draw() -> None:
    empty = np.full(ROUNDS.size, NAN)
    for draw in (
        lambda: curves_figure([], "accuracy", "A finding"),
        lambda: curves_figure([Curve("a", ROUNDS, empty, empty)], "loss", "A finding"),
        lambda: tradeoff_figure([TradeOff("a", "r", math.inf, 0.0, 0.5, 0.1)], "epsilon", "A finding"),
        lambda: bars_figure([Bar("a", NAN, NAN, NAN)], "A finding"),
    ):
        with pytest.raises(NothingToDraw):
            draw()


def test_a_curve_of_unequal_lengths_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'fedpcs' needs a mean and a std for each of its rounds"):
        Curve("fedpcs", ROUNDS, ROUNDS[1:], ROUNDS)


def test_names_are_not_read_as_mathematics() -> None:
    points = [TradeOff("$a_1$", "$r$", 1.0, 1.0, 0.5, 0.1), TradeOff("b", "$s$", 2.0, 1.0, 0.6, 0.1)]
    for figure in (
        tradeoff_figure(points, "epsilon", "A finding"),
        curves_figure([curve("$x", 0.5), curve("y$", 0.6)], "loss", "A finding"),
        bars_figure([Bar("$x^$", 1.0, 0.0, 2.0)], "A finding"),
    ):
        as_svg(figure)


def test_figures_of_sweeps_can_be_turned_dark_and_are_the_same_bytes_twice() -> None:
    def figures() -> list[Figure]:
        return [
            curves_figure(nine_curves(), "accuracy", "A finding"),
            tradeoff_figure(nine_points("hajek", "precision"), "epsilon", "A finding"),
            bars_figure([Bar("a", 0.1, 0.0, 0.2), Bar("b", -0.1, -0.2, -0.01)], "A finding"),
        ]

    for first, second in zip(map(as_svg, figures()), map(as_svg, figures()), strict=True):
        assert first == second
        assert as_dark(first) != first
