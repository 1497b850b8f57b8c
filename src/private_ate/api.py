"""`estimate_ate`: check the request, read the table, run a method, hand over a release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import cast

from private_ate.arguments import parse_memory
from private_ate.charging import (
    Approval,
    bill_for,
    charge_and_make,
    person_held,
    refuse_uncharged,
)
from private_ate.codec import encode
from private_ate.data.files import MEMORY_LIMIT
from private_ate.data.inputs import (
    ColumnsAsked,
    Covariates,
    refuse_person,
    resolve_domain,
    unasked_outcomes,
)
from private_ate.data.missing_rules import Reading, neighbours_note, rule_notes
from private_ate.domain.column_types import SamplingWeights, Treatment
from private_ate.domain.domain import Domain
from private_ate.domain.outcome import Survival
from private_ate.effects.to_release import release_of, tell_rounding
from private_ate.engines.local import LocalStudy, Progress
from private_ate.engines.open_table import OpenTable, open_table
from private_ate.engines.spark import SparkStudy
from private_ate.engines.spark_table import is_spark_frame
from private_ate.engines.threads import single_threaded_blas
from private_ate.errors import ArgumentError, PrivateAteError
from private_ate.ledger.ledger import Ledger
from private_ate.methods.composition import method_for, refuse_gaps, takes
from private_ate.methods.options import options_from_texts, with_deviations
from private_ate.methods.outcomes import estimate_outcomes
from private_ate.methods.probability import probability_note, require_covariate
from private_ate.methods.registry import METHODS, Method
from private_ate.methods.subgroups import estimate_subgroups
from private_ate.methods.survival.method import estimate_survival
from private_ate.parameters import Bounds, Design, Estimand, SurvivalQuantity, Target
from private_ate.privacy.accounting import concentrated_budget
from private_ate.privacy.budget import Guarantee, parse_epsilon
from private_ate.privacy.entropy import entropy_for
from private_ate.privacy.levels import Level, adjacency_of, has_public_covariates
from private_ate.privacy.metrics import Cost
from private_ate.privacy.noise import Noise, Recorder
from private_ate.privacy.quantization import require_rows
from private_ate.release.release import Release
from private_ate.request import Request, among_arm
from private_ate.settings import Facts, with_notes

__all__ = [
    "METHODS",
    "Method",
    "estimate_ate",
    "estimate_study",
    "method_for",
    "options_from_texts",
]


def estimate_ate(  # noqa: PLR0913  # one keyword per question that a user answers
    data: object,
    *,
    level: Level,
    epsilon: str | float | Fraction | Decimal,
    treatment: str | Treatment | None = None,
    outcome: str | Sequence[str] | None = None,
    covariates: Covariates = None,
    domain: Domain | None = None,
    weights: str | SamplingWeights | None = None,
    method: str = "auto",
    target: Target = "balance",
    neighbors: int = 5,
    estimand: Estimand = "ate",
    among: str | None = None,
    design: Design = "unknown",
    probability: float | str | None = None,
    by: str | Sequence[str] = (),
    overall: bool = False,
    quantity: SurvivalQuantity = "rmst",
    confidence: float | None = 0.95,
    rows_per_person: int = 1,
    person: str | None = None,
    outcome_sd: float | Mapping[str, float] | None = None,
    bounds: Bounds = "declared",
    leave_out_undeclared: bool = False,
    options: object | None = None,
    engine: str = "auto",
    master: str | None = None,
    memory_limit: str | float = MEMORY_LIMIT,
    seed: int | None = None,
    progress: Progress | None = None,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    dataset_version: str | None = None,
    request_id: str | None = None,
    analyst: str | None = None,
    ledger_head: str | None = None,
    approval: Approval | None = None,
) -> Release:
    """Release average treatment effects with differential privacy.

    Parameters
    ----------
    data
        A pandas, polars or pyarrow table (anything narwhals reads), the path of a CSV or Parquet
        file, a Spark data frame, or a study.
    level : "label" or "sample"
        Whether outcomes alone are private or whole records.
    epsilon
        The budget ε, kept exactly as its decimal text says.
    treatment, outcome, covariates
        Columns; may be left out when the domain names them. A ``Treatment`` says which labels are
        compared, two or more. A list of outcomes asks for effects on all of them by one request
        at one ε; the first is the headline. Covariates default to those that the
        domain declares. At label level they are public, so a caller without such a domain names
        them; the word "all" stands for every other column.
    domain : Domain
        Declared bounds and categories. At label level only the outcome needs them.
    weights : str or SamplingWeights, optional
        The column of sampling weights, declared in the domain or here. Effects are then those of
        the population that the weighted sample stands for; a domain that declares weights has
        them in force, named or not.
    method : str
        "auto" for the recommended method of the level, "published" for the paper's.
    target, neighbors, estimand, confidence, rows_per_person
        What is estimated; see the documentation of the methods.
    person : str, optional
        At label level: a public column of ids, which is no covariate. ``rows_per_person`` is then
        the largest number of rows that share an id; in a ledger the holder names the column
        public, and the number that the data set is bound to counts. On a cluster declare the
        number instead.
    among : str, optional
        The label of an arm: effects among its units, instead of all. Of two arms that is the ATT
        or the ATC.
    design : "unknown", "observational" or "randomized"
        What you know about how treatment was given. "randomized" compares the arms as they are;
        "observational" lets the method adjust as soon as it can. Decides by your word alone.
    probability : float or str, optional
        Of a trial: the probability of treatment, or the covariate that holds everybody's, with
        declared bounds between 0 and 1. Nothing is then paid to learn it.
    by : list of str
        Declared columns of labels, and cuts such as "age<65", that divide units into subgroups,
        at most 20 in all. At label level each has an effect with the noise of the whole ε; at
        sample level, where the subgroup is private too, with that of half of it. The effect of
        all units is rolled up from them.
    overall : bool
        With ``by``: pay half of ε for the effect of all units, by a run on all rows. At label
        level subgroups add up to it.
    quantity : "rmst" or "risk"
        Of a time to an event, declared by ``Survival``: whether restricted mean survival times are
        compared or risks by the horizon.
    outcome_sd : float or mapping, optional
        A public guess of the outcome's standard deviation among units that are treated alike, in
        its own units, as in a plan; for methods that take one: "calibrated" at label level. Of
        several outcomes a mapping from columns.
    bounds : "declared" or "from-data"
        "from-data" looks bounds up in the data and gives up the guarantee.
    leave_out_undeclared : bool
        At label level, where they are public: leave out rows whose treatment is missing or not
        declared, or that hold text where a number was declared, and count them in the release.
        Without it such rows are an error that counts them and costs nothing.
    options
        A frozen dataclass of the method's own parameters, such as ``PublishedOptions``.
    engine : "auto", "local" or "spark"
        Who computes; a Spark data frame is left to Spark.
    master : str, optional
        The cluster that reads a path with engine "spark"; default: as Spark is configured.
    memory_limit : str or float
        How much a file may take in memory ("2GB", or bytes) before it is streamed through an
        encoded copy on disk.
    seed : int, optional
        For experiments only: the release then says that it guarantees nothing.
    progress : callable, optional
        Called as ``progress(title, done, total)`` during passes over large data.
    ledger : Ledger, path or URL, optional
        The budget ledger that is charged before any noise is drawn; it keeps the release.
    dataset : str, optional
        What the data set is called, in the release and in the ledger; may be left out when the
        ledger holds one only. The domain's ``study`` can name it too.
    dataset_version : str, optional
        What this state of the data is called, for the release. Never a hash of the data.
    request_id : str, optional
        Makes a repeat safe: the same id returns the stored release and spends nothing.
    analyst : str, optional
        Who asks; an analyst with a cap in the ledger is held to it.
    ledger_head : str, optional
        A hash that an earlier release carries. A ledger without that entry is an old copy, whose
        budget was spent already, and is refused; see :meth:`Ledger.verify`.
    approval : Approval, optional
        For a service: the plan that was approved; another one is refused and costs nothing.

    Returns
    -------
    Release
        The noisy effect, what it promises and how it came about.
    """
    # Before a record is read: a release does not say how long that takes.
    now = datetime.now(UTC).isoformat(timespec="seconds")
    asked_at = now if approval is None else approval.asked_at
    request = Request(
        level, parse_epsilon(epsilon), neighbors, estimand, target, confidence, rows_per_person,
        options, design, probability=probability, by=cast("tuple[str, ...]", by), overall=overall,
        leave_out_undeclared=leave_out_undeclared, bounds=bounds, quantity=quantity, method=method,
        covariates=covariates, person=person, engine=engine, master=master,
        memory_limit=parse_memory(memory_limit), seed=seed, ledger=ledger, dataset=dataset,
        dataset_version=dataset_version, request_id=request_id, analyst=analyst,
        ledger_head=ledger_head, approval=approval,
    )  # fmt: skip
    is_table = not isinstance(data, LocalStudy)
    refuse_person(request.person, request.level, request.rows_per_person, is_table=is_table)
    if isinstance(data, LocalStudy):
        known = domain = _weights_of_study(data.domain, weights)
    else:
        known = resolve_domain(domain, treatment, outcome, weights)
    request = among_arm(request, known.treatment, among)
    chosen = method_for(request.method, request)
    request = with_deviations(request, outcome_sd, known, chosen)
    on_cluster = request.engine == "spark" or is_spark_frame(data)
    if request.engine == "local" and on_cluster:
        msg = "a Spark data frame is computed on by Spark; collect it first to use engine 'local'"
        raise ArgumentError(msg)
    refuse_gaps(chosen, request, known, on_spark=on_cluster)
    if request.ledger is not None:
        refuse_uncharged(request)
    void = "none" if request.bounds == "from-data" else ""
    opened = None
    if is_table:
        opened = _open(data, request, known, unasked_outcomes(domain, known))
    columns = known.covariates if opened is None else opened.outline.covariates
    require_covariate(request.probability, columns)
    if opened is not None:
        request = _with_persons(request, chosen, opened)

    def make(authorize: Callable[[], None] | None) -> Release:
        leaves_out = takes(chosen.name, request.level, "undeclared")
        reading = Reading(request.level, leaves_out, request.leave_out_undeclared)
        rows: AbstractContextManager[LocalStudy | SparkStudy] = (
            nullcontext(cast("LocalStudy", data))
            if opened is None
            else opened.encoded(progress, reading)
        )
        with rows as study:
            made = estimate_study(
                study, request, chosen, seed=request.seed, authorize=authorize, void=void
            )
        return replace(
            made,
            dataset=request.dataset or made.dataset,
            dataset_version=request.dataset_version or made.dataset_version,
            released_at=asked_at if request.seed is None else None,
        )

    if request.ledger is None:
        return make(None)
    outline = None if opened is None else opened.outline
    bill = bill_for(request, chosen.name, chosen.options, known, outline)
    return charge_and_make(request, bill, make)


def estimate_study(
    study: LocalStudy | SparkStudy,
    request: Request,
    method: Method,
    *,
    seed: int | None = None,
    void: str = "",
    recorder: Recorder | None = None,
    authorize: Callable[[], None] | None = None,
) -> Release:
    """Run a method on an encoded study and state what the release promises.

    ``authorize`` is called once, immediately before the first noise is drawn.
    """
    for outcome in study.domain.outcomes:
        if outcome.declared_bounds.width == 0:
            msg = "the outcome's low and high bounds are equal, so there is no effect to estimate"
            raise ArgumentError(msg)
    outcomes = study.domain.outcomes
    refuse_gaps(method, request, study.domain)
    _refuse_filtered_rows(study, request)
    require_rows(study.size)
    noise = Noise(entropy_for(seed), recorder, authorize)
    with single_threaded_blas():
        if len(outcomes) > 1:
            estimate = estimate_outcomes(
                study, request, method, noise, bounds_are_declared=not void
            )
        elif isinstance(study.domain.outcome, Survival):
            estimate = estimate_survival(study, request, method, noise)
        elif request.by:
            estimate = estimate_subgroups(study, request, method, noise)
        else:
            estimate = method.run(study, request, noise)
    if not _paid_exactly(noise.cost, request.epsilon, estimate.delta):
        msg = "the method did not spend exactly the requested epsilon; nothing is released"
        raise PrivateAteError(msg)
    guarantee = Guarantee(
        request.level,
        request.epsilon,
        estimate.adjacency
        or adjacency_of(request.level, request.rows_per_person, outcomes=len(outcomes))
        + neighbours_note(outcomes, request.level),
        delta=float(estimate.delta),
        void=void or estimate.void or ("none (seeded)" if seed is not None else ""),
        numerics=estimate.numerics or tell_rounding(noise.spends),
    )
    if study.dimension == 0:  # nothing to adjust for
        estimate = replace(estimate, adjusted=False)
    size = study.size if estimate.size is None else estimate.size
    notes = (
        *probability_note(request.probability),
        *rule_notes(
            outcomes,
            request.level,
            leaves_out=takes(method.name, request.level, "undeclared"),
            is_adjusted=estimate.is_adjusted and request.design != "randomized",
        ),
        *_person_note(request),
    )
    known = study.domain
    labels = {name: text for name, text in known.column_labels.items() if name in known.columns}
    settings = encode(with_notes(estimate.settings, notes))
    settings |= {"binary_outcome": True} if known.bounds.is_binary else {}
    settings |= {"column_labels": labels} if labels else {}
    missing = None
    if study.rules is not None:  # rows that were left out are counted where that is public
        left_out = Facts.of(settings).left_out_outcome
        missing = replace(study.rules, left_out_outcome=left_out).to_dict()
    return release_of(
        replace(estimate, settings=settings), guarantee, known,
        design=request.design, spends=noise.spends, method=method.name, n=size,
        missing=missing, bounds_are_declared=not void,
    )  # fmt: skip


def _refuse_filtered_rows(study: LocalStudy | SparkStudy, request: Request) -> None:
    """Refuse at sample level rows that were left out, and features made, by what records hold."""
    rules = study.rules
    looked = rules is not None and rules.left_out_treatment is not None
    if looked and not has_public_covariates(request.level):
        msg = "this study was encoded for label level, where columns are public; encode it anew"
        raise ArgumentError(msg)


def _paid_exactly(cost: Cost, epsilon: Fraction, delta: Fraction) -> bool:
    """Say whether the calls at the choke point compose to the request: in (ε, δ) or in ρ."""
    if cost.rho:
        unmixed = cost.epsilon == 0 and cost.delta == 0
        return unmixed and cost.rho == concentrated_budget(epsilon, delta)
    return (cost.epsilon, cost.delta) == (epsilon, delta)


def _open(data: object, request: Request, domain: Domain, unasked: tuple[str, ...]) -> OpenTable:
    """Open a table as far as its names and types; no record is read."""
    asked: ColumnsAsked = {
        "covariates": cast("Covariates", request.covariates), "domain": domain,
        "level": request.level, "from_data": request.bounds == "from-data",
        "person": request.person, "unasked": unasked,
    }  # fmt: skip
    return open_table(
        data, asked, memory=request.memory_limit, engine=request.engine, master=request.master
    )


def _weights_of_study(known: Domain, weights: str | SamplingWeights | None) -> Domain:
    """Return a study's domain; refuse other sampling weights than it was encoded with."""
    if isinstance(weights, SamplingWeights) and weights != known.weights:
        msg = "this study was encoded with other sampling weights, or with none; encode it anew"
        raise ArgumentError(msg, parameter="sampling weights", column=weights.column)
    return resolve_domain(known, None, None, weights)


def _with_persons(request: Request, method: Method, opened: OpenTable) -> Request:
    """Return the request with as many rows for a person as public ids show, if there are any."""
    if request.person is None:
        return request
    most = partial(opened.most_rows, request.person)
    rows = most() if request.ledger is None else person_held(request, request.person, most)
    request = replace(request, rows_per_person=rows)
    refuse_gaps(method, request, opened.outline.declared)
    return request


def _person_note(request: Request) -> tuple[str, ...]:
    if request.person is None:
        return ()
    counted = f"no person has more than {request.rows_per_person} rows"
    return (f"{counted}, by the ids in {request.person!r}",)
