"""Games of twelve clients and six rounds under a constant reward: every exhibit's page from them takes a moment."""

from __future__ import annotations

from typing import Any

from fedpcs.exhibits.exhibit import Gathered, Request, build, declaration
from fedpcs.exhibits.games import Games
from fedpcs.game.config import GameFile
from fedpcs.report.page import Page

GAMES = Games(GameFile(num_clients=12, last_round=5, reward=20.0))


def page_of(name: str, outcomes: Any) -> Page:
    """Return an exhibit's page of outcomes that were made up."""
    return build(declaration(name), Request(name), Gathered(outcomes, GAMES.frame("quick")))


def solved_page(name: str) -> Page:
    """Return an exhibit's page of the small games."""
    exhibit, request = declaration(name), Request(name)
    return build(exhibit, request, exhibit.gather.gather(request, GAMES))


def verdicts(page: Page) -> dict[str, str]:
    """Return verdicts by the first letters of their claims."""
    return {finding.claim[:40]: finding.verdict for finding in page.findings}
