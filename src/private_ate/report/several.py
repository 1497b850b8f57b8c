"""Effects as cells of tables, the same in a terminal, on pages and in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from private_ate.release.metadata import around, longer_half
from private_ate.report.markup import Markup, element, stacked
from private_ate.report.numbers import number_text
from private_ate.report.words import noun, percent
from private_ate.settings import Facts

if TYPE_CHECKING:
    from private_ate.release import Release
    from private_ate.release.metadata import Arm, Contrast, Effect, Pair

Scope = Literal["all", "reference"]


@dataclass(frozen=True, slots=True)
class Cells:
    """A table of texts; ``numbers`` says which columns hold numbers, ``title`` what it is about."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[bool, ...]
    title: str = ""


Column = tuple[str, bool, list[str]]
"""A column's name, whether it holds numbers, and its texts."""


def cells_of(columns: Sequence[Column], title: str = "") -> Cells:
    """Return columns of texts as a table."""
    return Cells(
        tuple(name for name, _, _ in columns),
        tuple(zip(*(texts for _, _, texts in columns), strict=True)),
        tuple(is_number for _, is_number, _ in columns),
        title,
    )


def effect_columns(
    release: Release, rows: Sequence[Effect], errors: Sequence[float]
) -> list[Column]:
    """Return the numbers of rows, each with the digits of its standard error, and intervals."""
    told = list(zip(rows, errors, strict=True))
    numbers = [number_text(row.estimate, error) for row, error in told]
    pairs = [(row.interval, row.noise_interval) for row in rows]
    columns = [
        (noun(release), True, numbers),
        _interval_column(release, pairs, errors, paid=release.interval is not None),
    ]
    if release.interval is not None:
        columns.append(("all at once", True, [in_brackets(row.simultaneous, e) for row, e in told]))
    return columns


def phone_table(
    kind: str, cells: Cells, names: Sequence[Sequence[Markup | str]], first: int, caption: str
) -> Markup:
    """Return a table that fits a phone: intervals of a row are below each other.

    ``names`` head the rows, ``first`` is the place of the number among the cells.
    """
    head = [
        element("th", kind, scope="col"),
        element("th", cells.head[first], scope="col", class_="number"),
        element("th", *stacked(cells.head[first + 1 :]), scope="col", class_="number"),
    ]
    rows = [
        element(
            "tr",
            element("th", *name, scope="row"),
            element("td", row[first], class_="number"),
            element("td", *stacked(row[first + 1 :]), class_="number"),
        )
        for name, row in zip(names, cells.rows, strict=True)
    ]
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head)),
        element("tbody", *rows),
    )


def shown_contrasts(release: Release, scope: Scope = "all") -> tuple[Contrast, ...]:
    """Return all contrasts, or those against the reference with intervals that cover these alone.

    The factor for fewer contrasts is smaller, so that their simultaneous intervals are narrower.
    """
    if scope == "all" or not release.arms:
        return release.contrasts
    reference = release.arms[0].label
    factor = release.facts.simultaneous_factor.get("against the reference")
    bounds = None if release.outcome is None else release.outcome.bounds
    width = float("inf") if bounds is None else bounds[1] - bounds[0]
    return tuple(
        replace(row, simultaneous=_widened(row, factor, width))
        for row in release.contrasts
        if row.against == reference
    )


def _widened(row: Contrast, factor: float | None, width: float) -> Pair | None:
    if row.interval is None or factor is None:
        return row.simultaneous
    half = factor * longer_half(row.effect, row.interval)
    return around(row.effect, half, (-width, width))


def arms_in_order(release: Release) -> tuple[Arm, ...]:
    """Return the arms as declared where they are bins of a dose; otherwise the reference first."""
    doses = list(release.facts.doses)
    if set(doses) != {arm.label for arm in release.arms}:
        return release.arms
    return tuple(sorted(release.arms, key=lambda arm: doses.index(arm.label)))


def arm_cells(release: Release) -> Cells:
    """Return a row per arm: its size as far as that is known, its mean and interval."""
    facts = release.facts
    error = mean_error(release)
    columns = [("arm", False, [arm.label for arm in release.arms])]
    sizes = [_size(arm, facts, release.n) for arm in release.arms]
    if any(sizes):
        columns.append(("units", True, sizes))
    if any(arm.mean is not None for arm in release.arms):
        means = ["" if arm.mean is None else number_text(arm.mean, error) for arm in release.arms]
        columns.append(("mean", True, means))
        pairs = [(arm.interval, arm.noise_interval) for arm in release.arms]
        paid = any(arm.interval is not None for arm in release.arms)
        columns.append(_interval_column(release, pairs, [error] * len(pairs), paid=paid))
    marks = ["reference", *[""] * (len(release.arms) - 1)]
    return cells_of([*columns, ("", False, marks)])


def _size(arm: Arm, facts: Facts, n: int) -> str:
    if arm.units is not None:
        return f"{arm.units:,}"
    share = facts.several_shares.get(arm.label)
    return "" if share is None else f"about {share * n:,.0f}"


def contrast_cells(release: Release, scope: Scope = "all") -> Cells:
    """Return a row per contrast: both arms, the effect, its interval and the simultaneous one."""
    rows = shown_contrasts(release, scope)
    pairs = [(row.interval, row.noise_interval) for row in rows]
    error = smallest_error(release, pairs)
    paid = any(row.interval is not None for row in rows)
    columns = [
        (f"{noun(release)} of", False, [row.arm for row in rows]),
        ("against", False, [row.against for row in rows]),
        (noun(release), True, [number_text(row.effect, error) for row in rows]),
        _interval_column(release, pairs, [error] * len(rows), paid=paid),
    ]
    if rows[0].simultaneous is not None:
        together = [in_brackets(row.simultaneous, error) for row in rows]
        columns.append(("all at once", True, together))
    return cells_of(columns)


def mean_error(release: Release) -> float:
    """Return the standard error by whose digits means are written."""
    return smallest_error(release, [(arm.interval, arm.noise_interval) for arm in release.arms])


def smallest_error(release: Release, pairs: Iterable[tuple[Pair | None, Pair | None]]) -> float:
    """Return the smallest standard error of a table, by whose digits all its rows are written."""
    quantile = NormalDist().inv_cdf((1 + release.facts.confidence) / 2)
    widths = [
        held[1] - held[0] for interval, noise in pairs if (held := interval or noise) is not None
    ]
    return min((width / 2 / quantile for width in widths if width > 0), default=0.0)


def _interval_column(
    release: Release,
    pairs: Sequence[tuple[Pair | None, Pair | None]],
    errors: Sequence[float],
    *,
    paid: bool,
) -> Column:
    """Return the column of intervals; where none was paid for, of the noise alone."""
    name = f"{percent(release)} interval" if paid else f"{percent(release)} noise interval"
    told = zip(pairs, errors, strict=True)
    return name, True, [in_brackets(pair[0] if paid else pair[1], error) for pair, error in told]


def in_brackets(pair: Pair | None, error: float) -> str:
    """Write an interval; nothing for none."""
    return "" if pair is None else f"[{number_text(pair[0], error)}, {number_text(pair[1], error)}]"
