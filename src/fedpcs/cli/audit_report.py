"""What `fedpcs audit` says: one JSON object, or a short table for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from fedpcs import _format
from fedpcs.privacy.audit import FALSE_POSITIVE_RATES, AuditResult
from fedpcs.privacy.noise_law import FALSE_ALARM
from fedpcs.privacy.standing import noise_standing
from fedpcs.studies.audit import Audit


def audit_object(audit: Audit) -> dict[str, Any]:
    """Return the JSON object of `fedpcs audit`."""
    result, plan = audit.result, audit.plan
    theory = result.claim.true_positive_rate(FALSE_POSITIVE_RATES).tolist()
    return {
        "status": "contradicted" if result.is_contradicted else "not-contradicted",
        "reasons": list(reasons(result)),
        "mode": audit.scenario.mode,
        "claim": {
            "rho": float(result.claim.rho),
            "rho_per_round": float(audit.scenario.budget),
            "num_rounds": plan.num_rounds,
            "delta": result.claim.delta,
            "epsilon": result.claim.epsilon,
            "unit": audit.scenario.level.unit,
            "neighbours": str(audit.scenario.level.relation),
            "is_proven": audit.scenario.level.is_proven,
        },
        "noise": {"source": plan.noise, "is_guarantee": audit.is_guarantee},
        "canaries": {"held_in": result.num_canaries, "held_out": result.num_canaries, "seed": plan.seed},
        "lower_bounds": {**asdict(result.bounds), "gaussian_assumes": "a Gaussian trade-off"},
        "verdict_bounds": {**asdict(result.verdict_bounds), "false_alarm": FALSE_ALARM},
        "attack": {
            "auc": result.auc,
            "auc_theory": result.claim.auc,
            "true_positive_rate": [
                {"false_positive_rate": rate, "seen": seen, "theory": most}
                for rate, seen, most in zip(FALSE_POSITIVE_RATES, result.true_positive_rates, theory, strict=True)
            ],
        },
        "checks": [asdict(check) for check in result.checks],
        "remark": audit.scenario.remark,
    }


def print_audit(audit: Audit, console: Console) -> None:
    """Print the short table of `fedpcs audit`."""
    result, scenario = audit.result, audit.scenario
    table = Table(title=f"Privacy audit, mode {scenario.mode}", title_justify="left", show_header=False)
    table.add_row("verdict", _verdict(result))
    table.add_row("claim", _claim_words(audit))
    table.add_row("noise", _noise_words(audit))
    table.add_row("neighbours", scenario.neighbours)
    table.add_row(f"lower bounds at {100.0 * result.bounds.confidence:g}% confidence", _bound_words(result))
    table.add_row("attack", _attack_words(result))
    for check in result.checks:
        table.add_row(check.name, check.words if check.is_passed else f"FAILED: {check.words}")
    console.print(table)
    if scenario.remark:
        console.print(scenario.remark, highlight=False)


def reasons(result: AuditResult) -> tuple[str, ...]:
    """Return what contradicts the claim, each as a clause; empty if nothing does."""
    found = []
    if result.is_attack_contradicting:
        bounds = result.verdict_bounds
        assumed = "" if bounds.clopper_pearson >= bounds.gaussian else " for a Gaussian trade-off"
        shown = max(bounds.clopper_pearson, bounds.gaussian)
        found.append(f"the attack shows ε ≥ {_format.rounded_down(shown)}{assumed}, beyond chance")
    found += [f"{check.name}: {check.words}" for check in result.checks if not check.is_passed]
    return tuple(found)


def _verdict(result: AuditResult) -> str:
    if result.is_contradicted:
        return "CONTRADICTED: " + "; ".join(reasons(result))
    return "not contradicted. An audit can contradict a claim; it cannot prove one."


def _claim_words(audit: Audit) -> str:
    claim, level, num_rounds = audit.result.claim, audit.scenario.level, audit.plan.num_rounds
    over = "" if num_rounds == 1 else f" over {num_rounds} rounds"
    proven = "" if level.is_proven else "; the paper's calibration, not proven for more than one local step"
    spent = f"ε = {_format.rounded_up(claim.epsilon)} at δ = {_format.amount(claim.delta)}"
    return f"{spent} ({claim.rho}{over}) for {level.relation}{proven}"


def _noise_words(audit: Audit) -> str:
    return f"{audit.plan.noise}: {noise_standing(audit.plan.noise)}"


def _bound_words(result: AuditResult) -> str:
    bounds, claimed = result.bounds, result.claim.epsilon
    share = f": {bounds.gaussian / claimed:.0%} of the claim" if claimed > 0.0 else ""
    words = (
        f"ε ≥ {_format.rounded_down(bounds.clopper_pearson)} assuming nothing\n"
        f"ε ≥ {_format.rounded_down(bounds.gaussian)} assuming a Gaussian trade-off{share}\n"
        f"{result.num_canaries:,} canaries held in and {result.num_canaries:,} held out can show "
        f"{_format.rounded_down(bounds.ceiling)} at most"
    )
    if max(bounds.clopper_pearson, bounds.gaussian) > claimed and not result.is_attack_contradicting:
        words += (
            f"\nAbove the claim, but within chance: one sound audit in {1.0 / (1.0 - bounds.confidence):.0f} is. "
            f"The verdict allows one in {1.0 / FALSE_ALARM:,.0f}."
        )
    return words


def _attack_words(result: AuditResult) -> str:
    rates = result.claim.true_positive_rate(FALSE_POSITIVE_RATES)
    lines = [f"AUC {result.auc:.3f} ({result.claim.auc:.3f} at the claim)"]
    lines += [
        f"finds {100.0 * seen:.3g} % at {100.0 * rate:g} % false alarms ({100.0 * float(most):.3g} % at the claim)"
        for rate, seen, most in zip(FALSE_POSITIVE_RATES, result.true_positive_rates, rates, strict=True)
    ]
    return "\n".join(lines)
