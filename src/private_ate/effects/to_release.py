"""The release that is made of an estimate: its table, its subject, its promise, what was spent.

A sensitivity at the choke point is a function of public numbers and of what was released before
it, or the noise would not protect: it may be stated. The one exception, a smooth sensitivity, is
private and never written into a ``Spend``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, Final, assert_never

from private_ate._version import VERSION
from private_ate.codec import encode
from private_ate.domain.domain import Domain
from private_ate.effects.estimate import Estimate, outcome_note
from private_ate.privacy.accounting import discrete_gaussian_variance
from private_ate.privacy.budget import Guarantee
from private_ate.privacy.distributions import linf_variance, staircase_variance
from private_ate.privacy.levels import Level
from private_ate.privacy.metrics import Metric, Spend
from private_ate.privacy.objective import radius_tail
from private_ate.release.metadata import (
    Effect,
    ReleasedEstimand,
    Step,
    TreatmentNote,
    released_estimand,
)
from private_ate.release.release import SCHEMA, Release
from private_ate.settings import Facts

_LARGE: Final = 10


def release_of(  # noqa: PLR0913  # a keyword for each thing that a release states
    estimate: Estimate,
    guarantee: Guarantee,
    domain: Domain,
    *,
    design: str,
    spends: Iterable[Spend],
    method: str,
    n: int,
    missing: Mapping[str, Any] | None = None,
    bounds_are_declared: bool = True,
) -> Release:
    """Put an estimate, the guarantee under which it was made and its subject together.

    ``missing`` are the rules for missing values in force; bounds that come from the data are not
    stated. All of it is public.
    """
    facts = Facts.of(estimate.settings)
    adjusted = estimate.is_adjusted
    estimand = released_estimand(estimate.estimand or facts.estimand, design, adjusted=adjusted)
    arms = domain.treatment.coded
    outcome = outcome_note(domain.outcome, bounds_are_declared=bounds_are_declared)
    curves: dict[str, Any] = {}
    if estimate.survival is not None:
        held = estimate.survival
        curves = {item.name: getattr(held, item.name) for item in fields(held)}
        if held.quantity == "risk":  # whose event's risk is the outcome
            outcome = replace(outcome, bounds=(0.0, 1.0), unit=None)
    return Release(
        ate=estimate.ate,
        interval=estimate.interval,
        noise_interval=estimate.noise_interval,
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        level=guarantee.level,
        adjacency=guarantee.adjacency,
        guarantee=str(guarantee),
        method=method,
        n=n,
        settings=encode(estimate.settings),
        version=VERSION,
        schema=SCHEMA,
        estimand=estimand,
        effects=tuple(_rows(estimate, outcome.column, arms, design, estimand)),
        adjusted=adjusted,
        design=design,
        treatment=TreatmentNote(domain.treatment.column, arms, arms[0]),
        outcome=outcome,
        covariates=tuple(domain.covariates),
        warnings=(*estimate.warnings, *warn_of_epsilon(guarantee.epsilon)),
        missing={} if missing is None else missing,
        dataset=domain.study.dataset,
        dataset_version=domain.study.version,
        steps=list_steps(spends),
        arms=estimate.arms,
        not_protected=_list_unprotected(guarantee, facts.rows_per_person),
        **curves,
    )


def _rows(
    estimate: Estimate,
    headline: str,
    arms: tuple[str, ...],
    design: str,
    estimand: ReleasedEstimand,
) -> Iterator[Effect]:
    """Yield the table of effects, outcome by outcome."""
    asked = Facts.of(estimate.settings).estimand
    for column, one in ((headline, estimate), *estimate.further):
        own = estimand
        if one is not estimate:
            own = released_estimand(asked, design, adjusted=one.is_adjusted)
        for row in one.rows:
            yield Effect(
                outcome=column, subgroup=row.subgroup, arm=arms[row.arm],
                against=arms[row.against], estimand=own, estimate=row.effect,
                interval=row.interval, simultaneous=row.simultaneous,
                noise_interval=row.noise_interval,
            )  # fmt: skip


def list_steps(spends: Iterable[Spend]) -> tuple[Step, ...]:
    """Return what the choke point wrote down, without anything private."""
    return tuple(_step(spend) for spend in spends)


def _step(spend: Spend) -> Step:
    is_private = spend.metric is Metric.SMOOTH
    return Step(
        name=spend.step,
        mechanism=spend.mechanism,
        metric=str(spend.metric),
        epsilon=float(spend.epsilon),
        delta=float(spend.delta),
        rho=float(spend.rho),
        part=spend.part,
        sensitivity=None if is_private else spend.sensitivity,
        scale=None if is_private else _deviations(spend),
    )


def _deviations(spend: Spend) -> tuple[float, ...] | None:
    """Return the standard deviations of noise; None where a mechanism adds none to numbers."""
    epsilon = spend.epsilon / spend.moves  # every move has its share of ε
    match spend.mechanism:
        case "laplace" | "laplace_disjoint" | "laplace_rows":
            unit = math.sqrt(linf_variance(1)) / float(epsilon)
        case "cube" | "cubes":  # every group of numbers is a cube of its own
            unit = math.sqrt(linf_variance(spend.size // spend.groups)) / float(epsilon)
        case "staircase" | "staircase_disjoint" | "staircase_by_arm":
            unit = math.sqrt(staircase_variance(float(epsilon)))
        case "gaussian":
            (size,) = spend.sensitivity
            variance = discrete_gaussian_variance(
                epsilon, spend.delta, sensitivity=size, dimension=spend.size
            )
            return (math.sqrt(float(variance)),)
        case "gaussian_cells":
            (squared,) = spend.sensitivity
            return (math.sqrt(float(Fraction(squared) / (2 * spend.rho))),)
        case _:
            return None
    return tuple(unit * float(size) for size in spend.sensitivity)


def tell_rounding(spends: Iterable[Spend]) -> str:
    """Say with which probability a solver's rounding may exceed its proof; empty without solvers.

    The probability is a bound for all models of a release together, rounded up to one digit, and
    the same for all records.
    """
    tail = sum(radius_tail(spend.size) for spend in spends if spend.metric is Metric.GRADIENT)
    if not tail:
        return ""
    unit = 10.0 ** math.floor(math.log10(tail))
    return f"up to a chance of {math.ceil(tail / unit) * unit:.0e} in the rounding of its solver"


def warn_of_epsilon(epsilon: Fraction) -> tuple[str, ...]:
    """Return a warning if ε is so large that it promises next to nothing."""
    if epsilon <= _LARGE:
        return ()
    factor = math.exp(min(float(epsilon), 700.0))
    reach = f"one person may change the chance of a result by a factor of {factor:.2g}"
    return (f"ε = {float(epsilon):g} is above {_LARGE}: {reach}, which is hardly a promise",)


def _list_unprotected(guarantee: Guarantee, rows_per_person: int) -> tuple[str, ...]:
    """Return what is not protected; no sentence depends on a record."""
    if not guarantee.is_private:
        return ("anything: this release keeps no promise",)
    rows = "one row" if rows_per_person == 1 else f"{rows_per_person} rows"
    hides_size = guarantee.adjacency.startswith("add/remove")
    return (
        *_public(guarantee.level, hides_size=hides_size),
        f"anybody with more than {rows} in the data, beyond the promise for {rows}",
        "several people together: the promise for k of them is that of k times ε",
        "the same people in other releases: costs of all releases about them add up",
        "what the result itself tells about people, whether or not they took part",
    )


def _public(level: Level, *, hides_size: bool) -> tuple[str, ...]:
    declared = "the declared domain and the parameters of the request"
    match level:
        case "label":
            return (
                "covariates and treatment of every person, and who is in the data: they are public",
                f"sizes of the arms, balance and weights that follow from them, and {declared}",
            )
        case "sample":
            return (declared if hides_size else f"the number of rows, {declared}",)
    assert_never(level)
