"""What all baselines refuse, and their options from a request; arguments only, never records."""

from __future__ import annotations

from typing import TypeVar

from private_ate.errors import ArgumentError
from private_ate.estimators.request import Request, options_for

__all__ = ["options_of"]

Options = TypeVar("Options")


def options_of(request: Request, kind: type[Options], method: str) -> Options:
    """Return the options of a request after refusing what no baseline can answer."""
    if request.estimand != "ate":
        msg = f"method {method!r} estimates the ATE only; ATT and ATC need method 'auto'"
        raise ArgumentError(msg)
    if request.rows_per_person != 1:
        msg = f"method {method!r} protects one row per person; use method 'auto' for more"
        raise ArgumentError(msg)
    return options_for(request, kind, method)
