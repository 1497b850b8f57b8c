"""What a release of the blocks method says about how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from private_ate.parameters import Design, Estimand
from private_ate.settings import (
    ABSENT,
    Absent,
    ArmsSettings,
    OutcomeFacts,
    Settings,
    SubgroupsNote,
)


@dataclass(frozen=True, slots=True)
class ReleasedWeights:
    """Private sampling weights: what the count released of them.

    Attributes
    ----------
    column : str
        The column that holds them.
    bound : float
        The largest weight as declared.
    mean : float
        Their mean over all rows, as released.
    worth : float
        How many rows of equal weight they amount to, as released.
    """

    column: str
    bound: float
    mean: float
    worth: float


# Without slots of its own: the class for several arms inherits those of `ArmsSettings`.
@dataclass(frozen=True, kw_only=True)
class _Blocks(Settings):
    """What a release says of blocks, for any number of arms.

    With three arms or more the spread, the flags and the noise quantile belong to single contrasts
    and are absent.

    Attributes
    ----------
    adjusted : bool
        Whether a model was fitted inside blocks; otherwise the arms are compared as they are.
    model : str
        The model inside the blocks.
    blocks : int
        Blocks of a partition (m).
    block_rows : int
        Rows of a block (b).
    partitions : int
        Partitions of the rows (r).
    spread : float
        The released spread of block effects, in units of the outcome.
    models_differ : bool
        Whether blocks say that a plain model gives another effect; absent where it was not asked.
    arms_overlap : bool
        Whether blocks say that both arms occur among all kinds of units; absent where it was not
        asked.
    arm_shares : mapping
        The share of each arm, as released or as declared.
    window : int
        Of releases of earlier versions: ranks around the middle whose block effects are averaged.
    unadjusted_effect : float
        Of releases of earlier versions: the released difference in means.
    noise_quantile : float
        Half-width that covers the last step's noise (q).
    interval_covers : str
        What intervals cover, and what not; only where they were asked for.
    subgroups : object
        How effects in subgroups came about; only where they were asked for. What above describes
        one model or one cut is then left out.
    """

    adjusted: bool
    model: str | Absent = ABSENT
    blocks: int | Absent = ABSENT
    block_rows: int | Absent = ABSENT
    partitions: int | Absent = ABSENT
    spread: float | Absent = ABSENT
    models_differ: bool | Absent = ABSENT
    arms_overlap: bool | Absent = ABSENT
    arm_shares: Mapping[str, float] | Absent = ABSENT
    window: int | Absent = ABSENT
    unadjusted_effect: float | Absent = ABSENT
    noise_quantile: float | Absent = ABSENT
    population: str
    interval_covers: str | Absent = ABSENT
    outcomes: tuple[OutcomeFacts, ...] | Absent = ABSENT
    notes: tuple[str, ...]
    design: Design
    estimand: Estimand
    confidence: float
    rows_per_person: int
    budget: Mapping[str, float]
    noise_interval_covers: str
    private_weights: ReleasedWeights | Absent = ABSENT
    subgroups: SubgroupsNote | Absent = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksSettings(_Blocks):
    """Settings of the blocks method for two arms."""

    methods: ClassVar[tuple[str, ...]] = ("blocks",)
    levels: ClassVar[tuple[str, ...]] = ("sample",)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksArmsSettings(_Blocks, ArmsSettings):
    """Settings of the blocks method for three arms or more."""

    methods: ClassVar[tuple[str, ...]] = ("blocks",)
    levels: ClassVar[tuple[str, ...]] = ("sample",)
