"""Compare solver and certificate with the independent judge.

A game is solved with `throw=False` and its profile judged. L ≤ true exploitability ≤ U is the judge's bracket
(`independent_response`), F the gain of the plans it found (L ≤ F up to the scale), c what the certificate claims, r
the resolution it states (the most it may have missed), ε the tolerance. Findings:

- "false claim": status "converged", yet L > ε. A plan that can be played proves it.
- "false refusal": any other status, budgets and retentions agree, yet F < ε/100, and F with four times the work too.
  "not-resolved" is none if c ≤ ε < c + r: the certificate says that it cannot tell, and its figures say so too.
- "unseen": L > c + r. The certificate missed more than it says it can miss.
- "invented": c > U, c > 100·F and c > ε/100. It claims a gain that cannot be had, and one that matters.
"""

from __future__ import annotations

from dataclasses import dataclass

from independent_response import Effort, Judgement, judge
from wild_games import WildGame

from fedpcs.game import certify, solve
from fedpcs.game.payoffs import Profile
from fedpcs.game.verify import Certificate

# Before certificates stated their resolution, their documentation said "up to about 1e-4".
_UNSTATED_RESOLUTION = 1e-4
_ROUNDING = 1e-10


@dataclass(frozen=True)
class Examined:
    """One game: what was claimed, what the judge found, and what is wrong with the claim."""

    status: str
    judged: Judgement
    findings: tuple[str, ...]


def examine(wild: WildGame, *, effort: Effort | None = None) -> Examined:
    """Solve a game, judge the profile and compare."""
    effort = effort or Effort()
    found = solve(wild.game, wild.reward, tolerance=wild.tolerance, throw=False)
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
    return Examined(found.status, judged, findings)


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
