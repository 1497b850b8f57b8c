"""Which path is taken, and what each step of it may spend; from released sizes, free of charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import accumulate
from typing import Final, assert_never

from private_ate.domain import Domain, Interval
from private_ate.errors import ArgumentError
from private_ate.estimators.orthogonal.plan import OrthogonalOptions
from private_ate.estimators.orthogonal.several_arms.sizes import NoisySizes

__all__ = [
    "Ask", "Path", "Plan", "Shares", "interval_features", "plan_path", "refuse_shares",
    "shares_of", "size_share",
]  # fmt: skip

_SQUARES_SIGNAL: Final = 15.0  # signal to noise from which squares of covariates pay
_INTERVAL: Final = Fraction(1, 20)
_MEANS: Final = Fraction(3, 100)


class Path(StrEnum):
    """How far the estimate adjusts for covariates, from not at all to most."""

    PLAIN = "plain"
    PROGNOSIS = "prognosis"
    SCORE = "score"


@dataclass(frozen=True, slots=True)
class Ask:
    """What is public before the first step.

    ``squares`` is the number of covariates that are intervals; ``epsilon`` is the budget per row:
    ε divided by the rows that a person may have.
    """

    size: int
    dimension: int
    squares: int
    arms: int
    epsilon: float

    @property
    def signal(self) -> float:
        """Signal to noise of the score model's gradient, of two arms (s)."""
        return self._signal(self.dimension)

    @property
    def arm_signal(self) -> float:
        """Signal to noise of one of the arms, where all are of one size (s·ρ)."""
        return self.signal * signal_ratio(self.arms)

    @property
    def with_squares(self) -> bool:
        """Whether models see squares of covariates too."""
        more = self._signal(self.dimension + self.squares) * signal_ratio(self.arms)
        return self.squares > 0 and more >= _SQUARES_SIGNAL

    @property
    def stretch(self) -> float:
        """How many standard deviations a covariate is stretched to before it is clipped."""
        return 2 * max(1.0, math.sqrt(math.sqrt(self.arm_signal / 10)))

    @property
    def cells(self) -> int:
        """Cells along each arm's score (G)."""
        information = 2 * self.size * self.epsilon / self.arms
        cells = math.cbrt(information) if information <= 1e4 else 0.215 * math.sqrt(information)
        return min(max(round(cells), 4), 160)

    def _signal(self, dimension: int) -> float:
        if dimension == 0:
            return 0.0
        return 0.0386 * self.size * self.epsilon / (math.sqrt(dimension) * (dimension + 1))


@dataclass(frozen=True, slots=True)
class Plan:
    """The path, and what decided about it: both sides of the two rules."""

    path: Path
    prognosis_value: float
    score_value: float


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of ε after the arm sizes; zero for what a path or a request does without."""

    sizes: Fraction
    scaling: Fraction
    outcome_model: Fraction
    sums: Fraction
    score_model: Fraction
    place: Fraction
    cells: Fraction
    interval: Fraction
    means: Fraction

    @property
    def levels(self) -> Fraction:
        """What is left to the estimate."""
        return 1 - sum(
            (
                self.sizes, self.scaling, self.outcome_model, self.sums, self.score_model,
                self.place, self.cells, self.interval, self.means,
            ),
            Fraction(0),
        )  # fmt: skip


def signal_ratio(arms: int) -> float:
    """Return signal to noise of one of K equal arms over that of two (ρ): ``(4/K²)·β₂/βₖ``."""
    return 4 / arms**2 * _spread(2) / _spread(arms)


def _spread(arms: int) -> float:
    """Return the standard deviation of a coordinate of the zero-sum law of unit radius (β)."""
    ways = [math.comb(arms, a) * math.comb(arms - 2, a - 1) for a in range(1, arms)]
    inner = sum(
        way * (1 / (a + 1) + 1 / (arms - a + 1)) for a, way in enumerate(ways, 1)
    ) / sum(ways)  # fmt: skip
    return math.sqrt((arms - 1) / (arms + 1) / (2 * arms) * inner)


def plan_path(ask: Ask, sizes: NoisySizes, options: OrthogonalOptions) -> Plan:
    """Decide how far to adjust; the smallest arm that counts decides for all."""
    share, information = sizes.smallest_share, ask.size * ask.epsilon
    own = ask.arm_signal * share * (1 - share) * ask.arms**2 / (ask.arms - 1)
    prognosis = information * 2 * share * _reliability(ask.signal)
    score = information * 2 * share * _reliability(own)
    path = Path.PLAIN
    if ask.dimension and options.adjust is None:
        if prognosis >= options.threshold(ask.arms):
            path = Path.PROGNOSIS
        if score >= options.score_threshold:
            path = Path.SCORE
    if ask.dimension and options.adjust:
        path = Path.SCORE
    return Plan(path, prognosis, score)


def _reliability(signal: float) -> float:
    return signal**2 / (1 + signal**2)


def size_share(size: int, epsilon: float) -> Fraction:
    """Return the share of the arm sizes, which need less as n·ε grows."""
    return _falling(1.1, size, epsilon, 0.015, 0.15)


def shares_of(path: Path, ask: Ask, *, with_interval: bool, with_means: bool) -> Shares:
    """Return the shares of a path; what is not asked for is left to the estimate."""
    sizes = size_share(ask.size, ask.epsilon)
    sums = _falling(0.75, ask.size, ask.epsilon, 0.01, 0.10)
    interval = _INTERVAL if with_interval else Fraction(0)
    means = _MEANS if with_means else Fraction(0)
    none = Fraction(0)
    match path:
        case Path.PLAIN:
            return Shares(sizes, none, none, sums, none, none, none, interval, none)
        case Path.PROGNOSIS:
            scaling, model = Fraction(6, 100), Fraction(25, 100)
            return Shares(sizes, scaling, model, sums, none, none, none, interval, means)
        case Path.SCORE:
            scaling, model, sums = Fraction(8, 100), Fraction(15, 100), Fraction(4, 100)
            score, place, cells = Fraction(21, 100), Fraction(4, 100), Fraction(12, 100)
            return Shares(sizes, scaling, model, sums, score, place, cells, interval, means)
        case _:
            assert_never(path)


def _falling(factor: float, size: int, epsilon: float, least: float, most: float) -> Fraction:
    share = factor * (size * epsilon) ** (-1 / 3)
    return Fraction(min(max(share, least), most)).limit_denominator(10**6)


def interval_features(domain: Domain) -> tuple[int, ...]:
    """Return the places of encoded covariates that are numbers between bounds, not yes or no."""
    kinds = domain.covariates.values()
    widths = [1 if isinstance(kind, Interval) else len(kind.labels) for kind in kinds]
    firsts = accumulate(widths, initial=0)
    return tuple(
        first
        for first, kind in zip(firsts, kinds, strict=False)
        if isinstance(kind, Interval) and not kind.is_binary
    )


def refuse_shares(options: OrthogonalOptions) -> None:
    """Refuse shares of ε that are meant for the steps of two arms."""
    if options.shares != OrthogonalOptions().shares:
        msg = "the shares of epsilon are those of two arms; leave them out where more are declared"
        raise ArgumentError(msg, parameter="shares")
