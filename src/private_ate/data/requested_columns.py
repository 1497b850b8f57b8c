"""Which columns of a table a request uses, and what the domain declares of them.

Everything here follows the schema, the arguments and the domain; values are looked at only where a
range may be looked up, by :func:`~private_ate.data.tables.observe_columns`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from private_ate.data.tables import Columns, require_labels, require_numbers
from private_ate.domain import Categories, Domain, Interval, Outcome, Treatment
from private_ate.errors import ArgumentError, DomainError

__all__ = [
    "Covariates", "asked_columns", "complete_domain", "covariate_names", "require_arms",
    "require_declared", "require_types",
]  # fmt: skip

Covariates = Sequence[str] | Literal["all"] | None  # named, every other column, as declared


def asked_columns(domain: Domain, covariates: Covariates) -> tuple[str, ...]:
    """Return every column that a caller names, declared or not."""
    used = [domain.treatment.column, *domain.private_columns, *domain.covariates]
    if domain.weights is not None:
        used.append(domain.weights.column)
    return (*used, *(() if covariates is None or isinstance(covariates, str) else covariates))


def covariate_names(
    table: Columns,
    domain: Domain,
    wanted: Covariates,
    *,
    must_be_named: bool = False,
    person: str | None = None,
    unasked: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Decide which columns are covariates: as asked, as declared, or all others.

    Where a column becomes public by being a covariate it ``must_be_named``: by the caller, by the
    domain, or by the word "all". The ids of a ``person`` are in no other role, and outcomes that
    are declared and ``unasked`` are no covariates.
    """
    if isinstance(wanted, str) and wanted != "all":
        msg = "covariates are a list of column names, or the word 'all' for every other column"
        raise ArgumentError(msg)
    used = [domain.treatment.column, *domain.private_columns, *unasked]
    if domain.weights is not None:
        used.append(domain.weights.column)
    if person is not None:
        table.require(person, "person", asked_columns(domain, wanted))
        named = () if wanted is None or isinstance(wanted, str) else wanted
        if person in (*used, *(domain.covariates if wanted is None else named)):
            msg = f"column {person!r} cannot tell persons apart and have another role too"
            raise ArgumentError(msg, parameter="person")
        used.append(person)
    others = tuple(name for name in table.names if name not in used)
    if wanted is None and must_be_named and others and not domain.covariates:
        msg = (
            "covariates are public at label level, so name them: covariates=[…], "
            "a domain that declares them, or the word 'all' for every column "
            "but treatment and outcome"
        )
        raise ArgumentError(msg, parameter="covariates")
    if wanted is None:
        wanted = tuple(domain.covariates) or others
    wanted = others if wanted == "all" else tuple(wanted)
    for name in wanted:
        table.require(name, "covariate", used)
        if name in used:
            roles = (
                "treatment or outcome"
                if domain.weights is None
                else "treatment, outcome or weights"
            )
            msg = f"column {name!r} cannot be a covariate and the {roles} too"
            raise ArgumentError(msg)
    return wanted


def complete_domain(
    table: Columns, domain: Domain, covariates: tuple[str, ...], *, outcome: bool, looked_up: bool
) -> Domain:
    """Restrict a domain to the covariates in use and fill in what may be looked up.

    Covariates without a declaration take their observed range if ``looked_up`` (they are public at
    label level, or the caller gave up the guarantee); otherwise they are an error. The outcome is
    looked up only if ``outcome`` says so, which voids the guarantee.
    """
    require_declared(domain, covariates, outcome=outcome, looked_up=looked_up)
    undeclared = [name for name in covariates if name not in domain.covariates]
    if outcome:
        undeclared += [one.column for one in domain.outcomes if one.bounds is None]
    observed = table.observe(undeclared) if undeclared else {}
    known = {**observed, **domain.covariates}
    declared = {name: known[name] for name in covariates}
    completed = domain.with_covariates(declared)
    if outcome:
        first, *others = (_with_bounds(one, observed) for one in domain.outcomes)
        completed = replace(completed, outcome=first, further=tuple(others))
    for one in completed.outcomes:
        _ = one.declared_bounds  # an error that says how to declare them
    return completed


def _with_bounds(outcome: Outcome, observed: Mapping[str, Interval | Categories]) -> Outcome:
    """Return the outcome with its declared bounds, or with those that were looked up."""
    found = observed.get(outcome.column)
    known = found if outcome.bounds is None and isinstance(found, Interval) else outcome.bounds
    return replace(outcome, bounds=known)


def require_declared(
    domain: Domain, covariates: Sequence[str], *, outcome: bool, looked_up: bool
) -> None:
    """Refuse covariates and outcomes whose bounds are needed and not declared; reads no value."""
    name = next((name for name in covariates if name not in domain.covariates), None)
    if name is not None and not looked_up:
        msg = (
            f"covariate {name!r} has no declared bounds; "
            "declare Interval(lo, hi) or Categories('a', 'b', 'c') in the domain"
        )
        raise DomainError(msg, parameter="bounds", column=name)
    if not outcome:
        for one in domain.outcomes:
            _ = one.declared_bounds  # an error that says how to declare them


def require_types(columns: Columns, domain: Domain, covariates: Sequence[str]) -> None:
    """Refuse columns whose types cannot be what the domain declares; looks at no value."""
    arms_are = require_labels if domain.treatment.bins is None else require_numbers
    arms_are(columns, domain.treatment.column)
    for one in domain.outcomes:
        (require_labels if one.reads_labels else require_numbers)(columns, one.column)
        for name in one.columns[1:]:  # what ended a time
            require_labels(columns, name)
    if domain.weights is not None:
        require_numbers(columns, domain.weights.column)
    for name in covariates:
        if isinstance(domain.covariates.get(name), Interval):
            require_numbers(columns, name)
        else:
            require_labels(columns, name)


def require_arms(columns: Columns, treatment: Treatment) -> None:
    """Refuse labels that nobody declared, unless the column's type has no others.

    Where treatment is private, no error may say afterwards that the data hold other labels.
    """
    if treatment.is_assumed and columns.type_name(treatment.column) not in ("boolean", "bool"):
        msg = (
            f"the labels of treatment {treatment.column!r} are private here and are not assumed; "
            f"declare which are compared: Treatment({treatment.column!r}, treated=…, control=…)"
        )
        raise DomainError(msg, parameter="labels", column=treatment.column)
