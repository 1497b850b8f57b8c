"""Figures from summaries, in the layout of the paper, as SVG and PNG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from private_ate.errors import ArgumentError
from private_ate.experiments.arms import ARM_STYLES, SEQUENCE_STYLES, Style, arm_named
from private_ate.experiments.references import display_name
from private_ate.experiments.results import Summary, SummaryRow

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure

__all__ = [
    "AIPW",
    "BOOSTED",
    "MATCHING",
    "Axis",
    "Curve",
    "Layout",
    "Panel",
    "draw",
    "draw_allocation",
    "draw_curves",
    "draw_points",
    "require_plots",
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


# Errors of estimates without privacy: the name, the look, and the column of a summary.
MATCHING: Final = (
    "matching without limits and noise", Style("black", "", "--"), "matching_against_truth"
)  # fmt: skip
AIPW: Final = ("AIPW without noise", Style("#555555", "", ":"), "aipw_against_truth")
BOOSTED: Final = ("boosted AIPW without privacy", Style("black", "", "--"), "boosted_against_truth")


@dataclass(frozen=True, slots=True)
class Layout:
    """A figure of a summary: what its axes, curves and panels are.

    Attributes
    ----------
    x, lines, columns, rows : str
        Columns of the summary: along the axis, a curve for each value, a panel for each value;
        without ``rows`` there is one row of panels.
    x_axis, y_axis : Axis
        The axes.
    y : str
        Which error is drawn, with its standard error.
    references : sequence of (name, style, column)
        Errors without privacy that are drawn too.
    level, level_name : float and str
        A horizontal line.
    most : float
        Errors above it are not drawn.
    by_neighbors : bool
        Whether numbers of neighbours other than five have a figure of their own.
    """

    x: str = "budget"
    lines: str = "method"
    columns: str = "dataset"
    rows: str = ""
    x_axis: Axis = Axis("privacy budget ε")
    y_axis: Axis = Axis("relative error", log=True)
    y: str = "relative_error"
    references: Sequence[tuple[str, Style, str]] = ()
    level: float = math.nan
    level_name: str = ""
    most: float = math.inf
    by_neighbors: bool = False


def draw(layout: Layout, summary: Summary, folder: Path, name: str = "figure") -> list[Path]:
    """Draw a figure and return its path without ending.

    Where numbers of neighbours differ, the paper's five have a figure and all others, if any was
    run, one that belongs to its appendix.
    """
    main, others = summary, []
    if layout.by_neighbors:
        main, others = summary.where(neighbors=5), sorted({*summary.values("neighbors")} - {5})
    rows = [main]
    if layout.rows:
        rows = [main.where(**{layout.rows: row}) for row in main.values(layout.rows)]
    grids = {name: [_panels(layout, row) for row in rows]}
    if others:
        grids[f"{name}-appendix"] = [
            [
                replace(panel, title=f"{panel.title}, N = {count}")
                for panel in _panels(layout, summary.where(neighbors=count))
            ]
            for count in others
        ]
    for end, grid in grids.items():
        draw_curves(folder / end, grid, layout.x_axis, layout.y_axis, level_name=layout.level_name)
    return [folder / end for end in grids]


def _panels(layout: Layout, summary: Summary) -> list[Panel]:
    """Return a panel for each value of the columns, a curve for each value of the lines."""
    names = {"dataset": display_name, "level": "{} level".format}
    lines, panels = summary.values(layout.lines), []
    for value in summary.values(layout.columns):
        rows = summary.where(**{layout.columns: value})
        title = [names[c](getattr(rows.rows[0], c)) for c in (layout.columns, layout.rows) if c]
        curves = [
            _curve(layout, *_look(layout.lines, line, place), rows.where(**{layout.lines: line}))
            for place, line in enumerate(lines)
        ]
        points = {getattr(row, layout.x): row for row in rows.rows}
        for label, style, column in layout.references:
            errors = [getattr(points[x], column) for x in sorted(points)]
            curves.append(Curve(label, style, sorted(points), errors, [0.0] * len(points)))
        panels.append(Panel(", ".join(title), [c for c in curves if c.x], layout.level))
    return panels


def _look(lines: str, value: str, place: int) -> tuple[str, Style]:
    """Return the name and the style of a curve."""
    if lines == "method":
        return arm_named(value).display, ARM_STYLES[value]
    name = f"ε = {value}" if lines == "epsilon" else value.replace("k=", "k = ") or "adaptive"
    return name, SEQUENCE_STYLES[place % len(SEQUENCE_STYLES)]


def _curve(layout: Layout, label: str, style: Style, rows: Summary) -> Curve:
    points = sorted(
        (float(getattr(row, layout.x)), mean, getattr(row, f"{layout.y}_se"))
        for row in rows.rows
        if row.n > 0 and 0 < (mean := getattr(row, f"{layout.y}_mean")) <= layout.most
    )
    x, y, error = zip(*points, strict=True) if points else ((), (), ())
    return Curve(label, style, x, y, error)


def draw_allocation(summary: Summary, folder: Path) -> list[Path]:
    """Draw a heat map per data set and ε over the shares of the first two phases."""
    epsilons, path = summary.values("epsilon"), folder / "figure"
    figure, axes = _subplots(len(epsilons), len(summary.datasets))
    for axes_row, epsilon in zip(axes, epsilons, strict=True):
        for axis, dataset in zip(axes_row, summary.datasets, strict=True):
            _draw_heat_map(axis, summary.where(dataset=dataset, epsilon=epsilon).rows)
            axis.set_title(f"{display_name(dataset)}, ε = {epsilon}", fontsize=10)
        axes_row[0].set_ylabel("share of ε₂")
    for axis in axes[-1]:
        axis.set_xlabel("share of ε₁")
    figure.tight_layout()
    _save(figure, path)
    return [path]


def _draw_heat_map(axis: Axes, rows: Sequence[SummaryRow]) -> None:
    """Draw errors over the shares of ε₁, whose halves stand first, and of ε₂; light is good."""
    from matplotlib.colors import LogNorm  # an extra

    cells = {}
    for row in rows:
        half, other, treatment, _ = map(float, row.setting.split("/"))
        cells[round(half + other, 6), treatment] = row.relative_error_mean
    columns, lines = (sorted({shares[place] for shares in cells}) for place in (0, 1))
    values = [[cells.get((x, y), math.nan) for x in columns] for y in lines]
    norm = LogNorm(min(cells.values()), max(*cells.values(), 1.01 * min(cells.values())))
    axis.imshow(values, origin="lower", cmap="cividis_r", norm=norm, aspect="auto")
    for (x, y), value in cells.items():
        axis.text(
            columns.index(x), lines.index(y), f"{value:.2f}" if value < 10 else f"{value:.3g}",
            ha="center", va="center", fontsize=6,
            color="white" if float(norm(value)) > 0.5 else "black",
        )  # fmt: skip
    axis.set_xticks(range(len(columns)), [f"{share:g}" for share in columns])
    axis.set_yticks(range(len(lines)), [f"{share:g}" for share in lines])
    axis.tick_params(labelsize=7)


def draw_points(
    path: Path,
    panels: Mapping[str, Sequence[tuple[str, str, str, Sequence[tuple[float, int]]]]],
    names: Sequence[str],
    x_label: str,
) -> None:
    """Draw panels below each other, so that their letters can be read on a phone.

    Each has a line per name and series of points ``(value, line)``: label, marker, colour, points.
    """
    require_plots()
    from matplotlib import pyplot as plt  # an extra

    size = (4.4, 0.9 + len(panels) * (0.9 + 0.22 * len(names)))
    figure, axes = plt.subplots(len(panels), 1, squeeze=False, figsize=size, layout="constrained")
    for axis, (title, series) in zip(axes[:, 0], panels.items(), strict=True):
        for label, marker, color, points in series:
            values, lines = [one for one, _ in points], [line for _, line in points]
            axis.plot(values, lines, marker, color=color, label=label, fillstyle="none")
        axis.set_xscale("log")
        _plain_ticks(axis.xaxis, axis.get_xlim())
        axis.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel(x_label, fontsize=9)
        axis.tick_params(labelsize=9)
        axis.set_yticks(range(len(names)), names)
        axis.set_ylim(len(names) - 0.5, -0.5)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=1, frameon=False, fontsize=9)
    _save(figure, path)


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
    _save(figure, path)


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
        _plain_ticks(axis.yaxis, axis.get_ylim())
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
        _plain_ticks(axis.xaxis, axis.get_xlim())


def _plain_ticks(axis: XAxis | YAxis, limits: tuple[float, float]) -> None:
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


def _save(figure: Figure, path: Path) -> None:
    """Write SVG and PNG that are the same whenever the numbers are the same."""
    import matplotlib as mpl  # an extra
    from matplotlib import pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "private-ate", "svg.fonttype": "none"}):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=130, metadata={"Software": None})
    plt.close(figure)
