"""Before any ε is spent: expected error and interval width for a list of budgets.

At label level the plan reads the public covariates and treatment and runs the same public phase
as an estimate. At sample level it needs n, the number of covariates and guesses only. No private
column is touched and nothing is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, assert_never

import numpy as np

from private_ate.arguments import real_number, settle, truth_value, whole_number
from private_ate.contents.numbers import number_text
from private_ate.data.inputs import prepare_table
from private_ate.data.tables import Covariates
from private_ate.domain import Domain, Treatment
from private_ate.engines.local import LocalStudy, Progress, single_threaded_blas
from private_ate.errors import ArgumentError
from private_ate.estimators.blocks.centre import expected_noise
from private_ate.estimators.blocks.plan import (
    BlocksOptions,
    plan_blocks,
    worth_trying,
)
from private_ate.estimators.calibrated.cap_path import CapPath, CapPoint, walk_caps
from private_ate.estimators.calibrated.features import UNEXPLAINED
from private_ate.estimators.calibrated.method import (
    INTERVAL_SHARE,
    CalibratedOptions,
    error_deviations,
    expected_variance,
    imbalance_of,
    outcome_share,
    plan_clip,
    pose_caps,
)
from private_ate.estimators.orthogonal.plan import (
    OrthogonalOptions,
    orthogonal_options,
    plain_shares,
    plan_orthogonal,
)
from private_ate.estimators.refusals import options_of
from private_ate.estimators.request import Design, Estimand, Request, Target
from private_ate.privacy.budget import Level, parse_epsilon
from private_ate.privacy.quantiles import (
    staircase_and_normal_error,
    staircase_and_normal_quantile,
    staircase_variance,
)

__all__ = ["Plan", "PlanRow", "StudySizes", "plan_ate"]

DEFAULT_EPSILONS: Final = ("0.1", "0.2", "0.5", "1", "2", "4", "8")
_LARGEST: Final = 64.0  # beyond this ε a wanted precision counts as unreachable
_UNADJUSTED: Final = "does not adjust"  # how the note of such a row begins
_SMALLEST: Final = 1e-3


@dataclass(frozen=True, slots=True)
class StudySizes:
    """What the sample level plans from: rows, encoded covariates, and the outcome's range."""

    rows: int
    covariates: int
    outcome_width: float
    is_binary: bool = False

    def __post_init__(self) -> None:
        settle(
            self,
            rows=whole_number("the number of rows", self.rows, 1, 1 << 48),
            covariates=whole_number("the number of covariates", self.covariates, 0, 10**6),
            outcome_width=real_number("the outcome's range", self.outcome_width, 1e-150, 1e151),
            is_binary=truth_value("is_binary", self.is_binary),
        )

    @property
    def outcome_deviation(self) -> float:
        """The outcome's standard deviation within an arm, guessed from its declared range."""
        return (0.4 if self.is_binary else 0.125) * self.outcome_width


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

    @property
    def texts(self) -> tuple[str, ...]:
        """The numbers as people read them, with the digits that the expected error supports."""
        numbers = (self.noise_error, self.sampling_error, self.expected_error, self.half_width)
        return tuple(number_text(number, self.expected_error) for number in numbers)


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
            f"{row.epsilon:8g} " + " ".join(f"{text:>11}" for text in row.texts) + f"  {row.note}"
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
    covariates: Covariates = None,
    domain: Domain | None = None,
    target: Target = "balance",
    neighbors: int = 5,
    estimand: Estimand = "ate",
    confidence: float | None = 0.95,
    rows_per_person: int = 1,
    design: Design = "unknown",
    treated_share: float = 0.5,
    options: CalibratedOptions | OrthogonalOptions | BlocksOptions | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Tell what error and interval to expect for each ε; spends nothing.

    Parameters
    ----------
    data
        As for ``estimate_ate``; at sample level also ``StudySizes``. Only public columns are
        read: covariates and treatment at label level, the number of rows at sample level.
    level, treatment, outcome, covariates, domain, target, neighbors, estimand, confidence, design
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
    request = Request(
        level, Fraction(1), neighbors, estimand, target, confidence, rows_per_person, options,
        design,
    )  # fmt: skip
    budgets = _budgets(epsilons)
    if half_width is not None:
        half_width = real_number("the wanted half-width", half_width, 1e-150, 1e151)
    share = real_number("the guessed share of treated units", treated_share, 0.001, 0.999)
    match level:
        case "label":
            guesses = options_of(request, CalibratedOptions, "calibrated")
            study = _public_study(data, treatment, outcome, covariates, domain, progress)
            predict, caveat = _label_planner(study, request, guesses)
        case "sample":
            predict, caveat = _sample_planner_for(
                _sizes(data, treatment, outcome, covariates, domain), request, share
            )
        case _:
            assert_never(level)
    rows = tuple(predict(epsilon) for epsilon in budgets)
    if half_width is None:
        return Plan(level, rows, None, None, "", caveat)
    least = _search(predict, half_width)
    if least is None or design == "randomized" or not _is_unadjusted(predict(least)):
        return Plan(level, rows, half_width, least, _answer(half_width, least), caveat)
    adjusting = _search(_adjusting(predict), half_width)
    answer = _answer_unadjusted(half_width, least, adjusting)
    return Plan(level, rows, half_width, adjusting or least, answer, caveat)


