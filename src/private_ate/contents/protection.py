"""What a release does not protect, in sentences that its level and its promise decide."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final, assert_never

from private_ate.privacy.levels import Level
from private_ate.privacy.metrics import Metric
from private_ate.privacy.noise import Spend
from private_ate.privacy.objective import radius_tail

__all__ = ["list_unprotected", "tell_rounding", "warn_of_epsilon"]

_LARGE: Final = 10
_SOLVED: Final = (Metric.GRADIENT, Metric.ARM_GRADIENT)  # steps that a solver answers


def tell_rounding(spends: Iterable[Spend]) -> str:
    """Say with which probability a solver's rounding may exceed its proof; empty without solvers.

    The probability is a bound for all models of a release together, rounded up to one digit, and
    the same for all records.
    """
    tail = sum(radius_tail(spend.size) for spend in spends if spend.metric in _SOLVED)
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
