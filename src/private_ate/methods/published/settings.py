"""What a release of the published method says about how it came about, at either level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from private_ate.settings import ABSENT, Absent, ArmCounts, ArmNumbers, ArmsSettings, Settings

__all__ = [
    "LimitPair",
    "PublishedLabelArmsSettings",
    "PublishedLabelSettings",
    "PublishedSampleArmsSettings",
    "PublishedSampleSettings",
]


@dataclass(frozen=True, slots=True)
class LimitPair:
    """The matching limit k of each arm; None without one."""

    treated: int | None
    control: int | None


# Without slots of its own: classes for several arms inherit those of `ArmsSettings`.
@dataclass(frozen=True, kw_only=True)
class _Matched(Settings):
    """What a release says of matching, at both levels and for any number of arms.

    Attributes
    ----------
    neighbors : int
        Neighbours (N) that each unit is matched with, in each arm.
    matching_limit : pair or mapping by arm
        How often a unit of each arm may be used, as a multiple of N (k); null without a limit.
    matching_order : str
        In which order the rows were matched.
    ridge : float
        Penalty λ of the propensity model.
    arms : pair or mapping by arm
        Sizes of the arms, which are public at label level.
    noisy_arms : pair or mapping by arm
        Sizes of the arms after randomised response, generalised for three arms or more.
    largest_weight : pair or mapping by arm
        The largest weight of a unit of each arm; the noise is in proportion to it.
    balance : mapping
        Standardised mean difference of each covariate, before and after weighting: the greatest
        over all pairs of arms; absent where it was not computed.
    arm_balance : mapping
        The standardised mean of each covariate in each arm, less that of all units, before and
        after weighting; a pair's difference is that of its arms.
    equals_difference_in_means : bool
        Whether the limit is so tight that matching adjusts for next to nothing.
    """

    neighbors: int
    matching_limit: LimitPair | Mapping[str, float | None]
    matching_order: str
    ridge: float
    confidence: float
    rows_per_person: int
    population: str
    budget: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLabelSettings(_Matched):
    """Settings of the published method at label level."""

    methods: ClassVar[tuple[str, ...]] = ("published",)
    levels: ClassVar[tuple[str, ...]] = ("label",)

    matching_limit: LimitPair
    arms: ArmCounts
    largest_weight: ArmNumbers
    equals_difference_in_means: bool
    noise_interval_covers: str
    left_out_outcome: int | Absent = ABSENT
    notes: tuple[str, ...] | Absent = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSampleSettings(_Matched):
    """Settings of the published method at sample level."""

    methods: ClassVar[tuple[str, ...]] = ("published",)
    levels: ClassVar[tuple[str, ...]] = ("sample",)

    matching_limit: LimitPair
    noisy_arms: ArmCounts
    largest_weight: ArmNumbers
    noise_interval_covers: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLabelArmsSettings(_Matched, ArmsSettings):
    """Settings of the published method at label level with three arms or more."""

    methods: ClassVar[tuple[str, ...]] = ("published",)
    levels: ClassVar[tuple[str, ...]] = ("label",)

    matching_limit: Mapping[str, float | None]
    arms: Mapping[str, int]
    largest_weight: Mapping[str, float]
    balance: Mapping[str, tuple[float, float]] | Absent = ABSENT
    arm_balance: Mapping[str, Mapping[str, tuple[float, float]]] | Absent = ABSENT
    equals_difference_in_means: bool
    noise_interval_covers: str
    left_out_outcome: int | Absent = ABSENT
    notes: tuple[str, ...] | Absent = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSampleArmsSettings(_Matched, ArmsSettings):
    """Settings of the published method at sample level with three arms or more."""

    methods: ClassVar[tuple[str, ...]] = ("published",)
    levels: ClassVar[tuple[str, ...]] = ("sample",)

    matching_limit: Mapping[str, float | None]
    noisy_arms: Mapping[str, int]
    largest_weight: Mapping[str, float]
    noise_interval_covers: str
    notes: tuple[str, ...]
