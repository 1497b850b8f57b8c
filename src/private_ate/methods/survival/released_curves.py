"""What a release shows of the curves: bands, risks and notes; all of it is post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, cast

import numpy as np

from private_ate.domain import Survival
from private_ate.effects.estimate import Estimate
from private_ate.effects.of_releases import risk_interval
from private_ate.methods.survival.curves import PseudoTable
from private_ate.methods.survival.first_step import CurveErrors, FirstStep
from private_ate.privacy.levels import has_public_covariates
from private_ate.release.metadata import Curve, RiskContrast, Risks, SurvivalNote, longer_half
from private_ate.request import Request
from private_ate.settings import Facts
from private_ate.study import MatchingStudy

__all__ = ["compare_risks", "curve_of", "note_of", "notes_of", "risks_of_curves"]

_FEW_EVENTS: Final = 0.1  # share of an arm below which block effects are skewed

_ASSUMED: Final = (
    "censoring is taken to tell nothing about the time of the event within an arm{0}; censoring "
    "that depends on a covariate in opposite directions in the arms biases the effect, and neither "
    "interval nor band knows it"
)
_FLOORED: Final = (
    "in some arm hardly anybody is still observed at the horizon: the censoring curve was held "
    "above {0:g}; a shorter horizon tells more"
)
_UNADJUSTED: Final = "the survival curves are those of the arms as they are, not adjusted"
_RARE: Final = (
    "the released curves show less than 10 % of events in some arm: at sample level the effect on "
    "such an outcome is drawn towards zero, by up to a half in our tests"
)
_SHORTER: Final = "survival at any time up to {0:g} follows from these curves and costs nothing"
_MERGED: Final = "{0} strata of {1} were merged to {2}, as some were too small for curves"


def curve_of(
    step: FirstStep, arm: int, horizon: float, coverage: float, *, adjusted: bool
) -> Curve:
    """Return an arm's curve with bands for all edges at once and for each."""
    errors, uncensored = step.errors(arm), step.uncensored(arm)
    survival, rows = errors.survival, sum(one.cells.effective for one in step.curves[arm])
    ends = [
        np.clip(survival + side * half, 0.0, 1.0)
        for half in (errors.half_all(coverage), errors.half_each(coverage))
        for side in (-1, 1)
    ]
    edges = horizon * np.arange(survival.size) / (survival.size - 1)
    numbers = (tuple(one.tolist()) for one in (edges, survival, *ends, uncensored))
    at_risk = tuple(round(value) for value in (rows * survival * uncensored).tolist())
    return Curve(*numbers, at_risk, adjusted)


def compare_risks(
    labels: Sequence[str], risks: Sequence[float], halves: Sequence[float | None]
) -> tuple[RiskContrast, ...]:
    """Compare every arm with the reference; ``halves`` are those of the differences' intervals."""
    found, reference = [], risks[0]
    for label, risk, half in zip(labels[1:], risks[1:], halves, strict=True):
        apart, interval, of_ratio = risk - reference, None, None
        if half is not None:
            interval = (max(apart - half, -1.0), min(apart + half, 1.0))
            ends = risk_interval(risk, reference, half)
            if ends is not None:
                of_ratio = (ends[0], ends[1] if math.isfinite(ends[1]) else None)
        ratio = risk / reference if reference > 0 else None
        found.append(RiskContrast(label, labels[0], apart, interval, ratio, of_ratio))
    return tuple(found)


def risks_of_curves(
    labels: Sequence[str], errors: Sequence[CurveErrors], coverage: float | None, *, adjusted: bool
) -> Risks:
    """Return the risks at the ends of the released curves, and their simulated intervals."""
    risks = [1.0 - float(one.survival[-1]) for one in errors]
    halves: list[float | None] = [None] * (len(risks) - 1)
    if coverage is not None:
        halves = [
            float(np.quantile(np.abs(one.errors[:, -1] - errors[0].errors[:, -1]), coverage))
            for one in errors[1:]
        ]
    by_arm = dict(zip(labels, risks, strict=True))
    return Risks("curves", adjusted, by_arm, compare_risks(labels, risks, halves))


def note_of(
    step: FirstStep, estimate: Estimate, study: MatchingStudy, request: Request
) -> SurvivalNote:
    """Return what a release shows beside the effect."""
    outcome = cast("Survival", study.domain.outcome)
    labels = study.domain.treatment.coded
    adjusted = has_public_covariates(request.level) and study.dimension > 0
    curves = {
        label: curve_of(step, arm, outcome.horizon, request.coverage, adjusted=adjusted)
        for arm, label in enumerate(labels)
    }
    if request.quantity == "risk":
        own = estimate.is_adjusted and study.dimension > 0
        risks = risks_of_sums(estimate, labels, adjusted=own)
    else:
        errors = [step.errors(arm) for arm in range(len(labels))]
        risks = risks_of_curves(labels, errors, request.confidence, adjusted=adjusted)
    return SurvivalNote(request.quantity, outcome.horizon, step.bins, curves, risks)


def risks_of_sums(estimate: Estimate, labels: Sequence[str], *, adjusted: bool) -> Risks:
    """Return the risks that the second step released, with the intervals of their differences."""
    if estimate.arms:
        means = [arm.mean for arm in estimate.arms]
    else:
        found = Facts.of(estimate.settings).means
        means = [] if found is None else [found.control, found.treated]
    risks = [min(max(mean, 0.0), 1.0) for mean in means if mean is not None]
    if len(risks) < len(labels):  # only the difference was released
        only = RiskContrast(labels[-1], labels[0], estimate.ate, estimate.interval, None, None)
        return Risks("sums", adjusted, {}, (only,))
    halves = [
        None if row.interval is None else longer_half(row.effect, row.interval)
        for row in estimate.rows[: len(labels) - 1]
    ]
    by_arm = dict(zip(labels, risks, strict=True))
    return Risks("sums", adjusted, by_arm, compare_risks(labels, risks, halves))


def notes_of(
    step: FirstStep, tables: Sequence[Sequence[PseudoTable]], outcome: Survival, request: Request
) -> tuple[str, ...]:
    """Return what a release says of the curves, by public facts and released numbers alone."""
    by = outcome.censoring_by
    notes = [_ASSUMED.format("" if by is None else f" and a stratum of {by}")]
    notes.append(_SHORTER.format(outcome.horizon))
    floor = max(one.floor for row in tables for one in row)
    if min(one.least for row in tables for one in row) < floor:
        notes.append(_FLOORED.format(floor))
    if step.counts.strata < step.strata:
        notes.append(_MERGED.format(step.strata, by, step.counts.strata))
    if not has_public_covariates(request.level):
        notes.append(_UNADJUSTED)
        if min(1 - step.errors(arm).survival[-1] for arm in range(len(tables))) < _FEW_EVENTS:
            notes.append(_RARE)
    return tuple(notes)
