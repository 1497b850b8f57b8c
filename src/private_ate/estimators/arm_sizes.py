"""Sizes of several arms where they are public, and the refusal of an arm that holds nobody."""

from __future__ import annotations

from dataclasses import dataclass

from private_ate.errors import SchemaError
from private_ate.study import ArmSizes, Block, Study

__all__ = ["FoundArms", "count_arms"]


@dataclass(frozen=True, slots=True)
class FoundArms:
    """How many rows each arm holds, and how many of those are not known to lack an outcome."""

    everyone: ArmSizes
    observed: ArmSizes

    def __add__(self, other: FoundArms) -> FoundArms:
        return FoundArms(self.everyone + other.everyone, self.observed + other.observed)


def count_arms(public: Study) -> FoundArms:
    """Count the arms of public rows; refuse one that holds nobody, or nobody with an outcome."""
    found = public.fold(_count, title="arms")
    sizes = zip(found.everyone.counts, found.observed.counts, strict=True)
    for label, (everyone, observed) in zip(public.domain.treatment.coded, sizes, strict=True):
        if everyone == 0:
            msg = (
                f"no unit is in arm {label!r}: remove it from the declared arms or check the label"
            )
            raise SchemaError(msg)
        if observed == 0:
            msg = f"no unit of arm {label!r} has an outcome: check the outcome column"
            raise SchemaError(msg)
    return found


def _count(block: Block) -> FoundArms:
    everyone = ArmSizes.count(block.arm, block.arms)
    if block.observed is None:
        return FoundArms(everyone, everyone)
    return FoundArms(everyone, ArmSizes.count(block.arm[block.observed], block.arms))
