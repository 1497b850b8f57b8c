"""Numbers for people: with the digits that their uncertainty supports, and no more."""

from __future__ import annotations

import math


def number_text(value: float, error: float) -> str:
    """Write a number with the digits that its standard error supports: two of the error's own.

    Without an error four digits are written.

    Examples
    --------
    >>> number_text(8.18735, 0.33), number_text(1794.34, 633.0)
    ('8.19', '1,790')
    """
    if error <= 0 or not math.isfinite(error) or abs(value) >= 1e12:
        return f"{value:.4g}".replace("-", "−")
    decimals = 1 - math.floor(math.log10(error))
    if decimals > 9:
        return f"{value:.4g}".replace("-", "−")
    rounded = round(value, decimals) + 0.0  # adding zero turns −0 into 0
    return f"{rounded:,.{max(decimals, 0)}f}".replace("-", "−")


def pair_text(pair: tuple[float, float], error: float) -> str:
    """Write an interval."""
    return f"{number_text(pair[0], error)} to {number_text(pair[1], error)}"