def _sample_planner_for(
    sizes: StudySizes, request: Request, share: float
) -> tuple[Callable[[float], PlanRow], str]:
    """Return the predictions of the method whose options were given, or of the default."""
    if isinstance(request.options, OrthogonalOptions):
        return _sample_planner(sizes, request, orthogonal_options(request), share)
    options = options_of(request, BlocksOptions, "blocks")
    return blocks_planner(sizes, request, options, share), _sample_caveat(sizes, share)


def _budgets(epsilons: object) -> list[float]:
    if isinstance(epsilons, str | bytes) or not isinstance(epsilons, Iterable):
        msg = "epsilons is a list of budgets such as ['0.5', '1']"
        raise ArgumentError(msg)
    return [float(parse_epsilon(epsilon)) for epsilon in epsilons]


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
        share = epsilon * float(INTERVAL_SHARE)
        known = expected_variance(path.problem, spread, clip, share, request)
        likely = known.likely_values() if pays else np.full(1, known.released)
        guessed = _path_spread(path, point, math.sqrt(known.released)) * unit
        row = _row(epsilon, used, scale, guessed, request, f"cap {point.cap:.3g}")
        wide = error_deviations(path.problem, point.solutions, spread, likely) * unit
        half = staircase_and_normal_quantile(request.coverage, used, scale, wide)
        return replace(row, half_width=half)

    return predict, (
        f"rests on a guessed outcome standard deviation of {spread * study.domain.bounds.width:.4g}"
        " (outcome_sd); unmeasured confounding is not in it"
    )


def _path_spread(path: CapPath, point: CapPoint, spread: float) -> float:
    """Return the guessed standard deviation of n times the estimate over B."""
    squares = sum(solution.sums.squares for solution in point.solutions)
    loss = point.loss - UNEXPLAINED * squares
    if path.problem.base is not None:  # the loss of following weights is about those weights
        loss = imbalance_of(path.problem, point.solutions)
    return spread * math.sqrt(squares + loss)


def _sample_planner(
    sizes: StudySizes, request: Request, chosen: OrthogonalOptions, treated_share: float
) -> tuple[Callable[[float], PlanRow], str]:
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
            note = f"{_UNADJUSTED} (signal/noise {plan.signal_to_noise:.2g})"
        unit = sizes.outcome_width / sizes.rows
        deviation = (
            spread * sizes.outcome_width * math.sqrt(rows / (sizes.rows * share * (1 - share)))
        )
        return _row(epsilon, used, rows * reach * unit, deviation, request, note)

    return predict, _sample_caveat(sizes, treated_share)


def _sample_caveat(sizes: StudySizes, treated_share: float) -> str:
    return (
        f"rests on a guessed treated share of {treated_share:g} and a guessed outcome standard "
        f"deviation of {sizes.outcome_deviation:.4g}; confounding that is not removed is not in it"
    )


