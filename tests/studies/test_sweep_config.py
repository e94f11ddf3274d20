"""Sweeps: every combination once, nothing that is not a run, and cells that know themselves again."""

import pytest

from fedpcs.errors import InvalidInput
from fedpcs.studies.flags import read_sweep
from fedpcs.studies.grid import make_cells, make_sweep_config
from fedpcs.trial.config import load_run_config


def cells_of(**values):
    return make_cells(make_sweep_config(values))


def test_a_grid_gives_every_combination_once():
    cells = cells_of(seeds=[0, 1], grid={"rounds": [3, 4], "data.partition": ["iid", "shards", "dirichlet"]})
    found = {(c.sampler, c.seed, c.config.rounds, c.config.data.partition) for c in cells}
    assert len(cells) == len(found) == 2 * 2 * 2 * 3
    assert all(c.config.seeds == [c.seed] and c.config.sampling.samplers == [c.sampler] for c in cells)


def test_a_cell_is_its_numbers_and_not_its_name_or_engine():
    first = cells_of(name="one", seeds=[0], samplers=["random"])[0]
    same = cells_of(name="two", seeds=[0], samplers=["random"], set={"engine.num_workers": 7, "checkpoint_every": 5})[0]
    other = cells_of(seeds=[0], samplers=["random"], set={"privacy.clip_norm": 0.123})[0]
    quorum = cells_of(seeds=[0], samplers=["random"], set={"engine.quorum": 0.9})[0]
    assert first.key == same.key
    assert len({first.key, other.key, quorum.key}) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"engine.deadline_seconds": 0.5},  # who is too late is left out
        {"game.population_seed": 1},
        {"data.validation_share": 0.1},
        {"evaluate_every": 2},
        {"rounds": 7},
    ],
)
def test_whatever_moves_a_number_makes_another_cell(change):
    plain, changed = (cells_of(seeds=[0], samplers=["random"], set=one)[0] for one in ({}, change))
    assert plain.key != changed.key


def test_equal_numbers_are_the_same_cell_however_they_are_written():
    whole, fraction = (cells_of(seeds=[0], samplers=["random"], set={"privacy.clip_norm": one})[0] for one in (3, 3.0))
    assert whole.key == fraction.key
    with pytest.raises(InvalidInput, match="are the same run"):
        cells_of(grid={"privacy.clip_norm": [3, 3.0]})


def test_settings_of_no_sampler_are_refused():
    with pytest.raises(InvalidInput, match=r"sampling\.settings names 'fedpc', which is no sampler"):
        cells_of(set={"sampling.settings.fedpc.floor": 0.1})


def test_a_key_is_given_once_in_flags_and_lists_may_be_on_the_grid():
    with pytest.raises(InvalidInput, match=r"set\.rounds is on the grid too"):
        read_sweep(None, grid=["rounds=3,4"], overrides=["rounds=3"])
    bounds = read_sweep(None, grid=["game.budget_bounds=[0.01,12.0],[0.02, 12.0]"]).grid["game.budget_bounds"]
    assert bounds == [[0.01, 12.0], [0.02, 12.0]]
    with pytest.raises(InvalidInput, match="as TOML writes them"):
        read_sweep(None, grid=["game.budget_bounds=[0.01,12.0"])


def test_what_was_tuned_for_a_sampler_is_its_own_and_a_variant_overrules_it():
    cells = cells_of(
        seeds=[0],
        set={"privacy.clip_norm": 1.0},
        per_sampler={"fedpcs": {"privacy.clip_norm": 2.0}},
        variants=[{"label": "tuned"}, {"label": "fixed", "set": {"privacy.clip_norm": 3.0}, "samplers": ["fedpcs"]}],
    )
    found = {(c.variant, c.sampler): c.config.privacy.clip_norm for c in cells}
    assert found == {("tuned", "fedpcs"): 2.0, ("tuned", "random"): 1.0, ("fixed", "fedpcs"): 3.0}


def test_a_cap_and_the_design_are_keys_like_any_other():
    cells = cells_of(
        seeds=[0],
        set={"sampling.rule": "precision"},
        grid={"sampling.weight_cap": [1, 3.5]},
        per_sampler={"fedpcs": {"sampling.by_design": True}},
    )
    found = {(c.sampler, c.config.sampling.weight_cap, c.config.sampling.by_design) for c in cells}
    assert found == {("fedpcs", 1, True), ("fedpcs", 3.5, True), ("random", 1, False), ("random", 3.5, False)}
    assert len({c.key for c in cells}) == 4
    with pytest.raises(InvalidInput, match=r"sampling\.by_design is a setting of the rule precision"):
        cells_of(grid={"sampling.by_design": [True, False]}, set={"sampling.rule": "hajek"})


