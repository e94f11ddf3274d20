"""A data set in memory is checked once: what is wrong with it is said at the door."""

import re
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch

from fedpcs.errors import InvalidInput
from fedpcs.learning.datasets import DATASETS, Dataset, data_folder, load_dataset, make_dataset, normalised

BYTES = np.arange(2 * 3 * 4 * 4, dtype=np.uint8).reshape(2, 3, 4, 4)
FLOATS = np.linspace(-1.0, 1.0, 8).reshape(4, 2)


def ours(**changes):
    parts = {"train": (BYTES, [0, 1]), "test": (BYTES[:1], [1]), **changes}
    return make_dataset("ours", parts.pop("train"), parts.pop("test"), **parts)


def test_bytes_and_floats_come_in_as_they_are():
    images = ours(num_classes=5, mean=(0.1, 0.2, 0.3), stddev=(1, 2, 3))
    assert images.train_inputs.dtype == torch.uint8
    assert images.train_targets.dtype == torch.int64
    assert (images.input_shape, images.num_classes, images.stddev) == ((3, 4, 4), 5, (1.0, 2.0, 3.0))
    np.testing.assert_array_equal(images.train_inputs.numpy(), BYTES)
    table = make_dataset("table", (FLOATS, [0, 1, 2, 0]), (torch.ones(1, 2, dtype=torch.float64), torch.tensor([1])))
    assert table.train_inputs.dtype == table.test_inputs.dtype == torch.float32
    assert (table.mean, table.stddev, table.input_shape) == ((), (), (2,))


