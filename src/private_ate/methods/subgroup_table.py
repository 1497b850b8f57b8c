"""What a release of subgroups holds: a table of all units, margins and subgroups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from private_ate.domain import Domain
from private_ate.effects.estimate import Estimate
from private_ate.effects.quantities import ReleasedSubgroups
from private_ate.effects.table import arm_of_subgroups, equal_effects, rows_of_subgroups, table_rows
from private_ate.release.metadata import Arm
from private_ate.request import Request
from private_ate.settings import ABSENT, SubgroupsNote

__all__ = ["subgroup_estimate"]


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
    labels, width = domain.treatment.coded, domain.bounds.width
    pays = request.confidence is not None and released.has_variances
    made, factor = rows_of_subgroups(
        released, table_rows(released.shares, groups, labels), width,
        request.coverage, request.coverage_at_once if pays else None,
    )  # fmt: skip
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
    estimate = replace(
        Estimate.of_rows(tuple(made), noted, headline=len(labels) - 2), warnings=warnings
    )
    if len(labels) == 2:
        return estimate
    among = request.among
    arms = tuple(
        Arm(label, None, None, None, None, None, None, (), weighted=True)
        if units is None
        else arm_of_subgroups(
            released, place, labels, units[place], domain.bounds, request.coverage, pays=pays
        )
        for place, label in enumerate(labels)
    )
    return replace(
        estimate,
        estimand=None if among is None else ("atc" if among == labels[0] else "att"),
        arms=arms,
    )
