"""Labels that do not cover one another: placed as a figure is drawn, when its size is known.

A figure is drawn twice, wide for a file and narrow for a page. What fits in one does not in the other, so places
are found in pixels, at the last moment; the same figure at the same size has them in the same places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.text import Annotation, Text

from fedpcs._validate import FloatArray
from fedpcs.report.style import spread_out

_NUM_ANGLES = 24
_RINGS_POINTS = (7.0, 10.0, 14.0, 20.0, 28.0, 38.0, 50.0, 64.0, 80.0, 100.0)
_NEAR_POINTS = 10.0
_MARGIN = np.array([4.0, 4.0, 0.0, 0.0])
_LETTERS_POINTS = 8.5
# Where labels of lines begin, as a share of the panel's width.
_BESIDE = 1.05


@dataclass(frozen=True)
class PointLabel:
    """Words for a point.

    Attributes:
        text: One line of words.
        x: Of the point, in data units.
        y: Of the point, in data units.
        colour: The point's.
    """

    text: str
    x: float
    y: float
    colour: str


class _WhenDrawn(Artist):
    """Draws nothing: moves labels before they are drawn."""

    def __init__(self, move: Callable[[RendererBase], None]) -> None:
        super().__init__()
        self._move = move
        self.set_zorder(-10.0)
        self.set_in_layout(False)

    def draw(self, renderer: RendererBase) -> None:
        """Move the labels."""
        self._move(renderer)


def label_line_ends(axes: Axes, labels: Sequence[PointLabel]) -> None:
    """Write labels right of the panel, each as near its line's end as its neighbours allow, and tied to it."""
    ordered = sorted(labels, key=lambda label: label.y)
    texts = [_tied(axes, label, (0.0, 0.5)) for label in ordered]
    for text, label in zip(texts, ordered, strict=True):
        text.set(ha="left", va="center", anncoords=axes.get_yaxis_transform())
        text.xyann = (_BESIDE, label.y)

    def move(renderer: RendererBase) -> None:
        frame = axes.get_window_extent(renderer)
        ends = axes.transData.transform([(label.x, label.y) for label in ordered])
        gap = 1.08 * max(Text.get_window_extent(text, renderer).height for text in texts)
        places = spread_out(ends[:, 1], gap, frame.y0, frame.y1)
        heights = axes.transData.inverted().transform(np.column_stack((ends[:, 0], places)))[:, 1]
        for text, height, end in zip(texts, heights, ends[:, 0], strict=True):
            text.xyann = (_BESIDE, float(height))
            # The tie of a line that ends early must not be taken for the line.
            if text.arrow_patch is not None and end < frame.x1 - 0.1 * frame.width:
                text.arrow_patch.set_linestyle(":")

    axes.add_artist(_WhenDrawn(move))


