"""Before any ε is spent: expected error and interval width for a list of budgets.

At label level the plan reads the public covariates and treatment and runs the same public phase
as an estimate. At sample level it needs n, the number of covariates and guesses only. No private
column is touched and nothing is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, get_args

from private_ate.domain import Domain, Treatment
from private_ate.engines.local import LocalStudy, Progress, single_threaded_blas
from private_ate.errors import ArgumentError
from private_ate.estimators.calibrated import (
    INTERVAL_SHARE,
    CalibratedOptions,
    imbalance_of,
    outcome_share,
    plan_clip,
    pose_caps,
)
from private_ate.estimators.caps import CapPath, CapPoint, walk_caps
from private_ate.estimators.features import UNEXPLAINED
from private_ate.estimators.orthogonal_plan import (
    OrthogonalOptions,
    plain_shares,
    plan_orthogonal,
)
from private_ate.estimators.request import Estimand, Request, Target
from private_ate.inputs import prepare_table
from private_ate.intervals import (
    staircase_and_normal_error,
    staircase_and_normal_quantile,
    staircase_variance,
)
from private_ate.privacy.budget import Level, parse_epsilon

__all__ = ["Plan", "PlanRow", "StudySizes", "plan_ate"]

DEFAULT_EPSILONS: Final = ("0.1", "0.2", "0.5", "1", "2", "4", "8")
_LARGEST: Final = 64.0  # beyond this ε a wanted precision counts as unreachable
_SMALLEST: Final = 1e-3


@dataclass(frozen=True, slots=True)
class StudySizes:
    """What the sample level plans from: rows, encoded covariates, and the outcome's range."""

    rows: int
    covariates: int
    outcome_width: float
    is_binary: bool = False

    def __post_init__(self) -> None:
        if self.rows < 1 or self.covariates < 0 or not 0 < self.outcome_width < math.inf:
            msg = "sizes are a number of rows, of covariates, and a positive outcome range"
            raise ArgumentError(msg)


@dataclass(frozen=True, slots=True)
class PlanRow:
    """What to expect at one ε, in units of the outcome.

    Attributes
    ----------
    epsilon : float
        The budget.
    noise_error : float
        Expected size of the noise.
    sampling_error : float
        Standard deviation of the estimate without noise; rests on the guessed spread.
    expected_error : float
        Expected size of both together.
    half_width : float
        Half-width of an interval that covers both.
    note : str
        The cap, or whether and how the sample level adjusts.
    """

    epsilon: float
    noise_error: float
    sampling_error: float
    expected_error: float
    half_width: float
    note: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Expected error against ε, and the ε for a wanted half-width.

    ``epsilon_needed`` is None if no half-width was asked for or if it is unreachable; ``answer``
    says which in words.
    """

    level: Level
    rows: tuple[PlanRow, ...]
    half_width: float | None
    epsilon_needed: float | None
    answer: str
    caveat: str

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        head = f"{'ε':>8} {'noise':>11} {'sampling':>11} {'error':>11} {'half-width':>11}  note"
        lines = [
            f"{row.epsilon:8g} {row.noise_error:11.4g} {row.sampling_error:11.4g} "
            f"{row.expected_error:11.4g} {row.half_width:11.4g}  {row.note}"
            for row in self.rows
        ]
        return "\n".join([head, *lines, *([self.answer] if self.answer else []), self.caveat])


def plan_ate(  # noqa: PLR0913  # the same questions as an estimate
    data: object,
    *,
    level: Level,
    epsilons: Sequence[str | float | Fraction | Decimal] = DEFAULT_EPSILONS,
    half_width: float | None = None,
    treatment: str | Treatment | None = None,
    outcome: str | None = None,
    covariates: Sequence[str] | None = None,
    domain: Domain | None = None,
    target: Target = "balance",
    neighbors: int = 5,
    estimand: Estimand = "ate",
    confidence: float | None = 0.95,
    rows_per_person: int = 1,
    treated_share: float = 0.5,
    options: CalibratedOptions | OrthogonalOptions | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Tell what error and interval to expect for each ε; spends nothing.

    Parameters
    ----------
    data
        As for ``estimate_ate``; at sample level also ``StudySizes``. Only public columns are
        read: covariates and treatment at label level, the number of rows at sample level.
    level, treatment, outcome, covariates, domain, target, neighbors, estimand, confidence
        As for ``estimate_ate``.
    epsilons : sequence
        Budgets to tabulate.
    half_width : float, optional
        The ε that reaches this half-width is searched for.
    treated_share : float
        Sample level: a guess of the share of treated units.
    options
        The method's own options; ``outcome_sd`` is the guess that the label level rests on.
    """
    if level not in get_args(Level):
        msg = f"level is 'label' or 'sample', not {str(level)[:40]!r}"
        raise ArgumentError(msg)
    budgets = [float(parse_epsilon(epsilon)) for epsilon in epsilons]
    if half_width is not None and not 0 < half_width < math.inf:
        msg = "the wanted half-width is a positive number in units of the outcome"
        raise ArgumentError(msg)
    if not 0.001 <= treated_share <= 0.999:
        msg = "the guessed share of treated units lies between 0.001 and 0.999"
        raise ArgumentError(msg)
    request = Request(
        level, Fraction(1), neighbors, estimand, target, confidence, rows_per_person, options
    )
    if level == "label":
        study = _public_study(data, treatment, outcome, covariates, domain, progress)
        if isinstance(options, OrthogonalOptions):
            msg = "the label level takes CalibratedOptions"
            raise ArgumentError(msg)
        predict, caveat = _label_planner(study, request, options or CalibratedOptions())
    else:
        sizes = _sizes(data, treatment, outcome, covariates, domain)
        if isinstance(options, CalibratedOptions):
            msg = "the sample level takes OrthogonalOptions"
            raise ArgumentError(msg)
        predict, caveat = _sample_planner(sizes, request, options, treated_share)
    rows = tuple(predict(epsilon) for epsilon in budgets)
    if half_width is None:
        return Plan(level, rows, None, None, "", caveat)
    needed = _search(predict, half_width)
    return Plan(level, rows, half_width, needed, _answer(half_width, needed), caveat)


