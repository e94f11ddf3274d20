"""The one palette: a colour and a stroke for every sampler, the same in every figure of every page.

FedPCS is strong blue, every other sampler has a look of its own. “Budget-blind” stands for all baselines in the game's
figures, and looks as random sampling does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fedpcs.report import style

# Okabe and Ito's, those that are too pale for letters made darker: 4.5 to 1 on white, or more.
DARK_GREEN, DARK_VERMILION, PURPLE = "#007A59", "#B84F00", "#A3527F"
# Two more, for nine samplers to have nine colours.
CRIMSON, VIOLET = "#9B1C31", "#5A3FC0"

_SOLID, _DASHED, _DOTTED = "solid", (0, (5, 2)), (0, (1, 1.4))
_SIGNS = {_SOLID: "", _DASHED: "╌ ", _DOTTED: "┈ "}
_MOST_LETTERS = 24


@dataclass(frozen=True)
class Pen:
    """How one sampler is drawn, in every figure.

    Attributes:
        name: Its label: short, and safe from being read as mathematics.
        sign: Letters that look like its stroke, to stand before the label of a line; none where it is solid.
        colour: Of lines, markers and label.
        stroke: Of lines.
        width: Of lines, in points.
        is_hollow: Whether markers are rings: those whose lines are not solid.
    """

    name: str
    sign: str
    colour: str
    stroke: Any
    width: float
    is_hollow: bool

    @property
    def label(self) -> str:
        """What stands where its line ends."""
        return self.sign + self.name


_FEDPCS: tuple[str, Any] = (style.BLUE, _SOLID)
# Nine colours; those that an eye blind to red or green takes for each other, such as grey, green and purple, differ in
# stroke.
_OTHERS: dict[str, tuple[str, Any]] = {
    "random": (style.GREY, _SOLID),
    "budget-blind": (style.GREY, _SOLID),
    "power-of-choice": (DARK_VERMILION, _SOLID),
    "fed-cbs": (CRIMSON, _SOLID),
    "clustered": (style.INK, _SOLID),
    "oort": (DARK_GREEN, _DASHED),
    "optimal": (PURPLE, _DASHED),
    "aocs": (style.DARK_ORANGE, _DASHED),
    "delta": (VIOLET, _DASHED),
}
# For names without a look of their own; strokes that no built-in sampler has come first.
_SPARE: tuple[tuple[str, Any], ...] = (
    *((colour, _DOTTED) for colour in (DARK_VERMILION, DARK_GREEN, PURPLE, style.DARK_ORANGE, style.GREY)),
    *dict.fromkeys(_OTHERS.values()),
)


def pens(labels: Iterable[str]) -> dict[str, Pen]:
    """Return a pen for every label: a sampler's own where the label begins with its name, else one that is free.

    Example:
        >>> [(pen.name, pen.colour, pen.is_hollow) for pen in pens(["delta", "fedpcs"]).values()]
        [('delta', '#5A3FC0', True), ('fedpcs', '#0072B2', False)]
    """
    own = {"fedpcs": _FEDPCS, **_OTHERS}
    names = list(dict.fromkeys(labels))
    taken: dict[str, tuple[str, Any]] = {}
    for name in names:
        look = own.get(_first_word(name))
        if look is not None and look not in taken.values():
            taken[name] = look
    for name in names:
        if name not in taken:
            free = [look for look in _SPARE if look not in taken.values()]
            taken[name] = free[0] if free else _SPARE[len(taken) % len(_SPARE)]
    cut = [short(name) for name in names]
    shown = cut if len(set(cut)) == len(cut) else [short(name, most_letters=80) for name in names]
    return {name: _pen(words, *taken[name]) for name, words in zip(names, shown, strict=True)}


def _first_word(label: str) -> str:
    words = label.lower().replace(",", " ").split()
    return words[0] if words else ""


def _pen(name: str, colour: str, stroke: Any) -> Pen:
    width = 2.6 if (colour, stroke) == _FEDPCS else 1.3
    return Pen(name, _SIGNS[stroke], colour, stroke, width, stroke != _SOLID)


def short(label: str, *, most_letters: int = _MOST_LETTERS) -> str:
    r"""Return a label that fits beside a figure and is not read as mathematics.

    Example:
        >>> short("mypackage.samplers:Cheap$"), short("a name that goes on and on and on")
        ('Cheap\\$', 'a name that goes on and…')
    """
    last = label.rpartition(":")[2] or label
    cut = last if len(last) <= most_letters else last[: most_letters - 1].rstrip() + "…"
    return cut.replace("$", r"\$")
