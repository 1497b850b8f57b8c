"""From the caller's data and column names to a table and a complete domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from private_ate.data.files import without_words
from private_ate.data.missing_rules import Reading
from private_ate.data.requested_columns import (
    Covariates,
    asked_columns,
    complete_domain,
    covariate_names,
    require_arms,
    require_declared,
    require_types,
)
from private_ate.data.streams import MEMORY_LIMIT, StreamedTable, open_schema, open_table
from private_ate.data.tables import Columns, Table
from private_ate.domain import Domain, Outcome, SamplingWeights, Treatment
from private_ate.errors import ArgumentError, DomainError
from private_ate.privacy.levels import Level, has_public_covariates

C = TypeVar("C", bound=Columns)
Outcomes = str | Sequence[str] | None  # columns of outcomes, the headline first

__all__ = [
    "Outcomes", "Outline", "PreparedTable", "prepare_table", "read_rows", "resolve_domain",
    "settle_domain", "settle_names", "unasked_outcomes",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outline(Generic[C]):
    """Columns by name and type, what is declared of them, and which of them are covariates."""

    table: C
    declared: Domain
    covariates: tuple[str, ...]

    @property
    def public(self) -> list[str]:
        """The columns that label level holds public: treatment, covariates, sampling weights."""
        weights = () if self.declared.weights is None else (self.declared.weights.column,)
        return [self.declared.treatment.column, *self.covariates, *weights]


@dataclass(frozen=True, slots=True)
class PreparedTable(Generic[C]):
    """A table, the domain that describes every column in use, and what of it was declared."""

    table: C
    domain: Domain
    declared: Domain

    @property
    def lenient(self) -> Reading:
        """The reading where nothing is released: odd rows of public columns are left out."""
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
    return read_rows(data, outline, level=level, from_data=from_data, memory_limit=memory_limit)


def read_rows(
    data: object,
    outline: Outline[Any],
    *,
    level: Level,
    from_data: bool,
    memory_limit: int = MEMORY_LIMIT,
) -> PreparedTable[Table | StreamedTable]:
    """Open the columns of an outline and look up what may be looked up."""
    used = [*outline.public, *outline.declared.private_columns]

    def prepare() -> PreparedTable[Table | StreamedTable]:
        table = open_table(data, memory_limit, used, public=outline.public)
        return settle_domain(table, outline, level=level, from_data=from_data)

    return without_words(prepare)


def settle_names(  # noqa: PLR0913  # as above
    columns: C,
    *,
    covariates: Covariates,
    domain: Domain | None,
    level: Level,
    from_data: bool,
    treatment: str | Treatment | None = None,
    outcome: Outcomes = None,
    person: str | None = None,
    unasked: tuple[str, ...] = (),
) -> Outline[C]:
    """Settle which columns are used and refuse what their names and types already rule out.

    Reads no value. ``person`` is the column of ids, which is no covariate; ``unasked`` are
    outcomes of a domain that was resolved before.
    """
    named = resolve_domain(domain, treatment, outcome)
    is_public = has_public_covariates(level) and not from_data
    others = (*unasked, *unasked_outcomes(domain, named))
    asked = asked_columns(named, covariates)
    _require_columns(columns, named, asked)
    names = covariate_names(
        columns, named, covariates, must_be_named=is_public, person=person, unasked=others
    )
    _require_declared_types(columns, named, names, level, from_data=from_data)
    return Outline(columns, named, names)


def settle_domain(
    columns: C, outline: Outline[Any], *, level: Level, from_data: bool
) -> PreparedTable[C]:
    """Settle the domain of all columns in use, looking up what may be looked up."""
    named, names = outline.declared, outline.covariates
    _require_columns(columns, named, asked_columns(named, names))
    _require_declared_types(columns, named, names, level, from_data=from_data)
    looked_up = from_data or has_public_covariates(level)
    complete = complete_domain(columns, named, names, outcome=from_data, looked_up=looked_up)
    return PreparedTable(columns, complete, named)


def _require_columns(columns: Columns, named: Domain, asked: tuple[str, ...]) -> None:
    """Refuse a table without the columns that a domain names."""
    columns.require(named.treatment.column, "treatment", asked)
    for name in named.private_columns:
        columns.require(name, "outcome", asked)
    if named.weights is not None:
        columns.require(named.weights.column, "weights", asked)


def _require_declared_types(
    columns: Columns, named: Domain, names: tuple[str, ...], level: Level, *, from_data: bool
) -> None:
    """Refuse columns that are not declared where they must be, or of another type."""
    looked_up = from_data or has_public_covariates(level)
    require_declared(named, names, outcome=from_data, looked_up=looked_up)
    require_types(columns, named, names)
    if not looked_up:
        require_arms(columns, named.treatment)


def unasked_outcomes(domain: Domain | None, named: Domain) -> tuple[str, ...]:
    """Return declared outcomes that are not asked for: none of them is ever a covariate."""
    declared = () if domain is None else domain.private_columns
    return tuple(column for column in declared if column not in named.private_columns)


def resolve_domain(
    domain: Domain | None,
    treatment: str | Treatment | None,
    outcome: Outcomes,
    weights: str | SamplingWeights | None = None,
) -> Domain:
    """Merge the columns named by the caller with those the domain names; itself if they agree."""
    if domain is None:
        if treatment is None or outcome is None:
            missing = "treatment" if treatment is None else "outcome"
            msg = f"name the {missing} column ({missing}=), or give a domain that names it"
            raise ArgumentError(msg, parameter=missing)
        named = outcome if isinstance(outcome, str) else list(outcome)
        domain = Domain(treatment, named)
        treatment = outcome = None
    if not isinstance(domain, Domain):
        msg = "the domain is a Domain; read one from TOML with Domain.read(path)"
        raise ArgumentError(msg)
    arms = domain.treatment
    if isinstance(treatment, Treatment):
        arms = treatment
    elif treatment is not None and treatment != domain.treatment.column:
        _mismatch("treatment", treatment, domain.treatment.column)
    outcomes = domain.outcomes if outcome is None else _chosen(domain, outcome)
    sampled = domain.weights if weights is None else _asked_weights(domain, weights)
    if (arms, outcomes, sampled) == (domain.treatment, domain.outcomes, domain.weights):
        return domain
    return replace(
        domain, treatment=arms, outcome=outcomes[0], further=outcomes[1:], weights=sampled
    )


def _chosen(domain: Domain, outcome: str | Sequence[str]) -> tuple[Outcome, ...]:
    """Return the named outcomes, in the order in which they are asked for."""
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
    return tuple(declared[name] for name in names)


def _asked_weights(domain: Domain, weights: str | SamplingWeights) -> SamplingWeights:
    """Return the sampling weights that a caller asks for; reads no value."""
    if isinstance(weights, SamplingWeights):
        return weights
    if not isinstance(weights, str):
        msg = "weights names the column of sampling weights, or is SamplingWeights(column, high)"
        raise ArgumentError(msg, parameter="sampling weights", column="WEIGHT")
    if weights in domain.covariates:
        msg = (
            f"column {weights!r} cannot be the sampling weights and a covariate too; declare it as "
            f"weights=({weights!r}, Interval(0, W)) alone"
        )
        raise ArgumentError(msg, parameter="sampling weights", column=weights)
    if domain.weights is None:
        msg = (
            f"sampling weights {weights!r} have no declared bound; declare "
            f"weights=({weights!r}, Interval(0, W)) in the domain, W the largest weight that the "
            "sampling design allows"
        )
        raise DomainError(msg, parameter="sampling weights", column=weights)
    if weights != domain.weights.column:
        _mismatch("weights", weights, domain.weights.column)
    return domain.weights


def _mismatch(role: str, asked: str, declared: str) -> None:
    msg = f"the {role} column is {asked!r} but the domain declares {declared!r}; make them agree"
    raise ArgumentError(msg)
