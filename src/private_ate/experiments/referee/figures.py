"""One figure for each family: errors against ε, a row per level, a column per setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from private_ate.experiments.claims import name_arm
from private_ate.experiments.plots import Axis, Curve, Panel, draw_curves
from private_ate.experiments.referee.families import Setting
from private_ate.experiments.referee.tables import setting_words
from private_ate.experiments.referee.verdicts import Cell
from private_ate.experiments.style import ARM_STYLES

__all__ = ["draw_families", "figure_name"]

_BUDGET: Final = Axis("total privacy budget ε", log=True)
_ERROR: Final = Axis("error / true effect", log=True, floor=0.001)
_LARGEST: Final = 10.0  # errors beyond so many effects are in the tables alone


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
