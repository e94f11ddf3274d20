"""Every page has a policy that forbids what no page needs: scripts, and anything from elsewhere.

That pages keep to it is tested beside each page; what a browser makes of it, in test_page_browser.py.
"""

from importlib import resources
from pathlib import Path

import pytest
from pages import full_page, read

import fedpcs
from fedpcs.report.render import render

TEMPLATES = {
    one.name: one.read_text(encoding="utf-8")
    for one in resources.files("fedpcs.report.templates").iterdir()
    if one.name.endswith(".j2")
}
PAGES = sorted(name for name, text in TEMPLATES.items() if "<html" in text)


def test_pages_are_made_from_templates_alone() -> None:
    assert PAGES == ["page.html.j2", "run_report.html.j2"]
    sources = Path(fedpcs.__file__).parent.rglob("*.py")
    assert not [path for path in sources if "<html" in path.read_text(encoding="utf-8").lower()]


@pytest.mark.parametrize("name", PAGES)
def test_the_policy_stands_before_all_that_it_governs(name: str) -> None:
    assert '<head>\n<meta charset="utf-8">\n{% include "policy.html.j2" %}\n' in TEMPLATES[name]


def test_a_page_says_that_nothing_runs_and_nothing_is_fetched() -> None:
    head = [(tag, key, value) for tag, key, value in read(render(full_page(drawings=()))).attributes if tag == "meta"]
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    assert head[1:3] == [("meta", "http-equiv", "Content-Security-Policy"), ("meta", "content", policy)]
