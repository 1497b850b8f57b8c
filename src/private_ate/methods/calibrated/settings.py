"""What a release of the calibrated method says about how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from private_ate.parameters import Estimand, Target
from private_ate.settings import (
    ABSENT,
    Absent,
    ArmCounts,
    ArmNumbers,
    ArmsSettings,
    OutcomeFacts,
    Settings,
    SubgroupsNote,
)

__all__ = ["CalibratedArmsSettings", "CalibratedSettings", "NoisyCount", "SamplingNote"]


@dataclass(frozen=True, slots=True)
class NoisyCount:
    """A released number of units, and how far its noise reaches 19 times of 20.

    Attributes
    ----------
    count : int
        The released number.
    within : float
        Its noise is smaller than this 19 times of 20.
    """

    count: int
    within: float


@dataclass(frozen=True, slots=True)
class SamplingNote:
    """Public sampling weights that are in force.

    Attributes
    ----------
    column : str
        The column that holds them.
    bound : float
        The largest weight as declared.
    largest : float
        The largest weight of a row over the mean of all.
    worth : pair by arm or mapping
        The effective sample size of each arm under sampling weights alone.
    """

    column: str
    bound: float
    largest: float
    worth: ArmNumbers | Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LabelSettings(Settings):
    """What settings of the calibrated method mean, of two arms and of more.

    Fields are those of the classes below, whose order is that of the JSON.

    Attributes
    ----------
    target : str
        What the weights aim at: balance of the covariates, or tracking the matching estimate.
    neighbors : int or None
        Neighbours (N) of the matching that was tracked; null for target "balance".
    weight_cap : float or mapping
        The limit on the largest weight that suits ε; of three arms or more, of each.
    arms : pair by arm or mapping
        Sizes of the arms, which are public at label level; without rows that were left out.
    effective_arms : pair by arm or mapping
        The effective sample size of each arm.
    balance : mapping
        Standardised mean difference of each covariate, before and after weighting; of three arms
        or more the greatest over all pairs.
    outcomes_beyond : number and its reach
        How many outcomes lie beyond the range around a private centre, where there is one.
    clipped_to : pair of float
        The privately chosen outcome bounds, where asked for.
    observed_share : pair by arm or mapping
        The released share of weight with an outcome, where who lacks one is private.
    sampling_weights : object
        Which sampling weights are in force; only where any are declared.
    subgroups : object
        How effects in subgroups came about; only where they were asked for. Numbers above then
        speak of all of them: the largest cap, the worst balance.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedSettings(LabelSettings):
    """Settings of the calibrated method with two arms.

    Attributes
    ----------
    means : pair by arm
        Mean outcomes if all were treated and if none were, where asked for.
    risk_ratio : float or None
        Ratio of both means of a declared binary outcome; null where it does not exist.
    odds_ratio : float or None
        Ratio of both odds of a declared binary outcome; null where it does not exist.
    """

    methods: ClassVar[tuple[str, ...]] = ("calibrated",)
    levels: ClassVar[tuple[str, ...]] = ("label",)

    estimand: Estimand
    target: Target
    neighbors: int | None
    weight_cap: float
    confidence: float
    rows_per_person: int
    population: str
    arms: ArmCounts
    effective_arms: ArmNumbers
    balance: Mapping[str, tuple[float, float]]
    noise_interval_covers: str
    sampling_weights: SamplingNote | Absent = ABSENT
    means: ArmNumbers | Absent = ABSENT
    risk_ratio: float | Absent | None = ABSENT
    odds_ratio: float | Absent | None = ABSENT
    interval_covers: str | Absent = ABSENT
    outcomes_beyond: NoisyCount | Absent = ABSENT
    clipped_to: tuple[float, float] | Absent = ABSENT
    left_out_outcome: int | Absent = ABSENT
    observed_share: ArmNumbers | Absent = ABSENT
    subgroups: SubgroupsNote | Absent = ABSENT
    outcomes: tuple[OutcomeFacts, ...] | Absent = ABSENT
    notes: tuple[str, ...] | Absent = ABSENT
    budget: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedArmsSettings(LabelSettings, ArmsSettings):
    """Settings of the calibrated method with three arms or more.

    Attributes
    ----------
    arm_balance : mapping
        The standardised mean of each covariate in each arm, less that of all units, before and
        after weighting; a pair's difference is that of its arms.
    """

    methods: ClassVar[tuple[str, ...]] = ("calibrated",)
    levels: ClassVar[tuple[str, ...]] = ("label",)

    target: Target
    neighbors: int | None
    weight_cap: Mapping[str, float]
    confidence: float
    rows_per_person: int
    population: str
    arms: Mapping[str, int]
    effective_arms: Mapping[str, float]
    balance: Mapping[str, tuple[float, float]]
    arm_balance: Mapping[str, Mapping[str, tuple[float, float]]] | Absent = ABSENT
    noise_interval_covers: str
    interval_covers: str | Absent = ABSENT
    outcomes_beyond: NoisyCount | Absent = ABSENT
    clipped_to: tuple[float, float] | Absent = ABSENT
    left_out_outcome: int | Absent = ABSENT
    observed_share: Mapping[str, float] | Absent = ABSENT
    sampling_weights: SamplingNote | Absent = ABSENT
    subgroups: SubgroupsNote | Absent = ABSENT
    outcomes: tuple[OutcomeFacts, ...] | Absent = ABSENT
    notes: tuple[str, ...] | Absent = ABSENT
    budget: Mapping[str, float]
