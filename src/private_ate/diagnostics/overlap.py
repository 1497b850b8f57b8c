"""Where the arms overlap along the propensity score; public where covariates are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.data.inputs import Covariates, prepare_table, resolve_domain
from private_ate.domain import Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.models.propensity import PropensityModel, fit_propensity
from private_ate.release.public_facts import ArmOverlap, Overlap
from private_ate.study import Added, Block, Study

__all__ = ["bin_scores", "count_arm_overlap", "count_overlap", "describe_overlap"]

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
    named = resolve_domain(domain, treatment, outcome)
    # The outcome is not read, so any bounds do where none are declared.
    unread = replace(named.outcome, bounds=named.outcome.bounds or Interval(0, 1))
    prepared = prepare_table(
        data, treatment=None, outcome=None, covariates=covariates,
        domain=replace(named, outcome=unread),
        level="label", from_data=False,
    )  # fmt: skip
    study = LocalStudy.encode_public(prepared.table, prepared.domain, None, prepared.lenient)
    if study.arms > 2:
        return count_arm_overlap(study, fit_propensity(study, 1.0 / study.size))
    return count_overlap(study)


def count_overlap(study: Study) -> Overlap:
    """Fit the propensity model of the label level and count its scores in equal bins."""
    return bin_scores(study, fit_propensity(study, 1.0 / study.size).coordinates)


def bin_scores(study: Study, coefficients: npt.NDArray[np.float64]) -> Overlap:
    """Count the propensity scores of a fitted model in equal bins."""
    counts = study.fold(_binning(coefficients), title="overlap")
    return Overlap(tuple(map(int, counts.treated)), tuple(map(int, counts.control)))


def count_arm_overlap(study: Study, model: PropensityModel) -> ArmOverlap:
    """Count units of every arm by the probability of each, in equal bins."""
    labels = study.domain.treatment.coded
    counts = study.fold(_arm_binning(model), title="overlap")
    return ArmOverlap(
        labels, tuple(tuple(tuple(map(int, bins)) for bins in arms) for arms in counts)
    )


def _arm_binning(model: PropensityModel) -> Callable[[Block], npt.NDArray[np.int64]]:
    """Return a kernel that counts by score, arm and bin, shape (K, K, bins)."""

    def kernel(block: Block) -> npt.NDArray[np.int64]:
        arms = model.arms
        chances = model.probabilities(block.covariates)
        bins = np.minimum((chances * _BINS).astype(np.int64), _BINS - 1)
        places = block.arm.astype(np.int64)[:, None] * _BINS + bins
        counts = [np.bincount(column, minlength=arms * _BINS) for column in places.T]
        return np.array(counts, dtype=np.int64).reshape(arms, arms, _BINS)

    return kernel


@dataclass(frozen=True, slots=True)
class _Counts(Added):
    """Counts per bin of either arm; adds up over blocks."""

    treated: npt.NDArray[np.int64]
    control: npt.NDArray[np.int64]


def _binning(coefficients: npt.NDArray[np.float64]) -> Callable[[Block], _Counts]:
    def kernel(block: Block) -> _Counts:
        linear = np.clip(coefficients[0] + block.covariates @ coefficients[1:], -700.0, 700.0)
        scores = 1.0 / (1.0 + np.exp(-linear))
        bins = np.minimum((scores * _BINS).astype(np.int64), _BINS - 1)
        treated, control = (
            np.bincount(bins[arm], minlength=_BINS) for arm in (block.treatment, ~block.treatment)
        )
        return _Counts(treated, control)

    return kernel
