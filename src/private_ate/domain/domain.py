"""What is declared about every column of a study before a record is read, and subgroups by it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np

from private_ate.arguments import settle, shown
from private_ate.arrays import Bits, Codes, Floats
from private_ate.domain.column_types import (
    Categories,
    Interval,
    SamplingWeights,
    Treatment,
    as_weights,
    parse_number,
    require_name,
)
from private_ate.domain.outcome import Outcome, StudyLabel
from private_ate.domain.toml import read_tables, write_tables
from private_ate.errors import ArgumentError, DomainError

__all__ = [
    "MOST_CELLS", "MOST_OUTCOMES", "Cells", "ColumnPartition", "Domain", "require_one_outcome",
]  # fmt: skip

OneOutcome = str | tuple[str, Interval] | Outcome
MOST_OUTCOMES: Final = 50
MOST_CELLS: Final = 20
REST: Final = "not known"  # rows with a missing or undeclared entry in some column


@dataclass(frozen=True, slots=True)
class Domain:
    """What is known about every column before the data are read.

    ``outcome`` is one outcome or a list of them; the first is the headline, ``outcomes`` are all.
    ``weights`` declares sampling weights, which are then in force: effects are those of the
    population that the weighted sample stands for. ``indicators`` names covariates whose missing
    entries have a feature of their own; see
    :meth:`with_indicators`.

    Attributes
    ----------
    treatment : Treatment
        The treatment's column and its arms; a text names the column.
    outcome : Outcome
        The headline's outcome.
    covariates : mapping
        An Interval or Categories for each covariate, by column.
    study : StudyLabel
        What the curator calls the data.
    weights : SamplingWeights or None
        Sampling weights; None for none.
    further : tuple of Outcome
        Outcomes after the first.
    column_labels : mapping
        What columns are called in reports, such as "Systolic blood pressure".
    indicators : tuple of str
        Covariates whose missing entries have a feature of their own.

    Examples
    --------
    >>> domain = Domain(
    ...     treatment="treat",
    ...     outcome=("re78", Interval(0, 60308)),
    ...     covariates={"age": Interval(16, 60), "race": Categories("black", "hispanic", "other")},
    ... )
    >>> domain.features
    ('age', 'race=black', 'race=hispanic', 'race=other')
    """

    treatment: Treatment
    outcome: Outcome
    covariates: Mapping[str, Interval | Categories] = field(default_factory=dict)
    study: StudyLabel = field(default_factory=StudyLabel)
    weights: SamplingWeights | None = None
    further: tuple[Outcome, ...] = field(default=(), repr=False)  # outcomes after the first
    column_labels: Mapping[str, str] = field(default_factory=dict, repr=False)
    indicators: tuple[str, ...] = field(default=(), init=False)

    def __init__(
        self,
        treatment: str | Treatment,
        outcome: str | tuple[str, Interval] | Outcome | Sequence[OneOutcome],
        covariates: Mapping[str, Interval | Categories] | None = None,
        *,
        study: StudyLabel | None = None,
        weights: SamplingWeights | tuple[str, Interval] | None = None,
        further: tuple[Outcome, ...] = (),
        column_labels: Mapping[str, str] | None = None,
    ) -> None:
        first, *others = _as_outcomes(outcome)
        settle(
            self,
            treatment=Treatment(treatment) if isinstance(treatment, str) else treatment,
            outcome=first,
            further=(*others, *further),
            covariates=dict(covariates or {}),
            column_labels=dict(column_labels or {}),
            indicators=(),
            study=study or StudyLabel(),
            weights=as_weights(weights),
        )
        self._check()

    def _check(self) -> None:
        if not isinstance(self.treatment, Treatment):
            msg = "the treatment is a column name or Treatment(column, treated=…, control=…)"
            raise DomainError(msg)
        if len(self.outcomes) > MOST_OUTCOMES:
            msg = (
                f"at most {MOST_OUTCOMES} outcomes are declared together, not {len(self.outcomes)}"
            )
            raise DomainError(msg, parameter="outcome")
        for label in self.column_labels.values():
            require_name("label of a column", label)
        names = self.columns
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            msg = f"column {repeated[0]!r} is declared twice"
            raise DomainError(msg)
        for name, kind in self.covariates.items():
            if not isinstance(kind, Interval | Categories):
                msg = f"covariate {name!r} is declared by an Interval or by Categories"
                raise DomainError(msg)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """All outcomes, the headline first."""
        return (self.outcome, *self.further)

    def of_outcome(self, place: int) -> Domain:
        """Return the domain with one of its outcomes alone."""
        return self.with_outcome(self.outcomes[place]) if self.further else self

    def with_outcome(self, outcome: Outcome) -> Domain:
        """Return the domain with another outcome, and that alone."""
        domain = copy(self)  # of what was checked: nothing is checked again
        settle(domain, outcome=outcome, further=())
        return domain

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the encoded columns: one per interval, one per category, one per indicator."""
        plain = [
            feature for name, kind in self.covariates.items() for feature in _features(name, kind)
        ]
        for name in self.indicators:
            feature = f"{name} (missing)"
            while feature in plain:  # somebody's column has that very name
                feature += " (missing)"
            plain.append(feature)
        return tuple(plain)

    @property
    def places(self) -> dict[str, slice]:
        """Where the encoded columns of each covariate are; those of indicators come last."""
        found, first = {}, 0
        for name, kind in self.covariates.items():
            last = first + len(_features(name, kind))
            found[name], first = slice(first, last), last
        return found

    @property
    def columns(self) -> list[str]:
        """Names of all columns that are read: treatment, outcomes, covariates, sampling weights."""
        weights = [] if self.weights is None else [self.weights.column]
        return [self.treatment.column, *self.private_columns, *self.covariates, *weights]

    @property
    def private_columns(self) -> tuple[str, ...]:
        """Columns that hold the outcomes, the headline's first."""
        return tuple(column for outcome in self.outcomes for column in outcome.columns)

    @property
    def public_columns(self) -> tuple[str, ...]:
        """Columns that label level holds public: treatment, covariates and sampling weights."""
        weights = () if self.weights is None else (self.weights.column,)
        return (self.treatment.column, *self.covariates, *weights)

    def with_covariates(self, covariates: Mapping[str, Interval | Categories]) -> Domain:
        """Return the domain with these covariates instead; itself if they are its own."""
        same = list(covariates.items()) == list(self.covariates.items())
        return self if same else replace(self, covariates=covariates)

    def with_indicators(self, names: Collection[str]) -> Domain:
        """Return the domain with a further feature for each named covariate: whether it is missing.

        For public covariates only. Which of them have missing entries is looked up and never
        declared, so it is no part of a domain's TOML.
        """
        domain = copy(self)
        settle(domain, indicators=tuple(name for name in self.covariates if name in names))
        return domain

    @property
    def bounds(self) -> Interval:
        """The outcome's bounds; an error that says how to declare them when they were not."""
        return self.outcome.declared_bounds

    @classmethod
    def read(cls, path: str | Path) -> Domain:
        """Read a domain from a TOML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as cause:
            msg = f"the domain file {str(path)!r} cannot be read; is the path right?"
            raise DomainError(msg) from cause
        return cls.from_toml(text)

    @classmethod
    def from_toml(cls, text: str) -> Domain:
        """Build a domain from TOML text, as written by :meth:`to_toml`."""
        return cls(**read_tables(text))

    def write(self, path: str | Path) -> None:
        """Write the domain to a TOML file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def to_toml(self) -> str:
        """Return the domain as TOML text that :meth:`from_toml` reads back."""
        return write_tables(
            self.study, self.treatment, self.outcomes, self.covariates, self.weights,
            self.column_labels,
        )  # fmt: skip


