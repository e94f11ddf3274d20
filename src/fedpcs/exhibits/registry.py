"""Every exhibit by name. This module loads neither torch nor Matplotlib: a list of names should not wait for them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from fedpcs import _validate
from fedpcs.errors import InvalidInput

if TYPE_CHECKING:
    from fedpcs.exhibits.exhibit import Exhibit

Profile = Literal["quick", "paper"]  # for two cores, or the paper's sizes


@dataclass(frozen=True)
class Listed:
    """An exhibit in the list of them.

    Attributes:
        summary: What it shows, in a line.
        place: Where its declaration is, "module:NAME".
        quick: How long its quick profile took on two cores, after what, where trials are shared.
        made_of: The data set itself, trials (kept, and shared with others), or games, solved anew each time.
        only_dataset: The one data set it is shown on, if it is one.
    """

    summary: str
    place: str
    quick: str
    made_of: Literal["data", "trials", "games"]
    only_dataset: str | None = None

    @property
    def reads_data(self) -> bool:
        """Whether it needs a data set."""
        return self.made_of != "games"


EXHIBITS: dict[str, Listed] = {
    "accuracy-table": Listed(
        "accuracy of every sampler beside the paper's numbers", "accuracy_tables:TUNED_TABLE", "65 min", "trials"
    ),
    "calibrated-table": Listed(
        "the table with W calibrated on random sampling, the same for all",
        "accuracy_tables:CALIBRATED_TABLE",
        "40 min after accuracy-table",
        "trials",
    ),
    "curves": Listed("accuracy and loss over rounds", "curves:EXHIBIT", "nothing after accuracy-table", "trials"),
    "non-iid": Listed(
        "what label skew costs each sampler", "accuracy_tables:NON_IID", "nothing after accuracy-table", "trials"
    ),
    "ablation": Listed("where FedPCS's gain comes from", "ablation:EXHIBIT", "45 min after calibrated-table", "trials"),
    "best-rules": Listed(
        "the table with W calibrated, every sampler under its best rule of aggregation",
        "accuracy_tables:BEST_RULES",
        "70 min after calibrated-table",
        "trials",
    ),
    "unmoved-clients": Listed(
        "the table with baselines whose clients rewards do not move",
        "accuracy_tables:UNMOVED_CLIENTS",
        "125 min after accuracy-table",
        "trials",
    ),
    "useful-privacy": Listed(
        "every sampler and rule at an ε people would accept",
        "useful_privacy:USEFUL_PRIVACY",
        "45 min",
        "trials",
        "fashion-mnist",
    ),
    "trade-off": Listed(
        "what accuracy costs in ε and in rewards, planned for several of each",
        "useful_privacy:TRADE_OFF",
        "40 min",
        "trials",
        "fashion-mnist",
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
        InvalidInput: It is shown on another one alone.
    """
    only = listed(name).only_dataset
    if only is not None and dataset != only:
        raise InvalidInput(f"--dataset: {name} is shown on {only} alone, got {dataset!r}. Leave it out.")


def declaration(name: str) -> Exhibit[Any]:
    """Load an exhibit's declaration."""
    module, _, attribute = listed(name).place.partition(":")
    found: Exhibit[Any] = getattr(import_module(f"fedpcs.exhibits.{module}"), attribute)
    return found
