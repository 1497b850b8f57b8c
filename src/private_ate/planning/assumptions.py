"""What a plan rests on: sizes of a study, guesses about its units and arms, and public rows.

The public rows of a plan at label level are those of a table, others like them, or made-up ones.
Of a time to an event the guesses are the risk by the horizon and the share that is censored before
it. Under constant hazards the same tables as in a release give the range and the variance of
pseudo-values, so that a plan is that of a plain outcome with these bounds and this deviation, at
what curves leave of ε.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri, softmax

from private_ate.arguments import real_number, settle, truth_value, whole_number
from private_ate.arrays import Codes, Floats, scatter
from private_ate.domain import Binary, Domain, Interval, Outcome, Survival, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError
from private_ate.methods.assumptions import MOST_ROWS, PlannedRows, PopulationGuess
from private_ate.methods.survival.curves import (
    LABEL_SHARE,
    SAMPLE_SHARE,
    Hazards,
    pseudo_table,
)
from private_ate.privacy.levels import has_public_covariates
from private_ate.request import Request

__all__ = [
    "OverlapGuess", "StudySizes", "describe_shares", "describe_weights", "foresee",
    "guess_population", "made_up_rows", "read_shares", "rows_like", "settle_shares", "spread_of",
]  # fmt: skip

OverlapGuess = Literal["good", "poor"]

SELECTION: Final[dict[OverlapGuess, float]] = {"good": 0.7, "poor": 1.8}
"""Standard deviations of the log odds of treatment."""

_COVARIATES: Final = 40  # covariates that are thought to explain half of the outcome's variance
_SHOWN: Final = 0.5  # of what covariates explain: what like units do not differ by
_ALIKE: Final = 0.8  # of the outcome's variance, among like units, if nothing is known
_BINS: Final = 8  # of constant hazards
_SKEWED: Final = 0.2  # of the range: below, an outcome that starts at zero is thought to be skewed
_MOST_COVARIATES: Final = 200  # of made-up rows
_REACH: Final = 4.0  # deviations of a made-up covariate that its range holds on either side
_ROUNDS: Final = 60  # of the intercepts of the arms


@dataclass(frozen=True, slots=True)
class StudySizes:
    """A study that is not there yet: rows, encoded covariates, and the outcome's range.

    Attributes
    ----------
    rows : int or None
        The number of rows (n); None if a plan shall say how many it takes.
    covariates : int
        Encoded covariates: an interval counts once, a category once per label.
    outcome_width : float
        The declared range of the outcome, ``high − low``.
    is_binary : bool
        Whether the outcome is declared to be 0 or 1.
    outcome_low : float or None
        The declared lower bound, if known; an outcome that starts at zero is often skewed.
    weight_share : float
        The guessed mean of private sampling weights over their declared bound; 1 without any.
    """

    rows: int | None
    covariates: int
    outcome_width: float
    is_binary: bool = False
    outcome_low: float | None = None
    weight_share: float = 1.0

    def __post_init__(self) -> None:
        settle(
            self,
            covariates=whole_number("the number of covariates", self.covariates, 0, 10**6),
            outcome_width=real_number("the outcome's range", self.outcome_width, 1e-150, 1e151),
            is_binary=truth_value("is_binary", self.is_binary),
            weight_share=real_number(
                "the mean sampling weight over its bound", self.weight_share, 1e-6, 1.0
            ),
        )
        if self.rows is not None:
            settle(self, rows=whole_number("the number of rows", self.rows, 1, 1 << 48))
        if self.outcome_low is not None:
            low = real_number("the outcome's lower bound", self.outcome_low, -1e151, 1e151)
            settle(self, outcome_low=low)

    @classmethod
    def declared(
        cls, rows: int | None, covariates: int, bounds: Interval, weight_share: float = 1.0
    ) -> StudySizes:
        """Return the sizes of a study with declared outcome bounds."""
        return cls(rows, covariates, bounds.width, bounds.is_binary, bounds.low, weight_share)

    @property
    def bounds(self) -> Interval:
        """Outcome bounds of this width, from zero unless the lower one is known."""
        if self.is_binary:
            return Binary()
        low = self.outcome_low or 0.0
        return Interval(low, low + self.outcome_width)

    @property
    def outcome_deviation(self) -> float:
        """The outcome's standard deviation, guessed from its declared range."""
        return (0.4 if self.is_binary else 0.125) * self.outcome_width


