"""From released quantities to a table of effects, and what follows from a release for nothing.

`estimate` holds what a method hands over, `quantities` the errors of weighted sums of released or
predicted numbers, `table` the rows that are made of them, `to_release` the release; `row_errors`
and `of_releases` read releases. Everything here is post-processing: nothing sees a record or spends
ε. The names of simulated streams are part of every release's numbers: who changes them, or the
order of a sum, records the golden releases again.
"""

from private_ate.effects.of_releases import (
    ArmMeans,
    EValue,
    arm_means,
    e_value,
    monotone_means,
    number_needed_to_treat,
    odds_ratio,
    odds_ratio_interval,
    p_value,
    p_value_of,
    risk_ratio,
    risk_ratio_interval,
    standard_error,
)

__all__ = [
    "ArmMeans",
    "EValue",
    "arm_means",
    "e_value",
    "monotone_means",
    "number_needed_to_treat",
    "odds_ratio",
    "odds_ratio_interval",
    "p_value",
    "p_value_of",
    "risk_ratio",
    "risk_ratio_interval",
    "standard_error",
]
