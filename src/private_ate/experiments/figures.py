"""The figure of each experiment, drawn from its summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from private_ate.experiments.arms import ARM_STYLES, SEQUENCE_STYLES, Style
from private_ate.experiments.claims import name_arm, name_set
from private_ate.experiments.plots import (
    Axis,
    Curve,
    HeatMap,
    Panel,
    draw_curves,
    draw_heat_maps,
)
from private_ate.experiments.results import Summary, SummaryRow

__all__ = [
    "draw_against_size",
    "draw_against_ten_percent",
    "draw_against_truth",
    "draw_allocation",
    "draw_by_coefficient",
    "draw_by_limit",
    "draw_by_method",
    "draw_several_arms",
]

_BUDGET = Axis("privacy budget ε")
_ERROR = Axis("relative error", log=True)
_TRUTH = Axis("relative error against the truth", log=True)
_MATCHING = "matching without limits and noise"
_AIPW = "AIPW without noise"
_MATCHING_STYLE, _AIPW_STYLE = Style("black", "", "--"), Style("#555555", "", ":")


def draw_by_method(summary: Summary, folder: Path) -> list[Path]:
    """Draw errors against ε, a curve per method, a column per data set."""
    return _by_neighbors(
        summary, folder, lambda rows, dataset: Panel(name_set(dataset), _method_curves(rows))
    )


def draw_by_limit(summary: Summary, folder: Path) -> list[Path]:
    """Draw errors against ε, a curve per choice of the matching limit."""
    styles = dict(zip(summary.values("parameters"), SEQUENCE_STYLES, strict=False))

    def panel(rows: Summary, dataset: str) -> Panel:
        curves = [
            _curve(text.replace("k=", "k = ") or "adaptive", style, rows.where(parameters=text))
            for text, style in styles.items()
        ]
        return Panel(name_set(dataset), curves)

    return _by_neighbors(summary, folder, panel)


def draw_by_coefficient(summary: Summary, folder: Path) -> list[Path]:
    """Draw errors against the error coefficient, a curve per ε."""
    name = summary.rows[0].parameters.split("=")[0]

    def panel(rows: Summary, dataset: str) -> Panel:
        curves = [
            _curve(f"ε = {epsilon}", style, rows.where(epsilon=epsilon), x=_coefficient)
            for epsilon, style in zip(rows.values("epsilon"), SEQUENCE_STYLES, strict=False)
        ]
        return Panel(name_set(dataset), curves)

    return _by_neighbors(summary, folder, panel, Axis(f"error coefficient {name}", log=True))


def draw_allocation(summary: Summary, folder: Path) -> list[Path]:
    """Draw a heat map per data set and ε over the shares of the first two phases."""
    grid = [
        [
            _heat_map(
                f"{name_set(dataset)}, ε = {epsilon}",
                summary.where(dataset=dataset, epsilon=epsilon).rows,
            )
            for dataset in summary.datasets
        ]
        for epsilon in summary.values("epsilon")
    ]
    path = folder / "figure"
    draw_heat_maps(path, grid, Axis("share of ε₁"), Axis("share of ε₂"))
    return [path]


def draw_against_truth(summary: Summary, folder: Path) -> list[Path]:
    """Draw errors against the truth over ε, with the error of matching itself as a line."""
    panels = [
        Panel(
            name_set(dataset),
            _method_curves(summary.where(dataset=dataset), truth=True),
            summary.where(dataset=dataset).rows[0].matching_against_truth,
        )
        for dataset in summary.datasets
    ]
    path = folder / "figure"
    draw_curves(path, [panels], _BUDGET, _TRUTH, level_name=_MATCHING)
    return [path]


def draw_against_size(summary: Summary, folder: Path) -> list[Path]:
    """Draw errors against the truth over the number of units, a panel per level."""
    panels = []
    for level in dict.fromkeys(row.level for row in summary.rows):
        rows = summary.where(level=level)
        curves = [
            _curve(name_arm(m), ARM_STYLES[m], rows.where(method=m), x=_size, truth=True)
            for m in rows.methods
        ]
        members = rows.where(method=rows.methods[0]).rows
        matching = [row.matching_against_truth for row in members]
        sizes = [_size(row) for row in members]
        curves.append(Curve(_MATCHING, _MATCHING_STYLE, sizes, matching, [0.0] * len(sizes)))
        panels.append(Panel(f"{level} level, ε = {members[0].epsilon}", curves))
    path = folder / "figure"
    draw_curves(path, [panels], Axis("number of units n", log=True), _TRUTH)
    return [path]


def draw_against_ten_percent(summary: Summary, folder: Path) -> list[Path]:
    """Draw errors against a wide range of ε with a line at 10 %."""
    panels = [
        Panel(name_set(dataset), _method_curves(summary.where(dataset=dataset)), 0.1)
        for dataset in summary.datasets
    ]
    path = folder / "figure"
    budget = Axis(_BUDGET.label, log=True)
    # Far below ten per cent nothing is left to see.
    error = Axis(_ERROR.label, log=True, floor=0.003)
    draw_curves(path, [panels], budget, error, level_name="10 %")
    return [path]


def draw_several_arms(summary: Summary, folder: Path) -> list[Path]:
    """Draw errors against the truth over ε, a row per level, a column per number of arms.

    The errors of matching and of the doubly robust estimate, neither private, are lines.
    """
    grid = [
        [_arms_panel(summary.where(dataset=dataset, level=level)) for dataset in summary.datasets]
        for level in dict.fromkeys(row.level for row in summary.rows)
    ]
    path = folder / "figure"
    draw_curves(path, grid, _BUDGET, _TRUTH)
    return [path]


def _arms_panel(rows: Summary) -> Panel:
    budgets = sorted({row.budget for row in rows.rows})
    first = rows.rows[0]
    flat = [0.0] * len(budgets)
    lines = [
        Curve(label, style, budgets, [error] * len(budgets), flat)
        for label, style, error in (
            (_MATCHING, _MATCHING_STYLE, first.matching_against_truth),
            (_AIPW, _AIPW_STYLE, first.aipw_against_truth),
        )
    ]
    title = f"{name_set(first.dataset)}, {first.level} level"
    return Panel(title, [*_method_curves(rows, truth=True), *lines])


def _by_neighbors(
    summary: Summary,
    folder: Path,
    panel: Callable[[Summary, str], Panel],
    x: Axis = _BUDGET,
) -> list[Path]:
    """Draw the paper's figure for N = 5 and, if others were run, that of its appendix."""

    def row(neighbors: int) -> list[Panel]:
        return [
            panel(summary.where(neighbors=neighbors, dataset=dataset), dataset)
            for dataset in summary.datasets
        ]

    paths = [folder / "figure"]
    draw_curves(paths[0], [row(5)], x, _ERROR)
    others = sorted({member.neighbors for member in summary.rows} - {5})
    if others:
        paths.append(folder / "figure-appendix")
        grid = [
            [Panel(f"{member.title}, N = {count}", member.curves) for member in row(count)]
            for count in others
        ]
        draw_curves(paths[1], grid, x, _ERROR)
    return paths