def guess_population(
    sizes: StudySizes, outcome_sd: float | None, explained: float | None
) -> PopulationGuess:
    """Return what the caller says, or the planner takes for granted, about the units of a study.

    Without a deviation it is an eighth of the declared range, or 0.4 of it for a binary outcome;
    without a share that covariates explain it grows with their number. Like units show half of
    what covariates explain, and a fifth at least unless that share is given.
    """
    deviation, share = sizes.outcome_deviation / sizes.outcome_width, explained
    if outcome_sd is not None:
        outcome_sd = real_number("outcome_sd", outcome_sd, 1e-150, 1e150)
        deviation = outcome_sd / sizes.outcome_width
    if deviation > 0.5 * (1 + 1e-9):
        msg = (
            f"no outcome within a range of {sizes.outcome_width:g} has a standard deviation of "
            f"{outcome_sd:g}; it is at most half the range"
        )
        raise ArgumentError(msg)
    if share is None:
        share = sizes.covariates / (sizes.covariates + _COVARIATES)
    share = real_number("explained", share, 0.0, 1.0 if explained is None else 0.99)
    alike = 1 - _SHOWN * share
    return PopulationGuess(
        deviation, _middle(sizes, deviation), share,
        min(alike, _ALIKE) if explained is None else alike,
    )  # fmt: skip


def _middle(sizes: StudySizes, deviation: float) -> float:
    """Guess where in its range the outcome's mean lies; its middle is zero.

    The deviation of a binary outcome determines its mean. Amounts and durations start at zero and
    are skewed: their mean is near their standard deviation.
    """
    if sizes.is_binary:
        return -math.sqrt(max(1 - 4 * deviation**2, 0.0)) / 2
    if sizes.outcome_low == 0 and deviation < _SKEWED:
        return deviation - 0.5
    return 0.0


def settle_shares(
    treatment: Treatment, shares: Sequence[float] | None, treated_share: float
) -> tuple[float, ...]:
    """Return the guessed shares of the arms, in the order of their codes."""
    if treatment.size == 2:
        if shares is not None:
            msg = "two arms have a treated share; shares of arms are for three or more"
            raise ArgumentError(msg, parameter="arm shares")
        share = real_number("the guessed share of treated units", treated_share, 0.001, 0.999)
        return 1 - share, share
    if shares is None:
        return (1 / treatment.size,) * treatment.size
    if len(shares) != treatment.size:
        msg = f"{treatment.size} arms are declared and {len(shares)} shares are given"
        raise ArgumentError(msg, parameter="arm shares")
    return tuple(shares[treatment.labels.index(label)] for label in treatment.coded)


def describe_shares(labels: Sequence[str], shares: Sequence[float]) -> str:
    """Return guessed shares of the arms in words."""
    if len(shares) == 2:
        return f"a treated share of {shares[1]:g}"
    pairs = zip(labels, shares, strict=True)
    return f"arms' shares of {', '.join(f'{label} {share:.3g}' for label, share in pairs)}"


def read_shares(shares: object) -> list[float] | None:
    """Read guessed shares of arms in declared order; None where nobody guessed."""
    if shares is None:
        return None
    if isinstance(shares, str) or not isinstance(shares, Sequence):
        msg = "shares of arms are a list of numbers such as [0.6, 0.3, 0.1]"
        raise ArgumentError(msg, parameter="arm shares")
    found = [real_number("a guessed share of an arm", share, 1e-4, 1.0) for share in shares]
    if abs(sum(found) - 1) > 0.01:
        msg = f"the shares of the arms add up to {sum(found):g}; they are parts of one"
        raise ArgumentError(msg, parameter="arm shares")
    return [share / sum(found) for share in found]


def spread_of(outcome_sd: float | Mapping[str, float] | None, column: str | None) -> float | None:
    """Return the guessed standard deviation of one outcome."""
    if isinstance(outcome_sd, Mapping):
        if column is None and len(outcome_sd) == 1:
            return next(iter(outcome_sd.values()))
        return None if column is None else outcome_sd.get(column)
    if outcome_sd is not None and column is not None:
        msg = (
            "one standard deviation does not serve several outcomes; give one by column: "
            f"outcome_sd={{{column!r}: …}}"
        )
        raise ArgumentError(msg, parameter="outcome")
    return outcome_sd


def made_up_rows(
    sizes: StudySizes, treatment: Treatment, shares: Sequence[float], overlap: OverlapGuess
) -> PlannedRows:
    """Return made-up rows: normal covariates, and arms that one direction of these selects.

    ``shares`` are those of the arms, in the order of their codes. The same guesses make up the same
    rows, as nothing is drawn: numbers are scattered like random ones.
    """
    dimension, arms = sizes.covariates, len(shares)
    if dimension > _MOST_COVARIATES:
        msg = (
            f"people are made up with at most {_MOST_COVARIATES} covariates; plan from the table "
            "of public covariates and treatment instead"
        )
        raise ArgumentError(msg)
    if sizes.rows is not None and sizes.rows < arms:
        each = "two rows" if arms == 2 else f"{arms} rows"
        msg = f"a study has at least {each}, one in each arm"
        raise ArgumentError(msg)
    names = [f"x{place}" for place in range(1, dimension + 1)]
    domain = Domain(treatment, ("y", sizes.bounds), dict.fromkeys(names, Interval(0, 1)))

    def draw(rows: int) -> LocalStudy:
        numbers = scatter(0, rows * (dimension + 1)).reshape(dimension + 1, rows)
        normal = ndtri(np.clip(numbers[:dimension], 1e-12, 1 - 1e-12))
        score = SELECTION[overlap] * normal.sum(axis=0) / np.sqrt(max(dimension, 1))
        arm = _make_up_arms(score, shares, numbers[dimension])
        covariates = np.clip(normal / (2 * _REACH) + 0.5, 0.0, 1.0)
        return LocalStudy(domain, covariates, arm.view(np.bool_) if arms == 2 else arm, None)

    return PlannedRows(sizes.rows, False, draw)


