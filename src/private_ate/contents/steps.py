"""The steps that spent: each with its mechanism, its cost and what of its noise is public.

A sensitivity at the choke point is a function of public numbers and of what was released before
it, or the noise would not protect: it may be told. The one exception, a smooth sensitivity, is
private and never written into a ``Spend``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Final

from private_ate.contents.about import Step
from private_ate.privacy.accounting import discrete_gaussian_variance
from private_ate.privacy.metrics import Metric
from private_ate.privacy.noise import Spend
from private_ate.privacy.quantiles import staircase_variance

__all__ = ["list_steps"]


def list_steps(spends: Iterable[Spend]) -> tuple[Step, ...]:
    """Return what the choke point wrote down, without anything private."""
    return tuple(_step(spend) for spend in spends)


def _step(spend: Spend) -> Step:
    deviation = _DEVIATIONS.get(spend.mechanism)
    is_private = spend.metric is Metric.SMOOTH
    drawn = replace(spend, epsilon=spend.epsilon / spend.moves)  # every move has its share of ε
    return Step(
        name=spend.step,
        mechanism=spend.mechanism,
        metric=str(spend.metric),
        epsilon=float(spend.epsilon),
        delta=float(spend.delta),
        rho=float(spend.rho),
        part=spend.part,
        sensitivity=None if is_private else spend.sensitivity,
        scale=None if is_private or deviation is None else deviation(drawn),
    )


def _laplace(spend: Spend) -> tuple[float, ...]:
    return tuple(math.sqrt(2) * float(Fraction(size) / spend.epsilon) for size in spend.sensitivity)


def _staircase(spend: Spend) -> tuple[float, ...]:
    unit = math.sqrt(staircase_variance(float(spend.epsilon)))
    return tuple(unit * float(size) for size in spend.sensitivity)


def _cube(spend: Spend) -> tuple[float, ...]:
    """Uniform on a cube whose reach is gamma distributed with the dimension and one."""
    spread = math.sqrt((spend.size + 1) * (spend.size + 2) / 3)
    return tuple(spread * float(Fraction(size) / spend.epsilon) for size in spend.sensitivity)


def _cubes(spend: Spend) -> tuple[float, ...]:
    """Every group of numbers is a cube of its own."""
    return _cube(replace(spend, size=spend.size // spend.groups))


def _gaussian(spend: Spend) -> tuple[float, ...]:
    (size,) = spend.sensitivity
    variance = discrete_gaussian_variance(
        spend.epsilon, spend.delta, sensitivity=size, dimension=spend.size
    )
    return (math.sqrt(float(variance)),)


def _gaussian_cells(spend: Spend) -> tuple[float, ...]:
    (squared,) = spend.sensitivity
    return (math.sqrt(float(Fraction(squared) / (2 * spend.rho))),)


# Mechanisms that add noise to numbers; those that choose or flip have no scale.
_DEVIATIONS: Final[dict[str, Callable[[Spend], tuple[float, ...]]]] = {
    "laplace": _laplace,
    "laplace_disjoint": _laplace,
    "laplace_rows": _laplace,
    "staircase": _staircase,
    "staircase_disjoint": _staircase,
    "staircase_by_arm": _staircase,
    "cube": _cube,
    "cubes": _cubes,
    "gaussian": _gaussian,
    "gaussian_cells": _gaussian_cells,
}
