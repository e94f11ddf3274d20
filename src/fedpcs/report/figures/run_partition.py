"""Which client holds which classes, in the first seed's partition (paper, Fig. 2)."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from fedpcs.report.figures.partition import partition_figure
from fedpcs.report.svg import NothingToDraw
from fedpcs.studies.run_files import RunFiles


def heat_map(run: RunFiles) -> Figure:
    """Draw records by client and class for the first seed whose partition is known."""
    for index, seed in enumerate(run.config.seeds):
        for sampler in run.samplers:
            result = sampler.trials[index].result
            if result is not None and result.get("label_counts") is not None:
                figure = partition_figure(np.array(result["label_counts"]), f"{split_words(run)}, seed {seed}")
                # A report's figure is narrower than one of its own: numbers in cells would touch.
                for text in list(figure.axes[0].texts):
                    text.remove()
                return figure
    raise NothingToDraw(
        "Who holds which classes is not in the results: no trial is done, or there are too many clients to keep it."
    )


def split_words(run: RunFiles) -> str:
    """Return what was split and how."""
    data = run.config.data
    how = {
        "iid": "IID",
        "dirichlet": f"Dirichlet({data.alpha:g})",
        "shards": f"{data.shards_per_client} shards each",
        "quantity": f"sizes Dirichlet({data.alpha:g})",
    }[data.partition]
    return f"{data.name}, {how}"
