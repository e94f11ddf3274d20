"""Every page has a policy that forbids what no page needs: scripts, and anything from elsewhere.

That pages keep to it is tested beside each page; what a browser makes of it, in test_page_browser.py.
"""

from pathlib import Path

from pages import full_page, read

import fedpcs
from fedpcs.report.render import as_html


def test_pages_are_made_from_one_template() -> None:
    """So none is without the policy."""
    package = Path(fedpcs.__file__).parent
    found = [path.name for path in package.rglob("*") if path.suffix in (".py", ".j2") and "<html" in path.read_text()]
    assert found == ["page.html.j2"]


def test_a_page_says_that_nothing_runs_and_nothing_is_fetched() -> None:
    head = [(tag, key, value) for tag, key, value in read(as_html(full_page(drawings=()))).attributes if tag == "meta"]
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    assert head[1:3] == [("meta", "http-equiv", "Content-Security-Policy"), ("meta", "content", policy)]
