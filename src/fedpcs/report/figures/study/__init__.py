"""The figures that every study's page has: each module here is one, and is found by being here.

A module has `TOPIC`, what the figure shows; `ORDER`, its place among the others; and `draw(group)`, which returns a
figure of all samplers in one setting, or raises `NothingToDraw` with a sentence that says why there is none.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

from fedpcs.report.page import Drawing
from fedpcs.studies.results import Group


def figure_modules() -> list[ModuleType]:
    """Return all figures in the order of the page."""
    found = [importlib.import_module(f"{__name__}.{one.name}") for one in pkgutil.iter_modules(__path__)]
    return sorted(found, key=lambda module: (module.ORDER, module.TOPIC))


def drawings_of(group: Group, place: str = "") -> Iterator[Drawing]:
    """Give all figures of one setting, still to be drawn."""
    for module in figure_modules():
        yield Drawing(module.TOPIC, functools.partial(module.draw, group), place)
