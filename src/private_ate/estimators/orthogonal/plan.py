"""What the orthogonal method decides before any record is read: from n, d, ε and its options."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

from private_ate.arguments import exact_shares, one_of, real_number, settle, truth_value
from private_ate.errors import ArgumentError
from private_ate.estimators.composition import options_of
from private_ate.estimators.request import Request

__all__ = [
    "Layout",
    "OrthogonalOptions",
    "ScoreModel",
    "orthogonal_options",
    "plain_shares",
    "plan_orthogonal",
]

ScoreModel = Literal["separate", "joint"]

_SHARES: Final = ("0.092", "0.368", "0.04", "0.08", "0.08", "0.05")
_THRESHOLD: Final = 3500.0
_ARMS_THRESHOLD: Final = 800.0  # a prognosis costs the same however many arms there are
_INTERVAL_SHARE: Final = Fraction(1, 20)
_PROGNOSIS_SIGNAL: Final = 8.0  # signal to noise from which an outcome model pays


@dataclass(frozen=True, slots=True)
class OrthogonalOptions:
    """Parameters of the sample-level method.

    Attributes
    ----------
    adjust_threshold : float or None
        Adjust for covariates if ``n·ε·s²/(1 + s²)`` reaches this, s being the plan's signal to
        noise; of three arms and more, times twice the share of the smallest. Lower it if you fear
        confounding more than noise. None for 3500 of two arms and 800 of more.
    adjust : bool or None
        None for that rule; True or False to force adjustment on or off.
    shares : six texts or fractions
        Shares of ε when adjusting: standardisation, models, score, cell counts, cell sums,
        interval. The estimate gets the rest, and the interval's share if none is asked for. For
        two arms only.
    score_threshold : float
        The same for weighting units of three arms and more by a private score; below it a
        prognosis alone is taken off their outcomes.
    means : bool
        Release the mean of every arm too, not only differences, where three arms or more are
        declared and a prognosis is taken off.
    score_model : "separate" or "joint"
        How three arms and more are told apart: by a logistic model of each arm, or by one
        multinomial model.
    """

    adjust_threshold: float | None = None
    adjust: bool | None = None
    shares: tuple[str | Fraction, ...] = _SHARES
    score_threshold: float = 2500.0
    means: bool = False
    score_model: ScoreModel = "separate"

    def __post_init__(self) -> None:
        one_of("the score model", self.score_model, get_args(ScoreModel))
        if self.adjust is not None:
            settle(self, adjust=truth_value("adjust", self.adjust))
        if sum(self.fractions) >= 1:
            msg = "the six shares leave a part of epsilon to the estimate"
            raise ArgumentError(msg)
        if self.adjust_threshold is not None:
            least = real_number("the adjustment threshold", self.adjust_threshold, 0, 1e150)
            settle(self, adjust_threshold=least)
        settle(
            self,
            shares=tuple(self.shares),
            score_threshold=real_number("the score's threshold", self.score_threshold, 0, 1e150),
            means=truth_value("means", self.means),
        )

    def threshold(self, arms: int = 2) -> float:
        """Return from which value of the rule on the method adjusts."""
        if self.adjust_threshold is not None:
            return self.adjust_threshold
        return _THRESHOLD if arms == 2 else _ARMS_THRESHOLD

    def of_two_arms(self) -> dict[str, object]:
        """Return the options that two arms have, as ledgers know them."""
        return {
            "adjust_threshold": self.threshold(), "adjust": self.adjust, "shares": self.shares,
        }  # fmt: skip

    @property
    def fractions(self) -> tuple[Fraction, ...]:
        """The shares as exact fractions."""
        return exact_shares(
            self.shares,
            len(_SHARES),
            "give six shares of epsilon: standardisation, models, score, cell counts, cell sums, "
            "interval",
        )

    def budget(self, *, with_interval: bool) -> dict[str, Fraction]:
        """Return the share of every step; the estimate's is what the others leave."""
        steps = ("scaling", "models", "score", "counts", "sums", "interval")
        shares = dict(zip(steps, self.fractions, strict=True))
        if not with_interval:
            shares["interval"] = Fraction(0)
        return shares | {"effect": 1 - sum(shares.values(), Fraction(0))}


def orthogonal_options(request: Request) -> OrthogonalOptions:
    """Return the options of a request that the method can answer; a plan refuses the same."""
    return options_of(request, OrthogonalOptions, "orthogonal")


@dataclass(frozen=True, slots=True)
class Layout:
    """What is decided from n, d and ε alone, before any record is read.

    Attributes
    ----------
    signal_to_noise : float
        Of the propensity model's gradient, for a typical strength of selection.
    adjusted : bool
        Whether the estimate adjusts for covariates.
    prognosis : bool
        Whether an outcome model is fitted as well.
    cells : int
        Cells along the score (G).
    stretch : float
        How many standard deviations a covariate is stretched to before it is clipped.
    """

    signal_to_noise: float
    adjusted: bool
    prognosis: bool
    cells: int
    stretch: float


def plan_orthogonal(
    size: int, dimension: int, epsilon: float, options: OrthogonalOptions | None = None
) -> Layout:
    """Decide whether adjusting for covariates can pay, from public numbers only.

    ``epsilon`` is the budget per row: ε divided by the rows that a person may have.
    """
    options = options or OrthogonalOptions()
    if dimension == 0:
        return Layout(0.0, False, False, 1, 2.0)
    signal = 0.084 * size * 0.46 * epsilon / (math.sqrt(dimension) * (dimension + 1))
    information = size * epsilon
    pays = information * signal**2 / (1 + signal**2) >= options.threshold()
    cells = information ** (1 / 3) if information <= 1e4 else 21.5 * math.sqrt(information / 1e4)
    return Layout(
        signal,
        pays if options.adjust is None else options.adjust,
        signal >= _PROGNOSIS_SIGNAL,
        min(max(round(cells), 4), 160),
        2 * max(1.0, (signal / 10) ** 0.25),
    )


@dataclass(frozen=True, slots=True)
class PlainShares:
    """Shares of ε without adjustment."""

    counts: Fraction
    sums: Fraction
    interval: Fraction

    @property
    def effect(self) -> Fraction:
        """What is left to the estimate."""
        return 1 - self.counts - self.sums - self.interval


def plain_shares(size: int, epsilon: float, *, with_interval: bool) -> PlainShares:
    """Return the shares without adjustment: counts and sums need less as n·ε grows."""
    root = (size * epsilon) ** (-1 / 3)
    return PlainShares(
        Fraction(min(max(1.1 * root, 0.015), 0.15)).limit_denominator(10**6),
        Fraction(min(max(0.75 * root, 0.01), 0.10)).limit_denominator(10**6),
        _INTERVAL_SHARE if with_interval else Fraction(0),
    )