def test_settings_of_samplers_that_are_not_the_cells_are_left_out():
    settings = {"oort": {"cutoff": 0.5}, "power-of-choice": {"num_candidates": 30}}
    cells = cells_of(samplers=["oort", "random"], seeds=[0], set={"sampling.settings": settings})
    assert [c.config.sampling.settings for c in cells] == [{"oort": {"cutoff": 0.5}}, {}]


NESTED = {"training": {"learning_rate": 0.5}, "sampling": {"settings": {"oort": {"cutoff": 0.5}}}}
DOTTED = {"training.learning_rate": 0.5, "sampling.settings.oort.cutoff": 0.5}
BASE = {"training": {"batch_size": 8, "averaging": 0.5}, "sampling": {"settings": {"oort": {"pacer_rounds": 7}}}}


@pytest.mark.parametrize(
    "place",
    [
        lambda changes: {"set": changes},
        lambda changes: {"per_sampler": {"oort": changes}},
        lambda changes: {"variants": [{"label": "a", "set": changes}]},
        lambda changes: {"grid": {key: [value] for key, value in changes.items()}},
    ],
    ids=["set", "per_sampler", "variants", "grid"],
)
def test_keys_in_a_table_are_those_keys_dotted_and_no_more(place):
    found = []
    for changes in (NESTED, DOTTED):
        sweep = make_sweep_config({"samplers": ["oort"], "seeds": [0], **place(changes)})
        (cell,) = make_cells(sweep, BASE)
        found.append(cell.config)
    assert found[0] == found[1]
    training = found[0].training
    assert (training.learning_rate, training.batch_size, training.averaging) == (0.5, 8, 0.5)
    assert found[0].sampling.settings == {"oort": {"cutoff": 0.5, "pacer_rounds": 7}}


def test_a_grid_may_be_nested_too():
    cells = cells_of(samplers=["random"], seeds=[0], grid={"data": {"partition": ["iid", "shards"], "alpha": [0.5]}})
    assert [cell.point for cell in cells] == [
        {"data.partition": "iid", "data.alpha": 0.5},
        {"data.partition": "shards", "data.alpha": 0.5},
    ]


def test_a_sampler_whose_name_has_dots_keeps_its_settings():
    name = "package.module:Sampler"
    nested = {"sampling": {"settings": {name: {"power": 2}}}}
    dotted = {f'sampling.settings."{name}".power': 2}
    for changes in (nested, dotted):
        sweep = make_sweep_config({"samplers": [name], "seeds": [0], "set": changes})
        again = make_sweep_config(sweep.model_dump(mode="json"))  # as it is kept in a folder
        (cell,) = make_cells(again)
        assert cell.config.sampling.settings == {name: {"power": 2}}


def test_a_table_in_a_flag_leaves_its_neighbours_alone():
    base = load_run_config("fashion-mnist").training
    flags = {"overrides": ["training={learning_rate = 0.5}"], "seeds": "0", "samplers": "random"}
    (cell,) = make_cells(read_sweep("fashion-mnist", **flags))
    alone = load_run_config("fashion-mnist", flags["overrides"])
    assert cell.config.training == alone.training == base.model_copy(update={"learning_rate": 0.5})


