"""What a release of the orthogonal method says about how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from private_ate.estimators.request import Design, Estimand
from private_ate.settings import ABSENT, Absent, ArmsSettings, Settings

__all__ = ["OrthogonalArmsSettings", "OrthogonalSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrthogonalSettings(Settings):
    """Settings of the orthogonal method.

    Attributes
    ----------
    adjusted : bool
        Whether a private score was paid for; otherwise the arms are compared as they are.
    design : str
        How treatment came about, as declared.
    signal_to_noise : float
        What the public rule found from n, d and ε.
    adjust_threshold : float
        From which signal to noise on the rule adjusts.
    matching_limit_K : float or None
        About how often a unit is used at most (K); null without adjustment.
    population : str
        Whom the effect speaks of.
    confidence : float
        Coverage of the intervals.
    rows_per_person : int
        How many rows one person may have.
    budget : mapping
        ε of each step that saw private values.
    interval_covers : str
        What the interval covers, and what not; only where one was paid for.
    noise_interval_covers : str
        What the noise interval covers, and what not.
    notes : list of str
        Warnings.
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
    notes: tuple[str, ...]
    estimand: Estimand | Absent = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class OrthogonalArmsSettings(ArmsSettings):
    """Settings of the orthogonal method with three arms or more.

    Attributes
    ----------
    adjusted : bool
        Whether an outcome model or scores were paid for; otherwise the arms are compared as they
        are.
    path : str
        How much was adjusted, as the released sizes of the arms decided: nothing, through a model
        of the outcome, or through that and a score of each arm.
    design : str
        How treatment came about, as declared.
    signal_to_noise : float
        What the public rule found from n, d and ε.
    adjust_threshold : float
        From where on the rule pays for a model of the outcome.
    score_threshold : float
        From where on the rule also pays for scores.
    shares : mapping
        The share of all units in each arm, as released.
    matching_limit : mapping
        About how often a unit of each arm is used at most; null where its units count alike.
    population : str
        Whom the effects speak of.
    confidence : float
        Coverage of the intervals.
    rows_per_person : int
        How many rows one person may have.
    budget : mapping
        ε of each step that saw private values.
    interval_covers : str
        What the intervals cover, and what not; only where they were paid for.
    noise_interval_covers : str
        What the noise intervals cover, and what not.
    notes : list of str
        Warnings.
    """

    methods: ClassVar[tuple[str, ...]] = ("orthogonal",)
    levels: ClassVar[tuple[str, ...]] = ("sample",)

    adjusted: bool
    path: Literal["plain", "prognosis", "score"]
    design: Design
    signal_to_noise: float
    adjust_threshold: float
    score_threshold: float
    shares: Mapping[str, float]
    matching_limit: Mapping[str, float | None]
    population: str
    confidence: float
    rows_per_person: int
    budget: Mapping[str, float]
    interval_covers: str | Absent = ABSENT
    noise_interval_covers: str
    notes: tuple[str, ...]
