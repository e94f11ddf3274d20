"""Draw docs/sampling/rules.png: the error of every rule under every design, one panel for each noise and τ.

    python docs/sampling/rule_figure.py [--repetitions R] [--out FILE]

The default takes about four minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from rule_study import DESIGNS, NOISES, RATIOS, RULES, Errors, study

from fedpcs._validate import FloatArray
from fedpcs.report.style import BLUE, GREEN, GREY, INK, ORANGE, VERMILION, caption, new_figure

_LOOKS = {
    "horvitz-thompson": ("s", VERMILION),
    "the same, cap 3": ("D", ORANGE),
    "hajek": ("^", GREEN),
    "normalised": ("v", BLUE),
    "paper": ("x", GREY),
    "precision": ("o", INK),
    "by design": ("+", INK),
}


def make_figure(errors: Errors, num_repetitions: int) -> Figure:
    """Return the figure of a study."""
    figure, panels = new_figure(
        "Error of every rule of aggregation under every design",
        note=f"Mean of {num_repetitions:,} populations of 100 clients, budgets uniform in [0.01, 12]; error against "
        "the mean over all clients, whose squared norm is 0.5. Five designs draw by budget; “optimal” knows all norms; "
        "“by design” is a setting of “precision”.",
        height_inches=9.0,
        num_rows=len(NOISES),
        num_columns=len(RATIOS),
    )
    figure.set_layout_engine("constrained", rect=(0.0, 0.0, 1.0, 0.96))  # the legend goes above
    names = list(DESIGNS)
    for panel, (noise, ratio) in zip(panels, [(noise, ratio) for noise in NOISES for ratio in RATIOS], strict=True):
        table = np.array([errors[noise, ratio, name] for name in names])
        for column, rule in enumerate(RULES):
            shape, colour = _LOOKS[rule]
            panel.plot(table[:, column], names, shape, color=colour, markersize=5, label=rule, alpha=0.9)
        panel.set_xscale("log")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_xlim(*_limits(np.array([errors[noise, other, name] for other in RATIOS for name in names])))
        panel.invert_yaxis()
        panel.grid(axis="x", color="#ECECEC", linewidth=0.8)
        panel.tick_params(labelsize=8)
        if ratio != RATIOS[0]:
            panel.set_yticklabels([])
        caption(panel, f"{noise}, τ = {ratio:g}")
    for panel in panels[-len(RATIOS) :]:
        panel.set_xlabel("mean-squared error", fontsize=9, color=INK)
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="upper left",
        bbox_to_anchor=(0.002, 0.945),
        ncols=len(RULES),
        frameon=False,
        fontsize=9,
        handletextpad=0.1,
        columnspacing=1.2,
    )
    return figure


def _limits(errors: FloatArray) -> tuple[float, float]:
    """Return the decades around errors, so that the panels of a row compare."""
    low, high = np.log10(errors.min()), np.log10(errors.max())
    return float(10.0 ** (np.floor(2.0 * low - 0.1) / 2.0)), float(10.0 ** (np.ceil(2.0 * high + 0.1) / 2.0))


def main() -> None:
    """Run the study and draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=2_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("rules.png"))
    arguments = parser.parse_args()
    make_figure(study(arguments.repetitions), arguments.repetitions).savefig(arguments.out)
    print(arguments.out)


if __name__ == "__main__":
    main()
