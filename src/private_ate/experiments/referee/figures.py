"""The referee's figures: an overview of all cells, and errors against ε for each family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from private_ate.experiments.arms import ARM_STYLES
from private_ate.experiments.claims import name_arm
from private_ate.experiments.plots import (
    Axis,
    Curve,
    Panel,
    draw_curves,
    plain_ticks,
    require_plots,
    save_figure,
)
from private_ate.experiments.referee.families import Setting, setting_named
from private_ate.experiments.referee.tables import setting_words
from private_ate.experiments.referee.verdicts import Cell, Standing
from private_ate.privacy.levels import Level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_families", "draw_overview", "figure_name"]

_BUDGET: Final = Axis("total privacy budget ε", log=True)
_ERROR: Final = Axis("error / true effect", log=True, floor=0.001)
_LARGEST: Final = 10.0  # errors beyond so many effects are in the tables alone
_EPSILON: Final = "1"
_OURS, _OTHERS, _REST = "#c0392b", "#08306b", "#bbbbbb"
_LARGEST_SHOWN: Final = 10.0  # errors beyond so many effects end at the edge


def figure_name(family: str) -> str:
    """Return the file name of a family's figure, without its ending."""
    return "figure-" + family.replace(" ", "-")


def draw_families(
    families: dict[str, tuple[Setting, ...]], cells: Sequence[Cell], folder: Path
) -> list[Path]:
    """Draw every family of which something was run."""
    paths = []
    for family, settings in families.items():
        names = [setting.name for setting in settings]
        members = [cell for cell in cells if cell.setting in names]
        if not members:
            continue
        grid = [
            [_panel(setting, level, members) for setting in settings]
            for level in dict.fromkeys(cell.level for cell in members)
        ]
        paths.append(folder / figure_name(family))
        draw_curves(paths[-1], grid, _BUDGET, _ERROR, level_name="AIPW without privacy")
    return paths


def _panel(setting: Setting, level: str, cells: Sequence[Cell]) -> Panel:
    """Draw a curve for each arm; the line is the doubly robust estimate without privacy."""
    mine = [cell for cell in cells if (cell.setting, cell.level) == (setting.name, level)]
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for cell in sorted(mine, key=lambda one: float(one.epsilon)):
        for one in cell.standings:
            if 0 < one.mean <= _LARGEST:
                point = (float(cell.epsilon), one.mean, one.standard_error)
                curves.setdefault(one.arm, []).append(point)
    drawn = [
        Curve(name_arm(arm), ARM_STYLES[arm], *(list(part) for part in zip(*points, strict=True)))
        for arm, points in curves.items()
    ]
    line = mine[0].adjusted if mine else math.nan
    return Panel(f"{setting_words(setting)} ({level})", drawn, line)


def draw_overview(cells: Sequence[Cell], folder: Path) -> list[Path]:
    """Draw a panel for each level, a line for each setting; nothing if ε = 1 was not run.

    Panels are below each other, so that the letters of the figure can be read on a phone.
    """
    shown = [cell for cell in cells if cell.epsilon == _EPSILON and cell.default is not None]
    if not shown:
        return []
    require_plots()
    from matplotlib import pyplot as plt  # an extra

    levels = [level for level in get_args(Level) if any(cell.level == level for cell in shown)]
    names = list(dict.fromkeys(cell.setting for cell in shown))
    size = (4.4, 0.9 + len(levels) * (0.9 + 0.22 * len(names)))
    figure, axes = plt.subplots(len(levels), 1, squeeze=False, figsize=size, layout="constrained")
    words = [setting_words(setting_named(name)) for name in names]
    for axis, level in zip(axes[:, 0], levels, strict=True):
        _draw_level(axis, [cell for cell in shown if cell.level == level], names)
        axis.set_title(f"{level} level, ε = {_EPSILON}", fontsize=10)
        axis.set_xlabel("mean error / true effect", fontsize=9)
        axis.tick_params(labelsize=9)
        axis.set_yticks(range(len(names)), words)
        axis.set_ylim(len(names) - 0.5, -0.5)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=1, frameon=False, fontsize=9)
    path = folder / "figure-overview"
    save_figure(figure, path)
    return [path]


def _draw_level(axis: Axes, cells: Sequence[Cell], names: Sequence[str]) -> None:
    """Draw all other arms as grey ticks, the best of them and our default as points."""
    places = {name: place for place, name in enumerate(names)}
    ours: list[tuple[float, int]] = []
    best: list[tuple[float, int]] = []
    rest: list[tuple[float, int]] = []
    for cell in cells:
        place, default = places[cell.setting], cell.default
        others = sorted(_others(cell), key=lambda one: one.mean)
        if default is not None and default.errors:
            ours.append((min(default.mean, _LARGEST_SHOWN), place))
        if others:
            best.append((min(others[0].mean, _LARGEST_SHOWN), place))
        rest += [(min(one.mean, _LARGEST_SHOWN), place) for one in others[1:]]
    axis.plot(*_columns(rest), "|", color=_REST, markersize=9, label="other methods")
    axis.plot(
        *_columns(best), "o", color=_OTHERS, markersize=6, fillstyle="none",
        label="the best of the others",
    )  # fmt: skip
    label = "our default, with its interval"
    axis.plot(*_columns(ours), "s", color=_OURS, markersize=4.5, label=label)
    axis.set_xscale("log")
    plain_ticks(axis.xaxis, axis.get_xlim())
    axis.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)


def _others(cell: Cell) -> list[Standing]:
    return [one for one in cell.standings if one is not cell.default and one.errors]


def _columns(points: Sequence[tuple[float, int]]) -> tuple[list[float], list[int]]:
    return [point[0] for point in points], [point[1] for point in points]