def require_one_outcome(domain: Domain, who: str) -> None:
    """Refuse several outcomes, or a time to an event, where one plain outcome is meant."""
    if len(domain.outcome.columns) > 1:
        msg = f"{who} takes no time to an event"
        raise DomainError(msg, parameter="outcome")
    if domain.further:
        msg = (
            f"{who} has one outcome; {len(domain.outcomes)} are declared: keep one of them, as "
            "domain.of_outcome(0) does"
        )
        raise DomainError(msg, parameter="outcome")


def _as_outcomes(outcome: object) -> list[Outcome]:
    """Read one outcome or a list of them; a pair of a name and bounds is one."""
    match outcome:
        case (str(), Interval()) | str() | Outcome():
            return [_as_outcome(outcome)]
        case list() | tuple() if outcome:
            return [_as_outcome(one) for one in outcome]
    msg = (
        'the outcome is a column name, a pair such as ("re78", Interval(0, 60308)), or a list of '
        "these"
    )
    raise DomainError(msg, parameter="outcome")


def _as_outcome(outcome: object) -> Outcome:
    match outcome:
        case Outcome():
            return outcome
        case str() as column:
            return Outcome(column)
        case (str() as column, Interval() as bounds):
            return Outcome(column, bounds)
    msg = 'the outcome is a column name or a pair such as ("re78", Interval(0, 60308))'
    raise DomainError(msg)


def _features(name: str, kind: Interval | Categories) -> tuple[str, ...]:
    if isinstance(kind, Interval):
        return (name,)
    return tuple(f"{name}={label}" for label in kind.labels)


