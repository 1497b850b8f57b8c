"""What a release spent, step by step, and what its promise does not cover, in sentences.

A sensitivity at the choke point is a function of public numbers and of what was released before
it, or the noise would not protect: it may be stated. The one exception, a smooth sensitivity, is
private and never written into a ``Spend``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Final, assert_never

from private_ate.privacy.accounting import discrete_gaussian_variance
from private_ate.privacy.distributions import staircase_variance
from private_ate.privacy.levels import Level
from private_ate.privacy.metrics import Metric, Spend
from private_ate.privacy.objective import radius_tail
from private_ate.release.metadata import Step

_LARGE: Final = 10


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


def tell_rounding(spends: Iterable[Spend]) -> str:
    """Say with which probability a solver's rounding may exceed its proof; empty without solvers.

    The probability is a bound for all models of a release together, rounded up to one digit, and
    the same for all records.
    """
    tail = sum(radius_tail(spend.size) for spend in spends if spend.metric is Metric.GRADIENT)
    if not tail:
        return ""
    unit = 10.0 ** math.floor(math.log10(tail))
    return f"up to a chance of {math.ceil(tail / unit) * unit:.0e} in the rounding of its solver"


def warn_of_epsilon(epsilon: Fraction) -> tuple[str, ...]:
    """Return a warning if ε is so large that it promises next to nothing."""
    if epsilon <= _LARGE:
        return ()
    factor = math.exp(min(float(epsilon), 700.0))
    reach = f"one person may change the chance of a result by a factor of {factor:.2g}"
    return (f"ε = {float(epsilon):g} is above {_LARGE}: {reach}, which is hardly a promise",)


def list_unprotected(
    level: Level, *, is_private: bool, hides_size: bool, rows_per_person: int
) -> tuple[str, ...]:
    """Return what is not protected; no sentence depends on a record."""
    if not is_private:
        return ("anything: this release keeps no promise",)
    rows = "one row" if rows_per_person == 1 else f"{rows_per_person} rows"
    return (
        *_public(level, hides_size=hides_size),
        f"anybody with more than {rows} in the data, beyond the promise for {rows}",
        "several people together: the promise for k of them is that of k times ε",
        "the same people in other releases: costs of all releases about them add up",
        "what the result itself tells about people, whether or not they took part",
    )


def _public(level: Level, *, hides_size: bool) -> tuple[str, ...]:
    declared = "the declared domain and the parameters of the request"
    match level:
        case "label":
            return (
                "covariates and treatment of every person, and who is in the data: they are public",
                f"sizes of the arms, balance and weights that follow from them, and {declared}",
            )
        case "sample":
            return (declared if hides_size else f"the number of rows, {declared}",)
    assert_never(level)
