"""The population that a weighted effect describes, as weights of units by their propensity score.

A unit of score e counts by h(e): 1 for all units, e for the treated, 1 − e for the controls,
e(1 − e) for the overlap. Treated units then weigh h/e and controls h/(1 − e).
"""

from __future__ import annotations

from typing import Final, assert_never

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.parameters import Estimand

__all__ = ["POPULATIONS", "balancing_weights", "estimand_weight"]

POPULATIONS: Final[dict[Estimand, str]] = {
    "ate": "all n units (ATE)",
    "att": "the treated units (ATT)",
    "atc": "the control units (ATC)",
    "ato": "units weighted by overlap (ATO)",
}


def estimand_weight(estimand: Estimand, scores: Floats) -> Floats:
    """Return by how much units of these scores count (h), between 0 and 1."""
    match estimand:
        case "ate":
            return np.ones_like(scores)
        case "att":
            return scores
        case "atc":
            return 1 - scores
        case "ato":
            return scores * (1 - scores)
        case _:
            assert_never(estimand)


def balancing_weights(estimand: Estimand, scores: Floats, treated: Bits) -> Floats:
    """Return ``h/e`` for treated units and ``h/(1 − e)`` for controls; scores lie within (0, 1)."""
    return estimand_weight(estimand, scores) / np.where(treated, scores, 1 - scores)
