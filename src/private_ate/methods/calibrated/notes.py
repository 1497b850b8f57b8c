"""What a release says of its public half: sizes, caps, balance, shapes, notes and warnings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from private_ate.arrays import Floats
from private_ate.domain.column_types import WEIGHTED
from private_ate.effects.estimate import Quantity
from private_ate.methods.calibrated.design import arm_meant
from private_ate.methods.calibrated.settings import (
    CalibratedArmsSettings,
    CalibratedSettings,
    SamplingNote,
)
from private_ate.methods.calibrated.weights import PublicWeights
from private_ate.methods.public_arms import ArmBalance, note_few_units, warn_of_overlap
from private_ate.models.propensity import PropensityModel, fit_propensity
from private_ate.privacy.noise import Noise
from private_ate.release.intervals import noise_half_width
from private_ate.request import Request
from private_ate.settings import ABSENT, Absent, ArmCounts, ArmNumbers
from private_ate.study import Block, MatchingStudy

__all__ = ["settings_of", "warnings_of"]

_FEW_UNITS_COVERAGE: Final = 0.95  # of the noise that a note about few units speaks of
_SCARCE: Final = 0.05  # of the rows' leaves from which a note says that an arm is rare there
_WHOM: Final = {
    "ate": "all n units (ATE)",
    "att": "the treated units (ATT)",
    "atc": "the control units (ATC)",
    "ato": "all n units by their overlap, e(1 - e) (ATO)",
}
_COVERED: Final = (
    "privacy noise, sampling error and residual imbalance of the balanced terms; not unmeasured "
    "confounding, nor shapes of the covariates that the score model cannot learn"
)
_ALIKE: Final = "; like units are taken to vary about as much in every arm"
_SHAPES: Final = (
    "treatment follows more than a straight line of the covariates, as held-out rows show: the "
    "arms were also balanced in {0} directions of boosted trees, and the interval allows for a "
    "part that these miss; rules that join four or more conditions, or count conditions, can "
    "leave more"
)
_RARE: Final = (
    "{0:.0%} of the rows are where one arm is five times rarer than overall: there the comparison "
    "rests on straight lines of the covariates"
)
_TRIMMED: Final = (
    "the cap that suits ε, {0:.3g}, is below the largest sampling weight, {1:.3g}: the heaviest "
    "units count less than the design says, which draws the effect towards that of the sample"
)
_LEFT_OUT: Final = (
    "{0} of {1} rows have no outcome{2} and were left out; the others are weighted to resemble all "
    "rows, which assumes that missingness depends on covariates and treatment alone"
)
_RATIO: Final = (
    "rows without an outcome were left out by a private ratio, which assumes that within an arm "
    "missingness depends on nothing that the outcome depends on: weights cannot look at who is "
    "missing, so missingness by covariates is not corrected"
)


def settings_of(
    study: MatchingStudy,
    request: Request,
    weights: PublicWeights,
    quantities: Sequence[Quantity],
    noise: Noise,
    shown: Mapping[str, Any],
) -> CalibratedSettings | CalibratedArmsSettings:
    """Return what a release says of its weights, of what ε was spent on, and what is ``shown``."""
    labels, arms, missing = study.domain.treatment.coded, weights.arms, study.domain.outcome.missing
    balance, found = _balance(study, weights), weights.design.found
    sizes = zip(found.everyone.counts, found.observed.counts, strict=True)
    left_out = [everyone - observed for everyone, observed in sizes]
    sampled, trimmed = _sampling(study, weights)
    few: tuple[str, ...] = ()
    if len(arms) > 2:
        reaches = tuple(noise_half_width(_FEW_UNITS_COVERAGE, one.noise) for one in quantities)
        few = note_few_units(balance, reaches, study.domain.bounds.width)
    notes = (
        *few, *_shapes(weights), *_missing(study, left_out), *trimmed, *shown.get("notes", ()),
        *([_RATIO] if missing == "private" and len(arms) == 2 else []),
    )  # fmt: skip
    weighted = "" if sampled is ABSENT else WEIGHTED
    has_interval = bool(quantities[0].variances)
    shared: dict[str, Any] = {
        "target": request.target,
        "neighbors": request.neighbors if request.target == "track" else None,
        "confidence": request.coverage,
        "rows_per_person": request.rows_per_person,
        "arms": _by_arm(labels, balance.sizes, ArmCounts),
        "effective_arms": _by_arm(labels, balance.effective, ArmNumbers),
        "noise_interval_covers": "the estimate without noise; not sampling, not confounding",
        "interval_covers": _COVERED + (_ALIKE if len(arms) > 2 else "") if has_interval else ABSENT,
        "left_out_outcome": sum(left_out) if missing == "public" else ABSENT,
        "sampling_weights": sampled,
        "notes": notes or ABSENT,
        "budget": {one.step: float(one.epsilon) for one in noise.spends},
    }
    shared |= {name: value for name, value in shown.items() if name != "notes"}
    if len(arms) > 2:
        whom = _WHOM["ate"] if request.among is None else f"the units of arm {request.among!r}"
        return CalibratedArmsSettings(
            weight_cap=dict(zip(labels, (arm.cap for arm in arms), strict=True)),
            population=whom + weighted, balance=balance.greatest, arm_balance=balance.by_arm,
            **shared,
        )  # fmt: skip
    before, after = ((side[1] - side[0]).tolist() for side in (balance.before, balance.after))
    return CalibratedSettings(
        estimand=request.estimand, weight_cap=max(arm.cap for arm in arms),
        population=_WHOM[request.estimand] + weighted,
        balance=dict(zip(balance.features, zip(before, after, strict=True), strict=True)),
        **shared,
    )  # fmt: skip


def _by_arm(labels: Sequence[str], values: Sequence[Any], pair: Callable[[Any, Any], Any]) -> Any:  # noqa: ANN401  # of two arms a pair, of more a mapping
    """Return numbers by arm: two arms have fields, the treated first, and more have labels."""
    if len(labels) == 2:
        return pair(values[1], values[0])
    return dict(zip(labels, values, strict=True))


def warnings_of(public: MatchingStudy, weights: PublicWeights, request: Request) -> tuple[str, ...]:
    """Return the warning of poor overlap; everything that it looks at is public."""
    balance = _balance(public, weights)
    if public.domain.weights is not None:
        # What sampling weights cost is due to the design, not to poor overlap.
        sizes = tuple(max(round(arm.problem.effective), 1) for arm in weights.arms)
        balance = replace(balance, sizes=sizes)
    if len(weights.arms) == 2:
        model = PropensityModel.from_coordinates(weights.arms[1].problem.features.coefficients, 2)
    else:
        model = fit_propensity(public, 1.0 / public.size)
    among = None if request.among is None else balance.labels.index(request.among)
    return warn_of_overlap(
        public, model, balance, request.estimand, among=among,
        scarce=_scarce_arms(public, weights, request),
    )  # fmt: skip


def _scarce_arms(
    public: MatchingStudy, weights: PublicWeights, request: Request
) -> tuple[float, ...]:
    """Return the share of those meant who lie where each arm has next to no unit.

    Only where treatment follows more than a line: else the scores along the line show it.
    """
    maps = [arm.problem.features for arm in weights.arms]
    if not any(one.evidence > 0 and one.rare.any() for one in maps):
        return ()
    among = arm_meant(public, request)
    is_shared = maps[0] is maps[1]  # of two arms, learnt for the second

    def kernel(block: Block) -> Floats:
        meant = np.ones(block.arm.size) if among is None else (block.arm == among).astype(float)
        if request.estimand == "ato":
            chance = maps[1].probability(block.covariates)
            meant = chance * (1 - chance)
        shares = [
            one.rare_shares(block.covariates, own=code > 0 or not is_shared)
            for code, one in enumerate(maps)
        ]
        return np.array([meant.sum(), *(meant @ share for share in shares)])

    everyone, *scarce = public.fold(kernel, title="overlap").tolist()
    return tuple(share / max(everyone, 1e-9) for share in scarce)


def _balance(study: MatchingStudy, weights: PublicWeights) -> ArmBalance:
    """Return standardised covariate means of the arms less those of all, before and after."""
    sums = [arm.sums for arm in weights.design.arms]
    mass = np.array([one.mass for one in sums])
    means, squares = (
        np.stack([one.moments[order] for one in sums]) / mass[:, None] for order in (0, 1)
    )
    deviation = np.sqrt(np.maximum(squares - means**2, 0.0).mean(axis=0))
    deviation[deviation <= 1e-9] = 1.0
    population = mass @ means / mass.sum()
    after: Floats = np.stack([arm.used.covariates for arm in weights.arms]) / weights.design.rows
    return ArmBalance(
        features=study.domain.features,
        labels=study.domain.treatment.coded,
        sizes=tuple(arm.problem.members for arm in weights.arms),
        effective=tuple(arm.effective for arm in weights.arms),
        before=(means - population) / deviation,
        after=(after - population) / deviation,
    )


def _shapes(weights: PublicWeights) -> tuple[str, ...]:
    """Say where treatment follows shapes, and where one arm is rare."""
    maps = [arm.problem.features for arm in weights.arms]
    evidence, scarce = max(one.evidence for one in maps), max(one.scarce for one in maps)
    notes = []
    if evidence > 0:
        notes.append(_SHAPES.format(max(one.middle.size for one in maps)))
    if scarce > _SCARCE:
        notes.append(_RARE.format(scarce))
    return tuple(notes)


def _missing(study: MatchingStudy, left_out: list[int]) -> tuple[str, ...]:
    """Count rows that were left out, where who lacks an outcome is public."""
    if study.domain.outcome.missing != "public" or not sum(left_out):
        return ()
    by_arm = f" ({left_out[1]} treated, {left_out[0]} control)" if len(left_out) == 2 else ""
    return (_LEFT_OUT.format(sum(left_out), study.size, by_arm),)


def _sampling(
    study: MatchingStudy, weights: PublicWeights
) -> tuple[SamplingNote | Absent, tuple[str, ...]]:
    """Say which sampling weights are in force, and where a cap binds below the largest."""
    declared, labels = study.domain.weights, study.domain.treatment.coded
    if declared is None:
        return ABSENT, ()
    arms = [arm.problem for arm in weights.arms]
    trimmed = [
        ("" if len(arms) == 2 else f"arm {label!r}: ") + _TRIMMED.format(arm.cap, problem.heaviest)
        for label, arm, problem in zip(labels, weights.arms, arms, strict=True)
        if arm.cap < problem.heaviest * (1 - 1e-12)
    ]
    effective = _by_arm(labels, [arm.effective for arm in arms], ArmNumbers)
    largest = max(arm.sums.largest for arm in arms)
    note = SamplingNote(declared.column, declared.high, largest, effective)
    return note, tuple(trimmed[: 1 if len(arms) == 2 else None])  # two arms share a cap
