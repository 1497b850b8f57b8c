"""The retired method `orthogonal`: what its releases say, so that they are still read.

``OrthogonalOptions`` stays as a name that says which method to use instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from private_ate.errors import ArgumentError
from private_ate.methods.blocks.settings import ReleasedWeights
from private_ate.methods.registry import RETIRED
from private_ate.request import Design, Estimand
from private_ate.settings import ABSENT, Absent, ArmsSettings, OutcomeFacts, Settings

__all__ = ["OrthogonalArmsSettings", "OrthogonalOptions", "OrthogonalSettings"]


class OrthogonalOptions:
    """Options of a method that is no more; making them says what to use."""

    def __init__(self, **_: object) -> None:
        raise ArgumentError(RETIRED["orthogonal"], parameter="method")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrthogonalSettings(Settings):
    """Settings of the orthogonal method.

    Attributes
    ----------
    adjusted : bool
        Whether a private score was paid for; otherwise the arms are compared as they are.
    signal_to_noise : float
        What the public rule found from n, d and ε.
    adjust_threshold : float
        From which signal to noise on the rule adjusts.
    matching_limit_K : float or None
        About how often a unit is used at most (K); null without adjustment.
    estimand : str
        Whose average effect was asked for; absent for all units (ATE).
    """

    methods: ClassVar[tuple[str, ...]] = ("orthogonal",)
    levels: ClassVar[tuple[str, ...]] = ("sample",)

    adjusted: bool
    design: Design
    signal_to_noise: float
    adjust_threshold: float
    matching_limit_K: float | None  # noqa: N815  # the key as releases have it
    population: str
    confidence: float
    rows_per_person: int
    budget: Mapping[str, float]
    interval_covers: str | Absent = ABSENT
    noise_interval_covers: str
    outcomes: tuple[OutcomeFacts, ...] | Absent = ABSENT
    notes: tuple[str, ...]
    estimand: Estimand | Absent = ABSENT
    private_weights: ReleasedWeights | Absent = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class OrthogonalArmsSettings(ArmsSettings):
    """Settings of the orthogonal method for three arms or more.

    Attributes
    ----------
    adjusted : bool
        Whether covariates were adjusted for, by a prognosis or by weights as well.
    path : str
        "plain" for arms as they are, "prognosis" if an outcome model was taken off all outcomes,
        "score" if units were weighted along a private score of their arm as well.
    signal_to_noise : float
        What the public rule found from n, d and ε.
    adjust_threshold, score_threshold : float
        From which values on the rule takes off a prognosis, and weights units.
    rule_values : mapping
        What the released sizes of the arms gave for either rule.
    arm_shares : mapping
        The share of each arm, as released.
    largest_weight : mapping
        The largest weight of a unit of each arm.
    weight_limit : mapping
        What weights of each arm that was weighted were limited to (L); absent if none was.
    cells : int
        Cells along each score; absent without scores.
    squares : bool
        Whether the models saw squares of covariates; absent without models.
    interval_covers : str
        What the intervals cover, and what not; only where they were paid for.
    """

    methods: ClassVar[tuple[str, ...]] = ("orthogonal",)
    levels: ClassVar[tuple[str, ...]] = ("sample",)

    adjusted: bool
    path: Literal["plain", "prognosis", "score"]
    design: Design
    signal_to_noise: float
    adjust_threshold: float
    score_threshold: float
    rule_values: Mapping[str, float]
    arm_shares: Mapping[str, float]
    largest_weight: Mapping[str, float]
    weight_limit: Mapping[str, float] | Absent = ABSENT
    cells: int | Absent = ABSENT
    squares: bool | Absent = ABSENT
    population: str
    confidence: float
    rows_per_person: int
    budget: Mapping[str, float]
    interval_covers: str | Absent = ABSENT
    noise_interval_covers: str
    outcomes: tuple[OutcomeFacts, ...] | Absent = ABSENT
    notes: tuple[str, ...]
