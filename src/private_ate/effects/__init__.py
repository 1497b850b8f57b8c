"""From released quantities to a table of effects, and what follows from a release for nothing.

`quantities` holds released numbers and the distribution of their errors, `table` the rows that are
made of them with their intervals, `estimate` what a method hands over and how it becomes a release;
`of_releases` reads releases. Everything here is post-processing: nothing sees a record or spends ε.
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