def label_points(
    axes: Axes, labels: Sequence[PointLabel], obstacles: Callable[[float], tuple[FloatArray, FloatArray]]
) -> None:
    """Write labels beside their points, inside the panel, clear of one another and of what is drawn.

    Args:
        axes: Where the points are.
        labels: One for each point that has one.
        obstacles: Given how many pixels a point has, returns two times (boxes, 4) pixels x0, y0, x1, y1: what no label
            should cover, and thin lines that one may cross where there is no room.
    """
    texts = [_tied(axes, label, (0.5, 0.5)) for label in labels]
    for text in texts:
        text.set(ha="center", va="center", in_layout=False, zorder=4.0)
        text.set_bbox({"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.8})

    def move(renderer: RendererBase) -> None:
        frame, point = axes.get_window_extent(renderer), _pixels(renderer)
        sizes = [Text.get_window_extent(text, renderer) for text in texts]
        anchors = axes.transData.transform([(label.x, label.y) for label in labels])
        solid, thin = obstacles(point)
        centres = place(
            anchors / point,
            np.array([(size.width, size.height) for size in sizes]) / point + 1.0,
            np.array(frame.extents) / point + _MARGIN,
            solid=solid / point,
            thin=thin / point,
        )
        for text, size, offset in zip(texts, sizes, centres - anchors / point, strict=True):
            text.xyann = (float(offset[0]), float(offset[1]))
            gap_x = abs(offset[0]) - 0.5 * size.width / point
            gap_y = abs(offset[1]) - 0.5 * size.height / point
            if text.arrow_patch is not None:
                text.arrow_patch.set_visible(math.hypot(max(gap_x, 0.0), max(gap_y, 0.0)) > _NEAR_POINTS + 2.0)

    axes.add_artist(_WhenDrawn(move))


def _pixels(renderer: RendererBase) -> float:
    """Return how many pixels a point has."""
    return float(np.asarray(renderer.points_to_pixels(1.0), dtype=np.float64))


def _tied(axes: Axes, label: PointLabel, held: tuple[float, float]) -> Annotation:
    """Return a label with a line to its point, held where `held` says: (0, 0.5) is the middle of its left side."""
    tie = {"arrowstyle": "-", "color": label.colour, "linewidth": 0.7, "shrinkA": 1.0, "shrinkB": 3.0, "relpos": held}
    return axes.annotate(
        label.text,
        (label.x, label.y),
        (0.0, 0.0),
        textcoords="offset points",
        fontsize=_LETTERS_POINTS,
        color=label.colour,
        annotation_clip=False,
        arrowprops=tie,
    )


def place(
    anchors: FloatArray, sizes: FloatArray, frame: FloatArray, *, solid: FloatArray, thin: FloatArray
) -> FloatArray:
    """Return centres for labels: the crowded first, each on the nearest ring round its point where it is clear.

    Args:
        anchors: (labels, 2) their points.
        sizes: (labels, 2) width and height.
        frame: (4,) x0, y0, x1, y1 of what labels must stay within.
        solid: (boxes, 4) what no label should cover.
        thin: (boxes, 4) lines that a label may cross rather than stand far away.

    Guarantees:
        Equal input gives equal places. A label covers another only if none of its places is clear.

    Example:
        >>> none, frame = np.empty((0, 4)), np.array([-50.0, -50.0, 50.0, 50.0])
        >>> place(np.zeros((1, 2)), np.array([[20.0, 10.0]]), frame, solid=none, thin=none)
        array([[17.,  0.]])
    """
    centres = anchors.astype(np.float64)
    placed = np.empty((0, 4))
    for k in _crowded_first(anchors):
        options, rings = _options(anchors[k], sizes[k])
        boxes = np.hstack((options - 0.5 * sizes[k], options + 0.5 * sizes[k]))
        outside = np.clip(frame[:2] - boxes[:, :2], 0.0, None).sum(axis=1)
        outside += np.clip(boxes[:, 2:] - frame[2:], 0.0, None).sum(axis=1)
        # Being read comes before being near: a covered letter weighs more than the outermost ring.
        cost = rings + 1000.0 * outside + 1e6 * (outside > 0.0) + 1000.0 * _overlap(boxes, placed)
        cost += 10.0 * _overlap(boxes, solid) + 0.8 * _overlap(boxes, thin)
        best = int(np.argmin(cost))
        centres[k] = options[best]
        placed = np.vstack((placed, boxes[best]))
    return centres


def _crowded_first(anchors: FloatArray) -> list[int]:
    distance = np.hypot(*(anchors[:, None] - anchors[None]).transpose(2, 0, 1))
    crowding = (1.0 / (1.0 + distance)).sum(axis=1).round(9)
    return sorted(range(len(anchors)), key=lambda k: (-crowding[k], k))


def _options(anchor: FloatArray, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return centres round a point, right of it first, and how far each leaves its label from it."""
    angle = 2.0 * np.pi * np.arange(_NUM_ANGLES) / _NUM_ANGLES
    ways = np.column_stack((np.cos(angle), np.sin(angle)))
    order = np.lexsort((np.arange(_NUM_ANGLES), -np.abs(ways[:, 0]).round(6)))
    ways = ways[order]
    # The label's box touches the ring where the way from the point to its centre crosses its edge.
    reach = np.min(0.5 * size / np.maximum(np.abs(ways), 1e-9), axis=1)
    rings = np.repeat(_RINGS_POINTS, _NUM_ANGLES)
    steps = rings + np.tile(reach, len(_RINGS_POINTS))
    return anchor + steps[:, None] * np.tile(ways, (len(_RINGS_POINTS), 1)), rings


def _overlap(boxes: FloatArray, others: FloatArray) -> FloatArray:
    """Return how much of each box others cover, in all."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    covered: FloatArray = np.clip(high - low, 0.0, None).prod(axis=2).sum(axis=1)
    return covered
