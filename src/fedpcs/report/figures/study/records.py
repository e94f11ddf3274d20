"""Which client holds which classes, in the first seed's partition (paper, Fig. 2)."""

import numpy as np
from matplotlib.figure import Figure

from fedpcs.report.figures.partition import partition_figure
from fedpcs.report.page import NothingToDraw
from fedpcs.studies.run_files import RunFiles
from fedpcs.trial.config import DataConfig

TOPIC, ORDER = "Who holds what", 40


def draw(run: RunFiles) -> Figure:
    """Draw records by client and class for the first seed whose partition is known."""
    results = [trial.result for sampler in run.samplers for trial in sampler.trials if trial.result is not None]
    known = [one for one in results if one.get("label_counts") is not None]
    if not known:
        raise NothingToDraw(
            "Who holds which classes is not in the results: no trial is done, or there are too many clients to keep it."
        )
    first = min(known, key=lambda one: run.config.seeds.index(one["seed"]))
    text = f"{split_text(run.config.data)}, seed {first['seed']}"
    return partition_figure(np.array(first["label_counts"]), text, with_numbers=False)


def split_text(data: DataConfig) -> str:
    """Return what was split and how."""
    how = {
        "iid": "IID",
        "dirichlet": f"Dirichlet({data.alpha:g})",
        "shards": f"{data.shards_per_client} shards each",
        "quantity": f"sizes Dirichlet({data.alpha:g})",
    }[data.partition]
    return f"{data.name}, {how}"
