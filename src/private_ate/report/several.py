"""Three arms or more as cells of tables, the same in a terminal, on pages and in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from private_ate.report.words import noun, number_text, percent
from private_ate.settings import Facts

if TYPE_CHECKING:
    from private_ate.release import Release
    from private_ate.release.metadata import Arm, Contrast, Pair

__all__ = [
    "Cells",
    "Scope",
    "arm_cells",
    "arms_in_order",
    "contrast_cells",
    "mean_error",
    "shown_contrasts",
    "smallest_error",
]

Scope = Literal["all", "reference"]


@dataclass(frozen=True, slots=True)
class Cells:
    """A table of texts; ``numbers`` says which columns hold numbers, ``title`` what it is about."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[bool, ...]
    title: str = ""


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
    # The longer side: the shorter one may have been cut at the outcome's range.
    half = factor * max(row.interval[1] - row.effect, row.effect - row.interval[0])
    return max(row.effect - half, -width), min(row.effect + half, width)


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
        columns.append(_interval_column(release, pairs, error))
    marks = ["reference", *[""] * (len(release.arms) - 1)]
    return _cells([*columns, ("", False, marks)])


def _size(arm: Arm, facts: Facts, n: int) -> str:
    if arm.units is not None:
        return f"{arm.units:,}"
    share = facts.several_shares.get(arm.label)
    return "" if share is None else f"about {share * n:,.0f}"


def contrast_cells(release: Release, scope: Scope = "all") -> Cells:
    """Return a row per contrast: both arms, the effect, its interval and the simultaneous one."""
    rows = shown_contrasts(release, scope)
    error = smallest_error(release, [(row.interval, row.noise_interval) for row in rows])
    columns = [
        (f"{noun(release)} of", False, [row.arm for row in rows]),
        ("against", False, [row.against for row in rows]),
        (noun(release), True, [number_text(row.effect, error) for row in rows]),
        _interval_column(release, [(row.interval, row.noise_interval) for row in rows], error),
    ]
    if rows[0].simultaneous is not None:
        together = [_pair(row.simultaneous, error) for row in rows]
        columns.append(("all at once", True, together))
    return _cells(columns)


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
    release: Release, pairs: Sequence[tuple[Pair | None, Pair | None]], error: float
) -> tuple[str, bool, list[str]]:
    """Return the column of intervals; where none was paid for, of the noise alone."""
    paid = any(interval is not None for interval, _ in pairs)
    name = f"{percent(release)} interval" if paid else f"{percent(release)} noise interval"
    return name, True, [_pair(interval if paid else noise, error) for interval, noise in pairs]


def _pair(pair: Pair | None, error: float) -> str:
    return "" if pair is None else f"[{number_text(pair[0], error)}, {number_text(pair[1], error)}]"


def _cells(columns: Sequence[tuple[str, bool, list[str]]]) -> Cells:
    return Cells(
        tuple(name for name, _, _ in columns),
        tuple(zip(*(texts for _, _, texts in columns), strict=True)),
        tuple(is_number for _, is_number, _ in columns),
    )