@dataclass(frozen=True, slots=True)
class ColumnPartition:
    """One way to divide all rows: by the labels of a column, or at a cut.

    Attributes
    ----------
    column : str
        The declared column.
    names : tuple of str
        What the groups are called, in order.
    first : int
        Place of its first encoded feature.
    cut : float or None
        Where the encoded feature is cut; None for labels, of which each has a feature.
    missing : int or None
        Place of the feature that marks missing entries; None without one.
    """

    column: str
    names: tuple[str, ...]
    first: int
    cut: float | None
    missing: int | None = None

    def group(self, covariates: Floats) -> tuple[Codes, Bits]:
        """Return the group of every row, and whether its entry determines it."""
        known: Bits = np.ones(len(covariates), dtype=np.bool_)
        if self.cut is not None:
            codes = (covariates[:, self.first] >= self.cut).astype(np.uint8)
        else:
            marks = covariates[:, self.first : self.first + len(self.names)] > 0.5
            codes = marks.argmax(axis=1).astype(np.uint8)
            known &= marks.any(axis=1)
        if self.missing is not None:
            known &= covariates[:, self.missing] < 0.5
        return codes, known


@dataclass(frozen=True, slots=True)
class Cells:
    """The finest cells that several partitions make, and one for rows that no cell is known of.

    Attributes
    ----------
    partitions : tuple of ColumnPartition
        The ways in which rows are divided, as asked.
    """

    partitions: tuple[ColumnPartition, ...]

    @classmethod
    def of(cls, domain: Domain, by: Sequence[str]) -> Cells:
        """Read columns and cuts such as "sex" and "age<65"; reads no record."""
        found = tuple(_partition(domain, text) for text in by)
        cells = math.prod(len(one.names) for one in found)
        if cells > MOST_CELLS:
            msg = f"{', '.join(by)} make {cells} cells; at most {MOST_CELLS} are allowed"
            raise ArgumentError(msg, parameter="by")
        return cls(found)

    @property
    def count(self) -> int:
        """How many cells there are, with the one for rows that no cell is known of."""
        return math.prod(len(one.names) for one in self.partitions) + 1

    @property
    def names(self) -> tuple[str, ...]:
        """What each cell is called."""
        crossed = product(*(one.names for one in self.partitions))
        columns = " or ".join(one.column for one in self.partitions)
        return (*(", ".join(names) for names in crossed), f"{columns} {REST}")

    @property
    def margins(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Groups of each single partition and the cells in them; none if there is one only."""
        if len(self.partitions) == 1:
            return ()
        shape = [len(one.names) for one in self.partitions]
        places = np.arange(math.prod(shape)).reshape(shape)
        return tuple(
            (name, tuple(int(cell) for cell in places.take(group, axis=axis).ravel()))
            for axis, one in enumerate(self.partitions)
            for group, name in enumerate(one.names)
        )

    def codes(self, covariates: Floats) -> Codes:
        """Return the cell of every row of encoded covariates."""
        cell = np.zeros(len(covariates), dtype=np.uint8)
        known = np.ones(len(covariates), dtype=np.bool_)
        for one in self.partitions:
            codes, declared = one.group(covariates)
            cell = cell * np.uint8(len(one.names)) + codes
            known &= declared
        return np.where(known, cell, np.uint8(self.count - 1))


def _partition(domain: Domain, text: str) -> ColumnPartition:
    """Read one entry: a declared column of labels, or ``column<number``."""
    column, sign, number = text, "", ""
    if text not in domain.covariates:
        column, sign, number = (part.strip() for part in text.partition("<"))
    kind = domain.covariates.get(column)
    if kind is None:
        known = ", ".join(map(repr, domain.covariates)) or "none"
        msg = (
            f"subgroups are made by covariates that the domain declares ({known}), not by {text!r}"
        )
        raise ArgumentError(msg, parameter="bounds", column=column)
    first = domain.places[column].start
    missing = None
    if column in domain.indicators:
        missing = len(domain.features) - len(domain.indicators) + domain.indicators.index(column)
    if isinstance(kind, Categories):
        if sign:
            msg = f"column {column!r} has labels: name it alone, without {sign}{number}"
            raise ArgumentError(msg, parameter="by", column=column)
        names = tuple(f"{column}={label}" for label in kind.labels)
        return ColumnPartition(column, names, first, None, missing)
    if kind.is_binary and not sign:
        return ColumnPartition(column, (f"{column}=0", f"{column}=1"), first, 0.5, missing)
    return _cut(kind, column, sign, number, first, missing)


def _cut(
    kind: Interval, column: str, sign: str, number: str, first: int, missing: int | None
) -> ColumnPartition:
    value = parse_number(number) if sign else None
    if value is None or not kind.low < value <= kind.high:
        msg = (
            f"column {column!r} is a number: name where it is cut, such as "
            f"{f'{column}<{kind.middle:g}'!r}, above {kind.low:g} and at most {kind.high:g}"
        )
        if sign:
            msg += f", not {shown(number)}"
        raise ArgumentError(msg, parameter="by", column=column)
    names = (f"{column}<{number}", f"{column}≥{number}")
    # As encoded entries are made, so that an entry that equals the cut is not below it.
    return ColumnPartition(column, names, first, (value - kind.low) / kind.width, missing)