def test_a_flag_overrules_its_key_however_the_file_writes_it(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text('samplers = ["random"]\nseeds = [0]\n[set.training]\nlearning_rate = 0.5\nbatch_size = 8\n')
    (cell,) = make_cells(read_sweep(str(path), overrides=["training.learning_rate=0.25"]))
    assert (cell.config.training.learning_rate, cell.config.training.batch_size) == (0.25, 8)


@pytest.mark.parametrize(
    ("text", "flags", "rounds"),
    [
        ("[grid]\nrounds = [2, 3]\n", {"overrides": ["rounds=7"]}, {7}),
        ("[set]\nrounds = 9\n", {"grid": ["rounds=2,3"]}, {2, 3}),
        ("[per_sampler.random]\nrounds = 3\n", {"overrides": ["rounds=5"]}, {5}),
        ('[[variants]]\nlabel = "a"\nset = {rounds = 3}\n', {"overrides": ["rounds=5"]}, {5}),
    ],
)
def test_a_flag_wins_wherever_the_file_has_its_key(tmp_path, text, flags, rounds):
    path = tmp_path / "sweep.toml"
    path.write_text(f'samplers = ["random"]\nseeds = [0]\n{text}')
    assert {cell.config.rounds for cell in make_cells(read_sweep(str(path), **flags))} == rounds


def test_samplers_of_a_flag_are_those_of_every_variant(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text('seeds = [0]\n[[variants]]\nlabel = "a"\nsamplers = ["random"]\n')
    assert [cell.sampler for cell in make_cells(read_sweep(str(path), samplers="delta"))] == ["delta"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"set": {"sampling": {"samplers": ["random"]}}}, "set.sampling.samplers: give name"),
        (
            {"per_sampler": {"fedpcs": {"sampling": {"samplers": ["random"]}}}},
            "per_sampler.fedpcs.sampling.samplers: g",
        ),
        ({"grid": {"sampling": [{"samplers": ["random"]}]}}, "grid.sampling.samplers: give name"),
        ({"set": {"training": {"batch_size": 8}, "training.batch_size": 9}}, "training.batch_size is given twice"),
        (
            {"variants": [{"label": "a", "set": {"training.batch_size": 9, "training": {"batch_size": 8}}}]},
            "training.batch_size is given twice",
        ),
        (
            {"grid": {"training": [{"batch_size": 8}], "training.batch_size": [9]}},
            "grid.training.batch_size is changed by grid.training too",
        ),
        (
            {"per_sampler": {"fedpcs": {"training.batch_size": 8}}, "grid": {"training": {"batch_size": [8, 9]}}},
            "per_sampler.fedpcs.training.batch_size is on the grid too",
        ),
        (
            {"grid": {"rounds": [3]}, "variants": [{"label": "five", "set": {"rounds": 5}}]},
            "variants.five.rounds is on the grid too",
        ),
        ({"set": {"rounds": 9}, "grid": {"rounds": [2, 3]}}, "set.rounds is on the grid too"),
        ({"set": {"training": {}}}, "training is an empty table"),
        ({"set": {"training": {"lerning_rate": 1.0}}}, "unknown key 'training.lerning_rate'"),
        ({"set": 3}, "set must be"),
        (
            {"samplers": []},
            "samplers must be a list with at least 1 in it, got .*. Add what is missing, or leave it out",
        ),
        ({"grid": {"rounds": [3, 3]}}, "are the same run. Take out one of them"),
        ({"seeds": [0, 0]}, "seeds must be distinct"),
        ({"samplers": ["random", "random"]}, "samplers must be distinct"),
        ({"grid": {"rounds": []}}, "grid.rounds must list at least one value"),
        ({"grid": {"seeds": [[0], [1]]}}, "grid.seeds: give name, samplers and seeds at the top"),
        ({"gird": {}}, "unknown key 'gird'"),
        ({"per_sampler": {"nobody": {}}}, "per_sampler names 'nobody'"),
        ({"grid": {"rounds": [3, float("nan")]}}, "rounds"),
        ({"grid": {"engine.num_workers": [1, 2]}}, "are the same run"),
        ({"variants": [{"label": "a"}, {"label": "a"}]}, "labels of variants must be distinct"),
        ({"base": "no-such-preset"}, "no-such-preset"),
        ({"base": "a\0b"}, "cannot be read: embedded null byte"),
        (
            {"grid": {key: list(range(2, 1002)) for key in ("rounds", "evaluate_every")}},
            "cells are too many; at most 100,000",
        ),
        ({"base": ""}, "base must be at least 1 letter long, got ''"),
        ({"set": {"seeds": [7]}}, "set.seeds: give name, samplers and seeds at the top, or by flags"),
    ],
)
def test_what_is_no_sweep_is_refused_in_words(values, words):
    with pytest.raises(InvalidInput, match=words):
        cells_of(**values)


