"""What a method hands over, and the release that is made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from private_ate.domain import Domain
from private_ate.effects.quantities import Quantity
from private_ate.facts import Facts
from private_ate.privacy.budget import Guarantee
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.release.metadata import (
    Arm,
    Contrast,
    Effect,
    OutcomeNote,
    Pair,
    ReleasedEstimand,
    Step,
    TreatmentNote,
    released_estimand,
)
from private_ate.release.release import SCHEMA, Release
from private_ate.release.spending import list_unprotected, warn_of_epsilon
from private_ate.release.survival import SurvivalNote
from private_ate.settings import Settings, plain_settings


@dataclass(frozen=True, slots=True)
class ArmEstimate:
    """One arm as released; arms are in the order of their codes, the reference first.

    Attributes
    ----------
    level : Quantity
        The estimate of E[Y(t)], up to a number that all arms share. It has one noise, independent
        of that of other arms.
    mean : float or None
        The mean itself; None where it was not paid for.
    units : int or None
        How many units the arm holds, where that is public.
    weighted : bool
        Whether the arm's units were weighted to stand for all; otherwise they count alike.
    mean_noise : NoiseDistribution or None
        The noise that the mean has beyond that of the level, shared by all arms.
    """

    level: Quantity
    mean: float | None
    units: int | None = None
    weighted: bool = True
    mean_noise: NoiseDistribution | None = None


@dataclass(frozen=True, slots=True)
class EffectRow:
    """A contrast of two arms in a subgroup; in all units where ``subgroup`` is None.

    ``adjusted`` says whether covariates were adjusted for, where that differs between rows.
    """

    subgroup: str | None
    contrast: Contrast
    adjusted: bool | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a method hands over: the noisy effect, its intervals and public settings.

    Methods that keep another promise than pure ε under replace-one say so: ``delta``, their own
    ``adjacency``, a noisy ``size`` where n itself is private, ``numerics`` where the proof speaks
    of ideal numbers, and ``void`` with the reason why nothing is promised. ``adjusted`` and
    ``estimand`` say what the number is where that is not what the settings and the request say;
    ``warnings`` head the release and rest on public facts alone. ``quantities`` are the released
    numbers with the distributions of their errors, where a method knows these: of two arms their
    contrast, of more a level of each in the order of the codes. ``rows`` is the table of effects:
    contrasts of all units, those with the reference first, then those of subgroups; the effect is
    the headline among them, or the only row where there are none. ``arms`` are those whose means
    were estimated. ``population`` is what the units that are meant count together, where they do
    not count alike. ``further`` are outcomes after the first, by their columns. ``survival`` has
    the curves of a time to an event.
    """

    ate: float
    noise_interval: Pair | None
    interval: Pair | None
    settings: Settings | Mapping[str, Any]
    delta: Fraction = Fraction(0)
    adjacency: str = ""
    size: int | None = None
    numerics: str = ""
    void: str = ""
    adjusted: bool | None = None
    estimand: ReleasedEstimand | None = None
    warnings: tuple[str, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    rows: tuple[EffectRow, ...] = ()
    arms: tuple[Arm, ...] = ()
    population: float | None = None
    further: tuple[tuple[str, Estimate], ...] = ()
    survival: SurvivalNote | None = None

    @classmethod
    def of(cls, effect: Quantity, settings: Settings | Mapping[str, Any]) -> Estimate:
        """Return an estimate whose one quantity is the effect, with the quantity's own intervals.

        Whatever else a method says is added by ``dataclasses.replace``.
        """
        return cls(
            effect.value, effect.noise_interval, effect.interval, settings, quantities=(effect,)
        )

    @classmethod
    def of_rows(
        cls,
        rows: tuple[EffectRow, ...],
        settings: Settings | Mapping[str, Any],
        *,
        arms: tuple[Arm, ...] = (),
        headline: int = 0,
    ) -> Estimate:
        """Return an estimate with a table of effects, of which one row is the headline."""
        shown = rows[headline].contrast
        return cls(
            shown.effect, shown.noise_interval, shown.interval, settings, rows=rows, arms=arms
        )

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The rows of all units."""
        return tuple(row.contrast for row in self.rows if row.subgroup is None)

    @property
    def is_adjusted(self) -> bool:
        """Whether covariates were adjusted for: a method that does not say adjusts."""
        said = self.adjusted
        if said is None:
            said = Facts.of(self.settings).adjusted
        return said is not False


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
        treatment, outcome = domain.treatment, domain.outcome
        ends = None
        if bounds_are_declared and outcome.bounds is not None:
            ends = (outcome.bounds.low, outcome.bounds.high)
        return cls(
            design=design,
            treatment=TreatmentNote(treatment.column, treatment.coded, treatment.coded[0]),
            outcome=OutcomeNote(outcome.column, ends, outcome.unit),
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
    note = estimate.survival
    survival = {} if note is None else {one.name: getattr(note, one.name) for one in fields(note)}
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
        settings=plain_settings(estimate.settings),
        version=version,
        schema=SCHEMA,
        estimand=estimand,
        effects=_rows(estimate, about, estimand, facts.estimand),
        adjusted=adjusted,
        design=about.design,
        treatment=about.treatment,
        outcome=about.outcome if survival.get("quantity") != "risk" else _risk_of(about.outcome),
        covariates=about.covariates,
        warnings=(*estimate.warnings, *warn_of_epsilon(guarantee.epsilon)),
        missing=about.missing,
        dataset=about.dataset,
        dataset_version=about.dataset_version,
        steps=steps,
        arms=estimate.arms,
        not_protected=list_unprotected(
            guarantee.level,
            is_private=guarantee.is_private,
            hides_size=guarantee.adjacency.startswith("add/remove"),
            rows_per_person=facts.rows_per_person,
        ),
        **survival,
    )


def _risk_of(outcome: OutcomeNote) -> OutcomeNote:
    """Return what a release says of a time whose event's risk is the outcome."""
    return replace(outcome, bounds=(0.0, 1.0), unit=None)


def _rows(
    estimate: Estimate, about: About, estimand: ReleasedEstimand, asked: str
) -> tuple[Effect, ...]:
    """Return the table of effects; empty for two arms alone, whose headline is the table."""
    rows = list(_rows_of(estimate, about.outcome.column, estimand, asked, about.design))
    for column, one in estimate.further:
        own = released_estimand(asked, about.design, adjusted=one.is_adjusted)
        rows += _rows_of(one, column, own, asked, about.design)
    return tuple(rows)


def _rows_of(
    estimate: Estimate, column: str, estimand: ReleasedEstimand, asked: str, design: str
) -> Iterator[Effect]:
    """Yield the rows of one outcome."""
    for each in estimate.rows:
        own = estimand
        if each.adjusted is not None:
            own = released_estimand(asked, design, adjusted=each.adjusted)
        row = each.contrast
        yield Effect(
            outcome=column, subgroup=each.subgroup, arm=row.arm, against=row.against,
            estimand=own, estimate=row.effect, interval=row.interval,
            simultaneous=row.simultaneous, noise_interval=row.noise_interval,
        )  # fmt: skip
