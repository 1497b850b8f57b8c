"""Populations that own budgets, the data sets about them, and what each data set's policy allows.

A data set has an account of its own in the ledger, which binds its columns; a population's budget
covers the accounts of all its data sets together. Nothing here knows where records are: ``source``
is a name that the worker looks up below a folder of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, cast, get_args

from private_ate.arguments import one_of, whole_number
from private_ate.charging import binding_of
from private_ate.domain import Domain, require_one_outcome
from private_ate.errors import ArgumentError
from private_ate.privacy.ledger.chain import canonical
from private_ate.privacy.ledger.cost import Amount, BudgetUnits
from private_ate.privacy.ledger.ledger import Roles, grant_dataset
from private_ate.privacy.ledger.names import check_name
from private_ate.privacy.ledger.roles import declared_roles
from private_ate.privacy.ledger.store import Execute
from private_ate.privacy.levels import Level, has_public_covariates
from private_ate.service.policy import Policy
from private_ate.service.refusals import Conflict, Missing
from private_ate.service.store.events import write_event
from private_ate.service.store.tables import one, rows_of

__all__ = [
    "Dataset",
    "Population",
    "add_dataset",
    "add_population",
    "check_source",
    "close_dataset",
    "find_dataset",
    "find_population",
    "list_datasets",
    "list_populations",
    "pin_digest",
    "set_policy",
]

_SOURCE: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){0,4}"
)
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MOST_COLUMNS: Final = 5000


@dataclass(frozen=True, slots=True)
class Population:
    """The people whose budget it is, and what it protects of them."""

    name: str
    level: Level
    total: BudgetUnits


@dataclass(frozen=True, slots=True)
class Dataset:
    """A table about a population as far as it is public, and the name of its file."""

    name: str
    population: str
    level: Level
    domain: Domain
    columns: tuple[str, ...]
    size: int
    rows_per_person: int
    source: str
    digest: str
    closed: bool
    policy: Policy


_FIELDS: Final = (
    "d.name, d.population, p.level, d.domain, d.columns, d.size, d.rows_per_person, d.source, "
    "d.digest, d.closed, d.policy"
)
_FROM: Final = "FROM service_datasets d JOIN service_populations p ON p.name = d.population"


def add_population(  # one value per decision
    execute: Execute, name: str, level: str, epsilon: Amount, delta: Amount, actor: str
) -> Population:
    """Add a population with its budget, which is never raised."""
    name = _word("population", name)
    one_of("level", level, get_args(Level))
    total = BudgetUnits.limit(epsilon, delta)
    if one(execute, "SELECT 1 FROM service_populations WHERE name = ?", name) is not None:
        msg = f"there is a population {name!r} already; budgets are never raised"
        raise Conflict(msg)
    execute(
        "INSERT INTO service_populations (name, level, epsilon, delta) VALUES (?, ?, ?, ?)",
        (name, level, total.epsilon, total.delta),
    )
    facts = {"level": level, "epsilon": total.epsilon_text, "delta": total.delta_text}
    write_event(execute, "population", name, actor, facts)
    return Population(name, cast("Level", level), total)


def add_dataset(execute: Execute, new: Dataset, actor: str) -> None:
    """Add a data set to a population; its account in the ledger is bound at once."""
    _word("data set", new.name)
    check_source(new.source)
    population = find_population(execute, new.population)
    if population.level != new.level:
        msg = (
            f"the budget of population {population.name!r} protects at {population.level} level; "
            "all its data sets are of that level"
        )
        raise Conflict(msg)
    known = list_datasets(execute)
    if any(other.name == new.name for other in known):
        msg = f"there is a data set {new.name!r} already"
        raise Conflict(msg)
    _refuse_mixed_roles(new, [other for other in known if other.source == new.source])
    _check_columns(new)
    whole_number("rows", new.size, 2, 1 << 40)
    whole_number("rows_per_person", new.rows_per_person, 1, 10**6)
    execute(
        "INSERT INTO service_datasets (name, population, domain, columns, size, "
        "rows_per_person, source, digest, policy) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new.name, new.population, new.domain.to_toml(), canonical(list(new.columns)),
            new.size, new.rows_per_person, new.source, new.digest, canonical(new.policy.plain),
        ),
    )  # fmt: skip
    facts = {
        "population": new.population, "rows": new.size, "policy": new.policy.plain,
        "rows_per_person": new.rows_per_person, "domain": new.domain.to_toml(),
    }  # fmt: skip
    write_event(execute, "dataset", new.name, actor, facts)
    _open_account(execute, new, population)


def check_source(source: object) -> str:
    """Return a file's name below the worker's folder: plain words, no way out of it."""
    plain = isinstance(source, str) and _SOURCE.fullmatch(source) and ".." not in source
    if not plain or not str(source).lower().endswith((".csv", ".parquet", ".pq", ".txt")):
        msg = (
            "the source is the name of a .csv or .parquet file below the worker's folder, of "
            "letters, digits, dots, hyphens and underscores, such as 2026/clinic.csv"
        )
        raise ArgumentError(msg)
    return str(source)


def find_population(execute: Execute, name: str) -> Population:
    """Return a population by name."""
    found = [item for item in list_populations(execute) if item.name == name]
    if not found:
        msg = "there is no such population"
        raise Missing(msg)
    return found[0]


def list_populations(execute: Execute) -> list[Population]:
    """Return all populations."""
    found = rows_of(
        execute, "SELECT name, level, epsilon, delta FROM service_populations ORDER BY name"
    )
    return [
        Population(
            str(name),
            cast("Level", level),
            BudgetUnits(cast("int", epsilon), cast("int", delta)),
        )
        for name, level, epsilon, delta in found
    ]


def find_dataset(execute: Execute, name: str) -> Dataset:
    """Return a data set by name."""
    found = one(execute, f"SELECT {_FIELDS} {_FROM} WHERE d.name = ?", name)
    if found is None:
        msg = "there is no such data set"
        raise Missing(msg)
    return _dataset(found)


def list_datasets(execute: Execute) -> list[Dataset]:
    """Return all data sets, closed ones too."""
    rows = rows_of(execute, f"SELECT {_FIELDS} {_FROM} ORDER BY d.name")
    return [_dataset(row) for row in rows]


def close_dataset(execute: Execute, name: str, actor: str, now: int) -> None:
    """Take no more requests for a data set; its history stays."""
    find_dataset(execute, name)
    done = execute(
        "UPDATE service_datasets SET closed = ? WHERE name = ? AND closed = 0", (now, name)
    )
    if done.changed != 1:
        msg = f"data set {name!r} is closed already"
        raise Conflict(msg)
    write_event(execute, "close", name, actor)


def set_policy(execute: Execute, name: str, policy: Policy, actor: str) -> None:
    """Replace what a data set's policy approves by itself; requests made before keep theirs."""
    find_dataset(execute, name)
    execute(
        "UPDATE service_datasets SET policy = ? WHERE name = ?", (canonical(policy.plain), name)
    )
    write_event(execute, "policy", name, actor, policy.plain)


