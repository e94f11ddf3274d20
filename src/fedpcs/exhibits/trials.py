"""Exhibits made of trials: the settings and cells of the accuracy table, and what all pages of trials share.

The paper's weights undo the draw. Here Hájek's rule stands for them, which is steadier than the printed one; Fed-CBS,
which has no inclusion probabilities, has its own weights. Every table says which.

The paper prints neither its clipping bound W, to which the noise is proportional, nor what clients do whom a baseline
draws. So the table comes in variants: W tuned for each sampler, as a practitioner would (`accuracy-table`); W
calibrated on random sampling to the accuracy the paper prints for it (`calibrated-table`); that W, and for each sampler
the aggregation rule that does best under it (`best-rules`). Two others have baselines whose clients rewards do not move
(`unmoved-clients`): they give the lowest budget, as in the paper's section on the price of anarchy, or keep their
first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedpcs import _validate
from fedpcs.exhibits.exhibit import Gathered, Request
from fedpcs.exhibits.paper_numbers import SAMPLERS, SPLITS
from fedpcs.exhibits.registry import Profile
from fedpcs.learning.datasets import DATASETS
from fedpcs.report.page import Page, Table
from fedpcs.report.study_page import REFERENCE as REFERENCE
from fedpcs.report.study_page import comparison_page
from fedpcs.studies.grid import Cell, hajek_or_own, make_cells, make_sweep_config
from fedpcs.studies.results import Group, TrialData, group
from fedpcs.trial.config import load_run_config

TUNED, CALIBRATED = "W tuned", "W calibrated"
RULED = "W calibrated, rule tuned"
SELFISH, STATIC = UNMOVED = ("baselines' clients selfish", "baselines' clients static")
# Of a shrunk table of static clients: the baseline that W is calibrated on, and the paper's best.
STATIC_SAMPLERS = ("random", "delta", "fedpcs")


@dataclass(frozen=True)
class Trained:
    """Finished trials of an exhibit by place, the page of a comparison of them, and how W or the rule was found."""

    dataset: str
    groups: Sequence[Group]
    page: Page
    search: tuple[Table, ...] = ()


def trained(
    request: Request,
    done: Sequence[TrialData],
    shrunk: Sequence[str] = (),
    *,
    warnings: Sequence[str] = (),
    search: Sequence[Table] = (),
) -> Gathered[Trained]:
    """Return an exhibit's finished trials, with what a page of any comparison shows."""
    page = comparison_page(request.name, done)
    page = replace(page, shrunk=tuple(shrunk), warnings=(*page.warnings, *warnings))
    return Gathered(Trained(request.dataset, group(done), page, tuple(search)) if done else None, page)


@dataclass(frozen=True)
class Setting:
    """What a profile of the accuracy table runs.

    Attributes:
        base: The preset.
        changes: Keys of it that are changed; none in the paper profile.
        shorter: Keys changed further where W is tuned, and where it is calibrated on paid clients.
        ratios: Sampling ratios.
        seeds: Seeds of the table.
    """

    base: str
    changes: dict[str, Any]
    shorter: dict[str, Any]
    ratios: tuple[float, ...]
    seeds: tuple[int, ...]


# Rounds of most tables, and of the trainings that are shorter.
_QUICK_ROUNDS = {
    "fashion-mnist": (10, 4),
    "cifar-10": (10, 4),
    "svhn": (3, 2),
    "cifar-100": (3, 2),
    "cinic-10": (3, 2),
    "tiny-imagenet": (3, 2),
}
# Networks for those whose own would not come far in the rounds two cores can run.
_QUICK_MODELS = {"cifar-10": "cnn-cifar-small"}
_MANY_ROUNDS = 6  # so many are scored every other round


def setting_of(dataset: str, profile: Profile) -> Setting:
    """Return what a profile runs on a data set.

    Raises:
        InvalidInput: The paper has no such data set.
    """
    _validate.choice("dataset", dataset, _QUICK_ROUNDS)
    if profile == "paper":
        return Setting(dataset, {}, {}, (0.2, 0.5, 0.8), (0, 1, 2, 3, 4))
    rounds, fewer = _QUICK_ROUNDS[dataset]
    training = load_run_config(dataset).training
    changes = {
        "rounds": rounds,
        "evaluate_every": 2 if rounds >= _MANY_ROUNDS else 1,
        "training.local_epochs": 1,
        # One pass is then about as many steps as the paper's several.
        "training.batch_size": 2 ** round(math.log2(training.batch_size / training.local_epochs)),
        **({"training.model": _QUICK_MODELS[dataset]} if dataset in _QUICK_MODELS else {}),
        # Otherwise all clients train in every round so that some can be drawn.
        "sampling.settings.aocs.norms": "last-known",
    }
    return Setting(dataset, changes, {"rounds": fewer, "evaluate_every": fewer}, (0.2,), (0, 1, 2))


