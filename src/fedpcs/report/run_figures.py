"""The figures of a run's report, each on its own: one that cannot be drawn does not take the others with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from fedpcs.report.figures.budgets import budget_figure
from fedpcs.report.figures.curves import accuracy_figure, loss_figure
from fedpcs.report.figures.draws import draws_figure
from fedpcs.report.figures.noise import noise_figure
from fedpcs.report.figures.run_partition import heat_map
from fedpcs.report.figures.spent import epsilon_figure
from fedpcs.report.svg import NothingToDraw, Picture, picture_of
from fedpcs.studies.run_files import RunFiles

FIGURES: dict[str, Callable[[RunFiles], Figure]] = {
    "Accuracy over rounds": accuracy_figure,
    "Loss over rounds": loss_figure,
    "Privacy spent": epsilon_figure,
    "Who holds what": heat_map,
    "Budgets and rewards": budget_figure,
    "Noise and signal": noise_figure,
    "Who is drawn": draws_figure,
}


@dataclass(frozen=True)
class Shown:
    """A figure's place on the page: the picture, or a sentence that says why there is none."""

    topic: str
    picture: Picture | None
    instead: str


def draw_all(run: RunFiles) -> list[Shown]:
    """Draw every figure a run's files allow."""
    return [_shown(topic, draw, run) for topic, draw in FIGURES.items()]


def _shown(topic: str, draw: Callable[[RunFiles], Figure], run: RunFiles) -> Shown:
    try:
        return Shown(topic, picture_of(draw(run)), "")
    except NothingToDraw as reason:
        return Shown(topic, None, f"{reason}")
    except Exception as error:  # figures are for people; no mistake in one may cost the page
        return Shown(topic, None, f"This figure could not be drawn ({type(error).__name__}: {error}).")
