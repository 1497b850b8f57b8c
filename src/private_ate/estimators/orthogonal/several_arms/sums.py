"""Exact integers, one per arm or feature, that add up over blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from private_ate.arrays import Codes, Floats
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Block

__all__ = ["Sums", "add_by_arm", "centred_outcomes"]


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over rows in steps of some grid."""

    steps: tuple[int, ...]

    def __add__(self, other: Sums) -> Sums:
        return Sums(tuple(one + two for one, two in zip(self.steps, other.steps, strict=True)))


def add_by_arm(steps: Floats, arm: Codes, arms: int) -> Sums:
    """Add whole numbers below 2⁵¹ in size by arm, exactly."""
    totals = np.zeros(arms, dtype=np.int64)
    np.add.at(totals, arm, steps.astype(np.int64))
    return Sums(tuple(map(int, totals)))


def centred_outcomes(block: Block) -> Floats:
    """Return outcomes in steps of 2⁻³⁰ of their range, the middle being zero."""
    if block.outcome is None:
        msg = "this method needs a study with outcomes"
        raise TypeError(msg)
    centred: Floats = block.outcome - np.float64(OUTCOME_STEPS // 2)
    return centred
