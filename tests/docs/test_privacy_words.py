"""What is said of a run's privacy is the same in README, terminal, page and docs, and no more than is true of it."""

import re
import tomllib
from pathlib import Path

import pytest
from command_line import fedpcs
from made_records import a_manifest

from fedpcs.cli.run_table import print_run
from fedpcs.privacy.standing import RULE, standing_of, standing_sentence
from fedpcs.report import study_page
from fedpcs.report.study import write_study
from fedpcs.studies.promise import promise
from fedpcs.trial.config import as_toml, load_run_config
from fedpcs.trial.presets import preset_names
from fedpcs.trial.run_store import RunStore

ROOT = Path(__file__).parents[2]
PRESETS = ROOT / "src/fedpcs/trial/presets"
README = ROOT / "README.md"


def words_of(text: str) -> str:
    """Return text as it is read: without marks of code, its lines joined."""
    return " ".join(text.replace("`", "").split())


def seeded_presets() -> list[str]:
    private = [(name, load_run_config(name).privacy) for name in preset_names()]
    return [name for name, privacy in private if standing_of(privacy.protection, privacy.noise) != "guarantee"]


def test_every_preset_s_noise_is_seeded_or_none_as_the_docs_say():
    assert seeded_presets() == list(preset_names())


@pytest.mark.parametrize("document", ["README.md", "docs/guarantees.md", "docs/run-file.md", "docs/training.md"])
def test_the_rule_stands_in_the_documents_word_for_word(document):
    assert RULE in words_of((ROOT / document).read_text(encoding="utf-8"))


def test_help_has_the_rule_word_for_word():
    assert RULE in words_of(fedpcs("run", "--help").stdout)


def test_readme_says_of_the_first_run_what_its_page_and_terminal_say(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study_page, "drawings_of", lambda *_: ())
    config = load_run_config("default")
    said, sentence = promise(config.privacy), standing_sentence(config.privacy.protection, config.privacy.noise)
    assert said.endswith(sentence)
    first = next(part for part in README.read_text(encoding="utf-8").split("\n\n") if "privacy:" in part)
    assert said in words_of(first)
    store = RunStore(tmp_path)
    store.folder.joinpath("config.toml").write_text(as_toml(config), encoding="utf-8")
    store.folder.joinpath("manifest.json").write_text(a_manifest(config).model_dump_json(), encoding="utf-8")
    page = re.sub(r"<[^>]*>", "", write_study(store.folder).report.read_text(encoding="utf-8"))
    assert said in words_of(page.replace("&#39;", "'"))
    print_run(store, as_json=False)
    assert sentence in capsys.readouterr().out.splitlines()  # a line of its own


@pytest.mark.parametrize("name", sorted(preset_names()))
def test_no_preset_with_seeded_noise_is_said_to_be_a_guarantee(name):
    """A line that names it may speak of a guarantee only where it says what takes one: other noise."""
    path = PRESETS / f"{name}.toml"
    text = path.read_text(encoding="utf-8")
    assert tomllib.loads(text)["name"] == name
    lines = [line for line in text.splitlines() if line.startswith("#")]
    for document in (README, *sorted((ROOT / "docs").glob("*.md"))):
        lines += [line for line in document.read_text(encoding="utf-8").splitlines() if f"`{name}`" in line]
    for line in lines:
        assert "guarantee" not in line or "secure" in line or "no guarantee" in line, line


def test_readme_s_first_run_is_not_said_to_be_a_guarantee():
    before = README.read_text(encoding="utf-8").partition("## Running")[0]
    claims = [line for line in before.splitlines() if "guarantee" in line]
    assert all("simulation" in line for line in claims)


def test_where_samplers_read_what_no_noise_protects_the_guarantee_is_of_updates_alone():
    privacy = load_run_config("default", ["privacy.noise='secure'"]).privacy
    assert "The guarantee holds: " in promise(privacy, [""])
    said = promise(privacy, ["", "selection reads update_norm: private"])
    assert "The guarantee holds for updates alone" in said
    assert "What samplers read of clients besides has no noise." in said
    assert "simulation" in promise(load_run_config("default").privacy, ["selection reads loss"])
