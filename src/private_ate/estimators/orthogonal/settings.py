"""What a release of the orthogonal method says about how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from private_ate.estimators.blocks.settings import ReleasedWeights
from private_ate.estimators.request import Design, Estimand
from private_ate.settings import ABSENT, Absent, OutcomeFacts, Settings

__all__ = ["OrthogonalSettings"]


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
    outcomes : list of objects
        Several outcomes that were released together, the headline first; absent for one.
    notes : list of str
        Warnings.
    estimand : str
        Whose average effect was asked for; absent for all units (ATE).
    sampling_weights : object
        Which sampling weights are in force, and what was released of them; only where any are.
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
    sampling_weights: ReleasedWeights | Absent = ABSENT
