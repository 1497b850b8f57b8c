"""Effects in subgroups at label level: a run of the method in every subgroup, each with all of ε.

Public columns make the subgroups and a person is in one of them, so that every subgroup has the
whole budget. What their weights balance is learnt from all rows, near whose weights theirs stay;
margins and all units are weighted sums of subgroups.
Where half of ε was set aside for all units, these are a run on all rows with weights of
their own, and the subgroups are made to add up to it. Proof: docs/proofs/subgroups.md.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from private_ate.effects.estimate import Estimate
from private_ate.effects.quantities import ReleasedSubgroups
from private_ate.methods.calibrated.design import Learned, pose
from private_ate.methods.calibrated.method import (
    estimate_calibrated,
    estimate_rows,
    learn_from_all,
)
from private_ate.methods.composition import refuse_gaps
from private_ate.methods.effect_tables import subgroup_estimate
from private_ate.methods.registry import Method
from private_ate.methods.subgroups.rows import ComparedSubgroups, groups_of
from private_ate.methods.subgroups.settings import merged_settings, merged_warnings
from private_ate.privacy.composed_noise import SubgroupNoise, named_noise
from private_ate.privacy.levels import has_public_covariates
from private_ate.privacy.noise import Noise
from private_ate.request import Request
from private_ate.study import MatchingStudy

__all__ = ["estimate_subgroups", "learned_for_subgroups", "overlap_of_subgroup"]

_DIRECT: Final = "all units"


def estimate_subgroups(
    study: MatchingStudy, request: Request, method: Method, noise: Noise
) -> Estimate:
    """Release effects in all subgroups of a request, in their margins and for all units.

    Neighbours: one person's outcome replaced, which is in one subgroup. Cost: ε: every subgroup
    spends all of it, or half if the other half pays for a run on all rows. Sensitivity: as the
    method has it within a subgroup, and among all rows. Private subgroups are released by the
    method itself.
    Proof: docs/proofs/subgroups.md.
    """
    refuse_gaps(method, request, study.domain)
    if not has_public_covariates(request.level):
        return method.run(study, request, noise)
    compared = ComparedSubgroups.of(study, request.by)
    used = compared.used
    of_subgroups = _half(request.epsilon) if request.overall else request.epsilon
    each = replace(request, by=(), overall=False, epsilon=of_subgroups)
    learned = learned_for_subgroups(compared.rows.public(), each, len(used))
    divided = SubgroupNoise(noise)
    runs = [
        estimate_rows(subgroup.study, each, divided.within(subgroup.name), learned)
        for subgroup in used
    ]
    direct = None
    if request.overall:
        rest = replace(each, epsilon=request.epsilon - of_subgroups)
        direct = estimate_calibrated(compared.rows, rest, named_noise(noise, _DIRECT))
    shares = compared.shares(request, [run.population for run in runs])
    released = ReleasedSubgroups.reconcile(
        shares, [run.quantities for run in runs], None if direct is None else direct.quantities
    )
    labels = study.domain.treatment.coded
    notes = tuple(subgroup.note(labels) for subgroup in compared.found if subgroup.everyone.total)
    settings = merged_settings([run.settings for run in runs], shares, notes, request)
    return subgroup_estimate(
        released, groups_of(compared.cells, used), study.domain, request, settings,
        units=tuple(map(sum, zip(*(subgroup.present.counts for subgroup in used), strict=True))),
        warnings=merged_warnings(
            [subgroup.name for subgroup in used], [run.warnings for run in runs], notes
        ),
    )  # fmt: skip


def learned_for_subgroups(public: MatchingStudy, request: Request, count: int) -> Learned | None:
    """Learn from all rows what every subgroup balances, and weights near which a subgroup's stay.

    A subgroup alone has too few rows to learn shapes of the covariates, and what its weights then
    leave has the same sign in all subgroups and adds up in the effect of all units. Near the
    weights of all rows, rolled-up totals are about as balanced as those of one run on all rows.
    Weights that follow matching are each subgroup's own. Public columns only.
    """
    return None if request.target == "track" else learn_from_all(public, request, count)


def overlap_of_subgroup(
    public: MatchingStudy, request: Request, learned: Learned | None
) -> float | None:
    """Return what the units of a subgroup count for the ATO, by the score of all rows."""
    if request.estimand != "ato":
        return None
    return pose(public, request, learned).population


def _half(epsilon: Fraction) -> Fraction:
    """Return half of a budget as a decimal number that a request can hold."""
    context = Context(prec=14)
    half = epsilon / 2
    return Fraction(context.divide(Decimal(half.numerator), Decimal(half.denominator)))