def _label_planner(
    study: LocalStudy, request: Request, options: CalibratedOptions
) -> tuple[Callable[[float], PlanRow], str]:
    bounds = study.domain.bounds
    spread, clip = outcome_share(bounds, options), plan_clip(bounds, options)
    with single_threaded_blas():
        path = walk_caps(study, pose_caps(study, request))
    pays = request.confidence is not None and request.target == "balance"
    left = 1 - float(clip.share) - (float(INTERVAL_SHARE) if pays else 0.0)
    unit = bounds.width / study.size

    def predict(epsilon: float) -> PlanRow:
        used = epsilon * left
        reach = request.rows_per_person * clip.kept_share
        point = path.choose(staircase_variance(used) * reach**2, spread)
        scale = reach * point.cap * unit
        guessed, wide = (size * unit for size in _path_spreads(path, point, spread))
        row = _row(epsilon, used, scale, guessed, request, f"cap {point.cap:.3g}")
        half = staircase_and_normal_quantile(request.coverage, used, scale, wide)
        return replace(row, half_width=half)

    return predict, (
        f"rests on a guessed outcome standard deviation of {spread * study.domain.bounds.width:.4g}"
        " (outcome_sd); unmeasured confounding is not in it"
    )


def _path_spreads(path: CapPath, point: CapPoint, spread: float) -> tuple[float, float]:
    """Return guessed standard deviations of n times the estimate over B: likely, and covered.

    The first rests on the prior guess behind the weights, the second on the class of outcomes
    that an interval covers.
    """
    squares = sum(solution.sums.squares for solution in point.solutions)
    loss = point.loss - UNEXPLAINED * squares
    imbalance = imbalance_of(path.problem, point.solutions)
    if path.problem.base is not None:  # the loss of following weights is about those weights
        loss = imbalance
    return spread * math.sqrt(squares + loss), spread * math.sqrt(squares + imbalance)


