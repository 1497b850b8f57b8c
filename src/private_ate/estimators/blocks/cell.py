"""A private cell of the rows: what its run hands over, and its rows inside a block."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from private_ate.estimators.blocks.facts import Facts
from private_ate.estimators.blocks.unadjusted import Count
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.study import Groups

__all__ = ["CellEffect", "laplace_of", "packed", "packed_length"]


@dataclass(frozen=True, slots=True)
class CellEffect:
    """What was released of one cell, in units of the outcome.

    Attributes
    ----------
    effect : float
        The effect, or the difference in means.
    law : NoiseDistribution
        The law of the last step's noise; of a centre, the Laplace law of the same quantile.
    variance : float or None
        The sampling variance; None if no interval was paid for.
    count : Count
        The noisy numbers of the cell's rows.
    facts : Facts
        What is told of the path that was taken.
    """

    effect: float
    law: NoiseDistribution
    variance: float | None
    count: Count
    facts: Facts


def laplace_of(quantile: float, coverage: float) -> NoiseDistribution:
    """Return the Laplace law whose size exceeds the quantile with probability 1 − coverage.

    The weight of a centre's candidates falls with their rank, and ranks grow about evenly with
    the distance where block effects are dense: the law of its noise is nearly this one.
    """
    return NoiseDistribution("laplace", quantile / -math.log1p(-coverage), 1.0)


def packed_length(rows: int) -> int:
    """Return how many places are kept for ``rows`` rows that are expected in a block.

    Which rows of a block are in the cell is as good as chance, so that more are very rare.
    """
    return math.ceil(rows + 5 * math.sqrt(rows) + 5)


def packed(groups: Groups, length: int) -> Groups:
    """Move the rows that take part to the front of their group, and keep ``length`` places.

    A group stays a function of its own rows, and the shape one of public numbers: rows of a cell
    beyond the places that are kept are left out, the last of the group first.
    """
    order = np.argsort(~groups.takes_part, axis=1, kind="stable")[:, :length]
    return Groups(
        np.take_along_axis(groups.covariates, order[..., None], axis=1),
        np.take_along_axis(groups.treatment, order, axis=1),
        np.take_along_axis(groups.outcome, order, axis=1),
        np.take_along_axis(groups.takes_part, order, axis=1),
    )