def _method_curves(rows: Summary, *, truth: bool = False) -> list[Curve]:
    return [
        _curve(name_arm(method), ARM_STYLES[method], rows.where(method=method), truth=truth)
        for method in rows.methods
    ]


def _curve(
    label: str,
    style: Style,
    rows: Summary,
    *,
    x: Callable[[SummaryRow], float] = lambda row: row.budget,
    truth: bool = False,
) -> Curve:
    members = sorted((row for row in rows.rows if row.n > 0), key=x)
    means = [_mean(row, truth=truth) for row in members]
    deviations = [
        (row.error_against_truth_sd if truth else row.relative_error_sd) / math.sqrt(row.n)
        for row in members
    ]
    return Curve(label, style, [x(row) for row in members], means, deviations)


def _mean(row: SummaryRow, *, truth: bool) -> float:
    return row.error_against_truth_mean if truth else row.relative_error_mean


def _coefficient(row: SummaryRow) -> float:
    return float(row.parameters.split("=")[1])


def _size(row: SummaryRow) -> float:
    return float(row.dataset.rsplit("-", 1)[1])


def _heat_map(title: str, rows: Sequence[SummaryRow]) -> HeatMap:
    cells = {_shares(row): row.relative_error_mean for row in rows}
    columns, lines = (_sorted(share[place] for share in cells) for place in (0, 1))
    values = [[cells.get((x, y), math.nan) for x in columns] for y in lines]
    return HeatMap(title, columns, lines, values)


def _shares(row: SummaryRow) -> tuple[float, float]:
    """Return the shares of ε₁, whose halves stand first, and of ε₂."""
    parts = [float(part) for part in row.parameters.removeprefix("shares=").split("/")]
    return round(parts[0] + parts[1], 6), parts[2]


def _sorted(values: Iterable[float]) -> list[float]:
    return sorted(set(values))
