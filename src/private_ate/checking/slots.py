"""Where each arm is counted: its place in arrays of counts, its label and its name in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from private_ate.arrays import Integers
from private_ate.checking.words import quoted
from private_ate.data.encoding import read_arms
from private_ate.data.tables import Table
from private_ate.domain import Treatment

__all__ = ["ArmSlots"]


@dataclass(frozen=True, slots=True)
class ArmSlots:
    """The arms in the order in which they are counted; rows of no declared arm come last.

    Two arms are treated and control; several are in the order of their codes, the reference first.
    """

    treatment: Treatment

    @property
    def is_pair(self) -> bool:
        """Whether two arms are compared."""
        return self.treatment.size == 2

    @property
    def labels(self) -> tuple[str, ...]:
        """The arms' labels."""
        coded = self.treatment.coded
        return coded[::-1] if self.is_pair else coded

    @property
    def names(self) -> tuple[str, ...]:
        """What sentences call the arms."""
        return ("treated", "control") if self.is_pair else tuple(map(quoted, self.labels))

    @property
    def size(self) -> int:
        """The length of an array of counts: one for each arm, one for rows of none."""
        return self.treatment.size + 1

    @property
    def outside(self) -> int:
        """The place of rows of no declared arm."""
        return self.treatment.size

    def place(self, table: Table) -> Integers:
        """Return the place of each row by its own entry."""
        codes, known = read_arms(table, self.treatment)
        places = codes.astype(np.int64)
        return np.where(known, 1 - places if self.is_pair else places, self.outside)

    def take_part(self, places: Integers) -> Integers:
        """Return where rows take part; the domain may name the arm of any other label."""
        other = self.treatment.other_code
        if other is None:
            return places
        return np.where(places == self.outside, 1 - other if self.is_pair else other, places)

    def counts(self, values: Sequence[float] | Integers) -> dict[str, Any]:
        """Return whole numbers by arm as plain values: two by name, several by label."""
        numbers = [int(value) for value in values[: self.outside]]
        if self.is_pair:
            return dict(zip(self.names, numbers, strict=True))
        return {"arms": dict(zip(self.labels, numbers, strict=True))}
