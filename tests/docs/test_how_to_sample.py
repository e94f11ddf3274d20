"""The sampling pages keep their word: their code runs, their tables are what the scripts print."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from fedpcs.errors import InvalidInput
from fedpcs.sampling import check_sampler, make_sampler

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "docs" / "sampling"
ADD = (ROOT / "docs" / "how-to-add-a-sampler.md").read_text(encoding="utf-8")
CHOOSE = (ROOT / "docs" / "how-to-choose.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def stalest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The page's sampler in a module of its own, with `edit` applied to its text."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(edit=lambda text: text) -> None:
        (tmp_path / "stalest.py").write_text(edit(blocks(ADD)[0]), encoding="utf-8")
        sys.modules.pop("stalest", None)
        importlib.invalidate_caches()

    yield write
    sys.modules.pop("stalest", None)


@pytest.mark.slow
def test_the_page_s_code_runs_from_top_to_bottom(stalest, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    stalest()
    scope: dict[str, object] = {}
    for block in blocks(ADD)[1:]:
        exec(block, scope)
    printed = capsys.readouterr().out
    assert "effective_sample_size=" in printed
    assert "selection reads label_counts: private, and not part of the privacy claimed" in printed


def test_the_page_s_mistake_is_found_as_it_says(stalest) -> None:
    stalest(lambda text: text.replace('view.memory["last_round"].copy()', 'view.memory["last_round"]'))
    with pytest.raises(InvalidInput, match="stalest writes to an array it was shown"):
        check_sampler(make_sampler("stalest:StalestSampler"))


def test_a_sampler_that_weighs_wrongly_is_found(stalest) -> None:
    wrong = "from dataclasses import dataclass, replace"
    stalest(
        lambda text: text.replace("from dataclasses import dataclass", wrong).replace(
            'return draw_by_size(view, staleness**self.exponent, "pivotal", rng)',
            'found = draw_by_size(view, staleness**self.exponent, "pivotal", rng)\n'
            "        wrong = found.expansion**0.5\n"
            "        return replace(found, expansion=wrong, weights=view.data_weight[found.clients] * wrong)",
        )
    )
    with pytest.raises(InvalidInput, match="stalest is not unbiased: client"):
        check_sampler(make_sampler("stalest:StalestSampler"))


def load(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module(name)


def test_the_noise_table_is_that_of_the_specification(monkeypatch) -> None:
    """123×, 123×, 83×; 2.2×, 2.2×, 1.9×; 80×, 31×, 5.6×: the closed forms, without the simulated columns."""
    script = load("noise_table", monkeypatch)
    rng = np.random.default_rng(3)
    found = [
        [script.unbiased(budget, size, 1.0) for size in script.COHORTS]
        for budget in [kind(rng) for kind in script.KINDS.values()]
    ]
    assert found[0] == pytest.approx([123.0, 123.0, 83.0], rel=0.005)
    assert found[1] == pytest.approx([2.2, 2.2, 1.9], rel=0.02)
    assert found[2] == pytest.approx([80.0, 31.0, 5.6], rel=0.02)


@pytest.mark.slow
def test_the_noise_table_is_printed_as_the_page_has_it(monkeypatch, capsys) -> None:
    load("noise_table", monkeypatch).main()
    assert capsys.readouterr().out.strip() in CHOOSE


def test_precision_is_best_in_every_cell_of_a_small_study(monkeypatch) -> None:
    script = load("rule_study", monkeypatch)
    found = script.study(num_repetitions=12)
    assert len(found) == 63
    assert max(map(script.behind, found.values())) <= 0.02
    # Draws with replacement are what the printed weights were made for.
    columns = list(script.RULES)
    for (_, _, design), errors in found.items():
        if design == "with-replacement":
            assert errors[columns.index("paper")] == pytest.approx(errors[columns.index("horvitz-thompson")])


@pytest.mark.slow
def test_precision_is_best_in_every_cell_and_errors_are_as_the_page_has_them(monkeypatch) -> None:
    script = load("rule_study", monkeypatch)
    found = script.study(num_repetitions=2_000)
    assert max(map(script.behind, found.values())) <= 0.02
    noises = {"none": "no noise", "the paper's": "the paper's noise", "a hundred times": "strong noise"}
    designs = {"uniformly": "uniform", "by budget, `pivotal`": "pivotal", "`optimal`, all norms known": "optimal"}
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([\d.|* ]+) \|$", CHOOSE, re.MULTILINE)
    checked = 0
    for drawn, noise, cells in rows:
        if drawn in designs and noise in noises:
            stated = [float(cell.strip(" *")) for cell in cells.split("|")]
            assert stated == pytest.approx(found[noises[noise], 0.2, designs[drawn]], rel=0.02)
            checked += 1
    assert checked == 7


@pytest.mark.slow
def test_the_figure_is_drawn(monkeypatch, tmp_path) -> None:
    study, figure = load("rule_study", monkeypatch), load("rule_figure", monkeypatch)
    figure.make_figure(study.study(num_repetitions=2), 2).savefig(tmp_path / "rules.png")
    assert (tmp_path / "rules.png").stat().st_size > 10_000
