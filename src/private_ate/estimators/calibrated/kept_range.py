"""The range of outcomes that is kept: as the public plan says, and what a release tells of it."""

from __future__ import annotations

from typing import Final, TypedDict

from private_ate.domain import Interval
from private_ate.estimators.calibrated.clipping import (
    DECLARED_RANGE,
    OutcomeRange,
    release_centred_range,
    release_range,
)
from private_ate.estimators.calibrated.options import ClipPlan
from private_ate.estimators.calibrated.settings import NoisyCount
from private_ate.estimators.request import Request
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Study

__all__ = ["ClipNotes", "release_clip"]

_CLIPPED: Final = "outcomes were clipped to a privately chosen range; no interval covers that bias"
_CENTRED: Final = (
    "the effect and its interval are those of outcomes clipped to 'clipped_to', eight "
    "outcome_sd around a private median; 'outcomes_beyond' tells how many were beyond"
)


class ClipNotes(TypedDict, total=False):
    """What a release says about tighter bounds, where there are any."""

    outcomes_beyond: NoisyCount
    clipped_to: tuple[float, float]
    notes: tuple[str, ...]


def release_clip(
    study: Study, plan: ClipPlan, request: Request, noise: Noise
) -> tuple[OutcomeRange, ClipNotes]:
    """Spend the plan's share on a range; return it and what a release says about it."""
    if not plan.share:
        return DECLARED_RANGE, {}
    epsilon, rows = request.epsilon * plan.share, request.rows_per_person
    bounds = study.domain.bounds
    if plan.width is None:
        kept = release_range(study, epsilon, rows, noise)
        return kept, {"clipped_to": _in_units(kept, bounds), "notes": (_CLIPPED,)}
    centred = release_centred_range(study, plan.width, epsilon, rows, noise)
    return centred.kept, {
        "outcomes_beyond": NoisyCount(centred.beyond, centred.doubt),
        "clipped_to": _in_units(centred.kept, bounds),
        "notes": (_CENTRED,),
    }


def _in_units(kept: OutcomeRange, bounds: Interval) -> tuple[float, float]:
    """Return the kept range in units of the outcome."""
    low, width = bounds.low, bounds.width
    return low + width * kept.low / OUTCOME_STEPS, low + width * kept.high / OUTCOME_STEPS
