"""Whom the effects of cells speak of, and by how much each cell counts among all units."""

from __future__ import annotations

import numpy as np

from private_ate.arrays import Bits
from private_ate.estimators.request import Request
from private_ate.study import Block, MatchingStudy

__all__ = ["count_population"]


def count_population(public: MatchingStudy, request: Request, overlap: float | None) -> float:
    """Return how many units the effect in a cell speaks of, counted by their sampling weights.

    ``overlap`` is what the overlap of its units adds up to, as the method has it for the ATO.
    """
    if request.estimand == "ato":
        if overlap is None:
            msg = "a cell of the ATO does not say what its overlap adds up to"
            raise TypeError(msg)
        return overlap
    labels = public.domain.treatment.coded

    def counted(block: Block) -> Bits:
        if request.among is not None:
            return np.asarray(block.arm == labels.index(request.among))
        match request.estimand:
            case "att":
                return np.asarray(block.arm == 1)
            case "atc":
                return np.asarray(block.arm == 0)
            case _:
                return np.ones(block.arm.size, dtype=np.bool_)

    def kernel(block: Block) -> float:
        rows = counted(block)
        return float(rows.sum() if block.weights is None else block.weights[rows].sum())

    return public.fold(kernel, title="subgroups")
