"""Subgroups by declared columns: labels of a column, or a number that cuts it in two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from private_ate.arguments import shown
from private_ate.arrays import Bits, Codes, Floats
from private_ate.domain.column_types import Categories, Interval, parse_number
from private_ate.domain.domain import Domain
from private_ate.errors import ArgumentError

__all__ = ["MOST_CELLS", "Cells", "ColumnPartition"]

MOST_CELLS: Final = 20
REST: Final = "not known"  # rows with a missing or undeclared entry in some column


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
