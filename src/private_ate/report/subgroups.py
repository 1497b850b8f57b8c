"""Effects in subgroups as a table of texts, as a forest plot and as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_ate.privacy.levels import has_public_covariates
from private_ate.report.drawings import ForestMark, draw_forest, short_name
from private_ate.report.markup import Markup, element, stacked
from private_ate.report.several import (
    Cells,
    cells_of,
    effect_columns,
    phone_table,
    smallest_error,
)
from private_ate.report.words import noun, percent

if TYPE_CHECKING:
    from private_ate.release import Release
    from private_ate.release.metadata import Effect

_ALL = "all units"


def has_subgroups(release: Release) -> bool:
    """Say whether the table of effects has rows of subgroups."""
    return any(row.subgroup is not None for row in release.effects)


def subgroup_cells(release: Release) -> Cells:
    """Return a row per subgroup and contrast: its size, the effect and both intervals."""
    rows = _rows(release)
    note = release.facts.subgroups
    about = "" if has_public_covariates(release.level) else "≈ "  # noisy where they are private
    sizes = {} if note is None else {cell.name: f"{about}{cell.units:,}" for cell in note.cells}
    if note is not None:
        whole = sum(cell.units for cell in note.cells if cell.estimated)
        sizes[_ALL] = f"{about}{whole:,}"
    error = smallest_error(release, [(row.interval, row.noise_interval) for row in rows])
    names = [row.subgroup or _ALL for row in rows]
    columns = [("subgroup", False, [marked_subgroup(release, row) for row in rows])]
    if release.arms:
        columns.append(("arms", False, [f"{row.arm} against {row.against}" for row in rows]))
    units = [sizes.get(name) or _margin_units(release, name) for name in names]
    columns.append(("units", True, units))
    columns += effect_columns(release, rows, [error] * len(rows))
    return cells_of(columns, _of_outcome(release, "{}"))


def _margin_units(release: Release, margin: str) -> str:
    """Return how many units a margin has: those of the cells whose names it is a part of."""
    note = release.facts.subgroups
    cells = () if note is None else note.cells
    held = [cell.units for cell in cells
            if cell.estimated and f", {margin}, " in f", {cell.name}, "]  # fmt: skip
    return f"{sum(held):,}" if held else ""


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


def subgroup_part(release: Release) -> list[Markup]:
    """Return the subgroups of a page: a forest plot, its table and the test of equal effects."""
    if not has_subgroups(release):
        return []
    rows = _rows(release)
    marks = [
        ForestMark(_name(release, row), row.estimate, row.interval or row.noise_interval,
                   row.simultaneous if release.interval is not None else None)
        for row in rows
    ]  # fmt: skip
    kind = "interval" if release.interval is not None else "interval for the noise alone"
    thin = ", thin ones cover all rows at once" if release.interval is not None else ""
    line = (
        f"The {noun(release)} in every subgroup. Thick bars: {percent(release)} {kind}{thin}. The "
        f"vertical line is no {noun(release)}."
    )
    drawn = draw_forest(marks, describe=f"Forest plot of {len(rows)} rows of subgroups")
    parts = [
        element("h2", f"Subgroups{_of_outcome(release, ': {}')}"),
        element("figure", drawn, element("figcaption", line)),
        _table(subgroup_cells(release)),
    ]
    tests = equal_effects_lines(release)
    if tests:
        parts.append(element("p", f"Test of equal effects (Cochran): {'; '.join(tests)}."))
    return parts


def _of_outcome(release: Release, form: str) -> str:
    """Name the outcome that rows are about, where a release has several."""
    several = len(release.facts.outcomes) > 1
    return form.format(release.effects[0].outcome) if several else ""


def _rows(release: Release) -> list[Effect]:
    """Return all units first; of several arms those against the reference, as subgroups have."""
    reference = release.effects[0].against
    return [row for row in release.effects if row.against == reference]


def _name(release: Release, row: Effect) -> str:
    name = short_name(marked_subgroup(release, row), 28)
    return f"{name}: {short_name(row.arm)}" if release.arms else name


def marked_subgroup(release: Release, row: Effect) -> str:
    """Return a row's name, marked where the row is not what the headline is."""
    name = row.subgroup or _ALL
    if row.estimand == release.estimand:
        return name
    return f"{name} ({'not adjusted' if row.estimand == 'difference' else 'adjusted'})"


def _table(cells: Cells) -> Markup:
    """Return a table that fits a phone, with sizes below names."""
    place = cells.numbers.index(True)
    names = [
        stacked((*row[:place], *([f"{row[place]} units"] if row[place] else [])))
        for row in cells.rows
    ]
    caption = "In units of the outcome. Intervals “all at once” cover all rows together."
    return phone_table("subgroup", cells, names, place + 1, caption)
