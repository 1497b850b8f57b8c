"""The few errors raised on purpose; their texts quote public facts only."""

from __future__ import annotations


class PrivateAteError(Exception):
    """Base of every error that private-ate raises on purpose.

    Attributes
    ----------
    parameter : str
        The parameter that would help, for doors that call it otherwise: the command line adds its
        flag. Empty where the text says all.
    column : str
        The column that the parameter is wanted for.
    """

    def __init__(self, *texts: object, parameter: str = "", column: str = "") -> None:
        super().__init__(*texts)
        self.parameter = parameter
        self.column = column


class ArgumentError(PrivateAteError, ValueError):
    """An argument cannot be used; nothing was read and no budget was spent."""


class DomainError(PrivateAteError, ValueError):
    """Declared knowledge (bounds, categories, treatment labels) is missing or inconsistent."""


class SchemaError(PrivateAteError, ValueError):
    """The table lacks a column or holds a column of a type that cannot be used."""


class UndeclaredError(SchemaError):
    """Public columns hold what was not declared; costs nothing, for no outcome was asked."""


class RecordsError(SchemaError):
    """The records cannot be read or encoded; says nothing of them, and is charged to a ledger."""


class NumericRangeError(PrivateAteError, ArithmeticError):
    """A noise scale or a sum leaves the range in which it can be computed exactly."""


class BudgetError(PrivateAteError):
    """The privacy budget does not allow the request."""


class LedgerError(PrivateAteError):
    """The ledger cannot be opened, or its history does not verify."""


class DatasetError(PrivateAteError, LookupError):
    """A benchmark data set is not installed, or not the one that is expected."""
