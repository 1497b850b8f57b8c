"""The table of effects as every format shows it: which rows, and their texts.

A terminal, a page, a notebook, Markdown, LaTeX, Word and figures take the rows of a release from
`shown_effects` and write their numbers by `effect_columns`; only what heads a row differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from private_ate.effects import p_value_of
from private_ate.effects.of_releases import interval_error
from private_ate.privacy.levels import has_public_covariates
from private_ate.release.metadata import OutcomeNote, around, longer_half
from private_ate.report.phrasing import (
    column_title,
    noun,
    number_text,
    outcome_names,
    percent,
    unit_of,
)
from private_ate.settings import settings_of_outcome

if TYPE_CHECKING:
    from private_ate.release.metadata import Arm, Effect, Pair
    from private_ate.release.release import Release

Scope = Literal["all", "reference"]
_ALL = "all units"


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


def shown_effects(release: Release, scope: Scope = "all") -> list[Effect]:
    """Return the rows of the table of effects; of several arms all, or those of the reference.

    Intervals that cover contrasts with the reference alone are narrower: the factor for fewer
    contrasts is smaller. It is known for the first outcome.
    """
    if scope == "all" or not release.arms:
        return list(release.effects)
    first = release.effects[0].outcome
    factor = release.facts.simultaneous_factor.get("against the reference")
    bounds = None if release.outcome is None else release.outcome.bounds
    width = float("inf") if bounds is None else bounds[1] - bounds[0]
    return [
        replace(row, simultaneous=_widened(row, factor, width)) if row.outcome == first else row
        for row in release.effects
        if row.subgroup is None and row.against == release.arms[0].label
    ]


def _widened(row: Effect, factor: float | None, width: float) -> Pair | None:
    if row.interval is None or factor is None:
        return row.simultaneous
    half = factor * longer_half(row.estimate, row.interval)
    return around(row.estimate, half, (-width, width))


def shown_contrasts(release: Release, scope: Scope = "all") -> list[Effect]:
    """Return the rows about all units and the first outcome."""
    first = release.effects[0].outcome
    return [
        row
        for row in shown_effects(release, scope)
        if row.subgroup is None and row.outcome == first
    ]


def has_subgroups(release: Release) -> bool:
    """Say whether the table of effects has rows of subgroups."""
    return any(row.subgroup is not None for row in release.effects)


def has_outcomes(release: Release) -> bool:
    """Say whether the table of effects has rows of several outcomes."""
    return len(outcome_names(release)) > 1


def by_outcome(release: Release) -> list[Release]:
    """Return the release as each outcome sees it: its own rows, its own headline and unit.

    Means of arms are those of the first outcome; the others have none.
    """
    if not has_outcomes(release):
        return [release]
    known = {one.column: OutcomeNote(one.column, one.bounds, one.unit)
             for one in release.facts.outcomes}  # fmt: skip
    views = []
    for column in outcome_names(release):
        rows = tuple(row for row in release.effects if row.outcome == column)
        head = _headline(release, rows)
        views.append(
            replace(
                release, effects=rows, ate=head.estimate, interval=head.interval,
                noise_interval=head.noise_interval, outcome=known.get(column),
                settings=settings_of_outcome(release.settings, column),
            )
        )  # fmt: skip
    return views


def _headline(release: Release, rows: tuple[Effect, ...]) -> Effect:
    """Return the headline of one outcome: the contrast of the release's own."""
    overall, wanted = [row for row in rows if row.subgroup is None], release.facts.headline
    same = (row for row in overall if wanted and row.arm == wanted.arm
            and row.against == wanted.against)  # fmt: skip
    return next(same, overall[0])


def effect_tables(release: Release, scope: Scope = "all") -> list[Cells]:
    """Return the tables of arms, contrasts, outcomes and subgroups; of two arms alone, none."""
    tables = [arm_cells(release), contrast_cells(release, scope)] if release.arms else []
    if has_outcomes(release):
        tables.append(outcome_cells(release))
    if has_subgroups(release):
        tables += [subgroup_cells(view) for view in by_outcome(release)]
    return tables


