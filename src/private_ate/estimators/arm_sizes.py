"""Sizes of several arms where they are public, and the refusal of an arm that holds nobody."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from private_ate.errors import SchemaError
from private_ate.study import ArmSizes, Block, Study

__all__ = ["FoundArms", "count_arms"]


@dataclass(frozen=True, slots=True)
class FoundArms:
    """How many rows each arm holds, and how many of those are not known to lack an outcome.

    ``members`` are those of the latter that have a sampling weight above zero, or all of them.
    """

    everyone: ArmSizes
    observed: ArmSizes
    members: ArmSizes

    def __add__(self, other: FoundArms) -> FoundArms:
        return FoundArms(
            self.everyone + other.everyone,
            self.observed + other.observed,
            self.members + other.members,
        )


def count_arms(public: Study) -> FoundArms:
    """Count the arms of public rows; refuse one without units, outcomes or sampling weights."""
    found = public.fold(_count, title="arms")
    counted = (found.everyone.counts, found.observed.counts, found.members.counts)
    sizes = zip(*counted, strict=True)
    labels = public.domain.treatment.coded
    for code, (everyone, observed, members) in enumerate(sizes):
        unit = f"unit of arm {labels[code]!r}"
        lacking = (
            f"no unit is in arm {labels[code]!r}: remove it from the declared arms or check the "
            "label"
        )
        if len(labels) == 2:
            name = ("control", "treated")[code]
            unit = f"{name} unit"
            lacking = f"no unit is {name}: check the treatment column and its two labels"
        if everyone == 0:
            raise SchemaError(lacking)
        if observed == 0:
            msg = f"no {unit} has an outcome: check the outcome column"
            raise SchemaError(msg)
        if members == 0 and public.domain.weights is not None:
            msg = (
                f"no {unit} with an outcome has a sampling weight above 0: check the column "
                f"{public.domain.weights.column!r}"
            )
            raise SchemaError(msg)
    return found


def _count(block: Block) -> FoundArms:
    everyone = observed = ArmSizes.count(block.arm, block.arms)
    seen = np.ones(block.arm.size, dtype=np.bool_) if block.observed is None else block.observed
    if block.observed is not None:
        observed = ArmSizes.count(block.arm[seen], block.arms)
    if block.weights is None:
        return FoundArms(everyone, observed, observed)
    members = ArmSizes.count(block.arm[seen & (block.weights > 0)], block.arms)
    return FoundArms(everyone, observed, members)
