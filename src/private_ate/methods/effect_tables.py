"""The estimate that released quantities make: of all units, and of subgroups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from private_ate.domain.column_types import Treatment
from private_ate.domain.domain import Domain
from private_ate.effects.estimate import Estimate, Quantity
from private_ate.effects.quantities import ReleasedSubgroups
from private_ate.effects.table import (
    AboutArms,
    Intervals,
    arms_of,
    equal_effects,
    table_of_arms,
    table_of_subgroups,
)
from private_ate.release.metadata import Pair, ReleasedEstimand
from private_ate.request import Request
from private_ate.settings import (
    ABSENT,
    Absent,
    ArmsSettings,
    HeadlineNote,
    IntervalRule,
    Settings,
    SubgroupsNote,
)

__all__ = ["estimate_of_quantities", "subgroup_estimate"]


def estimate_of_quantities(
    quantities: Sequence[Quantity],
    domain: Domain,
    request: Request,
    settings: Settings,
    about: AboutArms | None = None,
    *,
    rule: IntervalRule = "convolved",
) -> Estimate:
    """Return what a release holds, from its quantities: one contrast, or levels by arms' codes.

    Everything is post-processing. Of several arms the headline is the last declared one other than
    the reference, against it. Intervals follow ``rule`` and exist if the quantities have variances
    and the request asks for a confidence.
    """
    pays = request.confidence is not None and all(one.variances for one in quantities)
    used = rule if pays else None
    asked = Intervals(request.coverage, request.coverage_at_once, used)
    rows, factors = table_of_arms(quantities, domain.bounds, asked)
    if not isinstance(settings, ArmsSettings):
        return Estimate(rows, settings, quantities=tuple(quantities))
    labels = domain.treatment.coded
    headline = rows[len(labels) - 2]
    filled = replace(
        settings,
        headline=HeadlineNote(labels[headline.arm], labels[headline.against]),
        among=ABSENT if request.among is None else request.among,
        simultaneous_factor=factors or ABSENT,
        interval_rule=used or ABSENT,
        binary_outcome=True if domain.bounds.is_binary else ABSENT,
        doses=_doses(domain.treatment),
    )
    return Estimate(
        rows, filled, len(labels) - 2,
        quantities=tuple(quantities),
        estimand=_estimand_among(request, domain),
        arms=arms_of(
            ReleasedSubgroups.reconcile((1.0,), [quantities]), labels, domain.bounds,
            about or AboutArms(), asked,
        ),
    )  # fmt: skip


def _estimand_among(request: Request, domain: Domain) -> ReleasedEstimand | None:
    """Return what the effect among one of several arms is called; None for all units."""
    if request.among is None:
        return None
    return "atc" if request.among == domain.treatment.coded[0] else "att"


def _doses(treatment: Treatment) -> dict[str, Pair] | Absent:
    if treatment.bins is None:
        return ABSENT
    return dict(zip(treatment.labels, pairwise(treatment.bins), strict=True))


def subgroup_estimate(
    released: ReleasedSubgroups,
    groups: Sequence[tuple[str, tuple[int, ...]]],
    domain: Domain,
    request: Request,
    settings: Any,  # noqa: ANN401  # a frozen dataclass that has room for subgroups
    *,
    units: tuple[int, ...] | None,
    warnings: tuple[str, ...] = (),
) -> Estimate:
    """Return what a release of subgroups holds; all of it is post-processing.

    ``groups`` are the rows' names with the places of the subgroups in each; ``units`` are those of
    the arms, None where numbers and means of arms were not released.
    """
    labels = domain.treatment.coded
    pays = request.confidence is not None and released.has_variances
    asked = Intervals(request.coverage, request.coverage_at_once, "convolved" if pays else None)
    made, factor = table_of_subgroups(released, groups, len(labels), domain.bounds.width, asked)
    noted = replace(
        settings,
        subgroups=SubgroupsNote(
            request.by,
            "paid for" if request.overall else "rolled up",
            settings.subgroups.cells if isinstance(settings.subgroups, SubgroupsNote) else (),
            ABSENT if factor is None else factor,
            (equal_effects(released, labels) if pays else ()) or ABSENT,
        ),
    )
    estimate = Estimate(made, noted, len(labels) - 2, warnings=warnings)
    if len(labels) == 2:
        return estimate
    about = AboutArms(units is not None, units)
    arms = arms_of(released, labels, domain.bounds, about, asked)
    return replace(estimate, estimand=_estimand_among(request, domain), arms=arms)
