"""From the caller's data and column names to a table and a complete domain.

Which columns a request uses follows the schema, the arguments and the domain; values are looked at
only where a range may be looked up, by :func:`~private_ate.data.tables.observe_columns`, and where
public ids are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, Required, TypedDict, Unpack

from private_ate.arrays import Words
from private_ate.data.files import MEMORY_LIMIT, open_schema, open_table, without_words
from private_ate.data.missing_rules import Reading
from private_ate.data.tables import Columns, Table, require_labels, require_numbers
from private_ate.domain import (
    Categories,
    Domain,
    Interval,
    Outcome,
    SamplingWeights,
    Treatment,
)
from private_ate.errors import ArgumentError, DomainError
from private_ate.privacy.levels import Level, has_public_covariates

if TYPE_CHECKING:
    import polars as pl

Covariates = Sequence[str] | Literal["all"] | None  # named, every other column, as declared
Outcomes = str | Sequence[str] | None  # columns of outcomes, the headline first

__all__ = [
    "ColumnsAsked", "Covariates", "Outcomes", "Outline", "PreparedTable", "asked_columns",
    "complete_domain", "covariate_names", "hash_persons", "most_rows", "prepare_table", "read_rows",
    "refuse_person", "resolve_domain", "settle_domain", "settle_names", "unasked_outcomes",
]  # fmt: skip

_WHOLE: Final = 2.0**53  # below it every whole number is a float


class ColumnsAsked(TypedDict, total=False):
    """What a caller says about the columns; see `settle_names`."""

    treatment: str | Treatment | None
    outcome: Outcomes
    covariates: Required[Covariates]
    domain: Required[Domain | None]
    level: Required[Level]
    from_data: Required[bool]
    person: str | None
    unasked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """Columns by name and type, what is declared of them, and which of them are covariates."""

    table: Columns
    declared: Domain
    covariates: tuple[str, ...]

    @property
    def public(self) -> list[str]:
        """The columns that label level holds public: treatment, covariates, sampling weights."""
        weights = () if self.declared.weights is None else (self.declared.weights.column,)
        return [self.declared.treatment.column, *self.covariates, *weights]


@dataclass(frozen=True, slots=True)
class PreparedTable:
    """A table, the domain that describes every column in use, and what of it was declared."""

    table: Table
    domain: Domain
    declared: Domain

    @property
    def lenient(self) -> Reading:
        """The reading where nothing is released: odd rows of public columns are left out."""
        declared = frozenset(self.declared.covariates)
        return Reading("label", leave_out_undeclared=True, declared=declared)


def prepare_table(
    data: object, memory_limit: int = MEMORY_LIMIT, **asked: Unpack[ColumnsAsked]
) -> PreparedTable:
    """Read the table and settle what is declared, looked up or missing.

    At label level covariates and treatment are public, so undeclared covariates take their
    observed range. The outcome's bounds are looked up only when ``from_data`` gives up the
    guarantee. A file that would take more than ``memory_limit`` bytes is opened for streaming.
    """
    level, from_data = asked["level"], asked["from_data"]
    outline = settle_names(open_schema(data, level), **asked)
    return read_rows(data, outline, level=level, from_data=from_data, memory_limit=memory_limit)


def read_rows(
    data: object,
    outline: Outline,
    *,
    level: Level,
    from_data: bool,
    memory_limit: int = MEMORY_LIMIT,
) -> PreparedTable:
    """Open the columns of an outline and look up what may be looked up."""
    used = [*outline.public, *outline.declared.private_columns]

    def prepare() -> PreparedTable:
        table = open_table(data, memory_limit, used, public=outline.public)
        domain = settle_domain(table, outline, level=level, from_data=from_data)
        return PreparedTable(table, domain, outline.declared)

    return without_words(prepare)


def settle_names(  # noqa: PLR0913  # one value per question about the columns
    columns: Columns,
    *,
    covariates: Covariates,
    domain: Domain | None,
    level: Level,
    from_data: bool,
    treatment: str | Treatment | None = None,
    outcome: Outcomes = None,
    person: str | None = None,
    unasked: tuple[str, ...] = (),
) -> Outline:
    """Settle which columns are used and refuse what their names and types already rule out.

    Reads no value. ``person`` is the column of ids, which is no covariate; ``unasked`` are
    outcomes of a domain that was resolved before.
    """
    named = resolve_domain(domain, treatment, outcome)
    is_public = has_public_covariates(level) and not from_data
    others = (*unasked, *unasked_outcomes(domain, named))
    asked = asked_columns(named, covariates)
    columns.require(named.treatment.column, "treatment", asked)
    for name in named.private_columns:
        columns.require(name, "outcome", asked)
    if named.weights is not None:
        columns.require(named.weights.column, "weights", asked)
    names = covariate_names(
        columns, named, covariates, must_be_named=is_public, person=person, unasked=others
    )
    looked_up = from_data or has_public_covariates(level)
    require_declared(named, names, outcome=from_data, looked_up=looked_up)
    require_types(columns, named, names)
    if not looked_up:
        require_arms(columns, named.treatment)
    return Outline(columns, named, names)


def settle_domain(columns: Columns, outline: Outline, *, level: Level, from_data: bool) -> Domain:
    """Return the domain of all columns in use, looking up what may be looked up."""
    looked_up = from_data or has_public_covariates(level)
    return complete_domain(
        columns, outline.declared, outline.covariates, outcome=from_data, looked_up=looked_up
    )


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


def asked_columns(domain: Domain, covariates: Covariates) -> tuple[str, ...]:
    """Return every column that a caller names, declared or not."""
    named = () if covariates is None or isinstance(covariates, str) else covariates
    return (*domain.columns, *named)


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
    used = [*domain.with_covariates({}).columns, *unasked]
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


def refuse_person(person: object, level: Level, rows_per_person: int, *, is_table: bool) -> None:
    """Refuse to derive how many rows a person has where ids are private, or where it is said."""
    if person is None:
        return
    if not isinstance(person, str):
        msg = "person names one column, whose entries tell persons apart"
        raise ArgumentError(msg, parameter="person")
    if not has_public_covariates(level):
        msg = (
            "ids are private at sample level, so how many rows a person has is not read off them; "
            "declare rows_per_person instead of person"
        )
        raise ArgumentError(msg, parameter="rows_per_person")
    if not is_table:
        msg = "a study that is encoded, or not there yet, has no ids; declare rows_per_person"
        raise ArgumentError(msg, parameter="rows_per_person")
    if rows_per_person != 1:
        msg = "person derives rows_per_person; say one of them"
        raise ArgumentError(msg, parameter="person")


def most_rows(data: object, person: str, public: Sequence[str], memory: int) -> int:
    """Return the largest number of rows that share an id; rows without one count as one person's.

    Persons are distinguished by hashes of 64 bits: two persons of one hash count as one, which errs
    on the side of more noise. ``public`` are the columns by which a sheet's rows are counted.
    """

    def count() -> int:
        import polars as pl

        table = open_table(data, memory, [*public, person], public=public)
        counts = pl.DataFrame(schema={"person": pl.UInt64, "rows": pl.UInt32})
        for chunk in table.chunks([person]):
            found = pl.DataFrame({"person": hash_persons(chunk, person)})
            found = found.group_by("person").agg(pl.len().alias("rows"))
            counts = pl.concat([counts, found]).group_by("person").agg(pl.col("rows").sum())
        return int(counts["rows"].max() or 1)  # type: ignore[arg-type]  # of whole numbers

    return without_words(count)


def hash_persons(table: Table, column: str) -> Words:
    """Return a hash for each row's id; of a number the same however it is written."""
    hashes: Words = _ids(table, column).hash(seed=1).to_numpy()
    return hashes


def _ids(table: Table, column: str) -> pl.Series:
    """Return ids as texts, empty where there is none."""
    import polars as pl

    texts = table.texts(column).alias("id")
    frame = (
        texts.fill_null("")
        .to_frame()
        .with_columns(number=pl.col("id").cast(pl.Float64, strict=False))
    )
    is_whole = pl.col("number").is_finite() & (pl.col("number").abs() < _WHOLE)
    number = (pl.col("number") + 0.0).cast(pl.String)  # −0 is 0
    is_missing = pl.col("number").is_nan()
    read = pl.when(is_missing).then(pl.lit("")).when(is_whole).then(number)
    return frame.select(read.otherwise(pl.col("id"))).to_series()
