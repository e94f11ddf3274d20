"""A configuration is refused in one line that names key, value and what is allowed, or written down and read back."""

import pytest

from fedpcs.errors import InvalidInput
from fedpcs.trial.assemble import delta_note, sampler_of
from fedpcs.trial.config import RunConfig, as_toml, load_run_config, preset_names
from fedpcs.trial.preflight import try_rules


def refusal(*overrides, source=None):
    with pytest.raises(InvalidInput) as refused:
        load_run_config(source, list(overrides))
    words = str(refused.value)
    assert len(words.splitlines()) == 1
    return words


def test_an_empty_file_is_the_defaults(tmp_path):
    (tmp_path / "empty.toml").write_text("")
    assert load_run_config(str(tmp_path / "empty.toml")) == RunConfig()


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_can_be_read_and_written_down(name, tmp_path):
    config = load_run_config(name)
    (tmp_path / "copy.toml").write_text(as_toml(config), encoding="utf-8")
    assert load_run_config(str(tmp_path / "copy.toml")) == config


def test_without_a_source_it_is_the_default_preset():
    assert load_run_config(None) == load_run_config("default")
    assert "default" in preset_names()


@pytest.mark.parametrize(
    ("override", "key", "value", "allowed"),
    [
        ("rounds=1", "rounds", "1", "2"),
        ("rounds=2.5", "rounds", "2.5", "whole number"),
        ("rounds=true", "rounds", "True", "whole number"),
        ("rounds=many", "rounds", "'many'", "whole number"),
        ("rounds=", "rounds", "''", "whole number"),
        ("rounds=100001", "rounds", "100001", "100000"),
        ("checkpoint_every=0", "checkpoint_every", "0", "1"),
        ("tensorboard=1", "tensorboard", "1", "boolean"),
        ("seeds=0", "seeds", "0", "list"),
        ("seeds=[0,0]", "seeds", "[0, 0]", "distinct"),
        ("seeds=[-1]", "seeds", "[-1]", "at least 0"),
        ("seeds=[0.5]", "seeds.0", "0.5", "whole number"),
        ("data.num_clients=0", "data.num_clients", "0", "1"),
        ("data.partition=best", "data.partition", "'best'", "'iid', 'dirichlet', 'shards' or 'quantity'"),
        ("data.alpha=nan", "data.alpha", "nan", "finite"),
        ("data.alpha=inf", "data.alpha", "inf", "finite"),
        ("data.alpha=0", "data.alpha", "0", "greater than or equal to"),
        ("data.alpha=[1]", "data.alpha", "[1]", "number"),
        ("training.learning_rate=-1", "training.learning_rate", "-1", "greater than or equal to"),
        ("privacy.clip_norm=1e300", "privacy.clip_norm", "1e+300", "less than or equal to"),
        ("training.learning_rate=1e400", "training.learning_rate", "inf", "finite"),
        ("training.batch_size=-1", "training.batch_size", "-1", "0"),
        ("training.server_momentum=1", "training.server_momentum", "1", "less than 1"),
        ("training.averaging=1.0", "training.averaging", "1.0", "less than 1"),
        ("privacy.mode=best", "privacy.mode", "'best'", "'none', 'paper', 'client' or 'record'"),
        ("privacy.noise=loud", "privacy.noise", "'loud'", "'fast', 'secure' or 'exact'"),
        ("privacy.delta=1", "privacy.delta", "1", "less than 1"),
        ("privacy.limit_epsilon=0", "privacy.limit_epsilon", "0", "greater than 0"),
        ("game.behaviour=angry", "game.behaviour", "'angry'", "'rational', 'static', 'selfish' or 'raised'"),
        ("game.budget_bounds=[0.1,nan]", "game.budget_bounds", "nan", "finite"),
        ("game.reward=nan", "game.reward", "nan", "finite"),
        ("sampling.samplers=random", "sampling.samplers", "'random'", "list"),
        ("sampling.samplers=['randon']", "sampler", "'randon'", "Did you mean 'random'?"),
        ("sampling.settings.random.floor=1", "'random'", "'floor'", "it has none"),
        ("sampling.samplers=['random','random']", "sampling.samplers", "random", "distinct"),
        ("sampling.sampling_ratio=1.5", "sampling.sampling_ratio", "1.5", "1"),
        ("sampling.rule=best", "sampling.rule", "'best'", "'hajek'"),
        ("sampling.weight_cap=0.9", "sampling.weight_cap", "0.9", "greater than or equal to 1"),
        ("sampling.weight_cap=nan", "sampling.weight_cap", "nan", "finite"),
        ("sampling.weight_cap=true", "sampling.weight_cap", "True", "number"),
        ("sampling.weight_cap=three", "sampling.weight_cap", "'three'", "number"),
        ("sampling.by_design=1", "sampling.by_design", "1", "boolean"),
        ("sampling={rule='hajek',by_design=true}", "sampling.by_design", "'hajek'", "sampling.rule = 'precision'"),
        ("sampling.settings.randon.floor=1", "sampling.settings", "'randon'", "Did you mean 'random'?"),
        ("sampling.settings.random=3", "sampling.settings.random", "3", "dictionary"),
        ("engine.kind=gpu", "engine.kind", "'gpu'", "'workers', 'in-process' or 'flower'"),
        ("engine.device=gpu", "engine.device", "'gpu'", "'cpu', 'cuda'"),
        ("engine.device=cuda:x", "engine.device", "'cuda:x'", "'cuda:0'"),
        ("engine.device=cuda:-1", "engine.device", "'cuda:-1'", "'mps'"),
        ("engine.device=1", "engine.device", "1", "string"),
        ("engine={kind='flower',device='cuda:1'}", "engine.device", "'cuda:1'", "engine.device = 'cuda', and CUDA_VIS"),
        ("engine.num_workers=0", "engine.num_workers", "0", "1"),
        ("engine.quorum=2", "engine.quorum", "2", "1"),
        ("presence=[{client=-1}]", "presence.0.client", "-1", "0"),
        ("presence=[{client=60}]", "presence", "60", "0…59"),
        ("colour=1", "colour", "colour", "rounds"),
        ("training.lr=0.1", "training.lr", "lr", "learning_rate"),
        ("presence=[{client=1,colour=2}]", "presence.0.colour", "colour", "client, joins, leaves"),
    ],
)
def test_bad_values_are_refused_by_key_value_and_what_is_allowed(override, key, value, allowed):
    words = refusal(override)
    assert words.startswith("preset default: ")
    assert key in words
    assert value in words
    assert allowed in words


