"""What `fedpcs privacy` prints: one budget in three conversions, and which of them to quote."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from fedpcs import _format
from fedpcs.errors import InvalidInput
from fedpcs.privacy.conversion import METHODS, to_epsilon, to_rho

_WHEN = {
    "exact": "Gaussian noise (sources fast, secure)",
    "tight": "any ρ-zCDP release (source exact, too)",
    "standard": "any ρ-zCDP release, loosely",
}
_QUOTE = "Quote exact if every release added Gaussian noise, tight if not; standard only to compare with papers."


def to_both_sides(rho: float | None, epsilon: float | None, delta: float) -> dict[str, Any]:
    """Return ρ in ε, or ε in ρ, in all three conversions; exactly one of the two is given."""
    if rho is not None:
        return {"rho": rho, "delta": delta, "epsilon": {method: to_epsilon(rho, delta, method) for method in METHODS}}
    if epsilon is None:
        raise InvalidInput("rho or epsilon must be given, got neither.")
    return {"epsilon": epsilon, "delta": delta, "rho": {method: to_rho(epsilon, delta, method) for method in METHODS}}


def print_conversion(found: dict[str, Any], console: Console) -> None:
    """Print a conversion as a table with the sentence that says which line to quote."""
    is_forward = isinstance(found["epsilon"], dict)
    given, asked = ("rho", "epsilon") if is_forward else ("epsilon", "rho")
    symbols = {"rho": "ρ", "epsilon": "ε"}
    title = f"{symbols[given]} = {found[given]:.7g} at δ = {_format.amount(found['delta'])}"
    table = Table(title=title, title_justify="left")
    table.add_column("conversion")
    table.add_column(symbols[asked], justify="right")
    table.add_column("holds for")
    printed = _format.rounded_up if is_forward else _format.rounded_down  # to the private side
    for method in METHODS:
        table.add_row(method, printed(found[asked][method]), _WHEN[method])
    console.print(table)
    console.print(_QUOTE, highlight=False)
