"""Templates of pages, all rendered in one way: everything escaped, nothing undefined.

Every page includes `policy.html.j2` before anything else: a browser runs no script in it and fetches nothing for it.
"""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


def template(name: str) -> Template:
    """Return a template by its file's name."""
    environment = Environment(
        loader=PackageLoader("fedpcs.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
