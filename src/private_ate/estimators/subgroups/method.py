"""Effects in subgroups at label level: a run of the method in every cell, each with all of ε.

Cells are told by public columns and a person is in one of them, so that every cell has the whole
budget. What their weights balance is learnt from all rows; margins and all units are weighted sums
of cells. Where half of ε was set aside for all units, these are a run on all rows with weights of
their own, and the cells are made to add up to it. Proof: docs/proofs/subgroups.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from private_ate.domain import Domain
from private_ate.domain.subgroups import Cells
from private_ate.effects.estimate import Comparison, Estimate
from private_ate.effects.quantities import ReleasedSubgroups
from private_ate.effects.table import arm_of_subgroups, equal_effects, rows_of_subgroups, table_rows
from private_ate.errors import SchemaError
from private_ate.estimators.calibrated.method import (
    Features,
    estimate_calibrated,
    estimate_cell,
    learn_features,
)
from private_ate.estimators.calibrated.settings import CalibratedArmsSettings, CalibratedSettings
from private_ate.estimators.composition import refuse_gaps
from private_ate.estimators.registry import Method
from private_ate.estimators.request import Request
from private_ate.estimators.subgroups.cells import divide_rows, groups_of, rows_compared
from private_ate.estimators.subgroups.facts import merged_settings, merged_warnings
from private_ate.estimators.subgroups.populations import count_population
from private_ate.estimators.subgroups.private_cells import estimate_private_cells
from private_ate.privacy.levels import has_public_covariates
from private_ate.privacy.noise import Noise
from private_ate.privacy.parts import Parts
from private_ate.privacy.together import named_noise
from private_ate.settings import ABSENT, SubgroupsNote
from private_ate.study import MatchingStudy

__all__ = ["estimate_subgroups", "features_for_cells"]

_DIRECT: Final = "all units"


def estimate_subgroups(
    study: MatchingStudy, request: Request, method: Method, noise: Noise
) -> Estimate:
    """Release effects in all cells of a request, in their margins and for all units.

    Neighbours: one person's outcome replaced, which is in one cell. Cost: ε: every cell spends
    all of it, or half if the other half pays for a run on all rows. Sensitivity: as the method has
    it within a cell, and among all rows. Where cells are private: see `estimate_private_cells`.
    Proof: docs/proofs/subgroups.md.
    """
    refuse_gaps(method, request, study.domain)
    if not has_public_covariates(request.level):
        return estimate_private_cells(study, request, noise)
    cells = Cells.of(study.domain, request.by)
    found = divide_rows(study, cells)
    used = [cell for cell in found if cell.is_comparable]
    if not used:
        msg = "no subgroup holds units of every arm; choose coarser ones"
        raise SchemaError(msg)
    whole = rows_compared(study, cells, found)
    of_cells = _half(request.epsilon) if request.overall else request.epsilon
    each = replace(request, by=(), overall=False, epsilon=of_cells)
    learned = features_for_cells(whole.public(), each)
    parts = Parts(noise)
    runs = [estimate_cell(cell.study, each, parts.within(cell.name), learned) for cell in used]
    direct = None
    if request.overall:
        rest = replace(each, epsilon=request.epsilon - of_cells)
        direct = estimate_calibrated(whole, rest, named_noise(noise, _DIRECT))
    populations = [
        count_population(cell.study.public(), request, run.overlap)
        for cell, run in zip(used, runs, strict=True)
    ]
    shares = [population / sum(populations) for population in populations]
    released = ReleasedSubgroups.reconcile(
        shares, [run.quantities for run in runs], None if direct is None else direct.quantities
    )
    labels = study.domain.treatment.coded
    notes = tuple(cell.note(labels) for cell in found if cell.everyone.total)
    settings = merged_settings([run.settings for run in runs], shares, notes, request)
    return _estimate(
        released, groups_of(cells, used), study.domain, request, settings,
        units=tuple(map(sum, zip(*(cell.present.counts for cell in used), strict=True))),
        warnings=merged_warnings(
            [cell.name for cell in used], [run.warnings for run in runs], notes
        ),
    )  # fmt: skip


def features_for_cells(public: MatchingStudy, request: Request) -> Features | None:
    """Learn from all rows what the weights of two arms balance in every cell; public columns only.

    A cell alone has too few rows to learn products and shapes of covariates; what its weights
    then leave leans the same way in all cells, and stays in the effect of all units. Several arms
    learn no such terms, and weights that follow matching balance what matching does.
    """
    if public.domain.treatment.size > 2 or request.target == "track":
        return None
    return learn_features(public, request)


def _half(epsilon: Fraction) -> Fraction:
    """Return half of a budget as a decimal number that a request can hold."""
    context = Context(prec=14)
    half = epsilon / 2
    return Fraction(context.divide(Decimal(half.numerator), Decimal(half.denominator)))


def _estimate(
    released: ReleasedSubgroups,
    groups: Sequence[tuple[str, tuple[int, ...]]],
    domain: Domain,
    request: Request,
    settings: CalibratedSettings | CalibratedArmsSettings,
    *,
    units: tuple[int, ...],
    warnings: tuple[str, ...],
) -> Estimate:
    """Return what a release of subgroups holds; all of it is post-processing.

    ``groups`` are the rows' names with the places of the cells in each; ``units`` those of arms.
    """
    labels, width = domain.treatment.coded, domain.bounds.width
    pays = request.confidence is not None and released.has_variances
    made, factor = rows_of_subgroups(
        released, table_rows(released.shares, groups, labels), width,
        request.coverage, request.coverage_at_once if pays else None,
    )  # fmt: skip
    headline = made[len(labels) - 2].contrast
    told = replace(
        settings,
        subgroups=SubgroupsNote(
            request.by,
            "paid for" if request.overall else "rolled up",
            settings.subgroups.cells if isinstance(settings.subgroups, SubgroupsNote) else (),
            ABSENT if factor is None else factor,
            (equal_effects(released, labels) if pays else ()) or ABSENT,
        ),
    )
    estimate = Estimate(
        headline.effect, headline.noise_interval, headline.interval, told,
        warnings=warnings, subgroups=tuple(made),
    )  # fmt: skip
    if len(labels) == 2:
        return estimate
    among = request.among
    arms = tuple(
        arm_of_subgroups(
            released, place, labels, units[place], domain.bounds, request.coverage, pays=pays
        )
        for place in range(len(labels))
    )
    overall = tuple(row.contrast for row in made if row.subgroup is None)
    return replace(
        estimate,
        estimand=None if among is None else ("atc" if among == labels[0] else "att"),
        comparison=Comparison(arms, overall),
        subgroups=tuple(row for row in made if row.subgroup is not None),
    )
