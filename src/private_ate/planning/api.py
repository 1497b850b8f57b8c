"""`plan_ate`: what is asked, about whom, and which method predicts what it would release.

Nothing here knows a method: its record in the registry names the function that predicts its
quantities from public rows, or from sizes and guesses (`methods.assumptions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Final, cast, get_args

from private_ate.arguments import one_of, real_number
from private_ate.data.inputs import prepare_table, resolve_domain, settle_names
from private_ate.data.persons import most_rows, refuse_person
from private_ate.data.requested_columns import Covariates
from private_ate.data.streams import MEMORY_LIMIT, open_schema
from private_ate.domain import Domain, SamplingWeights, Treatment
from private_ate.engines.local import LocalStudy, Progress
from private_ate.engines.threads import single_threaded_blas
from private_ate.errors import ArgumentError
from private_ate.methods.assumptions import Assumptions
from private_ate.methods.calibrated.options import WIDE_DEVIATIONS
from private_ate.methods.composition import method_for, refuse_gaps
from private_ate.methods.options import with_outcome_sd
from private_ate.methods.outcomes.method import request_for
from private_ate.methods.probability import Probability, probability_of
from private_ate.methods.registry import Method
from private_ate.parameters import Design, Estimand, SurvivalQuantity, Target
from private_ate.planning.assumptions import (
    Guesses,
    OverlapGuess,
    PlannedArms,
    StudySizes,
    describe_weights,
    made_up_rows,
    rows_like,
    settle_arms,
    spread_of,
)
from private_ate.planning.plan import Plan, Planner
from private_ate.planning.solve import Solve, make_plan
from private_ate.planning.survival import StandIn, stand_in
from private_ate.planning.table import plan_contrasts, plan_subgroups, plan_together
from private_ate.privacy.budget import parse_epsilon
from private_ate.privacy.levels import Level, has_public_covariates
from private_ate.request import Request, among_arm, options_for

__all__ = ["plan_ate"]

_GUESSED_SHARE: Final = 0.5  # of their bound: where sampling weights are thought to have their mean
DEFAULT_EPSILONS: Final = ("0.1", "0.2", "0.5", "1", "2", "4", "8")


def plan_ate(  # noqa: PLR0913  # the same questions as an estimate
    data: object,
    *,
    level: Level,
    epsilons: Sequence[str | float | Fraction | Decimal] = DEFAULT_EPSILONS,
    half_width: float | None = None,
    solve: Solve | None = None,
    treatment: str | Treatment | None = None,
    outcome: str | Sequence[str] | None = None,
    covariates: Covariates = None,
    domain: Domain | None = None,
    weights: str | SamplingWeights | None = None,
    target: Target = "balance",
    neighbors: int = 5,
    estimand: Estimand = "ate",
    confidence: float | None = 0.95,
    rows_per_person: int = 1,
    person: str | None = None,
    design: Design = "unknown",
    probability: float | str | None = None,
    outcome_sd: float | Mapping[str, float] | None = None,
    explained: float | None = None,
    treated_share: float = 0.5,
    arm_shares: Sequence[float] | None = None,
    among: str | None = None,
    by: str | Sequence[str] = (),
    overall: bool = False,
    overlap: OverlapGuess = "good",
    mean_weight: float | None = None,
    quantity: SurvivalQuantity = "rmst",
    risk: float = 0.4,
    censored: float = 0.3,
    options: object | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Predict what error and interval to expect for each ε; spends nothing.

    Parameters
    ----------
    data
        As for ``estimate_ate``, or ``StudySizes`` for a study that is not there yet. Only public
        columns are read: covariates and treatment at label level, the number of rows at sample
        level.
    level, treatment, outcome, covariates, domain, target, neighbors, estimand, confidence, design
        As for ``estimate_ate``. Three arms or more have a row for every ε and contrast; above 15
        contrasts for those with the reference. Several outcomes have rows of their own, and a
        wanted half-width is that of the first.
    rows_per_person, person
        As for ``estimate_ate``; ``person`` from a table alone.
    weights : str or SamplingWeights, optional
        As for ``estimate_ate``; the plan says by how much the largest makes noise grow. A study
        that is not there yet has no weights to read: at sample level see ``StudySizes``.
    probability : float or str, optional
        As for ``estimate_ate``; a column's bounds are those of the domain.
    epsilons : sequence
        Budgets to tabulate.
    half_width : float, optional
        A wanted half-width; what reaches it is searched for.
    solve : "epsilon" or "rows", optional
        What to search for: the least ε, or the least number of rows at each of the budgets. None
        is rows if ``StudySizes`` leaves them open, and ε otherwise.
    outcome_sd : float or mapping, optional
        The outcome's standard deviation among units that are treated alike, in its own units, as
        for ``estimate_ate``; None is an eighth of the declared range, or 0.4 of a binary one.
    explained : float, optional
        A guess of the share of that variance which the covariates explain; None is
        ``d / (d + 40)`` for d encoded covariates.
    treated_share : float
        A guess of the share of treated units, where treatment is not read.
    arm_shares : sequence of float, optional
        Guesses of the shares of three arms or more in declared order, where treatment is not
        read; None is equal shares. Without a declared treatment their number is that of the arms.
    among : str, optional
        As for ``estimate_ate``.
    by, overall
        As for ``estimate_ate``, at label level, from a table: the plan then has the rows of the
        table of effects. Above three cells ``overall`` is recommended, and the plan says so.
    overlap : "good" or "poor"
        A guess of how far treatment depends on the covariates, where they are not read: at label
        level, and at sample level for three arms or more. The log odds of treatment have a
        standard deviation of 0.7 or 1.8.
    mean_weight : float, optional
        A guess of the mean sampling weight at sample level, where weights are private and not
        read; None is half the declared bound.
    quantity : "rmst" or "risk"
        As for ``estimate_ate``, of a time to an event.
    risk, censored : float
        Of a time to an event: guesses of the risk by the horizon and of the share that is censored
        before it.
    options
        The method's own options.
    """
    request = Request(
        level, Fraction(1), neighbors, estimand, target, confidence, rows_per_person, options,
        design, probability=probability, by=cast("tuple[str, ...]", by), overall=overall,
        quantity=quantity,
    )  # fmt: skip
    stood_in = stand_in(
        StandIn(data, domain, request, outcome, outcome_sd, explained), treatment, risk, censored
    )
    data, domain, request = stood_in.data, stood_in.domain, stood_in.request
    outcome, outcome_sd, explained = stood_in.outcome, stood_in.outcome_sd, stood_in.explained
    budgets = _budgets(epsilons)
    if half_width is not None:
        half_width = real_number("the wanted half-width", half_width, 1e-150, 1e151)
    if solve is not None:
        one_of("solve", solve, get_args(Solve))
    if weights is not None:
        if isinstance(data, LocalStudy | StudySizes):
            msg = "sampling weights are a column of a table; they are planned for where it is"
            raise ArgumentError(msg)
        domain = resolve_domain(domain, treatment, outcome, weights)
    asked = _Columns(treatment, outcome, covariates, domain, person)
    request = _with_persons(data, asked, request)
    several = _several_outcomes(data, asked)
    _refuse_subgroups(data, request)
    share = _weight_share(data, domain, level, mean_weight)
    arms = settle_arms(_declared(data, asked), arm_shares, treated_share)
    size = len(arms.shares)
    request = among_arm(request, arms.treatment if size > 2 else None, among)
    known = data.domain if isinstance(data, LocalStudy) else several or domain
    method = method_for("auto", request, size)
    refuse_gaps(method, request, known, arms=size)

    def planner_of(data: object, asked: _Columns, request: Request, column: str | None) -> Planner:
        guesses = Guesses(spread_of(outcome_sd, column), explained, treated_share, overlap)
        return _Question(data, asked, request, method, guesses, arms, share, progress).planner()

    if several is None:
        planner = planner_of(data, asked, request, None)
    else:
        planner = plan_together({
            one.column: planner_of(
                _one_outcome(data, several, place), replace(asked, outcome=one.column),
                request_for(request, several, place), one.column,
            )
            for place, one in enumerate(several.outcomes)
        })  # fmt: skip
        if not has_public_covariates(level):
            parts = len(several.outcomes)
            planner = planner.at(lambda epsilon: epsilon / parts)
    with single_threaded_blas():
        return make_plan(stood_in.finish(planner), request, budgets, wanted=half_width, solve=solve)


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked about one outcome.

    Attributes
    ----------
    data : object
        A table, a study or `StudySizes`; ``asked`` names its columns.
    share : float
        The mean of private sampling weights over their bound, one where there are none.
    """

    data: object
    asked: _Columns
    request: Request
    method: Method
    guesses: Guesses
    arms: PlannedArms
    share: float
    progress: Progress | None

    def planner(self) -> Planner:
        """Return the planner of the method, from public rows or from sizes and guesses alone."""
        if has_public_covariates(self.request.level):
            return self._from_public_rows()
        return self._from_sizes()

    def _from_public_rows(self) -> Planner:
        options = with_outcome_sd(
            options_for(self.request, self.method.options, self.method.name),
            self.guesses.outcome_sd,
        )
        guesses = replace(self.guesses, outcome_sd=options.outcome_sd)
        request = replace(self.request, options=options)
        study = None
        if isinstance(self.data, StudySizes):
            sizes = self.data
            guess = guesses.about(sizes)
            public = made_up_rows(sizes, guess, self.arms.treatment, self.arms.shares)
            known = f"people made up with {guesses.overlap} overlap and {self.arms}"
        else:
            if self.arms.is_guess:
                msg = (
                    "the table tells the arms' sizes at label level; leave out their guessed shares"
                )
                raise ArgumentError(msg, parameter="arm shares")
            study = _public_study(self.data, self.asked, self.progress)
            sizes = StudySizes.declared(study.size, study.dimension, study.domain.bounds)
            guess, public = guesses.about(sizes), rows_like(study)
            known = f"the public covariates and treatment{describe_weights(study)}"
        caveat = (
            f"rests on {known}, and on an outcome standard deviation of "
            f"{guesses.deviation(sizes):.4g}{guesses.origin}; unmeasured confounding is not in it"
        )
        assumed = Assumptions(
            sizes.bounds, sizes.covariates, self.arms.shares,
            guess, guesses.alike_share(sizes), public=public,
        )  # fmt: skip
        name, predictor = self.method.name, self.method.predictor
        if request.by and study is not None:
            return plan_subgroups(name, predictor, study, assumed, request, caveat)
        predict = predictor(assumed, request)
        return plan_contrasts(name, predict, self.arms.labels, request, sizes.rows, caveat)

    def _from_sizes(self) -> Planner:
        request, guesses, arms = self.request, self.guesses, self.arms
        sizes = replace(_sizes(self.data, self.asked), weight_share=self.share)
        trial = _known_probability(request, self.data, self.asked.domain)
        if trial is not None:
            guesses = replace(guesses, treated_share=trial.typical)
            arms = replace(arms, shares=(1 - trial.typical, trial.typical))
        guess = guesses.about(sizes)
        is_pair = len(arms.shares) == 2
        weights = _about_weights(sizes) if is_pair else ""
        bounds = _about_bounds(sizes, guess.deviation) if is_pair else ""
        caveat = (
            f"rests on {arms}, an outcome standard deviation of "
            f"{guesses.deviation(sizes):.4g}{guesses.origin} and {100 * guess.explained:.0f} % of "
            f"its variance explained{weights}; "
            f"{'' if is_pair else 'the path depends on released sizes, and '}"
            f"confounding that is not removed is not in it{bounds}"
        )
        assumed = Assumptions(
            sizes.bounds, sizes.covariates, arms.shares,
            guess, guesses.alike_share(sizes), self.share, trial,
        )  # fmt: skip
        predict = self.method.predictor(assumed, request)
        return plan_contrasts(self.method.name, predict, arms.labels, request, sizes.rows, caveat)


def _with_persons(data: object, asked: _Columns, request: Request) -> Request:
    """Return the request with as many rows for a person as public ids show, if there are any."""
    person = asked.person
    is_table = not isinstance(data, LocalStudy | StudySizes)
    refuse_person(person, request.level, request.rows_per_person, is_table=is_table)
    if person is None:
        return request
    outline = settle_names(
        open_schema(data, request.level), treatment=asked.treatment, outcome=asked.outcome,
        covariates=asked.covariates, domain=asked.domain, level=request.level, from_data=False,
        person=person,
    )  # fmt: skip
    public = [outline.declared.treatment.column, *outline.covariates]
    rows = most_rows(data, person, public, MEMORY_LIMIT)
    return replace(request, rows_per_person=rows)


def _refuse_subgroups(data: object, request: Request) -> None:
    """Refuse subgroups that are not planned for: they are read from public columns of a table."""
    if not request.by:
        return
    if not has_public_covariates(request.level):
        msg = (
            "subgroups are planned for at label level, where it is public who is in which; at "
            "sample level plan for as many rows as a subgroup holds, at half of epsilon"
        )
        raise ArgumentError(msg, parameter="by")
    if isinstance(data, StudySizes):
        msg = "subgroups are planned for from a table, which tells how large they are"
        raise ArgumentError(msg, parameter="by")


def _weight_share(
    data: object, domain: Domain | None, level: Level, mean_weight: float | None
) -> float:
    """Return the mean sampling weight over its bound as guessed where weights are private."""
    declared = data.domain if isinstance(data, LocalStudy) else domain
    weights = None if declared is None else declared.weights
    if isinstance(data, StudySizes) and data.weight_share < 1 and has_public_covariates(level):
        msg = "at label level sampling weights are read: plan with a table, or without them"
        raise ArgumentError(msg)
    if mean_weight is None:
        known = data.weight_share if isinstance(data, StudySizes) else 1.0
        return known if weights is None else _GUESSED_SHARE
    if weights is None or has_public_covariates(level):
        msg = (
            "a guessed mean weight is for sampling weights that are declared and private; leave "
            "it out where there are none, and at label level, where they are read"
        )
        raise ArgumentError(msg, parameter="mean weight")
    mean = real_number("the guessed mean weight", mean_weight, 1e-6 * weights.high, weights.high)
    return mean / weights.high


@dataclass(frozen=True, slots=True)
class _Columns:
    """Which columns are meant, where a table is given."""

    treatment: str | Treatment | None
    outcome: str | Sequence[str] | None
    covariates: Covariates
    domain: Domain | None
    person: str | None = None


def _several_outcomes(data: object, asked: _Columns) -> Domain | None:
    """Return a domain with several outcomes that are meant; None where it is one."""
    if isinstance(data, LocalStudy):
        return data.domain if data.domain.further else None
    domain, outcome = asked.domain, asked.outcome
    if domain is None and outcome is not None and not isinstance(outcome, str):
        domain = None if asked.treatment is None else Domain(asked.treatment, list(outcome))
    if domain is None:
        return None
    named = list(outcome) if outcome is not None and not isinstance(outcome, str) else outcome
    known = resolve_domain(domain, None, named)
    return known if known.further else None


def _one_outcome(data: object, domain: Domain, place: int) -> object:
    """Return what a plan of one of several outcomes reads: the same rows, its own bounds."""
    if isinstance(data, LocalStudy):
        if data.further:
            return data.with_outcome(place)
        return replace(data.public(), domain=domain.of_outcome(place))
    if isinstance(data, StudySizes):
        bounds = domain.of_outcome(place).bounds
        return StudySizes.declared(data.rows, data.covariates, bounds)
    return data


def _declared(data: object, asked: _Columns) -> Treatment | None:
    """Return the treatment as declared; None if a column alone is named."""
    if isinstance(data, LocalStudy):
        return data.domain.treatment
    if isinstance(asked.treatment, Treatment):
        return asked.treatment
    return None if asked.domain is None else asked.domain.treatment


def _budgets(epsilons: object) -> list[float]:
    if isinstance(epsilons, str | bytes) or not isinstance(epsilons, Iterable):
        msg = "epsilons is a list of budgets such as ['0.5', '1']"
        raise ArgumentError(msg)
    return [float(parse_epsilon(epsilon)) for epsilon in epsilons]


def _known_probability(request: Request, data: object, domain: Domain | None) -> Probability | None:
    """Return the probability of treatment of a trial, where it was named."""
    if request.probability is None:
        return None
    if isinstance(data, LocalStudy):
        domain = data.domain
    if domain is None:
        if isinstance(request.probability, str):
            msg = "the bounds of a column of probabilities are those of a domain; give one"
            raise ArgumentError(msg, parameter="bounds", column=request.probability)
        return Probability(request.probability, request.probability)
    return probability_of(domain, request.probability)


def _about_bounds(sizes: StudySizes, deviation: float) -> str:
    """Say that bounds are wide for the guessed deviation, a share of their range, where they are.

    At sample level noise and intervals follow the bounds, whatever the outcomes do inside them.
    """
    if sizes.is_binary or deviation * WIDE_DEVIATIONS > 1:
        return ""
    return (
        f"; the declared bounds hold {1 / deviation:.0f} such deviations, and noise and intervals "
        "follow the bounds: declare about eight, from a code book or an earlier study"
    )


def _about_weights(sizes: StudySizes) -> str:
    """Say by how much private sampling weights make noise grow, if there are any."""
    if sizes.weight_share == 1:
        return ""
    return (
        f", and on sampling weights whose bound is {1 / sizes.weight_share:.3g} times their mean "
        "(a guess: weights are private), by which the noise of sums grows"
    )


def _public_study(data: object, asked: _Columns, progress: Progress | None) -> LocalStudy:
    if isinstance(data, LocalStudy):
        return data.public()
    prepared = prepare_table(
        data, treatment=asked.treatment, outcome=asked.outcome, covariates=asked.covariates,
        domain=asked.domain, level="label", from_data=False, person=asked.person,
    )  # fmt: skip
    return LocalStudy.encode_public(prepared.table, prepared.domain, progress, prepared.lenient)


def _sizes(data: object, asked: _Columns) -> StudySizes:
    if isinstance(data, StudySizes):
        return data
    if isinstance(data, LocalStudy):
        return StudySizes.declared(data.size, data.dimension, data.domain.bounds)
    prepared = prepare_table(
        data, treatment=asked.treatment, outcome=asked.outcome, covariates=asked.covariates,
        domain=asked.domain, level="sample", from_data=False,
    )  # fmt: skip
    domain = prepared.domain
    return StudySizes.declared(prepared.table.rows, len(domain.features), domain.bounds)
