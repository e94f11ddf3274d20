"""The one palette: a colour and a stroke for every sampler, the same in every figure and table of every page.

FedPCS is strong blue, every other sampler has a look of its own. "Budget-blind" stands for all baselines in the game's
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

_SOLID = "solid"
_CSS = {_SOLID: "solid", style.DASHES: "dashed", style.DOTS: "dotted"}
_MOST_LETTERS = 32


@dataclass(frozen=True)
class LineStyle:
    """How one sampler is drawn, in every figure.

    Attributes:
        label: Its name: short, and safe from being read as mathematics.
        colour: Of lines and markers.
        stroke: Of lines, as matplotlib has it.
        width: Of lines, in points.
    """

    label: str
    colour: str
    stroke: Any
    width: float

    @property
    def css(self) -> str:
        """The stroke as CSS has it."""
        return _CSS[self.stroke]

    @property
    def is_hollow(self) -> bool:
        """Whether markers are rings: those whose lines are not solid."""
        return bool(self.stroke != _SOLID)

    def beside(self, suffix: str, stroke: Any) -> LineStyle:
        """Return a thinner style of the same colour, for another number of the same sampler."""
        return LineStyle(f"{self.label}, {suffix}", self.colour, stroke, 1.2)

    @property
    def line(self) -> dict[str, Any]:
        """What `Axes.plot` is to be told."""
        return {"color": self.colour, "linestyle": self.stroke, "linewidth": self.width, "label": self.label}


_FEDPCS: tuple[str, Any] = (style.BLUE, _SOLID)
# Nine colours; those that an eye blind to red or green takes for each other, such as grey, green and purple, differ in
# stroke.
_OTHERS: dict[str, tuple[str, Any]] = {
    "random": (style.GREY, _SOLID),
    "budget-blind": (style.GREY, _SOLID),
    "power-of-choice": (DARK_VERMILION, _SOLID),
    "fed-cbs": (CRIMSON, _SOLID),
    "clustered": (style.INK, _SOLID),
    "oort": (DARK_GREEN, style.DASHES),
    "optimal": (PURPLE, style.DASHES),
    "aocs": (style.DARK_ORANGE, style.DASHES),
    "delta": (VIOLET, style.DASHES),
}
_OWN = {"fedpcs": _FEDPCS, **_OTHERS}
# For names without a look of their own; strokes that no built-in sampler has come first.
_SPARE: tuple[tuple[str, Any], ...] = (
    *((colour, style.DOTS) for colour in (DARK_VERMILION, DARK_GREEN, PURPLE, style.DARK_ORANGE, style.GREY)),
    *dict.fromkeys(_OTHERS.values()),
)


def line_styles(names: Iterable[str]) -> dict[str, LineStyle]:
    """Return a style for every name: a sampler's own where the name begins with it, else one that is free.

    Example:
        >>> [(one.label, one.colour, one.is_hollow) for one in line_styles(["delta", "fedpcs"]).values()]
        [('delta', '#5A3FC0', True), ('fedpcs', '#0072B2', False)]
    """
    names = list(dict.fromkeys(names))
    taken: dict[str, tuple[str, Any]] = {}
    for name in names:
        look = _OWN.get(_first_word(name))
        if look is not None and look not in taken.values():
            taken[name] = look
    for name in names:
        if name not in taken:
            free = [look for look in _SPARE if look not in taken.values()]
            taken[name] = free[0] if free else _SPARE[len(taken) % len(_SPARE)]
    cut = [short(name) for name in names]
    labels = cut if len(set(cut)) == len(cut) else [short(name, most_letters=80) for name in names]
    return {
        name: LineStyle(label, *taken[name], 2.6 if taken[name] == _FEDPCS else 1.4)
        for name, label in zip(names, labels, strict=True)
    }


def _first_word(name: str) -> str:
    words = name.lower().replace(",", " ").split()
    return words[0] if words else ""


def short(name: str, *, most_letters: int = _MOST_LETTERS) -> str:
    r"""Return a name that fits beside a figure and is not read as mathematics.

    Example:
        >>> short("mypackage.samplers:Cheap$"), short("a name that goes on and on and on")
        ('Cheap\\$', 'a name that goes on and on and…')
    """
    last = name.rpartition(":")[2] or name
    cut = last if len(last) <= most_letters else last[: most_letters - 1].rstrip() + "…"
    return cut.replace("$", r"\$")
