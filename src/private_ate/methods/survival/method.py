"""Effects on a time to an event: curves by a histogram, then a method on pseudo-values.

At label level half of ε pays for adjusted curves, by the public weights of the calibrated method,
and the other half for the effect by weights of the same problem, whose cap follows the spread of
pseudo-values under the released curves. So does their variance, for which no ε is spent; subgroups
run the method itself on pseudo-values. At sample level a tenth pays for curves of the arms as they
are, and a method that takes any outcome does the rest. Proof: docs/proofs/survival.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final, cast

import numpy as np

from private_ate.arrays import Codes, Integers
from private_ate.domain import Survival
from private_ate.domain.subgroups import Cells
from private_ate.effects.estimate import Estimate
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
from private_ate.methods.survival.curves import LABEL_SHARE, SAMPLE_SHARE
from private_ate.methods.survival.first_step import (
    FirstStep,
    PseudoValues,
    PublicSums,
    RowCounts,
    make_values,
    merge_strata,
    public_kernel,
    release_curves,
)
from private_ate.methods.survival.released_curves import note_of, notes_of
from private_ate.privacy.budget import part_of_epsilon
from private_ate.privacy.levels import has_public_covariates
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import WEIGHT_BITS
from private_ate.request import Request
from private_ate.settings import with_notes
from private_ate.study import Block, MatchingStudy

__all__ = ["estimate_survival"]

_RANGE: Final = 1.05  # of pseudo-values in horizons, where a third of the rows is censored
_SPREAD: Final = 0.36  # their usual standard deviation in horizons
_COVERED: Final = (
    "privacy noise, sampling error, residual imbalance of the balanced terms and what the noise of "
    "the curves leaves; not unmeasured confounding, nor censoring that depends on what else the "
    "time of the event depends on"
)


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
