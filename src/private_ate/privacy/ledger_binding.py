"""What a request is charged for, and the outside view of a data set that it is bound to.

The binding keeps one data set's budget from being spent on another table. It is made of public
facts only: names of columns, declared bounds and labels; never of a value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from private_ate.errors import LedgerError
from private_ate.privacy.cost import Cost
from private_ate.privacy.ledger_chain import Entry, canonical

__all__ = ["Binding", "Charge", "replay_bindings"]


@dataclass(frozen=True, slots=True)
class Binding:
    """What a data set looks like from outside: its columns and what is declared about them.

    Attributes
    ----------
    columns : mapping of text to text, or None
        Each column's name; None if not known yet. Ledgers of earlier versions kept kinds too,
        which are ignored: they can follow a single value.
    declared : mapping of text to text
        Bounds, categories and labels of the columns that a request uses.
    """

    columns: Mapping[str, str] | None = None
    declared: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, body: str) -> Binding:
        """Read back what :meth:`text` wrote."""
        try:
            plain = json.loads(body)
            return cls(plain["columns"], dict(plain["declared"]))
        except (ValueError, TypeError, KeyError, RecursionError) as cause:
            msg = "the ledger's description of a data set cannot be read: it was altered"
            raise LedgerError(msg) from cause

    @property
    def text(self) -> str:
        """The binding as canonical JSON."""
        columns = None if self.columns is None else dict(self.columns)
        return canonical({"columns": columns, "declared": dict(self.declared)})

    def merge(self, other: Binding, dataset: str) -> Binding:
        """Return both together, or say where they disagree."""
        known = self.columns is not None and other.columns is not None
        if known and set(self.columns or ()) != set(other.columns or ()):
            msg = (
                f"data set {dataset!r} is bound to a table with other columns; "
                "is this the right file, or does it need a data set of its own?"
            )
            raise LedgerError(msg)
        for column, declaration in other.declared.items():
            if self.declared.get(column, declaration) != declaration:
                msg = (
                    f"data set {dataset!r} declares column {column!r} as "
                    f"{self.declared[column]}, not as {declaration}; use the same domain"
                )
                raise LedgerError(msg)
        columns = other.columns if self.columns is None else self.columns
        return Binding(columns, {**self.declared, **other.declared})


@dataclass(frozen=True, slots=True)
class Charge:
    """One request as the ledger sees it; ``plan`` is the hash of all its public parameters."""

    dataset: str
    request: str
    plan: str
    cost: Cost
    analyst: str = ""
    binding: Binding = field(default_factory=Binding)


def replay_bindings(entries: Sequence[Entry]) -> dict[str, str]:
    """Add the bindings up again; those that a ledger keeps must equal this."""
    bindings: dict[str, Binding] = {}
    for entry in entries:
        if entry.kind == "create":
            bindings[entry.dataset] = Binding.read(entry.body)
        elif entry.kind == "charge":
            merged = bindings[entry.dataset].merge(Binding.read(entry.body), entry.dataset)
            bindings[entry.dataset] = merged
    return {dataset: binding.text for dataset, binding in bindings.items()}
