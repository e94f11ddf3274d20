"""Verbs that check: doctor, privacy, samplers, audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedpcs.cli.options import DataDirOption, JsonOption, SetOption, verb
from fedpcs.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from fedpcs.studies.audit import Audit
    from fedpcs.trial.check import Check
    from fedpcs.trial.config import RunConfig


@verb()
def doctor(
    source: Annotated[
        str | None,
        typer.Argument(metavar="[CONFIG.toml|PRESET]", help="A run to look at before it is begun."),
    ] = None,
    overrides: SetOption = None,
    data_dir: DataDirOption = None,
    node: Annotated[
        Path | None, typer.Option(metavar="NODE.toml", help="A client's settings: look at its machine instead.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Look whether this installation works; of a run, what it will meet: its time, clipping, noise and ε.

    Exit code 0 if nothing is wrong, 1 if something is, 2 if the run could not be begun, 3 if its game has no certified
    equilibrium.

    Example: fedpcs doctor

    Before a run: fedpcs doctor fashion-mnist-useful --data-dir data

    On a client of a deployment: fedpcs doctor --node node.toml, or fedpcs doctor run.toml --node node.toml
    """
    from fedpcs.trial import config as run_config

    if source is None and overrides:
        raise InvalidInput("--set changes a run; name one. Example: fedpcs doctor default --set rounds=5")
    config = None if source is None else run_config.load_run_config(source, overrides)
    from dataclasses import asdict

    from rich.console import Console

    from fedpcs.cli import doctor_report
    from fedpcs.studies import doctor

    with Console(stderr=True).status("Looking …"):
        if node is not None:
            checks = _of_node(node, config)
        else:
            checks = doctor.check_installation(data_dir) if config is None else _of_run(config, data_dir)
    if as_json:
        print(json.dumps([asdict(one) for one in checks]))
    else:
        doctor_report.print_checks(checks, Console())
    if any(one.standing == "wrong" for one in checks):
        raise typer.Exit(1)


def _of_node(node: Path, config: RunConfig | None) -> list[Check]:
    from fedpcs.deploy.doctor_node import check_node

    return check_node(node, config)


def _of_run(config: RunConfig, data_dir: Path | None) -> list[Check]:
    from fedpcs import _plugins
    from fedpcs.studies import doctor_run

    _plugins.look_here(*config.named)
    return doctor_run.check_run(config, data_dir)


# A negative number is a value to refuse with a reason, not an unknown option.
@verb(context_settings={"ignore_unknown_options": True})
def privacy(
    rho: Annotated[float | None, typer.Argument(metavar="RHO", help="A zCDP budget, such as a client's total.")] = None,
    delta: Annotated[float, typer.Option(help="The δ to go with ε, strictly between 0 and 1.")] = 1e-5,
    epsilon: Annotated[float | None, typer.Option(help="Convert this ε to ρ instead.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Convert a zCDP budget ρ to (ε, δ), three ways, and say which to quote.

    Example: fedpcs privacy 0.5 --delta 1e-5

    And back: fedpcs privacy --epsilon 8 --delta 1e-5
    """
    if (rho is None) == (epsilon is None):
        what = "what is to be converted is missing" if rho is None else "RHO and --epsilon were both given"
        raise InvalidInput(
            f"{what}. Give one of them: a budget, as in `fedpcs privacy 0.5`, or an ε, as in `fedpcs privacy --epsilon "
            "8`. RHO is a zCDP budget ρ."
        )
    from rich.console import Console

    from fedpcs.cli import privacy_report

    found = privacy_report.to_both_sides(rho, epsilon, delta)
    if as_json:
        print(json.dumps(found))
    else:
        privacy_report.print_conversion(found, Console())


@verb()
def samplers(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One sampler, or your own as package.module:ClassName.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the samplers: what each reads from clients, whether that is private, whether its weights are unbiased.

    Example: fedpcs samplers

    With a NAME, show its settings and hold it to every sampler's promises: fedpcs samplers aocs
    """
    from rich.console import Console

    from fedpcs.cli import sampler_report

    if name is None:
        found = sampler_report.describe_all()
        if as_json:
            print(json.dumps(found))
        else:
            sampler_report.print_all(found, Console())
        return
    sampler_report.check(name)
    one = sampler_report.describe(name)
    if as_json:
        print(json.dumps(one, default=str))
    else:
        sampler_report.print_one(one, Console())


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
    from rich.console import Console

    from fedpcs.cli import audit_report
    from fedpcs.studies import audit as audit_run

    if figure is not None and (figure.is_dir() or not figure.parent.is_dir()):
        raise InvalidInput(f"--figure {figure}: cannot be written there. Give a file name in an existing folder.")
    talk = Console(stderr=True)
    with talk.status("Running canaries …"):
        found = audit_run.run_audit(
            mode, rho, num_canaries=canaries, noise=noise, seed=seed, delta=delta, num_rounds=rounds
        )
    if as_json:
        print(json.dumps(audit_report.audit_object(found)))
    else:
        audit_report.print_audit(found, Console())
    if figure is not None:
        _draw_audit(found, figure, talk)
    if found.result.is_contradicted:
        raise typer.Exit(7)


def _draw_audit(found: Audit, figure: Path, talk: Console) -> None:
    from fedpcs.report import style as figure_style
    from fedpcs.report.figures import audit as audit_figure

    try:
        figure_style.save(audit_figure.roc_figure(found), figure)
        talk.print(f"wrote {figure}")
    except InvalidInput as error:  # a picture that cannot be written must not hide the verdict
        if not found.result.is_contradicted:
            raise
        talk.print(f"fedpcs: {error}")
