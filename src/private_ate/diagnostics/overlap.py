"""Where the arms overlap along the propensity score; public where covariates are."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.data.inputs import Covariates, prepare_table, resolve_domain
from private_ate.domain import Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.models.propensity import PropensityModel, fit_propensity
from private_ate.release.public_facts import ArmOverlap, Overlap
from private_ate.study import Block, Study

__all__ = ["count_overlap", "describe_overlap", "effective_size", "public_study"]

_BINS: Final = 20


def describe_overlap(
    data: object,
    *,
    treatment: str | Treatment | None = None,
    outcome: str | None = None,
    covariates: Covariates = None,
    domain: Domain | None = None,
) -> Overlap | ArmOverlap:
    """Count units by propensity score and arm; reads covariates and treatment only.

    Of three arms or more the counts are by the score of every arm.

    At label level these are public, so the counts may be shown. At sample level they are not:
    use them there as you would ``diagnose_ate``. Rows with an undeclared treatment, or with text
    where a number was declared, are left out.
    """
    study = public_study(data, resolve_domain(domain, treatment, outcome), covariates)
    return count_overlap(study, fit_propensity(study, 1.0 / study.size))


def public_study(
    data: object, domain: Domain, covariates: Covariates, *, with_gaps: bool = False
) -> LocalStudy:
    """Encode public columns; of the outcome at most who lacks one, where that is public.

    As no outcome is read, any bounds do where none are declared.
    """
    unread = replace(domain.outcome, bounds=domain.outcome.bounds or Interval(0, 1))
    prepared = prepare_table(
        data, treatment=None, outcome=None, covariates=covariates,
        domain=replace(domain, outcome=unread), level="label", from_data=False,
    )  # fmt: skip
    is_read = with_gaps and unread.missing == "public"
    encode = LocalStudy.encode if is_read else LocalStudy.encode_public
    return encode(prepared.table, prepared.domain, None, prepared.lenient).public()


def count_overlap(study: Study, model: PropensityModel) -> Overlap | ArmOverlap:
    """Count units of every arm by the probability of each, in equal bins; of two by treatment's."""
    arms = model.arms

    def kernel(block: Block) -> npt.NDArray[np.int64]:
        chances = model.probabilities(block.covariates)
        bins = np.minimum((chances * _BINS).astype(np.int64), _BINS - 1)
        places = block.arm.astype(np.int64)[:, None] * _BINS + bins
        counts = [np.bincount(column, minlength=arms * _BINS) for column in places.T]
        return np.array(counts, dtype=np.int64).reshape(arms, arms, _BINS)

    counts = study.fold(kernel, title="overlap").tolist()
    if arms == 2:
        control, treated = counts[1]
        return Overlap(tuple(treated), tuple(control))
    panels = tuple(tuple(tuple(bins) for bins in panel) for panel in counts)
    return ArmOverlap(study.domain.treatment.coded, panels)


def effective_size(weights: npt.NDArray[np.float64]) -> float:
    """Return Kish's effective sample size."""
    return float(weights.sum() ** 2 / (weights @ weights))
