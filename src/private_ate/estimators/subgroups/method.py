"""Effects in subgroups at label level: a run of the method in every cell, each with all of ε.

Cells are told by public columns and a person is in one of them, so that every cell has the whole
budget; margins and all units are weighted sums of cells. Where half of ε was set aside for all
units, what the cells released is made to agree with it. Proof: docs/proofs/subgroups.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
from private_ate.estimators.subgroups.errors import Quantity, ReleasedCells
from private_ate.estimators.subgroups.facts import merged_settings, merged_warnings
from private_ate.estimators.subgroups.private_cells import estimate_private_cells
from private_ate.estimators.subgroups.table import estimate_rows
from private_ate.privacy.levels import has_public_covariates
from private_ate.privacy.noise import Noise
from private_ate.privacy.parts import Parts
from private_ate.privacy.sums import OUTCOME_BITS, WEIGHT_BITS
from private_ate.release import Estimate
from private_ate.settings import SubgroupNote
from private_ate.study import ArmSizes, Block, MatchingStudy

__all__ = ["estimate_subgroups"]

_DIRECT: Final = "outcome sums, all units"


@dataclass(frozen=True, slots=True)
class _Cell:
    """One of the finest cells: its name, its rows and their arms."""

    name: str
    study: MatchingStudy = field(repr=False)
    everyone: ArmSizes
    present: ArmSizes

    @property
    def is_comparable(self) -> bool:
        """Whether every arm has somebody with an outcome, as far as that is public."""
        return not self.present.has_empty

    def weight(self, request: Request, labels: tuple[str, ...]) -> int:
        """Return how many units the effect in this cell speaks of."""
        if request.among is not None:
            return self.everyone[labels.index(request.among)]
        match request.estimand:
            case "att":
                return self.everyone.treated
            case "atc":
                return self.everyone.control
            case _:
                return self.everyone.total


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
    found = _divide(study, cells)
    used = [cell for cell in found if cell.is_comparable]
    if not used:
        msg = "no subgroup holds units of every arm; choose coarser ones"
        raise SchemaError(msg)
    of_cells = _half(request.epsilon) if request.overall else request.epsilon
    each = replace(request, by=(), overall=False, epsilon=of_cells)
    parts = Parts(noise)
    runs = [method.run(cell.study, each, parts.within(cell.name)) for cell in used]
    direct = None
    if request.overall:
        units = sum(cell.study.size for cell in used)
        direct = _release_direct(study, request, units, parts, request.epsilon - of_cells)
    labels = study.domain.treatment.coded
    weights = [cell.weight(request, labels) for cell in used]
    shares = [weight / sum(weights) for weight in weights]
    released = ReleasedCells.reconcile(shares, [_quantities(run) for run in runs], direct)
    names = [cell.name for cell in used]
    notes = tuple(_note(cell, labels) for cell in found if cell.everyone.total)
    settings = merged_settings(
        [run.settings for run in runs], [cell.study.size for cell in used], notes, request
    )
    return estimate_rows(
        released, _groups(cells, used), study.domain, request, settings,
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


def _divide(study: MatchingStudy, cells: Cells) -> list[_Cell]:
    """Return all cells with their sizes, which are public at label level."""
    arms = study.domain.treatment.size

    def everyone(block: Block) -> ArmSizes:
        return ArmSizes.count(block.arm, arms)

    def present(block: Block) -> ArmSizes:
        return ArmSizes.count(block.arm[block.present], arms)

    found = []
    divided = study.divided(lambda block: cells.codes(block.covariates), cells.count)
    for name, rows in zip(cells.names, divided, strict=True):
        nobody = ArmSizes((0,) * arms)
        sizes = (nobody, nobody)
        if rows.size:
            public = rows.public()
            sizes = (public.fold(everyone), public.fold(present))
        found.append(_Cell(name, rows, *sizes))
    return found


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
    study: MatchingStudy, request: Request, units: int, parts: Parts, epsilon: Fraction
) -> tuple[Quantity, ...]:
    """Release the outcome sums of all units, with the weights that they have in their cells."""
    bounds, arms = study.domain.bounds, study.domain.treatment.size
    options = request.options
    apart = arms > 2 or (isinstance(options, CalibratedOptions) and options.means)
    total = parts.total(_DIRECT, "outcome sums" if apart else "outcome sum", epsilon=epsilon)
    unit, whole = bounds.width / units, 1 << (OUTCOME_BITS + WEIGHT_BITS)
    levels = [float(Fraction(steps, 2 * whole)) * unit for steps in total.noisy]
    laws = [
        NoiseLaw("staircase", float(Fraction(size, whole)) * unit, float(epsilon))
        for size in total.sensitivities
    ]
    if arms > 2:
        return tuple(
            Quantity(bounds.middle + level, (law,)) for level, law in zip(levels, laws, strict=True)
        )
    effect = levels[0] - levels[1] if apart else levels[0]
    return (Quantity(effect, tuple(laws)),)


def _groups(cells: Cells, used: list[_Cell]) -> list[tuple[str, tuple[int, ...]]]:
    """Return margins, then cells, with the places of their cells among those that have effects."""
    places = {cell.name: place for place, cell in enumerate(used)}
    found = []
    for name, members in cells.margins:
        held = tuple(places[cells.names[cell]] for cell in members if cells.names[cell] in places)
        if held:
            found.append((name, held))
    return [*found, *((name, (place,)) for name, place in places.items())]


def _note(cell: _Cell, labels: tuple[str, ...]) -> SubgroupNote:
    sizes = dict(zip(labels, cell.present.counts, strict=True))
    return SubgroupNote(cell.name, cell.everyone.total, sizes, cell.is_comparable)