def pin_digest(execute: Execute, name: str, digest: str, actor: str) -> None:
    """Keep the keyed digest of a file at its first use."""
    done = execute(
        "UPDATE service_datasets SET digest = ? WHERE name = ? AND digest = ''", (digest, name)
    )
    if done.changed == 1:
        write_event(execute, "pin", name, actor)


@lru_cache(maxsize=256)
def _read_domain(text: str) -> Domain:
    """Read a domain once; every request asks for its data set's."""
    return Domain.from_toml(text)


def _dataset(row: Sequence[object]) -> Dataset:
    texts = [str(value) for value in row]
    return Dataset(
        texts[0], texts[1], cast("Level", texts[2]), _read_domain(texts[3]),
        tuple(json.loads(texts[4])), cast("int", row[5]), cast("int", row[6]), texts[7], texts[8],
        bool(row[9]), Policy.read(json.loads(texts[10])),
    )  # fmt: skip


def _open_account(execute: Execute, new: Dataset, population: Population) -> None:
    public = None
    if has_public_covariates(new.level):
        public = list(_public_columns(new.domain))
    said = declared_roles(new.level, public, new.rows_per_person)
    private = Roles(private=frozenset({new.domain.outcome.column}))
    roles = private.declare(said, new.name)
    bound = replace(binding_of(new.domain), columns=dict.fromkeys(new.columns, ""), roles=roles)
    grant_dataset(execute, new.name, population.total, bound)


def _public_columns(domain: Domain) -> tuple[str, ...]:
    """Return the columns that label level holds public: all that are declared but the outcome."""
    weights = () if domain.weights is None else (domain.weights.column,)
    return (domain.treatment.column, *domain.covariates, *weights)


def _check_columns(new: Dataset) -> None:
    """Refuse a domain whose columns the table does not have, and odd names of columns."""
    if not 0 < len(new.columns) <= _MOST_COLUMNS or len(set(new.columns)) != len(new.columns):
        msg = f"columns are the names of all columns of the file, 1 to {_MOST_COLUMNS}, each once"
        raise ArgumentError(msg)
    for name in new.columns:
        check_name("column", name)
    domain = new.domain
    require_one_outcome(domain, "a data set of a service")
    needed = (domain.outcome.column, *_public_columns(domain))
    lacking = next((name for name in needed if name not in new.columns), None)
    if lacking is not None:
        msg = f"the domain declares column {lacking!r}, which is not among the columns"
        raise ArgumentError(msg)
    if not domain.covariates:
        msg = "the domain declares at least one covariate"
        raise ArgumentError(msg)
    _ = domain.bounds  # an error that says how to declare them


def _refuse_mixed_roles(new: Dataset, others: list[Dataset]) -> None:
    """Refuse a file's outcome that is public in another data set of the same file, or elsewhere.

    Two data sets may share a file to answer about two outcomes. Then they share a population, and
    at label level neither may treat the other's outcome as public.
    """
    for other in others:
        if other.population != new.population:
            msg = (
                f"the file of data set {other.name!r} belongs to population "
                f"{other.population!r}; the same people have one budget"
            )
            raise Conflict(msg)
        if not has_public_covariates(new.level):
            continue
        for first, second in ((new, other), (other, new)):
            if first.domain.outcome.column in _public_columns(second.domain):
                msg = (
                    f"column {first.domain.outcome.column!r} is private in {first.name!r} and "
                    f"public in {second.name!r}; leave it out of the covariates there"
                )
                raise Conflict(msg)


def _word(role: str, name: object) -> str:
    if not isinstance(name, str) or not _WORD.fullmatch(name):
        msg = f"a {role} is named by 1 to 64 letters, digits, dots, hyphens and underscores"
        raise ArgumentError(msg)
    return name
