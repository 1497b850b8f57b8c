"""The release that is made of an estimate, its guarantee and its subject."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from private_ate.codec import encode
from private_ate.domain import Domain
from private_ate.effects.estimate import Estimate, outcome_note
from private_ate.privacy.budget import Guarantee
from private_ate.release.metadata import (
    Effect,
    OutcomeNote,
    ReleasedEstimand,
    Step,
    SurvivalNote,
    TreatmentNote,
    released_estimand,
)
from private_ate.release.release import SCHEMA, Release
from private_ate.release.spending import list_unprotected, warn_of_epsilon
from private_ate.settings import Facts


@dataclass(frozen=True, slots=True)
class About:
    """What a release says about its subject, all of it public.

    Attributes
    ----------
    design : str
        How treatment came about, as declared.
    treatment, outcome : TreatmentNote, OutcomeNote
        Columns and what was declared of them.
    covariates : tuple of str
        Columns that the method could adjust for.
    missing : mapping
        The rules for missing values in force.
    dataset, dataset_version : str or None
        What the curator calls the data and this state of them.
    """

    design: str
    treatment: TreatmentNote
    outcome: OutcomeNote
    covariates: tuple[str, ...]
    missing: Mapping[str, Any] = field(default_factory=dict)
    dataset: str | None = None
    dataset_version: str | None = None

    @classmethod
    def of(cls, domain: Domain, *, design: str, bounds_are_declared: bool = True) -> About:
        """Read the subject off a domain; bounds that come from the data are not stated."""
        treatment = domain.treatment
        return cls(
            design=design,
            treatment=TreatmentNote(treatment.column, treatment.coded, treatment.coded[0]),
            outcome=outcome_note(domain.outcome, bounds_are_declared=bounds_are_declared),
            covariates=tuple(domain.covariates),
            dataset=domain.study.dataset,
            dataset_version=domain.study.version,
        )


def release_of(
    estimate: Estimate,
    guarantee: Guarantee,
    about: About,
    *,
    steps: tuple[Step, ...],
    method: str,
    n: int,
    version: str,
) -> Release:
    """Put an estimate, the guarantee under which it was made and its subject together."""
    facts = Facts.of(estimate.settings)
    adjusted = estimate.is_adjusted
    estimand = released_estimand(
        estimate.estimand or facts.estimand, about.design, adjusted=adjusted
    )
    said = _fields(about)
    if estimate.survival is not None:
        said |= _fields(estimate.survival)
        if estimate.survival.quantity == "risk":  # whose event's risk is the outcome
            said["outcome"] = replace(about.outcome, bounds=(0.0, 1.0), unit=None)
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
        version=version,
        schema=SCHEMA,
        estimand=estimand,
        effects=tuple(_rows(estimate, about, estimand, facts.estimand)),
        adjusted=adjusted,
        warnings=(*estimate.warnings, *warn_of_epsilon(guarantee.epsilon)),
        steps=steps,
        arms=estimate.arms,
        not_protected=list_unprotected(
            guarantee.level,
            is_private=guarantee.is_private,
            hides_size=guarantee.adjacency.startswith("add/remove"),
            rows_per_person=facts.rows_per_person,
        ),
        **said,
    )


def _fields(value: About | SurvivalNote) -> dict[str, Any]:
    return {item.name: getattr(value, item.name) for item in fields(value)}


def _rows(
    estimate: Estimate, about: About, estimand: ReleasedEstimand, asked: str
) -> Iterator[Effect]:
    """Yield the table of effects, outcome by outcome."""
    arms = about.treatment.arms
    for column, one in ((about.outcome.column, estimate), *estimate.further):
        own = estimand
        if one is not estimate:
            own = released_estimand(asked, about.design, adjusted=one.is_adjusted)
        for row in one.rows:
            yield Effect(
                outcome=column, subgroup=row.subgroup, arm=arms[row.arm],
                against=arms[row.against], estimand=own, estimate=row.effect,
                interval=row.interval, simultaneous=row.simultaneous,
                noise_interval=row.noise_interval,
            )  # fmt: skip
