"""Effects on a time to an event: curves by a histogram, then a method on pseudo-values.

At label level half of ε pays for adjusted curves, by the public weights of the calibrated method,
and the other half for the effect by weights of the same problem, whose cap follows the spread of
pseudo-values under the released curves. So does their variance, for which no ε is spent; subgroups
run the method itself on pseudo-values. At sample level a tenth pays for curves of the arms as they
are, and a method that takes any outcome does the rest. Proof: docs/proofs/survival.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, cast

import numpy as np

from private_ate.arrays import Codes, Integers
from private_ate.domain import Survival
from private_ate.domain.domain import Cells
from private_ate.effects.estimate import Estimate
from private_ate.effects.of_releases import risk_interval
from private_ate.methods.calibrated.clipping import DECLARED_RANGE
from private_ate.methods.calibrated.design import Design, pose
from private_ate.methods.calibrated.method import error_variances, estimate_quantities
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.calibrated.private import (
    Errors,
    NoiseRule,
    draws_of,
    forms_of,
    release_quantities,
)
from private_ate.methods.calibrated.weights import PublicWeights, weigh
from private_ate.methods.composition import options_of
from private_ate.methods.registry import Method
from private_ate.methods.subgroups import estimate_subgroups
from private_ate.methods.survival.curves import LABEL_SHARE, SAMPLE_SHARE, PseudoTable
from private_ate.methods.survival.first_step import (
    CurveErrors,
    FirstStep,
    PseudoValues,
    PublicSums,
    RowCounts,
    make_values,
    merge_strata,
    public_kernel,
    release_curves,
)
from private_ate.privacy.budget import part_of_epsilon
from private_ate.privacy.levels import has_public_covariates
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import WEIGHT_BITS
from private_ate.release.metadata import Curve, RiskContrast, Risks, SurvivalNote, longer_half
from private_ate.request import Request
from private_ate.settings import Facts, with_notes
from private_ate.study import Block, MatchingStudy

__all__ = ["estimate_survival"]

_RANGE: Final = 1.05  # of pseudo-values in horizons, where a third of the rows is censored
_SPREAD: Final = 0.36  # their usual standard deviation in horizons
_COVERED: Final = (
    "privacy noise, sampling error, residual imbalance of the balanced terms and what the noise of "
    "the curves leaves; not unmeasured confounding, nor censoring that depends on what else the "
    "time of the event depends on"
)
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


def estimate_survival(
    study: MatchingStudy, request: Request, method: Method, noise: Noise
) -> Estimate:
    """Release survival curves and the effect on survival time, or on the risk by the horizon.

    Neighbours: at label level one person's times and events replaced, at sample level one record.
    Cost: ε: a share for the histogram (`release_cells`), the rest for a method on pseudo-values,
    which are functions of a row and of what was released. Proof: docs/proofs/survival.md.
    """
    outcome = cast("Survival", study.domain.outcome)
    design = None
    if has_public_covariates(request.level):
        first = part_of_epsilon(request.epsilon, LABEL_SHARE)
        step, design = release_label_curves(study, request, first, noise)
    else:
        first = part_of_epsilon(request.epsilon, SAMPLE_SHARE)
        # Rows count alike, and absent ones not at all; a record may leave any arm.
        counts = RowCounts(lambda block: block.present.astype(np.int64), 1)
        step = release_curves(study, request, counts, None, first, noise)
    values = make_values(step, outcome, request.quantity)
    recoded = study.recoded(values.outcome, values.codes.coder(step.counts.places))
    rest = replace(request, epsilon=request.epsilon - first)
    if design is not None and not request.by:
        estimate = release_effect(recoded, rest, step, values, design, noise)
    else:
        if design is not None:
            rest = replace(rest, options=label_options(rest, values))
        rest = replace(rest, quantity="rmst")  # pseudo-values are a plain outcome from here on
        if request.by:
            estimate = estimate_subgroups(recoded, rest, method, noise)
        else:
            estimate = method.run(recoded, rest, noise)
    return replace(
        estimate,
        settings=with_notes(estimate.settings, notes_of(step, values.tables, outcome, request)),
        survival=note_of(step, estimate, study, request),
    )


def label_options(request: Request, values: PseudoValues | None = None) -> CalibratedOptions:
    """Return the method's options for pseudo-values: no clipping, and the spread under the curves.

    A narrower range would cut off events of a rare kind, which are what is asked for. Risks are
    released arm by arm, so that their ratio follows.
    """
    options = options_of(request, CalibratedOptions, "calibrated")
    if values is not None and options.outcome_sd is None:
        options = replace(options, outcome_sd=values.deviation)
    return replace(options, clip_share=0, means=options.means or request.quantity == "risk")


def release_label_curves(
    study: MatchingStudy, request: Request, epsilon: Fraction, noise: Noise
) -> tuple[FirstStep, Design]:
    """Release adjusted curves, every row counted by its public weight.

    Returns them and the weight problem.

    Neighbours: one person's times and events replaced. Cost: ``epsilon``; see `release_cells`.
    """
    outcome = cast("Survival", study.domain.outcome)
    public = study.public()
    design = pose(public, request)
    weights = _weights(public, design, request, request.epsilon - epsilon, _RANGE, _SPREAD)
    counts, strata = RowCounts(_weigher(weights), 1 << WEIGHT_BITS), 1
    if outcome.censoring_by is not None:
        cells = Cells.of(study.domain, (outcome.censoring_by,))

        def stratum(block: Block) -> Codes:
            return cells.codes(block.covariates)

        finest = replace(counts, stratum=stratum, strata=cells.count)
        strata = cells.count - 1  # without that of rows whose entry is missing
        counts = merge_strata(finest, _public_sums(public, finest), float(epsilon))
    sums = _public_sums(public, counts)
    step = release_curves(study, request, counts, sums, epsilon, noise, strata=strata)
    return step, design


def _weights(
    public: MatchingStudy,
    design: Design,
    request: Request,
    epsilon: Fraction,
    width: float,
    spread: float,
) -> PublicWeights:
    """Choose weights whose caps suit a sum of pseudo-values that is released at ``epsilon``.

    ``width`` and ``spread`` are their range and standard deviation in horizons.
    """
    forms = forms_of(len(design.arms), means=label_options(request).means)
    rule = NoiseRule.of(request.rows_per_person, len(forms), epsilon, 1)
    variance = rule.variance(epsilon, 1) * width**2
    return weigh(public, design, draws_of(forms), variance, spread)


def _weigher(weights: PublicWeights) -> Callable[[Block], Integers]:
    def weigh_rows(block: Block) -> Integers:
        found = np.zeros(block.arm.size, dtype=np.int64)
        for rows, steps in weights.steps(block, None):
            found[rows] = steps
        return found

    return weigh_rows


def _public_sums(public: MatchingStudy, counts: RowCounts) -> PublicSums:
    return public.fold(public_kernel(counts, public.domain.treatment.size), title="weights")


def release_effect(
    recoded: MatchingStudy,
    request: Request,
    step: FirstStep,
    values: PseudoValues,
    design: Design,
    noise: Noise,
) -> Estimate:
    """Release the effect on pseudo-values with the rest of ε.

    Neighbours: one person's times and events replaced, which changes the pseudo-values of that
    person's rows alone, as tables and weights are functions of what the first step released.
    Sensitivity: of an arm the largest integer weight times the range of its tables' integers. Cost:
    the request's ε. Proof: Lemma 2 of docs/proofs/survival.md.
    """
    forms = forms_of(recoded.domain.treatment.size, means=label_options(request, values).means)
    weights = _weights(
        recoded.public(), design, request, request.epsilon,
        values.codes.high - values.codes.low, values.deviation / values.unit,
    )  # fmt: skip
    quantities = release_quantities(
        recoded, weights, DECLARED_RANGE, _widths(step, values, len(weights.arms)), forms,
        _errors_of(weights, values, request),
        epsilon=request.epsilon, rows=request.rows_per_person, noise=noise,
    )  # fmt: skip
    shown = {} if request.confidence is None else {"interval_covers": _COVERED}
    return estimate_quantities(recoded, request, weights, quantities, noise, shown)


def _widths(step: FirstStep, values: PseudoValues, arms: int) -> list[int]:
    """Return of every arm the widest range of its tables."""
    steps = values.codes.steps.astype(np.int64)
    ranges = steps.max(axis=(1, 2)) - steps.min(axis=(1, 2))
    widest: list[int] = ranges.reshape(arms, step.counts.strata).max(axis=1).tolist()
    return widest


def _errors_of(weights: PublicWeights, values: PseudoValues, request: Request) -> Errors:
    """Return the squared errors of arms apart from noise; none without a confidence."""
    if request.confidence is None:
        return ()
    scale = (values.unit / weights.design.rows) ** 2
    found = []
    for arm, variance in enumerate(values.variances.tolist()):
        likely, bias = error_variances(weights, float(np.sqrt(variance)), np.array([variance]))[arm]
        rest = values.unit**2 * float(values.second_order[arm])
        found.append((scale * likely + rest, scale * bias))
    return found


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
    time, shown, low, high, low_each, high_each, observed = (
        tuple(one.tolist()) for one in (edges, survival, *ends, uncensored)
    )
    at_risk = tuple(round(value) for value in (rows * survival * uncensored).tolist())
    return Curve(time, shown, low, high, low_each, high_each, observed, at_risk, adjusted)


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
