"""The planner's door: what is asked, about whom, and which method predicts the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Final, assert_never, cast, get_args

from private_ate.arguments import one_of, real_number
from private_ate.data.inputs import prepare_table, resolve_domain, settle_names
from private_ate.data.persons import most_rows, refuse_person
from private_ate.data.streams import MEMORY_LIMIT, open_schema
from private_ate.data.tables import Covariates
from private_ate.domain import Domain, SamplingWeights, Treatment
from private_ate.engines.local import LocalStudy, Progress, single_threaded_blas
from private_ate.errors import ArgumentError
from private_ate.estimators.blocks.plan import BlocksOptions
from private_ate.estimators.calibrated.clipping import WIDE_DEVIATIONS
from private_ate.estimators.calibrated.options import CalibratedOptions
from private_ate.estimators.composition import method_for, options_of, refuse_gaps
from private_ate.estimators.options import with_outcome_sd
from private_ate.estimators.orthogonal.plan import OrthogonalOptions, orthogonal_options
from private_ate.estimators.orthogonal.several_arms.plan import interval_features
from private_ate.estimators.outcomes.method import request_for
from private_ate.estimators.request import Design, Estimand, Request, Target, among_arm
from private_ate.estimators.trial.probability import Probability, probability_of
from private_ate.planning.answers import Planner, Solve, make_plan
from private_ate.planning.arms import label_arms
from private_ate.planning.arms_door import PlannedArms, sample_planner, settle_arms
from private_ate.planning.label import (
    describe_weights,
    label_planner,
    made_up_people,
    people_like,
)
from private_ate.planning.outcomes import (
    declared_outcomes,
    in_parts,
    one_outcome,
    plan_together,
    spread_of,
)
from private_ate.planning.plan import Plan
from private_ate.planning.sample import blocks_planner, orthogonal_planner
from private_ate.planning.sizes import Guesses, OverlapGuess, StudySizes
from private_ate.planning.subgroups import subgroup_planner
from private_ate.privacy.budget import Level, parse_epsilon
from private_ate.privacy.levels import has_public_covariates

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
    options: CalibratedOptions | OrthogonalOptions | BlocksOptions | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Tell what error and interval to expect for each ε; spends nothing.

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
        The outcome's standard deviation among people who are treated alike, in its own units, as
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
    options
        The method's own options.
    """
    request = Request(
        level, Fraction(1), neighbors, estimand, target, confidence, rows_per_person, options,
        design, probability=probability, by=cast("tuple[str, ...]", by), overall=overall,
    )  # fmt: skip
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
    several = declared_outcomes(data, domain, treatment, outcome)
    _refuse_subgroups(data, request)
    share = _weight_share(data, domain, level, mean_weight)
    arms = settle_arms(_declared(data, asked), arm_shares)
    request = among_arm(request, None if arms is None else arms.treatment, among)
    size = 2 if arms is None else arms.treatment.size
    known = data.domain if isinstance(data, LocalStudy) else several or domain
    refuse_gaps(method_for("auto", request, size), request, known, arms=size)

    def planner_of(place: int | None) -> Planner:
        """Return the planner of the one outcome, or of one of several by its place."""
        column = None if several is None or place is None else several.outcomes[place].column
        spread = spread_of(outcome_sd, column)
        guesses = Guesses(spread, explained, treated_share, overlap)
        if several is None or place is None:
            return _planner(data, asked, request, guesses, progress, arms, share)
        read = one_outcome(data, several, place)
        one = request_for(request, several, place)
        named = replace(asked, outcome=column)
        found = _planner(read, named, one, guesses, progress, arms, share)
        is_joint = has_public_covariates(request.level)
        return found if is_joint else in_parts(found, len(several.outcomes))

    planner = (
        planner_of(None)
        if several is None
        else plan_together(
            {one.column: planner_of(place) for place, one in enumerate(several.outcomes)}
        )
    )
    with single_threaded_blas():
        return make_plan(planner, request, budgets, wanted=half_width, solve=solve)


