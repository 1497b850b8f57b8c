"""The rows of a plan: what a method predicts of its quantities, as a release's table has them.

A planner asks a method once for its predictions of a study, and then for each number of rows and ε.
Whatever the method, rows are weighted sums of its quantities: contrasts of arms, and
where there are subgroups those that are reconciled as a release reconciles them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final

from private_ate.domain import Domain
from private_ate.effects.quantities import PredictedRow, ReleasedSubgroups, predicted_contrast
from private_ate.effects.table import TableRow, pairs_in_order, table_rows
from private_ate.engines.local import LocalStudy
from private_ate.methods.assumptions import Assumptions, Predict
from private_ate.methods.registry import Method
from private_ate.methods.subgroups import (
    ComparedSubgroups,
    groups_of,
    learned_for_subgroups,
    overlap_of_subgroup,
)
from private_ate.planning.assumptions import rows_like
from private_ate.planning.plan import PlannedRow, Planner
from private_ate.privacy.levels import has_public_covariates
from private_ate.request import Request
from private_ate.study import MatchingStudy

__all__ = ["plan_contrasts", "plan_subgroups", "plan_together"]

_MOST_PAIRS: Final = 15  # beyond, a plan shows contrasts with the reference only
_MANY: Final = 3  # subgroups above which all units are better paid for
_FEWEST: Final = 8  # rows of a subgroup, where a plan scales them


def plan_contrasts(
    method: str, predict: Predict, labels: Sequence[str], request: Request,
    size: int | None, caveat: str,
) -> Planner:  # fmt: skip
    """Return the planner of every contrast; a wanted half-width is that against the reference."""
    many = len(labels)
    pairs = pairs_in_order(many)
    if len(pairs) > _MOST_PAIRS:
        pairs = pairs[: many - 1]

    def rows_of(size: int, epsilon: float, kept: int) -> list[PlannedRow]:
        predictions = predict(size, epsilon)
        return [
            PlannedRow(
                predicted_contrast(predictions, arm, against), size,
                *((labels[arm], labels[against]) if many > 2 else ()),
            )
            for arm, against in pairs[:kept]
        ]  # fmt: skip

    return Planner(
        method, size, request.coverage, caveat,
        lambda size, epsilon: rows_of(size, epsilon, len(pairs)),
        lambda size, epsilon: rows_of(size, epsilon, many - 1),
        "" if many == 2 else " in every contrast with the reference",
    )  # fmt: skip


def plan_together(domain: Domain, planners: Sequence[Planner], request: Request) -> Planner:
    """Return one planner of all outcomes; a wanted half-width is that of the first.

    At sample level outcomes share ε equally; at label level one draw answers all.
    """
    first, count = planners[0], len(planners)
    if count == 1:
        return first

    def table(size: int, epsilon: float) -> list[PlannedRow]:
        return [
            row._replace(outcome=outcome.column)
            for outcome, planner in zip(domain.outcomes, planners, strict=True)
            for row in planner.table(size, epsilon)
        ]

    headline = domain.outcome.column
    caveat = (
        f"is of {count} outcomes that are released together at one ε; for {headline!r} it "
        f"{first.caveat}"
    )
    together = replace(first, caveat=caveat, table=table, whose=f"{first.whose} of {headline}")
    if has_public_covariates(request.level):
        return together
    return together.at(lambda epsilon: epsilon / count)


def plan_subgroups(
    method: Method,
    study: LocalStudy,
    assumed: Assumptions,
    request: Request,
    caveat: str,
) -> Planner:
    """Return the planner of every row of the table that a request for subgroups releases.

    Subgroups are those of the public columns, in their proportions.
    """
    compared = ComparedSubgroups.of(study, request.by)
    used = compared.used
    learned = learned_for_subgroups(compared.rows.public(), request, len(used))

    def predict_in(part: MatchingStudy, learned: object) -> Predict:
        if not isinstance(part, LocalStudy):
            msg = "subgroups are planned for tables in memory"
            raise TypeError(msg)
        return method.predictor(replace(assumed, public=rows_like(part), learned=learned), request)

    shares = compared.shares(
        request, [overlap_of_subgroup(one.study.public(), request, learned) for one in used]
    )
    predictions = [predict_in(cell.study, learned) for cell in used]
    overall = predict_in(compared.rows, None)
    sizes = [cell.study.size for cell in used]
    labels = study.domain.treatment.coded
    rows = table_rows(shares, groups_of(compared.cells, used), len(labels))
    whole = study.size

    def table(size: int, epsilon: float) -> list[PlannedRow]:
        each = epsilon / 2 if request.overall else epsilon
        counts = [_scaled(part, size, whole) for part in sizes]
        within = [one(count, each) for one, count in zip(predictions, counts, strict=True)]
        direct = overall(sum(counts), epsilon - each) if request.overall else None
        erring, shown = (
            ReleasedSubgroups.reconcile(
                shares,
                [[kind(one) for one in subgroup] for subgroup in within],
                None if direct is None else [kind(one) for one in direct],
            )
            for kind in (attrgetter("erring"), attrgetter("quantity"))
        )

        def planned(row: TableRow) -> PlannedRow:
            held = [place for place, weight in enumerate(row.weights.subgroups) if weight]
            note = within[held[0]][-1].note if len(held) == 1 else f"{len(held)} cells"
            likely = erring.likely(row.weights), shown.likely(row.weights)
            return PlannedRow(
                PredictedRow(erring.noises(row.weights), *likely, note=note),
                sum(counts[place] for place in held),
                labels[row.arm] if len(labels) > 2 else None,
                labels[row.against] if len(labels) > 2 else None,
                subgroup=row.subgroup,
            )

        return [planned(row) for row in rows]

    return Planner(
        method.name, whole, request.coverage, caveat + _advice(compared, request),
        table, table, " in every row of the table",
    )  # fmt: skip


def _scaled(part: int, size: int, whole: int) -> int:
    return part if size == whole else max(round(part * size / whole), _FEWEST)


def _advice(compared: ComparedSubgroups, request: Request) -> str:
    """Say which cells have no row, and that many cells are better paid for together too."""
    lacking = [
        cell.name for cell in compared.found if cell.arms.everyone.total and not cell.is_comparable
    ]
    text = f"; no effect in {'; '.join(lacking)}: an arm is missing there" if lacking else ""
    used = compared.used
    if len(used) > _MANY and not request.overall:
        text += (
            f"; all units are rolled up from {len(used)} cells, about {len(used) ** 0.5:.1f} times "
            "as noisy as asked for alone: above three cells overall=True is recommended"
        )
    return text