def _sample_planner(
    sizes: StudySizes, request: Request, options: OrthogonalOptions | None, treated_share: float
) -> tuple[Callable[[float], PlanRow], str]:
    chosen = options or OrthogonalOptions()
    share = min(treated_share, 1 - treated_share)
    spread = 0.4 if sizes.is_binary else 0.125
    rows = request.rows_per_person
    pays = request.confidence is not None

    def predict(epsilon: float) -> PlanRow:
        plan = plan_orthogonal(sizes.rows, sizes.covariates, epsilon / rows, chosen)
        if plan.adjusted:
            used = epsilon * float(chosen.budget(with_interval=pays)["effect"])
            reach = max(4.0, 1 / share) * (1.4 if plan.prognosis else 1.0)
            note = f"adjusts (signal/noise {plan.signal_to_noise:.2g}, K = 4)"
        else:
            shares = plain_shares(sizes.rows, epsilon / rows, with_interval=pays)
            used = epsilon * float(shares.effect)
            reach = 1 / share
            note = f"does not adjust (signal/noise {plan.signal_to_noise:.2g})"
        unit = sizes.outcome_width / sizes.rows
        deviation = (
            spread * sizes.outcome_width * math.sqrt(rows / (sizes.rows * share * (1 - share)))
        )
        return _row(epsilon, used, rows * reach * unit, deviation, request, note)

    return predict, (
        f"rests on a guessed treated share of {treated_share:g} and a guessed outcome standard "
        f"deviation of {spread * sizes.outcome_width:.4g}; confounding that is not removed is not "
        "in it"
    )


def _row(  # the parts of a prediction
    epsilon: float, used: float, scale: float, deviation: float, request: Request, note: str
) -> PlanRow:
    size = math.exp(-used / 2) / -math.expm1(-used)  # E|X| of a unit staircase
    return PlanRow(
        epsilon,
        scale * size,
        deviation,
        staircase_and_normal_error(used, scale, deviation),
        staircase_and_normal_quantile(request.coverage, used, scale, deviation),
        note,
    )


def _search(predict: Callable[[float], PlanRow], wanted: float) -> float | None:
    """Return the least ε whose half-width is as wanted, None if none up to 64 suffices.

    A coarse grid comes first: where a method switches to adjusting, width may rise with ε.
    """
    step = math.log(_LARGEST / _SMALLEST) / 48
    grid = [math.log(_SMALLEST) + index * step for index in range(49)]
    high = next((x for x in grid if predict(math.exp(x)).half_width <= wanted), None)
    if high is None or high == grid[0]:
        return None if high is None else _SMALLEST
    low = high - step
    while high - low > 1e-4:
        middle = (low + high) / 2
        if predict(math.exp(middle)).half_width > wanted:
            low = middle
        else:
            high = middle
    return float(f"{math.exp(high):.3g}")


def _answer(wanted: float, needed: float | None) -> str:
    if needed is None:
        return (
            f"a half-width of {wanted:g} is unreachable: even ε = {_LARGEST:g} does not suffice; "
            "more rows or tighter outcome bounds would help"
        )
    return f"a half-width of {wanted:g} needs about ε = {needed:g}"


def _public_study(  # the columns
    data: object,
    treatment: str | Treatment | None,
    outcome: str | None,
    covariates: Sequence[str] | None,
    domain: Domain | None,
    progress: Progress | None,
) -> LocalStudy:
    if isinstance(data, LocalStudy):
        return data.public()
    if isinstance(data, StudySizes):
        msg = "the label level plans from the public covariates and treatment; give the table"
        raise ArgumentError(msg)
    prepared = prepare_table(
        data, treatment=treatment, outcome=outcome, covariates=covariates, domain=domain,
        level="label", from_data=False,
    )  # fmt: skip
    return LocalStudy.encode_public(prepared.table, prepared.domain, progress)


def _sizes(
    data: object,
    treatment: str | Treatment | None,
    outcome: str | None,
    covariates: Sequence[str] | None,
    domain: Domain | None,
) -> StudySizes:
    if isinstance(data, StudySizes):
        return data
    if isinstance(data, LocalStudy):
        bounds = data.domain.bounds
        return StudySizes(data.size, data.dimension, bounds.width, bounds.is_binary)
    prepared = prepare_table(
        data, treatment=treatment, outcome=outcome, covariates=covariates, domain=domain,
        level="sample", from_data=False,
    )  # fmt: skip
    bounds = prepared.domain.bounds
    return StudySizes(
        prepared.table.rows, len(prepared.domain.features), bounds.width, bounds.is_binary
    )
