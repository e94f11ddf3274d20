"""Records leave as they are: every word, every digit, every gap; and what a table cannot hold is refused."""

from __future__ import annotations

import csv
import importlib.util
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedpcs.errors import InvalidInput
from fedpcs.report.export import export_csv, export_parquet
from fedpcs.report.page import Page

needs_pyarrow = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")

RECORDS: tuple[dict[str, Any], ...] = (
    {"sampler": 'a, "b"\r\nc', "seed": 0, "accuracy": 0.1 + 0.2, "is_done": True},
    {"seed": 1, "accuracy": 1 / 3, "epsilon": None, "sampler": "ε–ö", "paid": 5e-324},
    {"sampler": " padded ", "seed": np.int64(2), "accuracy": np.float64(1e22), "epsilon": math.inf, "paid": 7.0},
)
COLUMNS = ["sampler", "seed", "accuracy", "is_done", "epsilon", "paid"]


def page(*records: dict[str, Any]) -> Page:
    return Page("sweep", "Title", "Headline", "Facts", records=records)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, strict=True))


def test_csv_reads_back_as_it_was(tmp_path: Path) -> None:
    export_csv(page(*RECORDS), tmp_path / "out.csv")
    rows = read(tmp_path / "out.csv")
    assert list(rows[0]) == COLUMNS
    assert [row["sampler"] for row in rows] == [record["sampler"] for record in RECORDS]
    assert [float(row["accuracy"]) for row in rows] == [0.1 + 0.2, 1 / 3, 1e22]
    assert [row["seed"] for row in rows] == ["0", "1", "2"]
    assert [row["epsilon"] for row in rows] == ["", "", "inf"]
    assert [row["paid"] for row in rows] == ["", "5e-324", "7.0"]
    assert [row["is_done"] for row in rows] == ["true", "", ""]


def test_csv_lines_end_as_the_standard_says(tmp_path: Path) -> None:
    export_csv(page({"a": 1, "b": "x"}), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == b"a,b\r\n1,x\r\n"


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, (1,), np.array([1.0]), object(), b"bytes"])
@pytest.mark.parametrize("export", [export_csv, pytest.param(export_parquet, marks=needs_pyarrow)])
def test_a_nested_value_is_refused_and_nothing_is_written(tmp_path: Path, export: Any, value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"'spent' is .* Give every number inside it a key of its own"):
        export(page({"seed": 0}, {"spent": value}), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("export", [export_csv, pytest.param(export_parquet, marks=needs_pyarrow)])
def test_no_records_is_no_file(tmp_path: Path, export: Any) -> None:
    with pytest.raises(InvalidInput, match="nothing to export"):
        export(page(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@needs_pyarrow
def test_parquet_reads_back_as_it_was(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    export_parquet(page(*RECORDS), tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.column_names == COLUMNS
    assert table.to_pylist() == [{name: record.get(name) for name in COLUMNS} for record in RECORDS]
    types = {name: str(table.schema.field(name).type) for name in COLUMNS}
    assert types == {
        "sampler": "string",
        "seed": "int64",
        "accuracy": "double",
        "is_done": "bool",
        "epsilon": "double",
        "paid": "double",
    }


@needs_pyarrow
def test_parquet_takes_whole_numbers_beside_others(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    export_parquet(page({"paid": 0}, {"paid": 0.5}, {"paid": None}), tmp_path / "out.parquet")
    assert parquet.read_table(tmp_path / "out.parquet")["paid"].to_pylist() == [0.0, 0.5, None]


@needs_pyarrow
def test_a_parquet_column_of_words_and_numbers_is_one_of_words(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    export_parquet(page({"reward": "commitment"}, {"reward": 5}, {"reward": None}), tmp_path / "out.parquet")
    assert parquet.read_table(tmp_path / "out.parquet")["reward"].to_pylist() == ["commitment", "5", None]


@needs_pyarrow
@pytest.mark.parametrize("values", [(True, 1.5), (1, 2**80)])
def test_parquet_names_the_column_that_cannot_be_typed(tmp_path: Path, values: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidInput, match="column 'mixed' cannot be typed"):
        export_parquet(page(*({"mixed": value} for value in values)), tmp_path / "out.parquet")


def test_without_pyarrow_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'pyarrow>="):
        export_parquet(page({"a": 1}), tmp_path / "out.parquet")
