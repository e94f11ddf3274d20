"""What `fedpcs data` prints: one row a data set, and a verdict on what lies in a folder."""

import json
import sys

from command_line import fedpcs
from hand_made_files import write_fashion_mnist

from fedpcs.learning.datasets import DATASETS
from fedpcs.learning.datasets import inventory as data_report


def test_the_list_says_what_is_here(tmp_path):
    write_fashion_mnist(tmp_path)
    found = data_report.describe_all(tmp_path)
    assert [one["name"] for one in found] == list(DATASETS)
    assert {one["name"] for one in found if one["is_present"]} == {"digits", "fashion-mnist"}
    assert json.loads(json.dumps(found)) == found
    lines = fedpcs("data", "list", "--data-dir", tmp_path).stdout.splitlines()
    for entry in DATASETS.values():
        (line,) = [line for line in lines if line.startswith(f"{entry.name} ")]
        assert f"{entry.num_train:,}" in line
        assert f"{entry.num_test:,}" in line


def test_a_check_says_where_how_many_and_what(tmp_path):
    write_fashion_mnist(tmp_path)
    found = data_report.check("fashion-mnist", tmp_path)
    assert json.loads(json.dumps(found)) == found
    assert (found["verdict"], found["num_train"], found["num_test"]) == ("subset", 7, 3)
    text = fedpcs("data", "check", "fashion-mnist", "--data-dir", tmp_path).stdout
    assert "subset of the published set" in text
    assert "7 train, 3 test" in text
    assert text.count("not published") == 4


def test_a_check_finds_a_data_set_beside_where_it_is_run(tmp_path, monkeypatch):
    (tmp_path / "data_beside.py").write_text(
        "from fedpcs.learning.datasets import make_dataset\n"
        "def made(): return make_dataset('beside', ([[0.0]], [0]), ([[1.0]], [0]))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    found = data_report.check("data_beside:made")
    assert found["says"] == "a data set of your own"
    assert found["folder"] is None
