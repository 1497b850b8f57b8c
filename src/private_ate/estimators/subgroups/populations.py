"""Whom the effects of cells speak of, and by how much each cell counts among all units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Bits
from private_ate.estimators.request import Request
from private_ate.study import Block, MatchingStudy

__all__ = ["Roll", "count_population", "roll_up"]

_FACTOR_BITS: Final = 20


@dataclass(frozen=True, slots=True)
class Roll:
    """How cells add up to all units: shares that add up to one, and the same by whole factors.

    ``factors`` multiply the outcome sums of the cells, in each of which the weights of an arm add
    up to its rows; ``rows`` is what these weights then add up to. Shares follow from the factors
    where all units are paid for, so that both speak of exactly the same population.
    """

    shares: tuple[float, ...]
    factors: tuple[int, ...]
    rows: int


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


def roll_up(populations: Sequence[float], rows: Sequence[int], *, by_factors: bool) -> Roll:
    """Return how cells of so many rows count that speak of these populations.

    Where every row counts once the factors are one. Elsewhere they are what a row of the cell
    counts, in steps of 2⁻²⁰ of the most.
    """
    counts = [population / size for population, size in zip(populations, rows, strict=True)]
    most = max(counts)
    factors = [1] * len(rows)
    if min(counts) < most:
        factors = [max(1, round(count / most * (1 << _FACTOR_BITS))) for count in counts]
    whole = sum(factor * size for factor, size in zip(factors, rows, strict=True))
    shares = [population / sum(populations) for population in populations]
    if by_factors:
        shares = [factor * size / whole for factor, size in zip(factors, rows, strict=True)]
    return Roll(tuple(shares), tuple(factors), whole)