def shrunk(setting: Setting, variants: Sequence[str], samplers: Sequence[str] = SAMPLERS) -> tuple[str, ...]:
    """Return what is smaller than in the paper on a page of some variants and samplers, one sentence each."""
    if not setting.changes:
        return ()
    paper, smaller = load_run_config(setting.base), setting.changes["training.batch_size"]
    passes, size = paper.training.local_epochs, paper.training.batch_size
    records = DATASETS[setting.base].num_train // paper.data.num_clients
    rounds, fewer = changes_of(setting, variants[0])["rounds"], setting.shorter["rounds"]
    is_unmoved = variants[0] in UNMOVED
    reached = f", for an accuracy that {fewer} are enough for where W is tuned" if is_unmoved else ""
    sentences = [
        f"{rounds} rounds, instead of {paper.rounds}: accuracies are those of an unfinished training.",
        "The game is as long as the training: budgets, rewards and ε are those of so few rounds.",
        f"W was sought in trainings of {rounds if is_unmoved else fewer} rounds{reached}.",
        f"Each client passes over its records once, in batches of {smaller}, not {passes} times in batches of {size}: "
        f"{-(-records // smaller)} steps for {passes * -(-records // size)}.",
        f"Sampling ratio 0.2 only; the paper has 0.5 and 0.8 too. {len(setting.seeds)} seeds.",
    ]
    if "training.model" in setting.changes:
        sentences.append(f"The network is {setting.changes['training.model']}, not {paper.training.model}.")
    if "aocs" in samplers:
        sentences.append("AOCS goes by the norm last heard from a client; in the paper all clients train every round.")
    if is_unmoved:
        names = " and ".join(STATIC_SAMPLERS[:-1])
        sentences.append(f"Clients that keep their first budget: IID, with {names} only.")
    return tuple(sentences)


def changes_of(setting: Setting, variant: str, sampler: str = "") -> dict[str, Any]:
    """Return the keys that a variant of the table changes, but for W; of a sampler, its clients' behaviour too."""
    unmoved = {SELFISH: "selfish", STATIC: "static"}
    played = "rational" if sampler == "fedpcs" else unmoved.get(variant, "rational")
    shorter = {} if variant in (TUNED, *UNMOVED) else setting.shorter
    return {**setting.changes, **shorter, **({"game.behaviour": played} if sampler else {})}


def table_cells(
    setting: Setting, bounds: Mapping[tuple[str, str], float], rules: Mapping[str, str] | None = None
) -> list[Cell]:
    """Return the cells of the table, split by split.

    Args:
        setting: What is run.
        bounds: W by (variant, sampler).
        rules: Of aggregation, by sampler; None: those that undo each sampler's draw, as the paper's do.
    """
    cells = []
    for (variant, sampler), bound in bounds.items():
        rule = {"sampling.rule": hajek_or_own(sampler) if rules is None else rules[sampler]}
        # A shrunk table of static clients has only the split W was calibrated on.
        splits = ["iid"] if variant == STATIC and setting.changes else list(SPLITS)
        sweep = {
            "name": "accuracy-table",
            "base": setting.base,
            "samplers": [sampler],
            "seeds": list(setting.seeds),
            "set": {
                **changes_of(setting, variant, sampler),
                **rule,
                "privacy.clip_norm": bound,
            },
            "grid": {"data.partition": splits, "sampling.sampling_ratio": list(setting.ratios)},
            "variants": [{"label": variant}],
        }
        cells += make_cells(make_sweep_config(sweep))
    return split_by_split(cells)


def split_by_split(cells: Sequence[Cell]) -> list[Cell]:
    """Return cells in the order in which they are run: whoever stops has one whole table rather than two halves."""
    return sorted(cells, key=lambda cell: SPLITS.index(cell.config.data.partition))
