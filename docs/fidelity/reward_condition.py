"""Erratum 5: the server's cost along ρ = G R + H: its slope at R → 0, and its second derivative."""

from __future__ import annotations

from _markdown import table

# One client, γ = 0.5, G = 1, and γ a/(t+1) = 100: H is the budget at reward 0.
PRIORITY, SLOPE, ACCURACY = 0.5, 1.0, 100.0
OFFSETS = (0.0, 0.5, 2.0, 6.0)


def cost(reward: float, offset: float) -> float:
    """Return γa/((t+1)ρ) + (1−γ) R ρ at ρ = G R + H."""
    budget = SLOPE * reward + offset
    return ACCURACY / budget + (1.0 - PRIORITY) * reward * budget


def slope(reward: float, offset: float) -> float:
    """Return ∂U/∂R; the paper prints it correctly."""
    budget = SLOPE * reward + offset
    return (1.0 - PRIORITY) * (2.0 * SLOPE * reward + offset) - ACCURACY * SLOPE / budget**2


def curvature(reward: float, offset: float, *, power: int) -> float:
    """Return ∂²U/∂R²: with power 3 as it is, with power 2 as printed."""
    budget = SLOPE * reward + offset
    return 2.0 * SLOPE * (1.0 - PRIORITY) + 2.0 * ACCURACY * SLOPE**2 / budget**power


def measured_curvature(reward: float, offset: float) -> float:
    """Return ∂²U/∂R² by central differences of the cost."""
    step = 1e-3
    middle = cost(reward, offset)
    return (cost(reward + step, offset) - 2.0 * middle + cost(reward - step, offset)) / step**2


def main() -> None:
    """Print one row per offset."""
    rows = []
    for offset in OFFSETS:
        start = "-∞" if offset == 0.0 else f"{slope(0.0, offset):.2f}"
        rows.append(
            [
                f"{offset:g}",
                start,
                "yes" if offset == 0.0 or slope(0.0, offset) < 0.0 else "no: R = 0 is best",
                f"{measured_curvature(1.0, offset):.3f}",
                f"{curvature(1.0, offset, power=3):.3f}",
                f"{curvature(1.0, offset, power=2):.3f}",
            ]
        )
    header = ["H", "∂U/∂R at R → 0", "interior reward", "∂²U/∂R² at R = 1, measured", "with cube", "as printed"]
    print(table(header, rows))


if __name__ == "__main__":
    main()
