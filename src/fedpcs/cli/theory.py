"""The verb of theory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedpcs.cli.options import DataDirOption, JsonOption, check_study, make_folder, verb
from fedpcs.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fedpcs.studies.theory.quadratic import QuadraticTheory
    from fedpcs.studies.theory.run import TrialTheory


@verb()
def theory(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The folder of a finished run.")] = None,
    quadratic: Annotated[bool, typer.Option("--quadratic", help="A quadratic with known constants instead.")] = False,
    rounds: Annotated[int | None, typer.Option(min=2, max=10_000, help="Of the quadratic; 300 if absent.")] = None,
    trajectories: Annotated[
        int | None, typer.Option(min=2, max=1_000_000, help="Of the quadratic; 1,000 if absent.")
    ] = None,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw figures here.")] = None,
    data_dir: DataDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold a run under its bound, and say what to reduce first: noise, sampling, overshoot or drift.

    The run is made again, in a temporary folder, and every step is measured as it is taken.

    Example: fedpcs theory fedpcs-runs/default --figures figures

    Every bound on a problem whose constants are known: fedpcs theory --quadratic
    """
    if (run is None) != quadratic:
        raise InvalidInput("give either RUN or --quadratic. Example: fedpcs theory fedpcs-runs/default")
    if run is not None and (rounds is not None or trajectories is not None):
        raise InvalidInput("--rounds and --trajectories are of --quadratic; a run has its own. Leave them out.")
    if run is not None:
        check_study(run)
        if (run / "sweep.json").is_file():
            raise InvalidInput(f"{run}: is a sweep's folder. Give that of one `fedpcs run`.")
    if figures is not None:
        make_folder(figures)
    from fedpcs.cli.printing import emit, status

    if run is None:
        from fedpcs.studies.theory.quadratic import assess_quadratic

        with status("Training a quadratic …"):
            found = assess_quadratic(num_rounds=rounds or 300, num_trajectories=trajectories or 1000)
        _draw(figures, {"quadratic": lambda pictures: pictures.quadratic_figure(found)})
        emit(quadratic_object(found), as_json, lambda: show_quadratic(found))
        return
    from fedpcs.studies.theory.run import assess_run

    with status("Making the run again, and measuring its steps …"):
        trials = assess_run(run, data_dir)
    drawn = {
        "progress": lambda pictures: pictures.progress_figure(trials),
        "account": lambda pictures: pictures.account_figure(trials),
    }
    _draw(figures, drawn)
    emit(run_object(trials), as_json, lambda: show_run(trials))


def _draw(folder: Path | None, figures: Mapping[str, Callable[[Any], Figure]]) -> None:
    if folder is None:
        return
    from fedpcs.cli.printing import say
    from fedpcs.report import style
    from fedpcs.report.figures import theory as pictures

    for name, draw in figures.items():
        path = folder / f"{name}.png"
        style.save(draw(pictures), path)
        say(f"wrote {path}", to_stderr=True)


def run_object(trials: Sequence[TrialTheory]) -> dict[str, Any]:
    """Return everything that was found of a run, for JSON."""
    return {
        "samplers": [
            {
                "sampler": one.sampler,
                "seeds": one.num_seeds,
                "is_same": one.is_same,
                "loss": one.loss,
                "bound_on_change": one.bound.value,
                "rounds_under_bound": one.num_under,
                "account": one.totals,
                "shares": one.shares,
                "top_curvature": one.top_curvature,
                "mean_curvature": one.mean_curvature,
                "estimates": one.estimates,
                "kept": one.kept,
                "largest": one.largest,
                "advice": one.advice,
            }
            for one in trials
        ]
    }


def show_run(trials: Sequence[TrialTheory]) -> None:
    """Print where the loss went, and what to do first."""
    from fedpcs import _format
    from fedpcs.cli.printing import print_table, say

    parts = ("descent", "noise", "sampling", "overshoot", "drift", "rest")
    rows = []
    for one in trials:
        cells = [f"{one.totals[name]:+.2f}" for name in parts]
        losses = f"{one.loss[0]:.2f}→{one.loss[-1]:.2f}"
        rows.append((one.sampler, losses, *cells, f"{one.num_under}/{one.change.size}"))
    print_table(rows, ("sampler", "loss", *parts, "under"))
    say(
        "Training loss; what each part of the steps did to it, summed over rounds, mean over seeds; in how many rounds "
        "it was under its bound, which holds on average: a single seed may exceed it."
    )
    for one in trials:
        say(
            f"\n{one.sampler}: {one.largest} takes back {_format.percent(one.shares[one.largest])} of what descent "
            f"gains. {one.advice}",
            f"Curvature: {one.top_curvature.min():.3g} to {one.top_curvature.max():.3g} at most, "
            f"{one.mean_curvature.min():.3g} to {one.mean_curvature.max():.3g} on average, which is what noise meets. "
            f"Clipping, local steps and weights leave {_format.percent(one.kept)} of what whole gradients would gain.",
        )
        if (found := one.estimates) is not None:
            named = {"smoothness": found.smoothness, "PL": found.pl, "clients' gradients": found.gradient_bound}
            shown = (f"{name} {guess.value:.2g} ({guess.low:.2g} to {guess.high:.2g})" for name, guess in named.items())
            say(f"From the log alone: {', '.join(shown)}.")
        if not one.is_same:
            say("The run made again is not the same: its noise is not seeded, or the code has changed.")


def quadratic_object(found: QuadraticTheory) -> dict[str, Any]:
    """Return everything that was found of the quadratic, for JSON."""
    return {
        "words": found.summary,
        "trajectories": found.num_trajectories,
        "measured": found.measured.value,
        "standard_error": found.measured.standard_error,
        "valid": found.valid.value,
        "printed": found.printed.value,
        "terms": found.valid.terms,
        "dominating": found.valid.dominating(),
        "premises_missing": found.valid.missing,
        "printed_premises_missing": found.printed.missing,
        "largest_ratio": found.ratio.max(),
        "at_the_end": {
            name: {"measured": measured, "valid": valid, "printed": printed}
            for name, measured, valid, printed in found.rows
        },
    }


def show_quadratic(found: QuadraticTheory) -> None:
    """Print bounds beside what was measured."""
    from fedpcs.cli.printing import print_table, say

    rows = []
    for name, measured, valid, printed in found.rows:
        shown = "–" if printed is None else f"{printed:.3g}{' violated' if printed < measured else ''}"
        rows.append((name, f"{measured:.3g}", f"{valid:.3g}", f"{valid / measured:.1f}", shown))
    print_table(rows, ("at the end", "measured", "valid bound", "÷ measured", "as printed"))
    ratio = found.ratio
    say(
        found.summary,
        f"Over all rounds the rate's valid bound is {ratio.min():.1f} to {ratio.max():.1f} times what is measured; "
        f"{found.valid.dominating()} dominates it in the end.",
    )
