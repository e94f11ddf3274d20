"""The verb audit: try to break a privacy mode's claim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedpcs.cli.options import JsonOption, verb
from fedpcs.errors import InvalidInput

if TYPE_CHECKING:
    from fedpcs.privacy.audit import AuditResult
    from fedpcs.studies.audit.attack import Audit


@verb()
def audit(
    mode: Annotated[str, typer.Option(help="client, record, record-training, paper or paper-one-step.")] = "client",
    rho: Annotated[float, typer.Option(help="Budget ρ of one round.")] = 1.0,
    canaries: Annotated[int, typer.Option(help="Runs with the canary; as many again go without.")] = 1000,
    noise: Annotated[str, typer.Option(help="secure, exact or fast (seeded: a simulation).")] = "secure",
    delta: Annotated[float, typer.Option(help="The δ to go with ε, strictly between 0 and 1.")] = 1e-5,
    seed: Annotated[int, typer.Option(help="Of canaries and backgrounds; of the noise too if it is fast.")] = 0,
    rounds: Annotated[int, typer.Option(help="Rounds each canary takes part in; ρ adds up.")] = 1,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the attack's ROC curve here; no picture if absent.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Try to break a privacy mode's claim with canaries, and print lower bounds on its ε.

    Exit code 7 if the claim is contradicted, which is expected of mode paper; 0 if it is not; 2 for bad input.

    Example: fedpcs audit --mode record --rho 0.5 --figure roc.png
    """
    from fedpcs.privacy.modes import audit_named

    audit_named(mode)  # a misspelt name is refused before SciPy is imported
    from fedpcs.cli.printing import emit, print_facts, say, status
    from fedpcs.studies.audit.attack import run_audit

    if figure is not None and (figure.is_dir() or not figure.parent.is_dir()):
        raise InvalidInput(f"--figure {figure}: cannot be written there. Give a file name in an existing folder.")
    with status("Running canaries …"):
        found = run_audit(mode, rho, num_canaries=canaries, noise=noise, seed=seed, delta=delta, num_rounds=rounds)

    def show() -> None:
        print_facts(audit_facts(found), f"Privacy audit, mode {mode}")
        if found.scenario.remark:
            say(found.scenario.remark)

    emit(audit_object(found), as_json, show)
    if figure is not None:
        _draw(found, figure)
    if found.result.is_contradicted:
        raise typer.Exit(7)


def _draw(found: Audit, figure: Path) -> None:
    from fedpcs.cli.printing import say
    from fedpcs.report import style
    from fedpcs.report.figures.audit import roc_figure

    try:
        style.save(roc_figure(found), figure)
        say(f"wrote {figure}", to_stderr=True)
    except InvalidInput as error:  # a picture that cannot be written must not hide the verdict
        if not found.result.is_contradicted:
            raise
        say(f"fedpcs: {error}", to_stderr=True)


def audit_object(audit: Audit) -> dict[str, Any]:
    """Return the JSON object of `fedpcs audit`."""
    from dataclasses import asdict

    from fedpcs.privacy.audit import FALSE_POSITIVE_RATES
    from fedpcs.privacy.noise_law import FALSE_ALARM

    result, plan, level = audit.result, audit.plan, audit.scenario.level
    most = result.claim.true_positive_rate(FALSE_POSITIVE_RATES)
    return {
        "status": "contradicted" if result.is_contradicted else "not-contradicted",
        "reasons": reasons(result),
        "mode": audit.scenario.mode,
        "claim": {
            "rho": float(result.claim.rho),
            "rho_per_round": float(audit.scenario.budget),
            "num_rounds": plan.num_rounds,
            "delta": result.claim.delta,
            "epsilon": result.claim.epsilon,
            "unit": level.unit,
            "neighbours": str(level.relation),
            "is_proven": level.is_proven,
        },
        "noise": {"source": plan.noise, "is_guarantee": audit.is_guarantee},
        "canaries": {"held_in": result.num_canaries, "held_out": result.num_canaries, "seed": plan.seed},
        "lower_bounds": {**asdict(result.bounds), "gaussian_assumes": "a Gaussian trade-off"},
        "verdict_bounds": {**asdict(result.verdict_bounds), "false_alarm": FALSE_ALARM},
        "attack": {
            "auc": result.auc,
            "auc_theory": result.claim.auc,
            "true_positive_rate": [
                dict(zip(("false_positive_rate", "seen", "theory"), three, strict=True))
                for three in zip(FALSE_POSITIVE_RATES, result.true_positive_rates, most, strict=True)
            ],
        },
        "checks": result.checks,
        "remark": audit.scenario.remark,
    }


