"""From the caller's data and column names to a table and a complete domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from private_ate.domain import Domain, Treatment
from private_ate.errors import ArgumentError
from private_ate.privacy.budget import Level
from private_ate.streams import MEMORY_LIMIT, StreamedTable, open_table
from private_ate.tables import Columns, Table, complete_domain, covariate_names

C = TypeVar("C", bound=Columns)

__all__ = ["PreparedTable", "prepare_table", "resolve_domain", "settle_domain"]


@dataclass(frozen=True, slots=True)
class PreparedTable(Generic[C]):
    """A table, the domain that describes every column in use, and what of it was declared."""

    table: C
    domain: Domain
    declared: Domain


def prepare_table(  # noqa: PLR0913  # one value per question about the columns
    data: object,
    *,
    treatment: str | Treatment | None,
    outcome: str | None,
    covariates: Sequence[str] | None,
    domain: Domain | None,
    level: Level,
    from_data: bool,
    memory_limit: int = MEMORY_LIMIT,
) -> PreparedTable[Table | StreamedTable]:
    """Read the table and settle what is declared, looked up or missing.

    At label level covariates and treatment are public, so undeclared covariates take their
    observed range. The outcome's bounds are looked up only when ``from_data`` gives up the
    guarantee. A file that would take more than ``memory_limit`` bytes is opened for streaming.
    """
    columns = open_table(data, memory_limit)
    return settle_domain(
        columns, treatment=treatment, outcome=outcome, covariates=covariates, domain=domain,
        level=level, from_data=from_data,
    )  # fmt: skip


def settle_domain(  # as above
    columns: C,
    *,
    treatment: str | Treatment | None,
    outcome: str | None,
    covariates: Sequence[str] | None,
    domain: Domain | None,
    level: Level,
    from_data: bool,
) -> PreparedTable[C]:
    """Settle the domain of all columns in use, looking up what may be looked up."""
    named = resolve_domain(domain, treatment, outcome)
    columns.require(named.treatment.column, "treatment")
    columns.require(named.outcome.column, "outcome")
    wanted = None if covariates is None else tuple(covariates)
    names = covariate_names(columns, named, wanted)
    complete = complete_domain(
        columns, named, names, outcome=from_data, looked_up=from_data or level == "label"
    )
    return PreparedTable(columns, complete, named)


def resolve_domain(
    domain: Domain | None, treatment: str | Treatment | None, outcome: str | None
) -> Domain:
    """Merge the columns named by the caller with those the domain names."""
    if domain is None:
        if treatment is None or outcome is None:
            missing = "treatment" if treatment is None else "outcome"
            msg = f"name the {missing} column (--{missing}), or give a domain that names it"
            raise ArgumentError(msg)
        return Domain(treatment, outcome)
    if not isinstance(domain, Domain):
        msg = "the domain is a Domain; read one from TOML with Domain.read(path)"
        raise ArgumentError(msg)
    if isinstance(treatment, Treatment):
        domain = Domain(treatment, domain.outcome, domain.covariates)
    elif treatment is not None and treatment != domain.treatment.column:
        _mismatch("treatment", treatment, domain.treatment.column)
    if outcome is not None and outcome != domain.outcome.column:
        _mismatch("outcome", outcome, domain.outcome.column)
    return domain


def _mismatch(role: str, asked: str, declared: str) -> None:
    msg = f"the {role} column is {asked!r} but the domain declares {declared!r}; make them agree"
    raise ArgumentError(msg)