def test_a_data_set_cannot_be_changed_from_outside():
    inputs, tensor = BYTES.copy(), torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
    labels = np.array([0, 1])
    made = make_dataset("ours", (inputs, labels), (tensor, [0, 1]))
    inputs[:], labels[:], tensor[:] = 0, 0, 9
    np.testing.assert_array_equal(made.train_inputs.numpy(), BYTES)
    assert made.train_targets.tolist() == [0, 1]
    assert made.test_inputs.max() == 0
    with pytest.raises(FrozenInstanceError):
        made.name = "theirs"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train": (np.array([[0.0, np.nan]]), [0]), "test": (FLOATS, [0] * 4)}, "must be finite"),
        ({"train": (np.array([[0.0, 1e300]]), [0]), "test": (FLOATS, [0] * 4)}, "must be finite as float32"),
        ({"test": (np.array([[[[np.nan]]]]), [0])}, "test inputs must be finite"),
        ({"train": (BYTES, [0, 1, 1])}, "2 records and 3 targets"),
        ({"train": (BYTES, [0, -1])}, r"in \[0, 1\], got -1"),
        ({"num_classes": 1}, r"in \[0, 0\], got 1"),
        ({"train": (BYTES, [0.0, 1.0])}, "whole numbers, got float64"),
        ({"train": (BYTES, [True, False])}, "whole numbers, got bool"),
        ({"train": (BYTES[0], [0, 1])}, "records, channels, height, width"),
        ({"train": (BYTES.astype(np.int64), [0, 1])}, "got int64"),
        ({"train": (BYTES[:0], [])}, "one record or more|whole numbers"),
        ({"test": (BYTES[:, :2], [0, 1])}, "one shape and type"),
        ({"train": (["cat", "dog"], [0, 1])}, "array of numbers"),
        ({"train": BYTES}, "pair"),
        ({"mean": (0.1,), "stddev": (1.0,)}, "3 entries"),
        ({"mean": (0.1, 0.2, float("nan")), "stddev": (1, 1, 1)}, r"mean\[2\]"),
        ({"mean": (0, 0, 0), "stddev": (1, 1, 0)}, "above 0"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(changes, words):
    with pytest.raises(InvalidInput, match=words):
        ours(**changes)


def test_floats_take_no_mean_and_names_are_needed():
    with pytest.raises(InvalidInput, match="absent for float inputs"):
        make_dataset("ours", (FLOATS, [0] * 4), (FLOATS, [0] * 4), mean=(0.0,), stddev=(1.0,))
    with pytest.raises(InvalidInput, match="name"):
        make_dataset("", (FLOATS, [0] * 4), (FLOATS, [0] * 4))


def test_the_checksum_sees_every_part_and_nothing_else():
    flipped = BYTES.copy()
    flipped[1, 2, 3, 3] ^= 1
    same = [ours(), ours(train=(torch.from_numpy(BYTES.copy()), np.array([0, 1], dtype=np.uint8)), num_classes=9)]
    other = [
        ours(train=(flipped, [0, 1])),
        ours(train=(BYTES, [1, 0])),
        ours(test=(flipped[1:], [1])),
        ours(test=(BYTES[:1], [0])),
        ours(train=(BYTES.reshape(2, 3, 2, 8), [0, 1]), test=(BYTES[:1].reshape(1, 3, 2, 8), [1])),
    ]
    assert len({found.checksum for found in same}) == 1
    assert len({found.checksum for found in [same[0], *other]}) == 6


def test_normalised_is_the_formula_and_leaves_its_input_alone():
    made = ours(mean=(0.1, 0.2, 0.3), stddev=(0.5, 0.25, 2.0))
    before = made.train_inputs.clone()
    found = normalised(made, made.train_inputs)
    for channel, (mean, stddev) in enumerate(((0.1, 0.5), (0.2, 0.25), (0.3, 2.0))):
        expected = (BYTES[:, channel].astype(np.float64) / 255 - mean) / stddev
        np.testing.assert_allclose(found[:, channel].numpy(), expected, atol=1e-6)
    assert found.dtype == torch.float32
    assert torch.equal(made.train_inputs, before)
    assert torch.equal(normalised(made, made.train_inputs[1]), found[1])
    assert torch.equal(normalised(ours(), before), before / 255)


def test_floats_are_used_as_they_are():
    table = make_dataset("table", (FLOATS, [0] * 4), (FLOATS, [0] * 4))
    assert normalised(table, table.train_inputs) is table.train_inputs
    with pytest.raises(InvalidInput, match="must be floats"):
        normalised(table, torch.zeros(1, 2, dtype=torch.uint8))


def test_digits_are_the_whole_of_scikit_learn_s():
    """1,437 + 360 images, none twice and none lost, as close to a fifth in each class as whole images allow."""
    from sklearn.datasets import load_digits

    digits = load_dataset("digits")
    assert (len(digits.train_inputs), len(digits.test_inputs)) == (1437, 360)
    inputs = torch.cat([digits.train_inputs, digits.test_inputs]).numpy()
    targets = torch.cat([digits.train_targets, digits.test_targets]).numpy()
    ink = np.rint(inputs[:, 0] / 255 * 16).reshape(-1, 64)
    rows = sorted(map(tuple, np.column_stack([ink, targets]).tolist()))
    published = load_digits()
    assert rows == sorted(map(tuple, np.column_stack([published.data, published.target]).tolist()))
    share = np.bincount(digits.test_targets) - np.bincount(published.target) * 360 / 1797
    assert np.abs(share).max() < 1.0


def test_the_split_of_digits_never_changes():
    assert load_dataset("digits").checksum == "d7796f68fa979a998f3aedb7a71984410cdd0880332892ab54ec9c3fda1fecd1"


def test_the_constants_of_digits_are_those_of_its_train_images():
    digits = load_dataset("digits")
    scaled = normalised(digits, digits.train_inputs)
    assert abs(float(scaled.mean())) < 1e-3
    assert abs(float(scaled.std()) - 1.0) < 1e-3


def test_a_data_set_of_ones_own_is_found_by_its_function(tmp_path, monkeypatch):
    (tmp_path / "own_data.py").write_text(
        "from fedpcs.learning.datasets import make_dataset\n"
        "def pairs(): return make_dataset('pairs', ([[0.0], [1.0]], [0, 1]), ([[0.5]], [1]))\n"
        "def nothing(): return 3\n"
        "def broken(): raise KeyError('gone')\n"
        "def bad(): return make_dataset('bad', ([[float('nan')]], [0]), ([[0.5]], [0]))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = load_dataset("own_data:pairs")
    assert isinstance(found, Dataset)
    assert found.name == "pairs"
    for name, words in (("nothing", "got int"), ("broken", "gone"), ("bad", "finite"), ("absent", "absent")):
        with pytest.raises(InvalidInput, match=words):
            load_dataset(f"own_data:{name}")
    with pytest.raises(InvalidInput, match="no_such_module"):
        load_dataset("no_such_module:pairs")
    sys.modules.pop("own_data")


@pytest.mark.parametrize("name", ["mnist", "", None, 3, "CIFAR-10"])
def test_an_unknown_name_is_answered_with_the_known_ones(name):
    with pytest.raises(InvalidInput, match=r"'digits'.*'tiny-imagenet'.*package\.module:function"):
        load_dataset(name)


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "digits"])
def test_an_absent_data_set_says_where_it_belongs(name, tmp_path):
    with pytest.raises(
        InvalidInput, match=f"{DATASETS[name].folder} is missing. .*fedpcs data fetch {name}.*--data-dir"
    ):
        load_dataset(name, tmp_path)


def test_the_data_folder_is_the_one_given_then_the_environment_s_then_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDPCS_DATA", str(tmp_path / "environment"))
    assert data_folder(tmp_path / "given") == tmp_path / "given"
    assert data_folder() == tmp_path / "environment"
    monkeypatch.delenv("FEDPCS_DATA")
    assert "fedpcs" in data_folder().parts[-1].lower() or "fedpcs" in str(data_folder()).lower()


def test_the_catalogue_is_whole():
    for name, entry in DATASETS.items():
        assert entry.name == name
        assert len(entry.mean) == len(entry.stddev) == entry.input_shape[0]
        assert entry.citation
        assert entry.terms
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in entry.contents.values())
        assert bool(entry.folder) == bool(entry.downloads)


def test_every_download_goes_by_https_and_all_but_one_have_a_sha256():
    downloads = [download for entry in DATASETS.values() for download in entry.downloads]
    assert all(download.url.startswith("https://") for download in downloads)
    assert [download.file_name for download in downloads if not download.has_sha256] == ["CINIC-10.tar.gz"]
    assert all(re.fullmatch("sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}", download.checksum) for download in downloads)
