"""Sweeps: every combination once, nothing that is not a run, and cells that know themselves again."""

import pytest

from fedpcs.errors import InvalidInput
from fedpcs.experiments.compare import read_sweep
from fedpcs.experiments.sweep_config import make_cells, make_sweep_config


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


def test_what_was_tuned_for_a_sampler_is_its_own_and_a_variant_overrules_it():
    cells = cells_of(
        seeds=[0],
        set={"privacy.clip_norm": 1.0},
        per_sampler={"fedpcs": {"privacy.clip_norm": 2.0}},
        variants=[{"label": "tuned"}, {"label": "fixed", "set": {"privacy.clip_norm": 3.0}, "samplers": ["fedpcs"]}],
    )
    found = {(c.variant, c.sampler): c.config.privacy.clip_norm for c in cells}
    assert found == {("tuned", "fedpcs"): 2.0, ("tuned", "random"): 1.0, ("fixed", "fedpcs"): 3.0}


def test_settings_of_samplers_that_are_not_the_cells_are_left_out():
    settings = {"oort": {"exploration": 0.5}, "power-of-choice": {"num_candidates": 30}}
    cells = cells_of(samplers=["oort", "random"], seeds=[0], set={"sampling.settings": settings})
    assert [c.config.sampling.settings for c in cells] == [{"oort": {"exploration": 0.5}}, {}]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"seeds": [0, 0]}, "seeds must be distinct"),
        ({"seeds": []}, "seeds"),
        ({"samplers": ["random", "random"]}, "samplers must be distinct"),
        ({"grid": {"rounds": []}}, "grid.rounds must list at least one value"),
        ({"grid": {"seeds": [[0], [1]]}}, "grid.seeds: give name, samplers and seeds at the top"),
        ({"set": {"seeds": [7]}}, "set.seeds: give name, samplers and seeds at the top"),
        ({"set": {"name": "other"}}, "set.name: give name"),
        ({"variants": [{"label": "a", "set": {"sampling.samplers": ["delta"]}}]}, "variants.a.sampling.samplers: give"),
        ({"variants": [{"label": "a", "samplers": []}]}, "samplers"),
        ({"per_sampler": {"fedpcs": {"rounds": 3}}, "grid": {"rounds": [3, 4]}}, "per_sampler.fedpcs.rounds is on"),
        ({"gird": {}}, "unknown key 'gird'"),
        ({"per_sampler": {"nobody": {}}}, "per_sampler names 'nobody'"),
        ({"set": {"privacy.clip": 1.0}}, "unknown key 'privacy.clip'"),
        ({"set": {"rounds": 1}}, "rounds must be"),
        ({"grid": {"rounds": [3, float("nan")]}}, "rounds"),
        ({"grid": {"engine.num_workers": [1, 2]}}, "are the same run"),
        ({"variants": [{"label": "a"}, {"label": "a"}]}, "distinct labels"),
        ({"base": "no-such-preset"}, "no-such-preset"),
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
        ({"samplers": ","}, "samplers"),
    ],
)
def test_flags_that_cannot_be_read_are_quoted_back(flags, words):
    with pytest.raises(InvalidInput, match=words):
        read_sweep("default", **flags)
