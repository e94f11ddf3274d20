"""Verbs that check: doctor, privacy, samplers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedpcs.cli.options import DataDirOption, JsonOption, SetOption, verb
from fedpcs.errors import InvalidInput

if TYPE_CHECKING:
    from fedpcs._check import Check
    from fedpcs.trial.config import RunConfig

_COLOURS = {"fine": "green", "note": "yellow", "wrong": "bold red"}
_HOLDS_FOR = {
    "exact": "Gaussian noise (sources fast, secure)",
    "tight": "any ρ-zCDP release (source exact, too)",
    "standard": "any ρ-zCDP release, loosely",
}


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
    from fedpcs.trial.config import load_run_config

    if source is None and overrides:
        raise InvalidInput("--set changes a run; name one. Example: fedpcs doctor default --set rounds=5")
    config = None if source is None else load_run_config(source, overrides)
    from rich.text import Text

    from fedpcs.cli.printing import emit, print_table, status

    with status("Looking …"):
        checks = _checks(config, data_dir, node)
    rows = [
        (one.subject, Text(one.standing, _COLOURS[one.standing]), "\n→ ".join(filter(None, (one.found, one.remedy))))
        for one in checks
    ]
    headings = ("subject", "standing", "found")
    emit(checks, as_json, lambda: print_table(rows, headings, folded=("found",)))
    if any(one.standing == "wrong" for one in checks):
        raise typer.Exit(1)


def _checks(config: RunConfig | None, data_dir: Path | None, node: Path | None) -> list[Check]:
    if node is not None:
        from fedpcs.deploy.doctor_node import check_node

        return check_node(node, config)
    if config is None:
        from fedpcs.studies.doctor.installation import check_installation

        return check_installation(data_dir)
    from fedpcs import _plugins
    from fedpcs.studies.doctor.run import check_run

    _plugins.look_here(*config.named)
    return check_run(config, data_dir)


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
    from fedpcs import _format
    from fedpcs.cli.printing import emit, print_table, say
    from fedpcs.privacy.conversion import METHODS, to_epsilon, to_rho

    numbers: dict[str, dict[str, float]]
    if rho is not None and epsilon is None:
        given, symbol, to_text = rho, "ε", _format.rounded_up  # to the private side
        numbers = {"epsilon": {method: to_epsilon(rho, delta, method) for method in METHODS}}
    elif epsilon is not None and rho is None:
        given, symbol, to_text = epsilon, "ρ", _format.rounded_down
        numbers = {"rho": {method: to_rho(epsilon, delta, method) for method in METHODS}}
    else:
        problem = "what is to be converted is missing" if rho is None else "RHO and --epsilon were both given"
        raise InvalidInput(
            f"{problem}. Give one of them: a budget, as in `fedpcs privacy 0.5`, or an ε, as in `fedpcs privacy "
            "--epsilon 8`. RHO is a zCDP budget ρ."
        )
    (converted,) = numbers.values()

    def show() -> None:
        title = f"{'ρ' if symbol == 'ε' else 'ε'} = {_format.setting(given)} at δ = {_format.amount(delta)}"
        rows = [(method, to_text(converted[method]), _HOLDS_FOR[method]) for method in METHODS]
        print_table(rows, ("conversion", symbol, "holds for"), right=(symbol,), title=title)
        say("Quote exact if every release added Gaussian noise, tight if not; standard only to compare with papers.")

    emit({"rho": rho, "delta": delta, "epsilon": epsilon, **numbers}, as_json, show)


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
    from fedpcs._plugins import look_here
    from fedpcs.cli.printing import emit, print_facts, say
    from fedpcs.sampling import SAMPLERS, check_sampler, make_sampler

    if name is not None:
        look_here(name)
        sampler = make_sampler(name)
        check_sampler(sampler)
        one = _described(sampler)

        def show_one() -> None:
            print_facts(_facts(one), _headline(one))
            say(_promises(one))

        emit(one, as_json, show_one)
        return
    found = [_described(make_sampler(known)) for known in SAMPLERS]

    def show_all() -> None:
        for one in found:
            seen = ", ".join(dict.fromkeys(one["reads"] + one["hears"])) or "data sizes"
            private = f"private: {', '.join(one['private'])}" if one["private"] else "nothing private"
            say(_headline(one), f"    reads {seen}; {private}; {_weights(one)}", "")
        say("What is private must be charged, or every report of the draw carries a label.")

    emit(found, as_json, show_all)


def _described(sampler: Any) -> dict[str, Any]:
    """Return what a sampler draws by, sees, hears and discloses, and its settings with their defaults."""
    import sys
    from dataclasses import fields

    from fedpcs.sampling import disclosure
    from fedpcs.sampling.contract import is_unbiased

    text = (sys.modules[type(sampler).__module__].__doc__ or type(sampler).__doc__ or "").strip().splitlines()
    return {
        "name": sampler.name,
        "draws": text[0].partition(": ")[2] or text[0] if text else "",
        "reads": list(sampler.reads),
        "hears": list(sampler.hears),
        "private": list(disclosure(sampler).private),
        "label": disclosure(sampler).label,
        "is_unbiased": is_unbiased(sampler),
        "settings": {item.name: getattr(sampler, item.name) for item in fields(sampler)},
    }


def _headline(one: dict[str, Any]) -> str:
    return f"{one['name']}: {one['draws']}"


def _weights(one: dict[str, Any]) -> str:
    return "unbiased" if one["is_unbiased"] else "biased by intention"


def _facts(one: dict[str, Any]) -> dict[str, str]:
    facts = {heading: ", ".join(one[heading]) or "–" for heading in ("reads", "hears", "private")}
    return {**facts, "weights": _weights(one), **{name: repr(default) for name, default in one["settings"].items()}}


def _promises(one: dict[str, Any]) -> str:
    more = ", as designed, unbiased" if one["is_unbiased"] else ""
    return f"Keeps every promise: repeatable, tidy, resumable, defined, sized, impartial{more}."