@pytest.mark.parametrize(
    ("override", "key", "allowed"),
    [
        ("seeds=[]", "seeds", "list"),
        ("sampling.samplers=[]", "sampling.samplers", "list"),
        ("game.budget_bounds=[1]", "game.budget_bounds", "list"),
        ("name=a b", "name", "letters"),
        ("presence=[{joins=3}]", "presence.0.client", "client"),
        ("training=3", "training", "table"),
        ("game.reward=banana", "game.reward", "'commitment' or 'per-round'"),
    ],
)
def test_refusals_are_sentences(override, key, allowed):
    words = refusal(override)
    assert key in words
    assert allowed in words
    for clumsy in ("must be List should", "must be String should", "Field required", "instance of", "after validation"):
        assert clumsy not in words


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("game.budget_bounds=[12,0.01]", "game.budget_bounds"),
        ("game.budget_bounds=[0,1]", "game.budget_bounds"),
        ("game.reward=-5", "game.reward"),
        ("game.reward=[]", "game.reward"),
        ("game.reward=[1,2,3]", "game.reward"),
        ("presence=[{client=1,joins=5,leaves=2}]", "presence"),
    ],
)
def test_values_no_run_can_have_are_refused_before_it_starts(override, key):
    assert key in refusal(override)


@pytest.mark.parametrize("override", ["nonsense", "=3", "rounds.x=1"])
def test_overrides_that_are_none_are_quoted_back(override):
    assert repr(override) in refusal(override)


def test_a_preset_with_a_limit_can_be_run_without_privacy():
    assert load_run_config(None, ["privacy.mode=none"]).privacy.mode == "none"


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "bad.toml").write_text("rounds = \n")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    assert "TOML" in refusal(source=str(tmp_path / "bad.toml"))
    assert "binary.toml" in refusal(source=str(tmp_path / "binary.toml"))
    assert "Presets are" in refusal(source="no-such-preset")
    assert str(tmp_path) in refusal(source=str(tmp_path))


def test_overrides_are_read_as_toml_or_else_as_words():
    found = load_run_config(
        None,
        [
            "rounds = 7",
            "privacy.noise=secure",
            "privacy.noise = 'exact'",
            "game.reward=[1, 2.5, 3, 4, 5, 6, 7]",
            "sampling.samplers=['aocs']",
            "sampling.settings.aocs.design=pivotal",
        ],
    )
    assert (found.rounds, found.privacy.noise, found.game.reward[1]) == (7, "exact", 2.5)
    assert found.sampling.settings == {"aocs": {"design": "pivotal"}}


def test_delta_asks_for_no_variances_where_every_step_takes_all_records():
    """A gradient of all records has no variance: nothing private is asked for, and the run says so."""
    delta = ['sampling.samplers=["delta"]']
    whole = load_run_config(None, [*delta, "training.batch_size=0"])
    assert sampler_of(whole, "delta").variance_ratio == 0.0
    assert "by distances alone" in delta_note(whole)
    for other in ("training.batch_size=8", "sampling.settings.delta.variance_ratio=0.5"):
        config = load_run_config(None, [*delta, "training.batch_size=0", other])
        assert "gradient_variance" in sampler_of(config, "delta").hears
        assert delta_note(config) == ""


def test_a_sampler_that_needs_what_clients_do_not_send_is_refused_before_the_run_with_the_remedy():
    config = load_run_config(None, ['sampling.samplers=["delta"]', 'sampling.settings.delta.information="ideal"'])
    with pytest.raises(InvalidInput, match=r"which clients do not send.*information = 'practical'"):
        try_rules(config, num_classes=10)
