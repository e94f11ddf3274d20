"""What `fedpcs theory` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from fedpcs import _format
from fedpcs.studies.theory_quadratic import QuadraticTheory
from fedpcs.studies.theory_run import TrialTheory
from fedpcs.theory.estimates import Estimates


def run_as_dict(trials: Sequence[TrialTheory]) -> dict[str, Any]:
    """Return everything that was found of a run, for JSON."""
    return {
        "samplers": [
            {
                "sampler": one.sampler,
                "seeds": one.num_seeds,
                "is_same": one.is_same,
                "loss": one.loss.tolist(),
                "bound_on_change": one.bound.value.tolist(),
                "rounds_under_bound": one.num_under,
                "account": one.totals,
                "shares": one.shares,
                "top_curvature": one.top_curvature.tolist(),
                "mean_curvature": one.mean_curvature.tolist(),
                "estimates": None if one.estimates is None else asdict(one.estimates),
                "kept": one.kept,
                "largest": one.largest,
                "advice": one.advice,
            }
            for one in trials
        ]
    }


def print_run(trials: Sequence[TrialTheory], console: Console) -> None:
    """Print where the loss went, and what to do first."""
    parts = ("descent", "noise", "sampling", "overshoot", "drift", "rest")
    table = Table("sampler", "loss", *parts, "under", box=None)
    for one in trials:
        cells = [f"{one.totals[name]:+.2f}" for name in parts]
        table.add_row(
            one.sampler, f"{one.loss[0]:.2f}→{one.loss[-1]:.2f}", *cells, f"{one.num_under}/{one.change.size}"
        )
    console.print(table)
    console.print(
        "Training loss; what each part of the steps did to it, summed over rounds, mean over seeds; in how many rounds "
        "it was under its bound, which holds on average: a single seed may exceed it.",
        highlight=False,
    )
    for one in trials:
        console.print(
            f"\n{one.sampler}: {one.largest} takes back {_format.percent(one.shares[one.largest])} of what descent "
            f"gains. {one.advice}",
            highlight=False,
        )
        console.print(
            f"Curvature: {one.top_curvature.min():.3g} to {one.top_curvature.max():.3g} at most, "
            f"{one.mean_curvature.min():.3g} to {one.mean_curvature.max():.3g} on average, which is what noise meets. "
            f"Clipping, local steps and weights leave {_format.percent(one.kept)} of what whole gradients would gain.",
            highlight=False,
        )
        if one.estimates is not None:
            console.print(f"From the log alone: {_estimate_words(one.estimates)}.", highlight=False)
        if not one.is_same:
            console.print("The run made again is not the same: its noise is not seeded, or the code has changed.")


def _estimate_words(found: Estimates) -> str:
    named = {"smoothness": found.smoothness, "PL": found.pl, "clients' gradients": found.gradient_bound}
    return ", ".join(f"{name} {one.value:.2g} ({one.low:.2g} to {one.high:.2g})" for name, one in named.items())


def quadratic_as_dict(found: QuadraticTheory) -> dict[str, Any]:
    """Return everything that was found of the quadratic, for JSON."""
    return {
        "words": found.words,
        "trajectories": found.num_trajectories,
        "measured": found.measured.value.tolist(),
        "standard_error": found.measured.standard_error.tolist(),
        "valid": found.valid.value.tolist(),
        "printed": found.printed.value.tolist(),
        "terms": {name: value.tolist() for name, value in found.valid.terms.items()},
        "dominating": found.valid.dominating(),
        "premises_missing": list(found.valid.missing),
        "printed_premises_missing": list(found.printed.missing),
        "largest_ratio": float(found.ratio.max()),
        "at_the_end": {
            name: {"measured": measured, "valid": valid, "printed": printed}
            for name, measured, valid, printed in found.rows
        },
    }


def print_quadratic(found: QuadraticTheory, console: Console) -> None:
    """Print bounds beside what was measured."""
    table = Table("at the end", "measured", "valid bound", "÷ measured", "as printed", box=None)
    for name, measured, valid, printed in found.rows:
        shown = "–" if printed is None else f"{printed:.3g}{' violated' if printed < measured else ''}"
        table.add_row(name, f"{measured:.3g}", f"{valid:.3g}", f"{valid / measured:.1f}", shown)
    console.print(table)
    console.print(found.words, highlight=False)
    ratio = found.ratio
    console.print(
        f"Over all rounds the rate's valid bound is {ratio.min():.1f} to {ratio.max():.1f} times what is measured; "
        f"{found.valid.dominating()} dominates it in the end.",
        highlight=False,
    )
