"""The estimate of three arms or more, from their released levels."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from private_ate.domain import Domain, Treatment
from private_ate.effects.contrasts import compare_arms
from private_ate.effects.estimate import ArmEstimate, Estimate
from private_ate.release.intervals import Rule
from private_ate.release.metadata import Pair
from private_ate.request import Request
from private_ate.settings import ABSENT, Absent, ArmsSettings, HeadlineNote

__all__ = ["estimate_from_arms"]


def estimate_from_arms(
    arms: tuple[ArmEstimate, ...],
    domain: Domain,
    request: Request,
    settings: ArmsSettings,
    *,
    rule: Rule,
    adjusted: bool | None = None,
    warnings: tuple[str, ...] = (),
) -> Estimate:
    """Return what a release of three arms or more holds, from their levels in order of the codes.

    Everything is post-processing. The headline is the last declared arm other than the reference,
    against it. Intervals follow ``rule`` and exist if the levels have variances and the request
    asks for a confidence.
    """
    treatment = domain.treatment
    pays = request.confidence is not None and all(arm.level.variances for arm in arms)
    shown, rows, factors = compare_arms(
        arms, treatment.coded, domain.bounds,
        coverage=request.coverage, at_once=request.coverage_at_once, rule=rule if pays else None,
    )  # fmt: skip
    headline = rows[len(arms) - 2].contrast
    among = request.among
    filled = replace(
        settings,
        headline=HeadlineNote(headline.arm, headline.against),
        among=ABSENT if among is None else among,
        simultaneous_factor=factors or ABSENT,
        interval_rule=rule if pays else ABSENT,
        binary_outcome=True if domain.bounds.is_binary else ABSENT,
        doses=_doses(treatment),
    )
    return replace(
        Estimate.of_rows(rows, filled, arms=shown, headline=len(arms) - 2),
        adjusted=adjusted,
        estimand=None if among is None else ("atc" if among == treatment.coded[0] else "att"),
        warnings=warnings,
        quantities=tuple(arm.level for arm in arms),
    )


def _doses(treatment: Treatment) -> dict[str, Pair] | Absent:
    if treatment.bins is None:
        return ABSENT
    return dict(zip(treatment.labels, pairwise(treatment.bins), strict=True))
