"""Effects on a time to an event: curves by a histogram, then a method on pseudo-values.

At label level half of ε pays for adjusted curves, at sample level a tenth for curves of the arms as
they are. Proof: docs/proofs/survival.md.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import cast

from private_ate.domain import Survival
from private_ate.effects.estimate import Estimate
from private_ate.methods.registry import Method
from private_ate.methods.subgroups.method import estimate_subgroups
from private_ate.methods.survival.cells import (
    RowCounts,
    count_present,
    one_stratum,
    release_cells,
)
from private_ate.methods.survival.curves import LABEL_SHARE, SAMPLE_SHARE
from private_ate.methods.survival.first_step import (
    FirstStep,
    bins_for,
    curve_budget,
    first_step,
    make_values,
)
from private_ate.methods.survival.label import (
    label_options,
    release_effect,
    release_label_curves,
)
from private_ate.methods.survival.released_curves import note_of, notes_of
from private_ate.privacy.levels import has_public_covariates
from private_ate.privacy.noise import Noise
from private_ate.request import Request
from private_ate.settings import with_notes
from private_ate.study import MatchingStudy

__all__ = ["estimate_survival"]


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
        first = curve_budget(request.epsilon, LABEL_SHARE)
        step, design = release_label_curves(study, request, first, noise)
    else:
        first = curve_budget(request.epsilon, SAMPLE_SHARE)
        step = _release_sample_curves(study, request, first, noise)
    values = make_values(step, outcome, request.quantity)
    recoded = study.recoded(values.outcome, values.codes.coder(step.counts.places))
    rest = replace(request, epsilon=request.epsilon - first)
    if design is not None and not request.by:
        estimate = release_effect(recoded, rest, step, values, design, noise)
    else:
        if design is not None:
            rest = replace(rest, options=label_options(rest, values))
        rest = replace(rest, quantity="rmst")  # pseudo-values are a plain outcome from here on
        run = estimate_subgroups if request.by else _run
        estimate = run(recoded, rest, method, noise)
    return replace(
        estimate,
        settings=with_notes(estimate.settings, notes_of(step, values.tables, outcome, request)),
        survival=note_of(step, estimate, study, request),
    )


def _run(study: MatchingStudy, request: Request, method: Method, noise: Noise) -> Estimate:
    return method.run(study, request, noise)


def _release_sample_curves(
    study: MatchingStudy, request: Request, epsilon: Fraction, noise: Noise
) -> FirstStep:
    """Release curves of the arms as they are: rows count alike, and absent ones not at all.

    Neighbours: one record replaced, which leaves a cell and enters one, of any arm. Sensitivity: 1.
    Cost: ``epsilon``; see `release_cells`.
    """
    outcome = cast("Survival", study.domain.outcome)
    counts = RowCounts(count_present, 1, one_stratum)
    size = study.size * float(epsilon) / study.domain.treatment.size
    released = release_cells(
        study, counts, None, bins=outcome.bins or bins_for(size),
        moves=2 * request.rows_per_person, epsilon=epsilon, noise=noise,
    )  # fmt: skip
    return first_step(counts, 1, released)
