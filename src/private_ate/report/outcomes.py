"""Several outcomes as a table of texts, and a release as each of its outcomes sees it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from private_ate.release.metadata import OutcomeNote
from private_ate.report.markup import Markup, element, stacked
from private_ate.report.several import (
    Cells,
    cells_of,
    effect_columns,
    phone_table,
    smallest_error,
)
from private_ate.report.words import column_title, outcome_names
from private_ate.settings import OutcomeFacts, settings_of_outcome

if TYPE_CHECKING:
    from private_ate.release import Release
    from private_ate.release.metadata import Effect


def has_outcomes(release: Release) -> bool:
    """Say whether the table of effects has rows of several outcomes."""
    return len(outcome_names(release)) > 1


def by_outcome(release: Release) -> list[Release]:
    """Return the release as each outcome sees it: its own rows, its own headline and unit.

    Means of arms are those of the first outcome; the others have none.
    """
    if not has_outcomes(release):
        return [release]
    known = {one.column: one for one in release.facts.outcomes}
    return [_view(release, column, known.get(column)) for column in outcome_names(release)]


def _view(release: Release, column: str, facts: OutcomeFacts | None) -> Release:
    rows = tuple(row for row in release.effects if row.outcome == column)
    head = _headline(release, rows)
    note = None if facts is None else OutcomeNote(column, facts.bounds, facts.unit)
    return replace(
        release, effects=rows, ate=head.estimate, interval=head.interval,
        noise_interval=head.noise_interval, outcome=note,
        settings=settings_of_outcome(release.settings, column),
    )  # fmt: skip


def _headline(release: Release, rows: tuple[Effect, ...]) -> Effect:
    """Return the headline of one outcome: the contrast of the release's own."""
    overall = [row for row in rows if row.subgroup is None]
    wanted = release.facts.headline
    for row in overall:
        if wanted is not None and (row.arm, row.against) == (wanted.arm, wanted.against):
            return row
    return overall[0]


def outcome_cells(release: Release) -> Cells:
    """Return a row per outcome and contrast of all units; of several arms with the reference."""
    names: list[str] = []
    rows: list[Effect] = []
    errors: list[float] = []
    for view in by_outcome(release):
        told = [row for row in view.effects if row.subgroup is None]
        told = [row for row in told if row.against == told[0].against]
        error = smallest_error(release, [(row.interval, row.noise_interval) for row in told])
        unit = "" if view.outcome is None or not view.outcome.unit else f" ({view.outcome.unit})"
        names += [f"{column_title(release, row.outcome)}{unit}" for row in told]
        errors += [error] * len(told)
        rows += told
    columns = [("outcome", False, names)]
    if release.arms:
        columns.append(("arms", False, [f"{row.arm} against {row.against}" for row in rows]))
    return cells_of([*columns, *effect_columns(release, rows, errors)])


def outcome_part(release: Release) -> list[Markup]:
    """Return the outcomes of a page as a table that fits a phone."""
    if not has_outcomes(release):
        return []
    cells = outcome_cells(release)
    names = cells.numbers.index(True)
    heads = [stacked(row[:names]) for row in cells.rows]
    caption = "Each in units of its own outcome."
    if release.interval is not None:
        caption += " Intervals “all at once” cover all rows of all outcomes together."
    return [element("h2", "Outcomes"), phone_table("outcome", cells, heads, names, caption)]
