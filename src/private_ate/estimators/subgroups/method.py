"""Effects in subgroups at label level: a run of the method in every cell, each with all of ε.

Cells are told by public columns and a person is in one of them, so that every cell has the whole
budget; margins and all units are weighted sums of cells. Where half of ε was set aside for all
units, what the cells released is made to agree with it. Proof: docs/proofs/subgroups.md.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from private_ate.contents.arms import NoiseLaw
from private_ate.domain.subgroups import Cells
from private_ate.errors import ArgumentError, SchemaError
from private_ate.estimators.calibrated.options import CalibratedOptions, plan_clip
from private_ate.estimators.refusals import refuse_subgroups
from private_ate.estimators.registry import Method
from private_ate.estimators.request import Request
from private_ate.estimators.subgroups.cells import divide_rows, groups_of
from private_ate.estimators.subgroups.errors import Quantity, ReleasedCells
from private_ate.estimators.subgroups.facts import merged_settings, merged_warnings
from private_ate.estimators.subgroups.populations import count_population, roll_up
from private_ate.estimators.subgroups.private_cells import estimate_private_cells
from private_ate.estimators.subgroups.table import estimate_rows
from private_ate.privacy.levels import has_public_covariates
from private_ate.privacy.noise import Noise
from private_ate.privacy.parts import Parts
from private_ate.privacy.sum_law import SumLaw
from private_ate.privacy.sums import OUTCOME_BITS, WEIGHT_BITS
from private_ate.release import Estimate
from private_ate.study import MatchingStudy

__all__ = ["estimate_subgroups"]

_DIRECT: Final = "outcome sums, all units"


def estimate_subgroups(
    study: MatchingStudy, request: Request, method: Method, noise: Noise
) -> Estimate:
    """Release effects in all cells of a request, in their margins and for all units.

    Neighbours: one person's outcome replaced, which is in one cell. Cost: ε: every cell spends
    all of it, or half if the other half pays for all units. Sensitivity: as the method has it
    within a cell; see `Parts.total` for all units. Where cells are private: see
    `estimate_private_cells`. Proof: docs/proofs/subgroups.md.
    """
    refuse_subgroups(method, request, study.domain)
    if not has_public_covariates(request.level):
        return estimate_private_cells(study, request, noise)
    _refuse_clipped_means(study, request)
    cells = Cells.of(study.domain, request.by)
    found = divide_rows(study, cells)
    used = [cell for cell in found if cell.is_comparable]
    if not used:
        msg = "no subgroup holds units of every arm; choose coarser ones"
        raise SchemaError(msg)
    of_cells = _half(request.epsilon) if request.overall else request.epsilon
    each = replace(request, by=(), overall=False, epsilon=of_cells)
    parts = Parts(noise)
    runs = [method.run(cell.study, each, parts.within(cell.name)) for cell in used]
    populations = [
        count_population(cell.study.public(), request, run.overlap)
        for cell, run in zip(used, runs, strict=True)
    ]
    roll = roll_up(populations, [cell.study.size for cell in used], by_factors=request.overall)
    names = [cell.name for cell in used]
    direct = None
    if request.overall:
        factors = dict(zip(names, roll.factors, strict=True))
        direct = _release_direct(
            study, request, roll.rows, factors, parts, request.epsilon - of_cells
        )
    released = ReleasedCells.reconcile(roll.shares, [_quantities(run) for run in runs], direct)
    labels = study.domain.treatment.coded
    notes = tuple(cell.note(labels) for cell in found if cell.everyone.total)
    settings = merged_settings([run.settings for run in runs], roll.shares, notes, request)
    return estimate_rows(
        released, groups_of(cells, used), study.domain, request, settings,
        units=tuple(map(sum, zip(*(cell.present.counts for cell in used), strict=True))),
        warnings=merged_warnings(names, [run.warnings for run in runs], notes),
    )  # fmt: skip


def _refuse_clipped_means(study: MatchingStudy, request: Request) -> None:
    """Refuse means of all units that are counted from another middle in every cell."""
    options = request.options
    if not isinstance(options, CalibratedOptions) or not request.overall:
        return
    if plan_clip(study.domain.bounds, options).share and study.domain.treatment.size > 2:
        msg = "several arms are not clipped where all units are paid for; leave out overall"
        raise ArgumentError(msg, parameter="overall")


def _half(epsilon: Fraction) -> Fraction:
    """Return half of a budget as a decimal number that a request can hold."""
    context = Context(prec=14)
    half = epsilon / 2
    return Fraction(context.divide(Decimal(half.numerator), Decimal(half.denominator)))


def _quantities(run: Estimate) -> tuple[Quantity, ...]:
    """Return what one cell released: the means of several arms, or the effect of two."""
    if run.arms:
        return tuple(Quantity(arm.level, (arm.law,), arm.variances) for arm in run.arms)
    return (Quantity(run.ate, run.laws, run.variances),)


def _release_direct(
    study: MatchingStudy,
    request: Request,
    rows: int,
    factors: dict[str, int],
    parts: Parts,
    epsilon: Fraction,
) -> tuple[Quantity, ...]:
    """Release the outcome sums of all units, with the weights that they have in their cells.

    In a cell weights add up to its rows; with sampling weights a cell counts by what those add up
    to instead, by a public factor on a grid of 2⁻²⁰.
    """
    bounds, arms = study.domain.bounds, study.domain.treatment.size
    options = request.options
    apart = arms > 2 or (isinstance(options, CalibratedOptions) and options.means)
    of_step = "outcome sums" if apart else "outcome sum"
    total = parts.total(_DIRECT, of_step, epsilon=epsilon, factors=factors)
    unit, whole = bounds.width / rows, 1 << (OUTCOME_BITS + WEIGHT_BITS)
    levels = [float(Fraction(steps, 2 * whole)) * unit for steps in total.noisy]
    law = SumLaw.of(parts.noise.outcomes, epsilon)
    laws = [
        NoiseLaw.of_sum(law, float(Fraction(size, whole)) * unit) for size in total.sensitivities
    ]
    if arms > 2:
        return tuple(
            Quantity(bounds.middle + level, (law,)) for level, law in zip(levels, laws, strict=True)
        )
    effect = levels[0] - levels[1] if apart else levels[0]
    return (Quantity(effect, tuple(laws)),)
