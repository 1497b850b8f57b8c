"""`plan_ate`: what is asked, about whom, and which method predicts what it would release.

Nothing here knows a method: its record in the registry names the function that predicts its
quantities from public rows, or from sizes and guesses (`methods.assumptions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, cast, get_args

from private_ate.arguments import one_of, real_number
from private_ate.data.files import MEMORY_LIMIT, open_schema
from private_ate.data.inputs import (
    Covariates,
    most_rows,
    prepare_table,
    refuse_person,
    resolve_domain,
    settle_names,
)
from private_ate.domain import Domain, Outcome, SamplingWeights, Survival, Treatment
from private_ate.engines.local import LocalStudy, Progress
from private_ate.engines.threads import single_threaded_blas
from private_ate.errors import ArgumentError
from private_ate.methods.assumptions import Assumptions, PopulationGuess
from private_ate.methods.calibrated.options import WIDE_DEVIATIONS
from private_ate.methods.composition import method_for, refuse_gaps
from private_ate.methods.options import with_outcome_sd
from private_ate.methods.outcomes import request_for
from private_ate.methods.probability import probability_of
from private_ate.methods.registry import Method
from private_ate.parameters import Design, Estimand, SurvivalQuantity, Target
from private_ate.planning.assumptions import (
    OverlapGuess,
    StudySizes,
    describe_shares,
    describe_weights,
    foresee,
    guess_population,
    made_up_rows,
    read_shares,
    rows_like,
    settle_shares,
    spread_of,
)
from private_ate.planning.plan import Plan, Planner, Solve, Wanted, make_plan
from private_ate.planning.table import plan_contrasts, plan_subgroups, plan_together
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
    asked = Wanted.of(epsilons, half_width, solve)
    one_of("overlap", overlap, get_args(OverlapGuess))
    if weights is not None:
        domain = _with_weights(data, domain, treatment, outcome, weights)
    given = read_shares(arm_shares)
    declared = _declared(data, domain, treatment, outcome, given)
    foreseen = foresee(declared, request, outcome_sd, risk, censored)
    if foreseen is not None:  # from here on a plain outcome
        domain = declared = declared.with_outcome(foreseen.outcome)
        treatment = outcome = None
        request, outcome_sd = replace(request, quantity="rmst"), foreseen.deviation
        explained = foreseen.explained if explained is None else explained
    names = {
        "treatment": treatment, "covariates": covariates, "domain": domain, "person": person,
    }  # fmt: skip
    request = _with_persons(data, {**names, "outcome": outcome}, request)
    _refuse_guesses(data, request, given)
    share = _weight_share(data, declared, request, mean_weight)
    shares = settle_shares(declared.treatment, given, treated_share)
    request = among_arm(request, declared.treatment if len(shares) > 2 else None, among)
    method = method_for("auto", request)
    refuse_gaps(method, request, declared)

    def planner_of(place: int) -> Planner:
        one, several = declared.of_outcome(place), bool(declared.further)
        column = one.outcome.column if several else None
        return _Question(
            data, one, {**names, "outcome": column or outcome},
            request_for(request, declared, place) if several else request,
            method, shares, share, spread_of(outcome_sd, column), explained, overlap, progress,
        ).planner()  # fmt: skip

    planners = [planner_of(place) for place in range(len(declared.outcomes))]
    planner = plan_together(declared, planners, request)
    if foreseen is not None:
        rest = foreseen.rest
        planner = planner.at(lambda epsilon: rest * epsilon, foreseen.caveat)
    with single_threaded_blas():
        return make_plan(planner, request, asked)


def _with_weights(
    data: object,
    domain: Domain | None,
    treatment: str | Treatment | None,
    outcome: str | Sequence[str] | None,
    weights: str | SamplingWeights,
) -> Domain:
    if isinstance(data, LocalStudy | StudySizes):
        msg = "sampling weights are a column of a table; they are planned for where it is"
        raise ArgumentError(msg)
    return resolve_domain(domain, treatment, outcome, weights)


def _declared(
    data: object,
    domain: Domain | None,
    treatment: str | Treatment | None,
    outcome: str | Sequence[str] | None,
    shares: Sequence[float] | None,
) -> Domain:
    """Return what is declared of treatment and outcomes, before a record is read.

    A study that is not there yet has as many arms as shares where nobody declared any.
    """
    if isinstance(data, LocalStudy):
        return data.domain
    if not isinstance(data, StudySizes):
        return resolve_domain(domain, treatment, outcome)
    if domain is None and not isinstance(treatment, Treatment) and shares and len(shares) > 2:
        arms = [f"arm {place}" for place in range(1, len(shares) + 1)]
        treatment = Treatment(treatment or "t", arms=arms)
    sized = ("y", data.bounds)
    if domain is None and (treatment is None or outcome is None):
        return Domain("t" if treatment is None else treatment, sized)
    known = resolve_domain(domain, treatment, outcome)
    if known.further or isinstance(known.outcome, Survival):
        return known
    return known.with_outcome(Outcome(*sized))


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked about one outcome.

    Attributes
    ----------
    data : object
        A table, a study or `StudySizes`.
    domain : Domain
        What is declared of it, with this outcome alone.
    names : mapping
        The names of a table's columns, as the caller gave them.
    shares : tuple of float
        Guessed shares of the arms.
    share : float
        The mean of private sampling weights over their bound, one where there are none.
    """

    data: object
    domain: Domain
    names: Mapping[str, Any]
    request: Request
    method: Method
    shares: tuple[float, ...]
    share: float
    outcome_sd: float | None
    explained: float | None
    overlap: OverlapGuess
    progress: Progress | None

    def planner(self) -> Planner:
        """Return the planner of the method, from public rows or from sizes and guesses alone."""
        request, deviation, method = self.request, self.outcome_sd, self.method
        labels, study = self.domain.treatment.coded, None
        if has_public_covariates(request.level):
            options = with_outcome_sd(options_for(request, method.options, method.name), deviation)
            request, deviation = replace(request, options=options), options.outcome_sd
            if not isinstance(self.data, StudySizes):
                study = self._public_study()
        sizes = self._sizes() if study is None else _sizes_of(study)
        guess = guess_population(sizes, deviation, self.explained)
        spread = (
            f"an outcome standard deviation of {guess.deviation * sizes.outcome_width:.4g}"
            f"{' (guessed from the declared bounds)' if deviation is None else ''}"
        )
        if has_public_covariates(request.level):
            assumed, caveat = self._from_public_rows(study, sizes, guess, spread)
        else:
            assumed, caveat = self._from_sizes(sizes, guess, spread)
        if request.by and study is not None:
            return plan_subgroups(method, study, assumed, request, caveat)
        predict = method.predictor(assumed, request)
        return plan_contrasts(method.name, predict, labels, request, sizes.rows, caveat)

    def _from_public_rows(
        self, study: LocalStudy | None, sizes: StudySizes, guess: PopulationGuess, spread: str
    ) -> tuple[Assumptions, str]:
        """Return what a plan assumes at label level, and its caveat."""
        treatment, shares = self.domain.treatment, self.shares
        if study is None:
            public = made_up_rows(sizes, treatment, shares, self.overlap)
            arms = describe_shares(treatment.coded, shares)
            known = f"people made up with {self.overlap} overlap and {arms}"
        else:
            public = rows_like(study)
            known = f"the public covariates and treatment{describe_weights(study)}"
        caveat = f"rests on {known}, and on {spread}; unmeasured confounding is not in it"
        return Assumptions(sizes.bounds, sizes.covariates, shares, guess, public=public), caveat

    def _from_sizes(
        self, sizes: StudySizes, guess: PopulationGuess, spread: str
    ) -> tuple[Assumptions, str]:
        """Return what a plan assumes at sample level, where no record is read, and its caveat."""
        shares, trial, share = self.shares, None, self.share
        if self.request.probability is not None:
            trial = probability_of(self.domain, self.request.probability)
            shares = (1 - trial.typical, trial.typical)
        weights, path, bounds = "", "the path depends on released sizes, and ", ""
        if len(shares) == 2:
            weights, path = _about_weights(share), ""
            bounds = _about_bounds(sizes, guess.deviation)
        caveat = (
            f"rests on {describe_shares(self.domain.treatment.coded, shares)}, {spread} and "
            f"{100 * guess.explained:.0f} % of its variance explained{weights}; {path}confounding "
            f"that is not removed is not in it{bounds}"
        )
        return Assumptions(sizes.bounds, sizes.covariates, shares, guess, share, trial), caveat

    def _public_study(self) -> LocalStudy:
        """Return the public columns of a table or a study."""
        if isinstance(self.data, LocalStudy):
            places = [one.column for one in self.data.domain.outcomes]
            place = places.index(self.domain.outcome.column)
            study = self.data.with_outcome(place) if self.data.further else self.data.public()
            return replace(study.public(), domain=self.domain)
        prepared = prepare_table(self.data, **self.names, level="label", from_data=False)
        return LocalStudy.encode_public(
            prepared.table, prepared.domain, self.progress, prepared.lenient
        )

    def _sizes(self) -> StudySizes:
        """Return the sizes of the study, of which no record is read."""
        if isinstance(self.data, LocalStudy):
            return _sizes_of(replace(self.data.public(), domain=self.domain))
        if isinstance(self.data, StudySizes):
            known = self.data
            if known.bounds == self.domain.bounds:
                return known
            return StudySizes.declared(known.rows, known.covariates, self.domain.bounds)
        prepared = prepare_table(self.data, **self.names, level="sample", from_data=False)
        rows, dimension = prepared.table.rows, len(prepared.domain.features)
        return StudySizes.declared(rows, dimension, prepared.domain.bounds)