def test_files_and_flags_say_the_same(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(
        'base = "default"\nsamplers = ["random"]\nseeds = [3]\n[set]\nrounds = 4\n'
        '[grid]\n"data.partition" = ["iid", "shards"]\n'
    )
    flags = {"samplers": "random", "seeds": "3", "grid": ["data.partition=iid,shards"], "overrides": ["rounds=4"]}
    assert [c.key for c in make_cells(read_sweep(str(path)))] == [
        c.key for c in make_cells(read_sweep("default", **flags))
    ]
    assert make_cells(read_sweep(str(path)))[0].config.rounds == 4


def test_a_base_is_looked_for_beside_the_sweeps_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "studies").mkdir()
    (tmp_path / "run.toml").write_text("rounds = 9\n")
    (tmp_path / "studies/run.toml").write_text("rounds = 3\n")
    (tmp_path / "studies/sweep.toml").write_text('base = "run.toml"\nsamplers = ["random"]\nseeds = [0]\n')
    (cell,) = make_cells(read_sweep("studies/sweep.toml"))
    assert cell.config.rounds == 3


def test_a_run_file_brings_its_own_samplers_and_seeds(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('seeds = [5]\nrounds = 3\n[sampling]\nsamplers = ["oort"]\n')
    (cell,) = make_cells(read_sweep(str(path)))
    assert (cell.sampler, cell.seed, cell.config.rounds) == ("oort", 5, 3)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"seeds": "0,x"}, "--seeds must be whole numbers"),
        ({"grid": ["rounds"]}, "must be KEY=VALUE"),
        ({"grid": ["=1"]}, "must be KEY=VALUE"),
        ({"overrides": ["rounds"]}, "must be KEY=VALUE"),
        ({"samplers": ","}, "--samplers must be names parted by commas, such as fedpcs,random; got ','"),
    ],
)
def test_flags_that_cannot_be_read_are_quoted_back(flags, words):
    with pytest.raises(InvalidInput, match=words):
        read_sweep("default", **flags)


def test_a_mistake_in_a_sweeps_file_is_said_of_that_file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text('[set]\n"training.lerning_rate" = 0.5\n')
    with pytest.raises(InvalidInput, match=r"study\.toml: unknown key 'training.lerning_rate'"):
        make_cells(read_sweep(str(path)), where=str(path))


def test_a_mistake_in_a_base_is_said_of_its_own_file(tmp_path):
    (tmp_path / "run.toml").write_text("rouns = 3\n")
    path = tmp_path / "study.toml"
    path.write_text('base = "run.toml"\n')
    with pytest.raises(InvalidInput, match=r"run\.toml: unknown key 'rouns'"):
        make_cells(read_sweep(str(path)), where=str(path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"[set]\nx = {'[' * 3000}{']' * 3000}\n", "cannot be read as TOML"),
        (f"[set.{'.'.join(['a'] * 3000)}]\nb = 1\n", "a key may have 20 names"),
        (f"[set]\nx = {'{a = ' * 30}1{'}' * 30}\n", "tables may lie 20 deep"),
        (f"seeds = [{'9' * 5000}]\n", "cannot be read as TOML"),
    ],
)
def test_what_python_cannot_read_is_refused_in_words(tmp_path, text, words):
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=words):
        make_cells(read_sweep(str(path)))
    with pytest.raises(InvalidInput, match="cannot be read as TOML"):
        read_sweep(None, overrides=[f"rounds={'9' * 5000}"])


def test_a_base_may_have_settings_of_samplers_that_only_the_sweep_names(tmp_path):
    (tmp_path / "run.toml").write_text('[sampling.settings.aocs]\nnorms = "last-known"\n')
    path = tmp_path / "study.toml"
    path.write_text('base = "run.toml"\nsamplers = ["aocs"]\nseeds = [0]\n')
    (cell,) = make_cells(read_sweep(str(path)))
    assert cell.config.sampling.settings["aocs"] == {"norms": "last-known"}


def test_an_empty_base_is_not_taken_for_the_folder_of_the_sweep(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text('base = ""\n')
    with pytest.raises(InvalidInput, match=r"study\.toml: base must be at least 1 letter long"):
        read_sweep(str(path))


@pytest.mark.parametrize(
    "tables", [{"sampling": 3}, {"sampling": {"settings": 3}}, {"engine": 3}, {"training": 3}], ids=str
)
def test_a_base_of_another_shape_is_refused_in_words(tables):
    with pytest.raises(InvalidInput, match="table"):
        make_cells(make_sweep_config({"set": {"training.batch_size": 8}}), tables)