def _planner(
    data: object,
    asked: _Columns,
    request: Request,
    guesses: Guesses,
    progress: Progress | None,
    arms: PlannedArms | None,
    share: float,
) -> Planner:
    """Return the predictions of the method of the level, about one outcome.

    ``share`` is the mean of private sampling weights over their bound, one where there are none.
    """
    match request.level:
        case "label":
            return _label_planner(data, asked, request, guesses, progress, arms)
        case "sample" if arms is None:
            trial = _known_probability(request, data, asked.domain)
            sizes = replace(_sizes(data, asked), weight_share=share)
            return _sample_planner(sizes, request, guesses, trial)
        case "sample":
            squares = _interval_covariates(data, asked)
            return sample_planner(_sizes(data, asked), request, guesses, arms, squares)
        case _:
            assert_never(request.level)


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


def _declared(data: object, asked: _Columns) -> Treatment | None:
    """Return the treatment as declared; None if a column alone is named."""
    if isinstance(data, LocalStudy):
        return data.domain.treatment
    if isinstance(asked.treatment, Treatment):
        return asked.treatment
    return None if asked.domain is None else asked.domain.treatment


def _interval_covariates(data: object, asked: _Columns) -> int:
    """Count the covariates that are declared as intervals; all of a study that is not there."""
    domain = data.domain if isinstance(data, LocalStudy) else asked.domain
    if isinstance(data, StudySizes):
        return data.covariates if domain is None else len(interval_features(domain))
    return 0 if domain is None else len(interval_features(domain))


def _budgets(epsilons: object) -> list[float]:
    if isinstance(epsilons, str | bytes) or not isinstance(epsilons, Iterable):
        msg = "epsilons is a list of budgets such as ['0.5', '1']"
        raise ArgumentError(msg)
    return [float(parse_epsilon(epsilon)) for epsilon in epsilons]


def _label_planner(
    data: object,
    asked: _Columns,
    request: Request,
    guesses: Guesses,
    progress: Progress | None,
    arms: PlannedArms | None,
) -> Planner:
    options = with_outcome_sd(
        options_of(request, CalibratedOptions, "calibrated"), guesses.outcome_sd
    )
    guesses = replace(guesses, outcome_sd=options.outcome_sd)
    request = replace(request, options=options)
    if isinstance(data, StudySizes):
        sizes = data
        guess = guesses.about(sizes)
        people = made_up_people(sizes, guess)
        shares = f"a treated share of {guesses.treated_share:g}"
        if arms is not None:
            people = made_up_people(sizes, guess, arms.treatment, arms.shares)
            shares = arms.told
        told = f"people made up with {guesses.overlap} overlap and {shares}"
    else:
        if arms is not None:
            arms.refuse_shares()
        study = _public_study(data, asked, progress)
        sizes = StudySizes.declared(study.size, study.dimension, study.domain.bounds)
        people, told = people_like(study), "the public covariates and treatment"
        told += describe_weights(study)
    caveat = (
        f"rests on {told}, and on an outcome standard deviation of "
        f"{guesses.deviation(sizes):.4g}{guesses.origin}; unmeasured confounding is not in it"
    )
    if request.by and not isinstance(data, StudySizes):
        alike = guesses.alike_share(sizes)
        return subgroup_planner(study, request, options, alike, caveat)
    if arms is not None:
        foreseen = label_arms(people, request, options, guesses.alike_share(sizes))
        return arms.planner("calibrated", foreseen, request, sizes.rows, caveat)
    predict = label_planner(people, request, options, guesses.alike_share(sizes))
    return Planner("calibrated", predict, sizes.rows, caveat)


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


def _sample_planner(
    sizes: StudySizes, request: Request, guesses: Guesses, trial: Probability | None
) -> Planner:
    """Return the predictions of the method whose options were given, or of the default."""
    if trial is not None:
        guesses = replace(guesses, treated_share=trial.typical)
    guess = guesses.about(sizes)
    caveat = (
        f"rests on a treated share of {guess.share:g}, an outcome standard deviation of "
        f"{guesses.deviation(sizes):.4g}{guesses.origin} and {100 * guess.explained:.0f} % of "
        f"its variance explained{_about_weights(sizes)}; confounding that is not removed is not in "
        f"it{_about_bounds(sizes, guess.deviation)}"
    )
    if isinstance(request.options, OrthogonalOptions):
        predict = orthogonal_planner(sizes, request, orthogonal_options(request), guess)
        return Planner("orthogonal", predict, sizes.rows, caveat)
    options = options_of(request, BlocksOptions, "blocks")
    return Planner(
        "blocks", blocks_planner(sizes, request, options, guess, trial), sizes.rows, caveat
    )


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