def _make_up_arms(score: Floats, shares: Sequence[float], uniform: Floats) -> Codes:
    """Make arms up: the score leads from the first arm to the last, whose log odds it is."""
    logits = np.outer(score, np.linspace(-0.5, 0.5, len(shares)))
    wanted = np.asarray(shares) / np.sum(shares)
    intercepts = np.log(wanted)
    for _ in range(_ROUNDS):
        chances = softmax(logits + intercepts, axis=1)
        intercepts += np.log(wanted) - np.log(chances.mean(axis=0))
    passed = chances.cumsum(axis=1) < 1 - uniform[:, None]
    arm: Codes = np.minimum(passed.sum(axis=1), len(shares) - 1).astype(np.uint8)
    missing = np.setdiff1d(np.arange(len(shares)), arm)
    arm[: missing.size] = missing  # every arm has a row, however few there are
    return arm


def rows_like(study: LocalStudy) -> PlannedRows:
    """Return the public rows of a study, or others like them, drawn with replacement."""
    stride = max(study.size // (2 * MOST_ROWS), 1)

    def draw(rows: int) -> LocalStudy:
        if rows == study.size:
            return study
        with study.thinned(stride) as known:
            drawn = np.floor(scatter(0, rows) * known.size).astype(np.int64)
            missing = np.setdiff1d(known.arm, known.arm[drawn])  # a row of every arm is kept
            drawn[: missing.size] = [np.argmax(known.arm == code) for code in missing]
            return known.reordered(drawn)

    return PlannedRows(study.size, True, draw)


def describe_weights(study: LocalStudy) -> str:
    """Say by how much sampling weights make sensitivity grow, if there are any."""
    if study.weights is None:
        return ""
    mean = float(study.weights.mean())
    largest = float(study.weights.max(initial=0.0)) / mean if mean > 0 else 1.0
    return (
        f", on sampling weights whose largest is {largest:.3g} times the mean, which "
        "is how much more one outcome can move the estimate unless a cap binds"
    )


@dataclass(frozen=True, slots=True)
class ForeseenSurvival:
    """The plain outcome that stands for a time to an event in a plan.

    Attributes
    ----------
    outcome : Outcome
        Pseudo-values as an outcome with bounds.
    deviation : float
        Their standard deviation, in units of the outcome.
    explained : float or None
        What covariates are taken to explain: nothing at label level, where intervals take no
        credit for it.
    rest : float
        The share of ε that curves leave to the effect.
    caveat : str
        What the plan rests on.
    """

    outcome: Outcome
    deviation: float
    explained: float | None
    rest: float
    caveat: str


def foresee(
    domain: Domain, request: Request, outcome_sd: object, risk: float, censored: float
) -> ForeseenSurvival | None:
    """Return the outcome of a plan under guesses of the risk and of the share censored.

    None where the outcome is none of time to an event.
    """
    outcome = domain.outcome
    if not isinstance(outcome, Survival) or domain.further:
        return None
    if outcome_sd is not None:
        msg = "the spread of survival follows from the guessed risk and censoring; leave it out"
        raise ArgumentError(msg)
    risk = real_number("the guessed risk by the horizon", risk, 1e-4, 0.99)
    censored = real_number("the guessed share censored before the horizon", censored, 0.0, 0.95)
    table = pseudo_table(_constant(risk, censored), request.quantity)
    unit = outcome.horizon if request.quantity == "rmst" else 1.0
    bounds = Interval(unit * table.low, unit * table.high)
    is_public = has_public_covariates(request.level)
    share: Fraction = LABEL_SHARE if is_public else SAMPLE_SHARE
    return ForeseenSurvival(
        Outcome(outcome.column, bounds, outcome.missing, unit=outcome.unit),
        unit * float(np.sqrt(table.variance)),
        0.0 if is_public else None,
        float(1 - share),
        f"rests on a guessed risk of {risk:g} by the horizon and a guessed share of {censored:g} "
        f"censored before it, and leaves {float(share):.0%} of ε to the curves; it ",
    )


def _constant(risk: float, censored: float) -> Hazards:
    """Return constant hazards with this risk, of which this share is censored first."""
    event = -np.log1p(-risk)

    def excess(exit_: float) -> float:
        return float(exit_ / (event + exit_) * -np.expm1(-(event + exit_)) - censored)

    exits = brentq(excess, 0.0, 50.0, xtol=1e-15)
    return Hazards(np.full(_BINS, event), np.full(_BINS, exits))
