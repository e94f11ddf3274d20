"""Compare solver and certificate with the independent judge, and print a table of wild games.

    python tests/game/independent_check_report.py --games 200 --seed 0

A game is solved with `throw=False` and its profile judged. L ≤ true exploitability ≤ U is the judge's bracket
(`independent_response`), F the gain of the plans it found (L ≤ F up to the scale), c what the certificate claims, r
the resolution it states (the most it may have missed), ε the tolerance. Findings:

- "false claim": status "converged", yet L > ε. A plan that can be played proves it.
- "false refusal": any other status, budgets and retentions agree, yet F < ε/100, and F with four times the work too.
  "not-resolved" is none if c ≤ ε < c + r: the certificate says that it cannot tell, and its figures say so too.
- "unseen": L > c + r. The certificate missed more than it says it can miss.
- "invented": c > U, c > 100·F and c > ε/100. It claims a gain that cannot be had, and one that matters.

Where `solve` raises because the certificate cannot resolve the tolerance, that is counted as "too fine".
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass

from independent_response import Effort, Judgement, judge
from wild_games import WildGame, wild_game

from fedpcs.errors import InvalidInput
from fedpcs.game import certify, solve
from fedpcs.game.payoffs import Profile
from fedpcs.game.verify import Certificate

# Before certificates stated their resolution, their documentation said "up to about 1e-4".
_UNSTATED_RESOLUTION = 1e-4
_ROUNDING = 1e-10


@dataclass(frozen=True)
class Examined:
    """One game: what was claimed, what was found, and what is wrong with the claim."""

    wild: WildGame
    status: str
    claimed: float
    resolution: float
    judged: Judgement | None
    findings: tuple[str, ...]
    solve_seconds: float
    judge_seconds: float


def examine(wild: WildGame, *, effort: Effort | None = None) -> Examined:
    """Solve a game, judge the profile and compare."""
    effort = effort or Effort()
    began = time.perf_counter()
    try:
        found = solve(wild.game, wild.reward, tolerance=wild.tolerance, throw=False)
    except InvalidInput as error:
        if "resol" not in str(error):
            raise
        return Examined(wild, "too fine", 0.0, 0.0, None, (), time.perf_counter() - began, 0.0)
    solved = time.perf_counter()
    judged = judge(found.profile, wild.reward, wild.game, effort=effort)
    certificate = found.certificate
    claimed = certificate.relative
    findings = compare(certificate, judged, wild.tolerance)
    if found.status == "converged" and judged.at_least > wild.tolerance:
        findings = ("false claim", *findings)
    too_coarse = claimed <= wild.tolerance < claimed + resolution(certificate)
    excused = found.status == "not-resolved" and too_coarse
    refused = found.status != "converged" and not excused and certificate.inconsistency <= 1e-6
    if refused and judged.found < 0.01 * wild.tolerance:
        judged = judge(found.profile, wild.reward, wild.game, effort=effort.doubled())
        if judged.found < 0.01 * wild.tolerance:
            findings = ("false refusal", *findings)
    seconds = solved - began, time.perf_counter() - solved
    return Examined(wild, found.status, claimed, resolution(certificate), judged, findings, *seconds)


def compare(certificate: Certificate, judged: Judgement, tolerance: float) -> tuple[str, ...]:
    """Return what is wrong with a certificate, whatever it was asked about."""
    claimed = certificate.relative
    findings = []
    if judged.at_least > claimed + resolution(certificate) + _ROUNDING:
        findings.append("unseen")
    if claimed > max(judged.at_most, 100.0 * judged.found, 0.01 * tolerance) + _ROUNDING:
        findings.append("invented")
    return tuple(findings)


def compare_profile(profile: Profile, wild: WildGame, *, effort: Effort | None = None) -> tuple[str, ...]:
    """Certify and judge any profile of a game, equilibrium or not, and return the findings."""
    judged = judge(profile, wild.reward, wild.game, effort=effort or Effort())
    return compare(certify(profile, wild.reward, wild.game), judged, wild.tolerance)


def resolution(certificate: Certificate) -> float:
    """Return the most that a certificate says it may have missed, relative."""
    return float(getattr(certificate, "resolution", _UNSTATED_RESOLUTION))


def _main() -> None:
    parser = argparse.ArgumentParser(description="Solver and certificate against the independent judge.")
    parser.add_argument("--games", type=int, default=200, help="how many games")
    parser.add_argument("--first", type=int, default=0, help="index of the first game")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("index     N  T+1    K  selection     tolerance  status              claimed  resolution"
          "     found  [at least,  at most]  solve s  judge s  kind: findings")  # fmt: skip
    examined = []
    for index in range(options.first, options.first + options.games):
        one = examine(wild_game(index, seed=options.seed))
        examined.append(one)
        print(_row(index, one), flush=True)
    print(_summary(examined))


def _row(index: int, one: Examined) -> str:
    game = one.wild.game
    size = f"{index:5d} {game.num_clients:5d} {game.last_round + 1:4d} {int(game.cohort_size[0]):4d}"
    words = f"{game.selection:13s} {one.wild.tolerance:9.0e}  {one.status:18s}"
    if one.judged is None:
        return f"{size}  {words} {one.solve_seconds:8.1f} s  {one.wild.name}"
    figures = f"{one.claimed:8.1e} {one.resolution:11.1e}  {one.judged.found:8.1e}"
    bracket = f"[{one.judged.at_least:8.1e}, {one.judged.at_most:8.1e}]"
    seconds = f"{one.solve_seconds:8.1f} {one.judge_seconds:8.1f}"
    return f"{size}  {words} {figures}  {bracket} {seconds}  {one.wild.name}: {', '.join(one.findings) or 'ok'}"


def _summary(examined: list[Examined]) -> str:
    judged = [one for one in examined if one.judged is not None]
    status = Counter(one.status for one in examined)
    findings = Counter(finding for one in examined for finding in one.findings)
    lines = [
        f"{len(examined)} games, {sum(one.wild.game.num_clients > 400 for one in examined)} above 400 clients.",
        f"Status: {dict(status)}",
        f"Findings: {dict(findings) or 'none'}",
    ]
    claims = [one for one in judged if one.status == "converged"]
    if claims:
        worst = max(claims, key=lambda one: one.judged.at_least / one.wild.tolerance)
        ratio = worst.judged.at_least / worst.wild.tolerance
        lines.append(f"Worst claim: exploitability at least {ratio:.3g} times the tolerance ({worst.wild.name}).")
    refusals = [one for one in judged if one.status != "converged"]
    if refusals:
        worst = min(refusals, key=lambda one: one.judged.found / one.wild.tolerance)
        ratio = worst.judged.found / worst.wild.tolerance
        lines.append(f"Worst refusal: exploitability found is {ratio:.3g} times the tolerance ({worst.wild.name}).")
    lines.append(
        f"Seconds: {sum(one.solve_seconds for one in examined):.0f} to solve, "
        f"{sum(one.judge_seconds for one in examined):.0f} to judge."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    _main()