def blocks_planner(
    sizes: StudySizes, request: Request, options: BlocksOptions, treated_share: float
) -> Callable[[float], PlanRow]:
    """Return a prediction for the blocks method: its law replayed on guessed block effects."""
    rows, pays = request.rows_per_person, request.confidence is not None

    def predict(epsilon: float) -> PlanRow:
        per_row = epsilon / rows
        even, plan = (
            plan_blocks(
                sizes.rows, sizes.covariates, per_row,
                share=share, estimand=request.estimand, with_interval=pays, options=options,
            )
            for share in (0.5, treated_share)
        )  # fmt: skip
        tried = worth_trying(sizes.rows, even, request.design, options)
        if not (tried and plan.enough):
            return _unadjusted_row(sizes, request, epsilon, treated_share)
        noise = expected_noise(
            plan, sizes.covariates, Fraction(per_row).limit_denominator(10**9),
            share=treated_share, deviation=sizes.outcome_deviation / sizes.outcome_width,
            coverage=request.coverage, with_interval=pays,
        )  # fmt: skip
        deviation = math.sqrt(rows) * noise.sampling * sizes.outcome_width
        error = noise.error * sizes.outcome_width
        half = math.hypot(noise.quantile * sizes.outcome_width, noise.normal * deviation)
        total = math.hypot(error, math.sqrt(2 / math.pi) * deviation)
        note = f"adjusts ({plan.blocks} blocks of {plan.rows} rows, {plan.model})"
        return PlanRow(epsilon, error, deviation, total, half, note.replace("_", " "))

    return predict


def _unadjusted_row(
    sizes: StudySizes, request: Request, epsilon: float, treated_share: float
) -> PlanRow:
    rows, share = request.rows_per_person, min(treated_share, 1 - treated_share)
    shares = plain_shares(sizes.rows, epsilon / rows, with_interval=request.confidence is not None)
    unit = sizes.outcome_width / sizes.rows
    deviation = sizes.outcome_deviation * math.sqrt(rows / (sizes.rows * share * (1 - share)))
    note = _UNADJUSTED + (" (randomised)" if request.design == "randomized" else "")
    return _row(
        epsilon, epsilon * float(shares.effect), rows / share * unit, deviation, request, note
    )


def _row(
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


def _is_unadjusted(row: PlanRow) -> bool:
    return row.note.startswith(_UNADJUSTED)


def _adjusting(predict: Callable[[float], PlanRow]) -> Callable[[float], PlanRow]:
    """Return predictions in which a number that adjusts for nothing is never narrow enough."""

    def adjusted(epsilon: float) -> PlanRow:
        row = predict(epsilon)
        return replace(row, half_width=math.inf) if _is_unadjusted(row) else row

    return adjusted


def _answer_unadjusted(wanted: float, least: float, adjusting: float | None) -> str:
    """Answer where the least ε buys a difference that adjusts for nothing; say so first."""
    if adjusting is None:
        return (
            f"not adjusted for covariates, a half-width of {wanted:g} needs about ε = {least:g}; "
            f"adjusted it is unreachable up to ε = {_LARGEST:g}"
        )
    return (
        f"ε = {least:g} would do only without adjusting for covariates; adjusted, "
        f"{_answer(wanted, adjusting)}"
    )


def _answer(wanted: float, needed: float | None) -> str:
    if needed is None:
        return (
            f"a half-width of {wanted:g} is unreachable: even ε = {_LARGEST:g} does not suffice; "
            "more rows or tighter outcome bounds would help"
        )
    return f"a half-width of {wanted:g} needs about ε = {needed:g}"


def _public_study(
    data: object,
    treatment: str | Treatment | None,
    outcome: str | None,
    covariates: Covariates,
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
    return LocalStudy.encode_public(prepared.table, prepared.domain, progress, prepared.lenient)


def _sizes(
    data: object,
    treatment: str | Treatment | None,
    outcome: str | None,
    covariates: Covariates,
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
