"""Draws grids of curves and heat maps in the layout of the paper, as SVG and PNG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from private_ate.errors import ArgumentError
from private_ate.experiments.arms import Style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure

__all__ = [
    "Axis",
    "Curve",
    "HeatMap",
    "Panel",
    "draw_curves",
    "draw_heat_maps",
    "plain_ticks",
    "require_plots",
    "save_figure",
]

_PANEL_WIDTH, _PANEL_HEIGHT = 3.1, 2.7  # inches
_FEW_PLACES = 8  # that fit beside each other below a panel


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis shows, whether it is logarithmic, and where it stops below."""

    label: str
    log: bool = False
    floor: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """A line with a standard error at each point."""

    label: str
    style: Style
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float]


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot of a grid; ``level`` is a horizontal reference line, NaN for none."""

    title: str
    curves: Sequence[Curve]
    level: float = math.nan


@dataclass(frozen=True, slots=True)
class HeatMap:
    """One plot of values over two shares; NaN where there is nothing."""

    title: str
    columns: Sequence[float]
    rows: Sequence[float]
    values: Sequence[Sequence[float]]


def require_plots() -> None:
    """Say at once, before hours of computing, that figures need matplotlib."""
    try:
        import matplotlib as mpl  # an extra
    except ImportError as cause:
        msg = "figures need matplotlib; install it with `pip install private-ate[plots]`"
        raise ArgumentError(msg) from cause
    mpl.use("Agg", force=False)


def draw_curves(
    path: Path, grid: Sequence[Sequence[Panel]], x: Axis, y: Axis, *, level_name: str = ""
) -> None:
    """Draw rows of panels that share their axes' meaning, with one legend below them all."""
    figure, axes = _subplots(len(grid), max(len(row) for row in grid))
    for axes_row, row in zip(axes, grid, strict=True):
        for place, axis in enumerate(axes_row):
            if place >= len(row):
                axis.set_visible(False)
                continue
            _draw_panel(axis, row[place], x, y, level_name)
        axes_row[0].set_ylabel(y.label)
    for axis in axes[-1]:
        axis.set_xlabel(x.label)
    _legend_below(figure, [axis for axes_row in axes for axis in axes_row])
    save_figure(figure, path)


def draw_heat_maps(path: Path, grid: Sequence[Sequence[HeatMap]], x: Axis, y: Axis) -> None:
    """Draw rows of heat maps with the value in every cell; light is good."""
    figure, axes = _subplots(len(grid), max(len(row) for row in grid))
    for axes_row, row in zip(axes, grid, strict=True):
        for axis, heat_map in zip(axes_row, row, strict=True):
            _draw_heat_map(axis, heat_map)
        axes_row[0].set_ylabel(y.label)
    for axis in axes[-1]:
        axis.set_xlabel(x.label)
    figure.tight_layout()
    save_figure(figure, path)


def _draw_panel(axis: Axes, panel: Panel, x: Axis, y: Axis, level_name: str) -> None:
    for curve in panel.curves:
        axis.errorbar(
            curve.x, curve.y, yerr=_bars(curve, y), label=curve.label, color=curve.style.color,
            marker=curve.style.marker, linestyle=curve.style.line, markersize=4.5, linewidth=1.2,
            elinewidth=0.7, capsize=1.5,
        )  # fmt: skip
    if not math.isnan(panel.level):
        axis.axhline(panel.level, color="black", linewidth=0.8, dashes=(6, 3), label=level_name)
    if x.log:
        axis.set_xscale("log")
        _ticks_where_measured(axis, panel)
    if y.log:
        axis.set_yscale("log")
    if y.floor is not None and axis.get_ylim()[0] < y.floor:
        axis.set_ylim(bottom=y.floor)
    if y.log:
        plain_ticks(axis.yaxis, axis.get_ylim())
    axis.set_title(panel.title, fontsize=10)
    axis.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)


def _ticks_where_measured(axis: Axes, panel: Panel) -> None:
    """Write the places of the points, if they are few; beside each other, powers would overlap."""
    places = sorted({place for curve in panel.curves for place in curve.x})
    if 0 < len(places) <= _FEW_PLACES:
        axis.set_xticks(places, [f"{place:g}" for place in places])
        axis.minorticks_off()
    else:
        plain_ticks(axis.xaxis, axis.get_xlim())


def plain_ticks(axis: XAxis | YAxis, limits: tuple[float, float]) -> None:
    """Write 0.1, 0.2, 0.5 instead of powers: many panels span less than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # an extra

    low, high = limits
    steps = (1.0, 2.0, 5.0) if high / low < 200 else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def _bars(curve: Curve, y: Axis) -> list[list[float]]:
    """Return lengths of error bars; on a logarithmic axis none reaches zero."""
    upper = [0.0 if math.isnan(error) else error for error in curve.error]
    if not y.log:
        return [upper, upper]
    lower = [min(error, 0.9 * value) for error, value in zip(upper, curve.y, strict=True)]
    return [lower, upper]


def _draw_heat_map(axis: Axes, heat_map: HeatMap) -> None:
    from matplotlib.colors import LogNorm  # an extra

    known = [value for row in heat_map.values for value in row if not math.isnan(value)]
    norm = LogNorm(min(known), max(*known, 1.01 * min(known)))
    axis.imshow(heat_map.values, origin="lower", cmap="cividis_r", norm=norm, aspect="auto")
    for place_y, row in enumerate(heat_map.values):
        for place_x, value in enumerate(row):
            if not math.isnan(value):
                shade = "white" if float(norm(value)) > 0.5 else "black"
                axis.text(
                    place_x, place_y, _short(value), ha="center", va="center", fontsize=6,
                    color=shade,
                )  # fmt: skip
    axis.set_xticks(range(len(heat_map.columns)), [f"{share:g}" for share in heat_map.columns])
    axis.set_yticks(range(len(heat_map.rows)), [f"{share:g}" for share in heat_map.rows])
    axis.tick_params(labelsize=7)
    axis.set_title(heat_map.title, fontsize=10)


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.3g}"


def _subplots(rows: int, columns: int) -> tuple[Figure, Sequence[Sequence[Axes]]]:
    require_plots()
    from matplotlib import pyplot as plt  # an extra

    figure, axes = plt.subplots(
        rows,
        columns,
        squeeze=False,
        figsize=(_PANEL_WIDTH * columns + 0.5, _PANEL_HEIGHT * rows + 0.9),
    )
    return figure, [list(row) for row in axes]


def _legend_below(figure: Figure, axes: Sequence[Axes]) -> None:
    entries: dict[str, Artist] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    columns = min(len(entries), max(2, round(figure.get_figwidth() / 2.4)))
    rows = math.ceil(len(entries) / columns)
    figure.set_figheight(figure.get_figheight() + 0.25 * (rows - 1))
    share = (0.25 * rows + 0.1) / figure.get_figheight()
    figure.tight_layout(rect=(0, share, 1, 1))
    figure.legend(
        list(entries.values()), list(entries), loc="lower center", ncols=columns, frameon=False,
        fontsize=9,
    )  # fmt: skip


def save_figure(figure: Figure, path: Path) -> None:
    """Write SVG and PNG that are the same whenever the numbers are the same."""
    import matplotlib as mpl  # an extra
    from matplotlib import pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "private-ate", "svg.fonttype": "none"}):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=130, metadata={"Software": None})
    plt.close(figure)
