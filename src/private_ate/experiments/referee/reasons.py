"""Why another arm is ahead of our default in a cell, read off bias and spread of both."""

from __future__ import annotations

from typing import Final

from private_ate.experiments.claims import number
from private_ate.experiments.referee.verdicts import Standing

__all__ = ["reason_of"]

_SILENT: Final = 0.5  # a mean answer below this share of the effect says little
_MOSTLY: Final = 1.0  # a bias above so many spreads is most of an error


def reason_of(default: Standing, ahead: Standing | None) -> str:
    """Say in a sentence where the default's larger error comes from.

    Bias and spread are the mean and the standard deviation of (estimate − truth)/|truth|.
    """
    if ahead is None:
        return f"refused in {default.refused} draws"
    ours = f"bias {number(default.bias)}, spread {number(default.spread)}"
    theirs = f"bias {number(ahead.bias)}, spread {number(ahead.spread)}"
    if 1.0 + ahead.bias < _SILENT and ahead.spread < _SILENT:
        return (
            f"the answers of the one ahead stay near zero ({theirs}), which misses by about the "
            f"effect; ours spread further ({ours})"
        )
    if abs(default.bias) > _MOSTLY * default.spread:
        kind = (
            "ours is off on one side: confounding that it could not afford to remove, "
            "or not bend to"
        )
        return f"{kind} ({ours}; ahead: {theirs})"
    return f"ours spreads more by noise and sampling ({ours}; ahead: {theirs})"