def effect_columns(
    release: Release,
    rows: Sequence[Effect],
    *,
    write: Callable[[Pair, float], str] | None = None,
    standard_errors: bool = False,
    p_values: bool = False,
) -> list[Column]:
    """Return the numbers of rows and their intervals, and tests of no effect if asked for.

    Rows of an outcome have the digits of their smallest standard error. ``write`` is how an
    interval is written, in brackets unless said otherwise.
    """
    digits = {
        name: smallest_error(
            release, [(row.interval, row.noise_interval) for row in rows if row.outcome == name]
        )
        for name in {row.outcome for row in rows}
    }
    paid = any(row.interval is not None for row in rows)
    confidence = release.facts.confidence

    def column(name: str, text: Callable[[Effect, float], str]) -> Column:
        return name, True, [text(row, digits[row.outcome]) for row in rows]

    def written(pair: Pair | None, error: float) -> str:
        return "" if pair is None else (write or in_brackets)(pair, error)

    def own_error(row: Effect, error: float) -> str:
        if row.interval is None:
            return ""
        return number_text(interval_error(row.estimate, row.interval, confidence), error)

    columns = [column(noun(release), lambda row, error: number_text(row.estimate, error))]
    if paid and standard_errors:
        columns.append(column("standard error", own_error))
    columns.append(
        column(
            f"{percent(release)} {'interval' if paid else 'noise interval'}",
            lambda row, error: written(row.interval if paid else row.noise_interval, error),
        )
    )
    if len(rows) > 1 and any(row.simultaneous is not None for row in rows):
        columns.append(column("all at once", lambda row, error: written(row.simultaneous, error)))
    if p_values:
        columns.append(column("p", lambda row, _: p_text(p_value_of(release, row))))
    return columns


def contrast_cells(release: Release, scope: Scope = "all") -> Cells:
    """Return a row per contrast: both arms, the effect, its interval and the simultaneous one."""
    rows = shown_contrasts(release, scope)
    names = [
        (f"{noun(release)} of", False, [row.arm for row in rows]),
        ("against", False, [row.against for row in rows]),
    ]
    return cells_of([*names, *effect_columns(release, rows)])


def _arms_column(release: Release, rows: Sequence[Effect]) -> list[Column]:
    """Name both arms of each row, where there are more than two."""
    if not release.arms:
        return []
    return [("arms", False, [f"{row.arm} against {row.against}" for row in rows])]


def outcome_cells(release: Release) -> Cells:
    """Return a row per outcome and contrast of all units; of several arms with the reference."""
    names: list[str] = []
    rows: list[Effect] = []
    for view in by_outcome(release):
        held = [row for row in subgroup_rows(view) if row.subgroup is None]
        unit = f" ({unit_of(view)})" if unit_of(view) else ""
        names += [f"{column_title(release, row.outcome)}{unit}" for row in held]
        rows += held
    columns = [("outcome", False, names), *_arms_column(release, rows)]
    return cells_of([*columns, *effect_columns(release, rows)])


def subgroup_cells(release: Release) -> Cells:
    """Return a row per subgroup and contrast: its size, the effect and both intervals."""
    rows = subgroup_rows(release)
    note = release.facts.subgroups
    cells = () if note is None else note.cells
    about = "" if has_public_covariates(release.level) else "≈ "  # noisy where they are private
    held = {cell.name: cell.units for cell in cells if cell.estimated}
    sizes = {cell.name: f"{about}{cell.units:,}" for cell in cells}
    for margin in {row.subgroup for row in rows} - sizes.keys() - {None}:
        # A margin has the units of the cells whose names it is a part of.
        parts = [units for name, units in held.items() if f", {margin}, " in f", {name}, "]
        sizes[str(margin)] = f"{sum(parts):,}" if parts else ""
    if note is not None:
        sizes[_ALL] = f"{about}{sum(held.values()):,}"
    columns = [
        ("subgroup", False, [marked_subgroup(release, row) for row in rows]),
        *_arms_column(release, rows),
        ("units", True, [sizes.get(row.subgroup or _ALL, "") for row in rows]),
        *effect_columns(release, rows),
    ]
    return cells_of(columns, of_outcome(release, "{}"))


