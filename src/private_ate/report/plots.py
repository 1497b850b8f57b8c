"""Drawings for people; each needs matplotlib, which the `plots` extra installs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    from private_ate.planning import Plan

__all__ = ["draw_plan"]


def draw_plan(plan: Plan, path: Path) -> None:
    """Draw expected error and half-width against ε into an SVG or PNG file."""
    if path.suffix.lower() not in {".svg", ".png", ".pdf"}:
        msg = f"a plot is written as .svg, .png or .pdf, not {path.name!r}"
        raise ArgumentError(msg)
    figure, axes = _figure()
    epsilons = [row.epsilon for row in plan.rows]
    for name, style, values in (
        ("half-width of the interval", "o-", [row.half_width for row in plan.rows]),
        ("expected error", "s--", [row.expected_error for row in plan.rows]),
        ("of which noise", "^:", [row.noise_error for row in plan.rows]),
    ):
        axes.plot(epsilons, values, style, color="black", label=name, markersize=5)
    if plan.half_width is not None:
        axes.axhline(plan.half_width, color="0.6", linewidth=1)
        axes.text(epsilons[0], plan.half_width, " wanted", va="bottom", color="0.4")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("privacy budget ε")
    axes.set_ylabel("in units of the outcome")
    axes.set_title(f"What to expect, {plan.level} level")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path)


def _figure() -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  # an extra
    except ImportError as cause:
        msg = "plots need matplotlib: pip install 'private-ate[plots]'"
        raise ArgumentError(msg) from cause
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    return figure, figure.subplots()
