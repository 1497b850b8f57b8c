"""From the caller's data and column names to a table and a complete domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from private_ate.data.files import without_words
from private_ate.data.rules import Reading
from private_ate.data.streams import MEMORY_LIMIT, StreamedTable, open_schema, open_table
from private_ate.data.tables import (
    Columns,
    Covariates,
    Table,
    asked_columns,
    complete_domain,
    covariate_names,
    require_arms,
    require_declared,
    require_types,
)
from private_ate.domain import Domain, Interval, Outcome, SamplingWeights, Treatment
from private_ate.errors import ArgumentError, DomainError
from private_ate.privacy.levels import Level, has_public_covariates

C = TypeVar("C", bound=Columns)
Outcomes = str | Sequence[str] | None  # columns of outcomes, the headline first

__all__ = [
    "Outcomes", "PreparedTable", "prepare_table", "resolve_domain", "settle_domain", "settle_names",
    "weighted_domain",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class PreparedTable(Generic[C]):
    """A table, the domain that describes every column in use, and what of it was declared."""

    table: C
    domain: Domain
    declared: Domain

    @property
    def lenient(self) -> Reading:
        """The reading of doors that release nothing: odd rows of public columns are left out."""
        declared = frozenset(self.declared.covariates)
        return Reading("label", leave_out_undeclared=True, declared=declared)


def prepare_table(  # noqa: PLR0913  # one value per question about the columns
    data: object,
    *,
    treatment: str | Treatment | None,
    outcome: Outcomes,
    covariates: Covariates,
    domain: Domain | None,
    level: Level,
    from_data: bool,
    person: str | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> PreparedTable[Table | StreamedTable]:
    """Read the table and settle what is declared, looked up or missing.

    At label level covariates and treatment are public, so undeclared covariates take their
    observed range. The outcome's bounds are looked up only when ``from_data`` gives up the
    guarantee. A file that would take more than ``memory_limit`` bytes is opened for streaming.
    """
    outline = settle_names(
        open_schema(data, level), treatment=treatment, outcome=outcome, covariates=covariates,
        domain=domain, level=level, from_data=from_data, person=person,
    )  # fmt: skip
    named, names = outline.declared, tuple(outline.domain.covariates)
    public = [named.treatment.column, *names]
    if named.weights is not None:
        public.append(named.weights.column)
    used = [*public, *(one.column for one in named.outcomes)]

    def prepare() -> PreparedTable[Table | StreamedTable]:
        return settle_domain(
            open_table(data, memory_limit, used, public=public), treatment=None, outcome=None,
            covariates=names, domain=named, level=level, from_data=from_data,
        )  # fmt: skip

    return without_words(prepare)


def settle_names(  # noqa: PLR0913  # as above
    columns: C,
    *,
    treatment: str | Treatment | None,
    outcome: Outcomes,
    covariates: Covariates,
    domain: Domain | None,
    level: Level,
    from_data: bool,
    person: str | None = None,
) -> PreparedTable[C]:
    """Settle which columns are used and refuse what their names and types already tell.

    Reads no value: where a range is to be looked up, the domain holds a placeholder. ``person``
    is the column of ids, which is no covariate.
    """
    named = resolve_domain(domain, treatment, outcome)
    asked = asked_columns(named, covariates)
    columns.require(named.treatment.column, "treatment", asked)
    for one in named.outcomes:
        columns.require(one.column, "outcome", asked)
    if named.weights is not None:
        columns.require(named.weights.column, "weights", asked)
    is_public = has_public_covariates(level) and not from_data
    whole = named
    if domain is not None and named is not domain:
        whole = replace(named, further=_others(named, domain))
    names = covariate_names(columns, whole, covariates, must_be_named=is_public, person=person)
    looked_up = from_data or has_public_covariates(level)
    require_declared(named, names, outcome=from_data, looked_up=looked_up)
    require_types(columns, named, names)
    if not looked_up:
        require_arms(columns, named.treatment)
    unread = {name: named.covariates.get(name, Interval(0, 1)) for name in names}
    return PreparedTable(columns, named.with_covariates(unread), named)


def settle_domain(  # noqa: PLR0913  # as above
    columns: C,
    *,
    treatment: str | Treatment | None,
    outcome: Outcomes,
    covariates: Covariates,
    domain: Domain | None,
    level: Level,
    from_data: bool,
    person: str | None = None,
) -> PreparedTable[C]:
    """Settle the domain of all columns in use, looking up what may be looked up."""
    outline = settle_names(
        columns, treatment=treatment, outcome=outcome, covariates=covariates, domain=domain,
        level=level, from_data=from_data, person=person,
    )  # fmt: skip
    names = tuple(outline.domain.covariates)
    looked_up = from_data or has_public_covariates(level)
    complete = complete_domain(
        columns, outline.declared, names, outcome=from_data, looked_up=looked_up
    )
    return PreparedTable(columns, complete, outline.declared)


def _others(named: Domain, domain: Domain) -> tuple[Outcome, ...]:
    """Return all declared outcomes but the headline: none of them is ever a covariate."""
    return tuple(one for one in domain.outcomes if one != named.outcome)


def resolve_domain(
    domain: Domain | None, treatment: str | Treatment | None, outcome: Outcomes
) -> Domain:
    """Merge the columns named by the caller with those the domain names."""
    if domain is None:
        if treatment is None or outcome is None:
            missing = "treatment" if treatment is None else "outcome"
            msg = f"name the {missing} column ({missing}=), or give a domain that names it"
            raise ArgumentError(msg, parameter=missing)
        return Domain(treatment, outcome if isinstance(outcome, str) else list(outcome))
    if not isinstance(domain, Domain):
        msg = "the domain is a Domain; read one from TOML with Domain.read(path)"
        raise ArgumentError(msg)
    if isinstance(treatment, Treatment):
        domain = replace(domain, treatment=treatment)
    elif treatment is not None and treatment != domain.treatment.column:
        _mismatch("treatment", treatment, domain.treatment.column)
    return domain if outcome is None else _chosen(domain, outcome)


def _chosen(domain: Domain, outcome: str | Sequence[str]) -> Domain:
    """Return the domain with the named outcomes, in the order in which they are asked for."""
    names = [outcome] if isinstance(outcome, str) else list(outcome)
    declared = {one.column: one for one in domain.outcomes}
    for name in names:
        if name not in declared and not domain.further:
            _mismatch("outcome", str(name), domain.outcome.column)
        if name not in declared:
            listed = ", ".join(map(repr, declared))
            msg = f"{str(name)!r} is none of the outcomes that the domain declares: {listed}"
            raise ArgumentError(msg, parameter="outcome")
    if not names or len(set(names)) < len(names):
        msg = "name every outcome once, and at least one"
        raise ArgumentError(msg, parameter="outcome")
    first, *others = (declared[name] for name in names)
    return replace(domain, outcome=first, further=tuple(others))


def weighted_domain(
    domain: Domain | None,
    treatment: str | Treatment | None,
    outcome: Outcomes,
    weights: str | SamplingWeights | None,
) -> Domain | None:
    """Return the domain with the sampling weights that a caller asks for; reads no value."""
    if weights is None:
        return domain
    known = resolve_domain(domain, treatment, outcome)
    if isinstance(weights, SamplingWeights):
        return replace(known, weights=weights)
    if not isinstance(weights, str):
        msg = "weights names the column of sampling weights, or is SamplingWeights(column, high)"
        raise ArgumentError(msg, parameter="sampling weights", column="WEIGHT")
    if weights in known.covariates:
        msg = (
            f"column {weights!r} cannot be the sampling weights and a covariate too; declare it as "
            f"weights=({weights!r}, Interval(0, W)) alone"
        )
        raise ArgumentError(msg, parameter="sampling weights", column=weights)
    if known.weights is None:
        msg = (
            f"sampling weights {weights!r} have no declared bound; declare "
            f"weights=({weights!r}, Interval(0, W)) in the domain, W the largest weight that the "
            "sampling design allows"
        )
        raise DomainError(msg, parameter="sampling weights", column=weights)
    if weights != known.weights.column:
        _mismatch("weights", weights, known.weights.column)
    return known


def _mismatch(role: str, asked: str, declared: str) -> None:
    msg = f"the {role} column is {asked!r} but the domain declares {declared!r}; make them agree"
    raise ArgumentError(msg)
