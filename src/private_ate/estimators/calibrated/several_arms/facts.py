"""What a release of several arms says of its public phase: sizes, caps, balance, notes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from private_ate.domain.weights import WEIGHTED
from private_ate.estimators.arm_balance import ArmBalance
from private_ate.estimators.arm_overlap import note_few_units
from private_ate.estimators.arm_sizes import FoundArms
from private_ate.estimators.calibrated.settings import (
    TRIMMED,
    ArmsSamplingNote,
    CalibratedArmsSettings,
)
from private_ate.estimators.calibrated.several_arms.design import Designs
from private_ate.estimators.calibrated.several_arms.sums import ReleasedMean
from private_ate.estimators.calibrated.several_arms.weights import ArmWeights
from private_ate.estimators.request import Request
from private_ate.release.intervals import noise_half_width
from private_ate.settings import ABSENT, Absent
from private_ate.study import Study

__all__ = ["balance_of", "designed_balance", "settings_of"]

_FEW_UNITS_COVERAGE: Final = 0.95  # of the noise that a note about few units speaks of
_LEFT_OUT: Final = (
    "{0} of {1} rows have no outcome and were left out; the others are weighted to resemble all "
    "rows, which assumes that missingness depends on covariates and treatment alone"
)


def balance_of(study: Study, designs: Designs, weights: tuple[ArmWeights, ...]) -> ArmBalance:
    """Return standardised covariate means of the arms, before and after weighting."""
    features = designs.features
    after = np.zeros_like(features.arm_means)
    columns = features.arms[0].columns
    for arm, each in enumerate(weights):
        sums = each.solution.sums.features[: columns.linear.size]
        after[arm, columns.linear] = sums / columns.linear_scale / designs.rows
    after -= np.where(np.isin(np.arange(after.shape[1]), columns.linear), features.population, 0.0)
    return ArmBalance(
        features=study.domain.features,
        labels=study.domain.treatment.coded,
        sizes=tuple(each.design.members for each in weights),
        effective=tuple(each.effective for each in weights),
        before=features.arm_means / features.pooled_deviation,
        after=after / features.pooled_deviation,
    )


def designed_balance(balance: ArmBalance, weights: tuple[ArmWeights, ...]) -> ArmBalance:
    """Return the balance with arms as large as sampling weights alone leave them.

    What those cost is the design's doing, not a want of overlap.
    """
    found = [each.design.sampled for each in weights]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return balance
    return replace(balance, sizes=tuple(max(round(one.worth), 1) for one in known))


def _sampling_facts(
    study: Study, labels: tuple[str, ...], weights: tuple[ArmWeights, ...]
) -> tuple[ArmsSamplingNote | Absent, tuple[str, ...]]:
    """Say which sampling weights are in force, and of which arms a cap binds below the largest."""
    declared = study.domain.weights
    if declared is None:
        return ABSENT, ()
    worth, largest, notes = {}, 0.0, []
    for label, each in zip(labels, weights, strict=True):
        if each.design.sampled is None:
            return ABSENT, ()
        worth[label] = each.design.sampled.worth
        largest = max(largest, each.design.sampled.largest)
        heaviest = each.design.sampled.heaviest
        if each.cap < heaviest * (1 - 1e-12):
            notes.append(f"arm {label!r}: {TRIMMED.format(each.cap, heaviest)}")
    return ArmsSamplingNote(declared.column, declared.high, largest, worth), tuple(notes)


def settings_of(
    study: Study,
    request: Request,
    found: FoundArms,
    weights: tuple[ArmWeights, ...],
    balance: ArmBalance,
    means: tuple[ReleasedMean, ...],
) -> CalibratedArmsSettings:
    """Return what the public phase knows; the private phase adds what it released."""
    among = request.among
    reaches = tuple(noise_half_width(_FEW_UNITS_COVERAGE, [each.law]) for each in means)
    notes = note_few_units(balance, reaches, study.domain.bounds.width)
    left_out = found.everyone.total - found.observed.total
    if left_out:
        notes = (*notes, _LEFT_OUT.format(left_out, study.size))
    labels = balance.labels
    sampled, trimmed = _sampling_facts(study, labels, weights)
    notes = (*notes, *trimmed)
    whom = "all n units (ATE)" if among is None else f"the units of arm {among!r}"
    return CalibratedArmsSettings(
        target=request.target,
        neighbors=request.neighbors if request.target == "track" else None,
        weight_cap=dict(zip(labels, (each.cap for each in weights), strict=True)),
        confidence=request.coverage,
        rows_per_person=request.rows_per_person,
        population=whom + ("" if sampled is ABSENT else WEIGHTED),
        arms=dict(zip(labels, balance.sizes, strict=True)),
        effective_arms=dict(zip(labels, balance.effective, strict=True)),
        balance=balance.greatest,
        arm_balance=balance.by_arm,
        noise_interval_covers="the estimate without noise; not sampling, not confounding",
        sampling_weights=sampled,
        left_out_outcome=left_out if study.domain.outcome.missing == "public" else ABSENT,
        notes=notes or ABSENT,
        budget={},
    )
