"""What `fedpcs compare` prints."""

from __future__ import annotations

import json

from fedpcs import _format
from fedpcs.cli.printing import print_table
from fedpcs.cli.run_table import print_differences
from fedpcs.report.study import WrittenStudy

_SHOWN = {"variant": "variant", "partition": "split", "sampling_ratio": "τ", "rule": "rule", "behaviour": "clients"}


def print_sweep(written: WrittenStudy, *, as_json: bool) -> None:
    """Print what a sweep came to, what is sure first: a sentence and its tables, or one JSON object."""
    rows = written.records
    if as_json:
        differences = [
            {"variant": at.variant, "setting": dict(at.point), **one.numbers} for at, one in written.compared
        ]
        said = {"report": str(written.report), "headline": written.page.headline, "differences": differences}
        print(json.dumps({**said, "cells": list(rows)}))
        return
    if written.compared:
        print_differences(written.page.headline, [(at.label, one) for at, one in written.compared])
    of_grid = {name: name.rpartition(".")[2] for name in (rows[0] if rows else {}) if name.startswith("set.")}
    of_grid |= {name: name for name in ("data", "mode", "clip_norm") if len({row[name] for row in rows}) > 1}
    columns = {**_SHOWN, **of_grid, "sampler": "sampler"}
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(str(row[name]) for name in columns), []).append(row["accuracy"])
    table = [(*place, _format.mean_and_spread(accuracy), str(len(accuracy))) for place, accuracy in groups.items()]
    print_table(table, (*columns.values(), "accuracy", "seeds"))
    for words in (*written.privacy, *written.notes):
        print(words)
    print(written.report)
