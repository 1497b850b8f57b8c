"""Where the arms overlap along the propensity score; public where covariates are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.data.inputs import prepare_table, resolve_domain
from private_ate.data.tables import Covariates
from private_ate.domain import Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.models.logistic import fit_logistic
from private_ate.models.multinomial import MultinomialModel, fit_multinomial
from private_ate.release import ArmOverlap, Overlap
from private_ate.study import Block, Study

__all__ = ["bin_arm_scores", "bin_scores", "count_overlap", "describe_overlap"]

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

    Of three arms or more every arm has a score of its own.

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
    if named.treatment.size > 2:
        return bin_arm_scores(study, fit_multinomial(study, 1.0 / study.size))
    return count_overlap(study)


def count_overlap(study: Study) -> Overlap:
    """Fit the propensity model of the label level and count its scores in equal bins."""
    return bin_scores(study, fit_logistic(study, 1.0 / study.size).coefficients)


def bin_scores(study: Study, coefficients: npt.NDArray[np.float64]) -> Overlap:
    """Count the propensity scores of a fitted model in equal bins."""
    counts = study.fold(_binning(coefficients), title="overlap")
    return Overlap(tuple(map(int, counts.treated)), tuple(map(int, counts.control)))


def bin_arm_scores(study: Study, model: MultinomialModel) -> ArmOverlap:
    """Count the probabilities of each arm by the arm that units are in."""
    arms = model.arms

    def kernel(block: Block) -> _ArmCounts:
        scores = model.probabilities(block.covariates)
        bins = np.minimum((scores * _BINS).astype(np.int64), _BINS - 1)
        places = bins + _BINS * block.arm.astype(np.int64)[:, np.newaxis]
        counts = [np.bincount(place, minlength=arms * _BINS) for place in places.T]
        return _ArmCounts(np.array(counts).reshape(arms, arms, _BINS))

    found = study.fold(kernel, title="overlap").counts
    counts = tuple(tuple(tuple(map(int, own)) for own in panel) for panel in found)
    return ArmOverlap(study.domain.treatment.coded, counts)


@dataclass(frozen=True, slots=True)
class _ArmCounts:
    """Counts per bin of each arm's units, by the score of each arm; adds up over blocks."""

    counts: npt.NDArray[np.int64]

    def __add__(self, other: _ArmCounts) -> _ArmCounts:
        return _ArmCounts(self.counts + other.counts)


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts per bin of either arm; adds up over blocks."""

    treated: npt.NDArray[np.int64]
    control: npt.NDArray[np.int64]

    def __add__(self, other: _Counts) -> _Counts:
        return _Counts(self.treated + other.treated, self.control + other.control)


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