def audit_facts(audit: Audit) -> dict[str, str]:
    """Return what `fedpcs audit` prints for people."""
    from fedpcs import _format
    from fedpcs.privacy.standing import noise_standing

    result, claim, level = audit.result, audit.result.claim, audit.scenario.level
    over = "" if audit.plan.num_rounds == 1 else f" over {audit.plan.num_rounds} rounds"
    proven = "" if level.is_proven else "; the paper's calibration, not proven for more than one local step"
    spent = f"ε = {_format.rounded_up(claim.epsilon)} at δ = {_format.amount(claim.delta)}"
    verdict = "not contradicted. An audit can contradict a claim; it cannot prove one."
    return {
        "verdict": "CONTRADICTED: " + "; ".join(reasons(result)) if result.is_contradicted else verdict,
        "claim": f"{spent} ({claim.rho}{over}) for {level.relation}{proven}",
        "noise": f"{audit.plan.noise}: {noise_standing(audit.plan.noise)}",
        "neighbours": audit.scenario.neighbours,
        f"lower bounds, {_format.percent(result.bounds.confidence)} sure": _bounds(result),
        "attack": _attack(result),
        **{one.name: one.words if one.is_passed else f"FAILED: {one.words}" for one in result.checks},
    }


def reasons(result: AuditResult) -> list[str]:
    """Return what contradicts the claim, each as a clause; empty if nothing does."""
    from fedpcs import _format

    found = []
    if result.is_attack_contradicting:
        bounds = result.verdict_bounds
        assumed = "" if bounds.clopper_pearson >= bounds.gaussian else " for a Gaussian trade-off"
        shown = _format.rounded_down(max(bounds.clopper_pearson, bounds.gaussian))
        found.append(f"the attack shows ε ≥ {shown}{assumed}, beyond chance")
    return [*found, *(f"{check.name}: {check.words}" for check in result.checks if not check.is_passed)]


def _bounds(result: AuditResult) -> str:
    from fedpcs import _format
    from fedpcs.privacy.noise_law import FALSE_ALARM

    bounds, claimed = result.bounds, result.claim.epsilon
    share = f": {_format.percent(bounds.gaussian / claimed)} of the claim" if claimed > 0.0 else ""
    text = (
        f"ε ≥ {_format.rounded_down(bounds.clopper_pearson)} assuming nothing\n"
        f"ε ≥ {_format.rounded_down(bounds.gaussian)} assuming a Gaussian trade-off{share}\n"
        f"{result.num_canaries:,} canaries held in and {result.num_canaries:,} held out can show "
        f"{_format.rounded_down(bounds.ceiling)} at most"
    )
    if max(bounds.clopper_pearson, bounds.gaussian) > claimed and not result.is_attack_contradicting:
        text += (
            f"\nAbove the claim, but within chance: one sound audit in {round(1.0 / (1.0 - bounds.confidence))} is. "
            f"The verdict allows one in {round(1.0 / FALSE_ALARM):,}."
        )
    return text


def _attack(result: AuditResult) -> str:
    from fedpcs import _format
    from fedpcs.privacy.audit import FALSE_POSITIVE_RATES

    most = result.claim.true_positive_rate(FALSE_POSITIVE_RATES).tolist()
    lines = [f"AUC {_format.amount(result.auc)} ({_format.amount(result.claim.auc)} at the claim)"]
    for rate, seen, theory in zip(FALSE_POSITIVE_RATES, result.true_positive_rates, most, strict=True):
        at_claim = f"({_format.share(theory)} at the claim)"
        lines.append(f"finds {_format.share(seen)} at {_format.percent(rate)} false alarms {at_claim}")
    return "\n".join(lines)