def of_outcome(release: Release, form: str) -> str:
    """Name the outcome that rows are about, where a release has several."""
    several = len(release.facts.outcomes) > 1
    return form.format(release.effects[0].outcome) if several else ""


def subgroup_rows(release: Release) -> list[Effect]:
    """Return all units first; of several arms those against the reference, as subgroups have."""
    reference = release.effects[0].against
    return [row for row in release.effects if row.against == reference]


def marked_subgroup(release: Release, row: Effect) -> str:
    """Return a row's name, marked where the row is not what the headline is."""
    name = row.subgroup or _ALL
    if row.estimand == release.estimand:
        return name
    return f"{name} ({'not adjusted' if row.estimand == 'difference' else 'adjusted'})"


def equal_effects_lines(release: Release) -> list[str]:
    """Return what the tests of equal effects say, a sentence for each contrast."""
    note = release.facts.subgroups
    tests = note.equal_effects if note is not None else ()
    return [
        f"{f'{one.arm} against {one.against}: ' if release.arms else ''}"
        f"Q = {one.statistic:.3g} on {one.degrees} degree{'s' * (one.degrees > 1)} of freedom, "
        f"p = {one.p_value:.2g}"
        for one in (tests if isinstance(tests, tuple) else ())
    ]


def arms_in_order(release: Release) -> tuple[Arm, ...]:
    """Return the arms as declared where they are bins of a dose; otherwise the reference first."""
    doses = list(release.facts.doses)
    if set(doses) != {arm.label for arm in release.arms}:
        return release.arms
    return tuple(sorted(release.arms, key=lambda arm: doses.index(arm.label)))


def arm_cells(release: Release) -> Cells:
    """Return a row per arm: its size as far as that is known, its mean and interval."""
    arms, error = release.arms, mean_error(release)
    shares = release.facts.several_shares
    sizes = ["" if share is None else f"about {share * release.n:,.0f}"
             for share in (shares.get(arm.label) for arm in arms)]  # fmt: skip
    sizes = [size if arm.units is None else f"{arm.units:,}"
             for arm, size in zip(arms, sizes, strict=True)]  # fmt: skip
    columns = [("arm", False, [arm.label for arm in arms])]
    if any(sizes):
        columns.append(("units", True, sizes))
    if any(arm.mean is not None for arm in arms):
        means = ["" if arm.mean is None else number_text(arm.mean, error) for arm in arms]
        columns.append(("mean", True, means))
        paid = any(arm.interval is not None for arm in arms)
        pairs = [arm.interval if paid else arm.noise_interval for arm in arms]
        name = f"{percent(release)} {'interval' if paid else 'noise interval'}"
        columns.append((name, True, [in_brackets(pair, error) if pair else "" for pair in pairs]))
    return cells_of([*columns, ("", False, ["reference", *[""] * (len(arms) - 1)])])


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


def in_brackets(pair: Pair, error: float) -> str:
    """Write an interval as a terminal shows it."""
    return f"[{number_text(pair[0], error)}, {number_text(pair[1], error)}]"


def p_text(value: float) -> str:
    """Write a p-value as journals do.

    Examples
    --------
    >>> p_text(0.0312), p_text(0.00002), p_text(0.4)
    ('0.031', '<0.001', '0.40')
    """
    if value < 0.001:
        return "<0.001"
    return f"{value:.3f}" if value < 0.1 else f"{min(value, 1.0):.2f}"
