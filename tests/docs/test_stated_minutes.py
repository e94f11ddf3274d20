"""How long exhibits are said to take, against how long the pages in the docs took to make."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedpcs.exhibits.registry import EXHIBITS

PAGES = Path(__file__).parents[2] / "docs" / "reproduce.md"


def measured_minutes(name: str) -> float:
    """Return what the quick page of an exhibit says its command took."""
    page = PAGES.read_text().partition(f"<!-- exhibit: {name}-quick -->")[2].partition("<!-- exhibit:")[0]
    ((number, unit),) = re.findall(r"this command took (\d+) (s|min)\b", page)
    return int(number) / (60.0 if unit == "s" else 1.0)


@pytest.mark.parametrize("name", [name for name, one in EXHIBITS.items() if not one.reads_data])
def test_games_take_about_as_long_as_is_said(name: str) -> None:
    """Exhibits of trainings keep their cells, so what their last command took says little; games are made anew."""
    stated, measured = int(EXHIBITS[name].quick.removesuffix(" min")), measured_minutes(name)
    assert 0.5 < stated / measured < 2.0
