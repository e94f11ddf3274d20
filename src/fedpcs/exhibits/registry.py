"""Every exhibit by name. This module loads neither torch nor Matplotlib: a list of names should not wait for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fedpcs import _validate
from fedpcs.errors import InvalidInput
from fedpcs.learning.datasets.catalogue import DATASETS

Profile = Literal["quick", "paper"]  # for two cores, or the paper's sizes


@dataclass(frozen=True)
class Listed:
    """An exhibit in the list of them.

    Attributes:
        summary: What it shows, in a line.
        place: Where its declaration is, "module:NAME".
        quick: How long its quick profile took on two cores, after what, where trials are shared.
        made_of: Trials, which are kept and shared with others; games, or the data set itself, made anew each time.
        only_dataset: The one data set it is shown on, if it is one.
    """

    summary: str
    place: str
    quick: str
    made_of: Literal["data", "trials", "games"] = "trials"
    only_dataset: str | None = None

    @property
    def reads_data(self) -> bool:
        """Whether it needs a data set."""
        return self.made_of != "games"


_TABLE, _AFTER_TABLE = "accuracy_tables", "nothing after accuracy-table"
EXHIBITS: dict[str, Listed] = {
    "accuracy-table": Listed("accuracy of every sampler beside the paper's numbers", f"{_TABLE}:TUNED_TABLE", "65 min"),
    "calibrated-table": Listed(
        "the table with one W for all, calibrated on random sampling",
        f"{_TABLE}:CALIBRATED_TABLE",
        "40 min after accuracy-table",
    ),
    "curves": Listed("accuracy and loss over rounds", "curves:EXHIBIT", _AFTER_TABLE),
    "non-iid": Listed("what label skew costs each sampler", f"{_TABLE}:NON_IID", _AFTER_TABLE),
    "ablation": Listed("where FedPCS's gain comes from", "ablation:EXHIBIT", "45 min after calibrated-table"),
    "best-rules": Listed(
        "the calibrated table, every sampler under its best rule of aggregation",
        f"{_TABLE}:BEST_RULES",
        "70 min after calibrated-table",
    ),
    "unmoved-clients": Listed(
        "the table with baselines whose clients rewards do not move",
        f"{_TABLE}:UNMOVED_CLIENTS",
        "125 min after accuracy-table",
    ),
    "useful-privacy": Listed(
        "every sampler and rule at an ε people would accept",
        "useful_privacy:USEFUL_PRIVACY",
        "45 min",
        only_dataset="fashion-mnist",
    ),
    "trade-off": Listed(
        "what accuracy costs in ε and in rewards, planned for several of each",
        "useful_privacy:TRADE_OFF",
        "40 min",
        only_dataset="fashion-mnist",
    ),
    "data-distribution": Listed("who holds which classes", "data_distribution:EXHIBIT", "seconds", "data"),
    "mean-field": Listed("how the mean budget settles", "mean_field:EXHIBIT", "2 min", "games"),
    "correlation": Listed("how alike clients' budgets move", "correlation:EXHIBIT", "3 min", "games"),
    "welfare": Listed("what clients gain together", "welfare:EXHIBIT", "2 min", "games"),
    "server-cost": Listed("the server's cost: accuracy lost and rewards paid", "server_cost:EXHIBIT", "7 min", "games"),
    "privacy-usage": Listed("cohorts under a cap on their budgets", "privacy_usage:EXHIBIT", "3 min", "games"),
}


def listed(name: str) -> Listed:
    """Return what the list says of an exhibit.

    Raises:
        InvalidInput: There is none of that name.
    """
    return EXHIBITS[_validate.choice("exhibit", name, EXHIBITS)]


def check_dataset(name: str, dataset: str) -> None:
    """Check that an exhibit is shown on a data set.

    Raises:
        InvalidInput: There is no such data set, or the exhibit is shown on another one alone.
    """
    found = listed(name)
    only = found.only_dataset
    if only is not None and dataset != only:
        raise InvalidInput(f"--dataset: {name} is shown on {only} alone, got {dataset!r}. Leave it out.")
    if found.reads_data:
        _validate.choice("--dataset", dataset, DATASETS)
