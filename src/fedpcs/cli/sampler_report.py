"""What `fedpcs samplers` prints: what each sampler draws by, reads and promises."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from fedpcs._plugins import look_here
from fedpcs.sampling import SAMPLERS, check_sampler, disclosure, make_sampler
from fedpcs.sampling.contract import try_out


def describe_all() -> list[dict[str, Any]]:
    """Return a description of every registered sampler at its default settings."""
    return [describe(name) for name in SAMPLERS]


def describe(name: str) -> dict[str, Any]:
    """Return what a sampler draws by, sees, hears and discloses, and its settings with their defaults."""
    sampler = _make(name)
    words = (sys.modules[type(sampler).__module__].__doc__ or type(sampler).__doc__ or "").strip().splitlines()
    return {
        "name": sampler.name,
        "draws": words[0].partition(": ")[2] or words[0] if words else "",
        "reads": list(sampler.reads),
        "hears": list(sampler.hears),
        "private": list(disclosure(sampler).private),
        "label": disclosure(sampler).label,
        "is_unbiased": try_out(sampler).expansion is not None,
        "settings": {item.name: getattr(sampler, item.name) for item in fields(sampler)},
    }


def check(name: str) -> None:
    """Hold a sampler to every sampler's promises; raise if it breaks one."""
    check_sampler(_make(name))


def print_all(found: list[dict[str, Any]], console: Console) -> None:
    """Print two or three lines per sampler, at its default settings."""
    for one in found:
        seen = ", ".join(dict.fromkeys(one["reads"] + one["hears"])) or "data sizes"
        private = f"private: {', '.join(one['private'])}" if one["private"] else "nothing private"
        weights = "unbiased" if one["is_unbiased"] else "biased by intention"
        console.print(f"[bold]{one['name']}[/bold]: {one['draws']}", highlight=False)
        console.print(Padding(f"reads {seen}; {private}; {weights}", (0, 0, 1, 4)), highlight=False)
    console.print("What is private must be charged, or every report of the draw carries a label.", highlight=False)


def print_one(one: dict[str, Any], console: Console) -> None:
    """Print a sampler that has kept its promises."""
    console.print(f"[bold]{one['name']}[/bold]: {one['draws']}", highlight=False)
    table = Table(show_header=False)
    for heading in ("reads", "hears"):
        table.add_row(heading, ", ".join(one[heading]) or "–")
    table.add_row("private", ", ".join(one["private"]) or "–")
    table.add_row("weights", "unbiased" if one["is_unbiased"] else "biased by intention")
    for name, default in one["settings"].items():
        table.add_row(name, repr(default))
    console.print(table)
    promises = "repeatable, tidy, resumable, defined, sized, impartial"
    promises += ", as designed, unbiased" if one["is_unbiased"] else ""
    console.print(f"Keeps every promise: {promises}.", highlight=False)


def _make(name: str) -> Any:
    look_here(name)
    return make_sampler(name)
