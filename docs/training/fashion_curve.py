"""Draw the accuracy of noise-free federated averaging on Fashion-MNIST from finished runs.

fedpcs run fashion-mnist-noise-free --data-dir DATA --out iid
fedpcs run fashion-mnist-noise-free --data-dir DATA --out skewed --set data.partition=dirichlet
python docs/training/fashion_curve.py iid skewed --out docs/training/fashion_curve.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.trial.run_store import open_run

_COLOURS = (style.BLUE, style.VERMILION)
_TARGET = 0.87


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".png"))
    options = parser.parse_args()
    curves = {}
    for folder in options.runs:
        store = open_run(folder)
        config = store.config()
        lines = store.trial(config.sampling.samplers[0], config.seeds[0]).rounds()
        words = "IID" if config.data.partition == "iid" else f"Dirichlet({config.data.alpha:g})"
        curves[words] = np.array([line["accuracy"] for line in lines])
    title = f"The paper's CNN on Fashion-MNIST. {'. '.join(_words(*curve) for curve in curves.items())}"
    note = "100 clients, 20 drawn a round, 5 local epochs, batch 32, rate 0.1, no noise. Test set of 10,000 images."
    figure, (panel,) = style.new_figure(title, note=note)
    for accuracy, colour in zip(curves.values(), _COLOURS, strict=False):
        panel.plot(100 * accuracy, color=colour, linewidth=2.0, marker=style.marker(accuracy.size))
    panel.axhline(100 * _TARGET, color=style.GREY, linestyle=style.DASHES, linewidth=1.0)
    style.span(panel, 100 * np.concatenate([*curves.values(), [_TARGET]]))
    style.round_axis(panel, max(accuracy.size for accuracy in curves.values()))
    panel.set_ylabel("test accuracy, %", color=style.INK)
    ends = [
        style.EndLabel(words, float(100 * accuracy[-1]), colour)
        for (words, accuracy), colour in zip(curves.items(), _COLOURS, strict=False)
    ]
    style.label_ends(panel, [*ends, style.EndLabel("87 %", 100 * _TARGET, style.GREY)])
    style.save(figure, options.out)
    print(options.out)


def _words(split: str, accuracy: FloatArray) -> str:
    passed = np.flatnonzero(accuracy >= _TARGET)
    when = f"87\N{NO-BREAK SPACE}% after {passed[0] + 1} rounds" if passed.size else "never 87\N{NO-BREAK SPACE}%"
    return f"{split}: {when}, {100 * accuracy[-1]:.1f}\N{NO-BREAK SPACE}% at the end"


if __name__ == "__main__":
    main()