def _sizes_of(study: LocalStudy) -> StudySizes:
    return StudySizes.declared(study.size, study.dimension, study.domain.bounds)


def _with_persons(data: object, names: Mapping[str, Any], request: Request) -> Request:
    """Return the request with as many rows for a person as public ids show, if there are any."""
    person = names["person"]
    is_table = not isinstance(data, LocalStudy | StudySizes)
    refuse_person(person, request.level, request.rows_per_person, is_table=is_table)
    if person is None:
        return request
    schema = open_schema(data, request.level)
    outline = settle_names(schema, **names, level=request.level, from_data=False)
    public = [outline.declared.treatment.column, *outline.covariates]
    rows = most_rows(data, person, public, MEMORY_LIMIT)
    return replace(request, rows_per_person=rows)


def _refuse_guesses(data: object, request: Request, shares: Sequence[float] | None) -> None:
    """Refuse to guess what a table tells at label level, and subgroups without a table there."""
    is_public, is_there = has_public_covariates(request.level), not isinstance(data, StudySizes)
    if shares is not None and is_public and is_there:
        msg = "the table tells the arms' sizes at label level; leave out their guessed shares"
        raise ArgumentError(msg, parameter="arm shares")
    if request.by and not is_public:
        msg = (
            "subgroups are planned for at label level, where it is public who is in which; at "
            "sample level plan for as many rows as a subgroup holds, at half of epsilon"
        )
        raise ArgumentError(msg, parameter="by")
    if request.by and not is_there:
        msg = "subgroups are planned for from a table, which tells how large they are"
        raise ArgumentError(msg, parameter="by")


def _weight_share(
    data: object, domain: Domain, request: Request, mean_weight: float | None
) -> float:
    """Return the mean sampling weight over its bound as guessed where weights are private."""
    weights, is_public = domain.weights, has_public_covariates(request.level)
    known = data.weight_share if isinstance(data, StudySizes) else 1.0
    if known < 1 and is_public:
        msg = "at label level sampling weights are read: plan with a table, or without them"
        raise ArgumentError(msg)
    if mean_weight is None:
        return known if weights is None else _GUESSED_SHARE
    if weights is None or is_public:
        msg = (
            "a guessed mean weight is for sampling weights that are declared and private; leave "
            "it out where there are none, and at label level, where they are read"
        )
        raise ArgumentError(msg, parameter="mean weight")
    mean = real_number("the guessed mean weight", mean_weight, 1e-6 * weights.high, weights.high)
    return mean / weights.high


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


def _about_weights(share: float) -> str:
    """Say by how much private sampling weights make noise grow, if there are any."""
    if share == 1:
        return ""
    return (
        f", and on sampling weights whose bound is {1 / share:.3g} times their mean (a guess: "
        "weights are private), by which the noise of sums grows"
    )
