"""Every exhibit by name: what it shows, and how its page is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpcs import _validate
from fedpcs.errors import InvalidInput

if TYPE_CHECKING:  # a list of names should not wait for torch and Matplotlib
    from fedpcs.exhibits.accuracy_cells import Run
    from fedpcs.exhibits.profiles import Profile
    from fedpcs.report.page import Page


@dataclass(frozen=True)
class Wanted:
    """What a page is made for.

    Attributes:
        dataset: The data set's name.
        profile: `quick` or `paper`.
        data_dir: Where data sets lie.
        run: Runs cells and returns those that came to their end.
        say: Is told what goes on.
    """

    dataset: str
    profile: Profile
    data_dir: Path | None
    run: Run
    say: Callable[[str], None]


@dataclass(frozen=True)
class Exhibit:
    """An exhibit.

    Attributes:
        words: What it shows, in a line.
        make: Makes its page.
        quick: How long its quick profile takes on two cores, after what, where cells are shared.
        reads_data: Whether it needs the data set.
        is_of_data_alone: Whether it shows the data set itself, and nothing is trained.
    """

    words: str
    make: Callable[[Wanted], Page]
    quick: str
    reads_data: bool = False
    is_of_data_alone: bool = False

    @property
    def has_cells(self) -> bool:
        """Whether it is made of trainings, which are kept; others are made anew each time."""
        return self.reads_data and not self.is_of_data_alone


def _module(name: str) -> Any:
    from importlib import import_module

    return import_module(f"fedpcs.exhibits.{name}")


def _of_the_game(name: str) -> Callable[[Wanted], Page]:
    def make(wanted: Wanted) -> Page:
        games = _module("solved_games").Games(say=wanted.say)
        page: Page = _module(name).make_page(wanted.profile, games)
        return page

    return make


def _of_training(name: str) -> Callable[[Wanted], Page]:
    def make(wanted: Wanted) -> Page:
        page: Page = _module(name).make_page(wanted.dataset, wanted.profile, wanted.run)
        return page

    return make


def _data_distribution(wanted: Wanted) -> Page:
    from fedpcs.learning.datasets import load_dataset

    page: Page = _module("data_distribution").make_page(wanted.profile, load_dataset(wanted.dataset, wanted.data_dir))
    return page


def _of_useful_training(name: str) -> Callable[[Wanted], Page]:
    def make(wanted: Wanted) -> Page:
        if wanted.dataset != "fashion-mnist":
            raise InvalidInput(
                f"--dataset: {name.replace('_', '-')} is shown on fashion-mnist alone, got {wanted.dataset!r}. "
                "Leave it out."
            )
        page: Page = _module(name).make_page(wanted.profile, wanted.run)
        return page

    return make


_OF_THE_TABLE = "nothing after accuracy-table"
EXHIBITS: dict[str, Exhibit] = {
    "accuracy-table": Exhibit(
        "accuracy of every sampler beside the paper's numbers",
        _of_training("accuracy_table"),
        "65 min",
        reads_data=True,
    ),
    "calibrated-table": Exhibit(
        "the table with W calibrated on random sampling, the same for all",
        _of_training("calibrated_table"),
        "40 min after accuracy-table",
        reads_data=True,
    ),
    "curves": Exhibit("accuracy and loss over rounds", _of_training("curves"), _OF_THE_TABLE, reads_data=True),
    "non-iid": Exhibit("what label skew costs each sampler", _of_training("non_iid"), _OF_THE_TABLE, reads_data=True),
    "ablation": Exhibit(
        "where FedPCS's gain comes from", _of_training("ablation"), "45 min after calibrated-table", reads_data=True
    ),
    "best-rules": Exhibit(
        "the table with W calibrated, every sampler under its best rule of aggregation",
        _of_training("best_rules"),
        "70 min after calibrated-table",
        reads_data=True,
    ),
    "unmoved-clients": Exhibit(
        "the table with baselines whose clients rewards do not move",
        _of_training("unmoved_clients"),
        "125 min after accuracy-table",
        reads_data=True,
    ),
    "useful-privacy": Exhibit(
        "every sampler and rule at an ε people would accept",
        _of_useful_training("useful_privacy"),
        "45 min",
        reads_data=True,
    ),
    "trade-off": Exhibit(
        "what accuracy costs in ε and in rewards, planned for several of each",
        _of_useful_training("trade_off"),
        "40 min",
        reads_data=True,
    ),
    "data-distribution": Exhibit(
        "who holds which classes", _data_distribution, "seconds", reads_data=True, is_of_data_alone=True
    ),
    "mean-field": Exhibit("how the mean budget settles", _of_the_game("mean_field"), "2 min"),
    "correlation": Exhibit("how alike clients' budgets move", _of_the_game("correlation"), "3 min"),
    "welfare": Exhibit("what clients gain together", _of_the_game("welfare"), "2 min"),
    "server-cost": Exhibit("the server's cost: accuracy lost and rewards paid", _of_the_game("server_cost"), "7 min"),
    "privacy-usage": Exhibit("cohorts under a cap on their budgets", _of_the_game("privacy_usage"), "3 min"),
}


def exhibit(name: str) -> Exhibit:
    """Return an exhibit by its name.

    Raises:
        InvalidInput: There is none of that name.
    """
    return EXHIBITS[_validate.choice("exhibit", name, EXHIBITS)]
