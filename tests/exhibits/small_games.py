"""Games of twelve clients and six rounds under a constant reward: every exhibit's page from them takes a moment."""

from __future__ import annotations

from fedpcs.exhibits.solved_games import Games
from fedpcs.game.config import GameFile
from fedpcs.report.page import Page

GAMES = Games(GameFile(num_clients=12, last_round=5, reward=20.0))


def verdicts(page: Page) -> dict[str, str]:
    """Return verdicts by the first words of their claims."""
    return {finding.claim[:40]: finding.verdict for finding in page.findings}


def all_words(page: Page) -> str:
    """Return everything a page says in sentences."""
    said = [page.headline, page.facts, *page.shrunk, *page.warnings]
    return " ".join([*said, *(f"{finding.claim} {finding.found}" for finding in page.findings)])
