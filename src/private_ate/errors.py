"""The few errors raised on purpose; their texts quote public facts only."""

from __future__ import annotations

from typing import ClassVar


class PrivateAteError(Exception):
    """Base of every error that private-ate raises on purpose.

    Attributes
    ----------
    parameter : str
        The parameter that would help, for callers that name it otherwise: the command line adds its
        flag. Empty where the text says all.
    column : str
        The column that the parameter is wanted for.
    code : str
        What kind of error it is, for programs; stays the same when a text is worded anew.
    """

    code: ClassVar[str] = "error"

    def __init__(self, *texts: object, parameter: str = "", column: str = "") -> None:
        super().__init__(*texts)
        self.parameter = parameter
        self.column = column


class ArgumentError(PrivateAteError, ValueError):
    """An argument cannot be used; nothing was read and no budget was spent."""

    code: ClassVar[str] = "argument"


class DomainError(PrivateAteError, ValueError):
    """Declared knowledge (bounds, categories, treatment labels) is missing or inconsistent."""

    code: ClassVar[str] = "domain"


class SchemaError(PrivateAteError, ValueError):
    """The table lacks a column or holds a column of a type that cannot be used."""

    code: ClassVar[str] = "schema"


class UndeclaredError(SchemaError):
    """Public columns hold what was not declared; costs nothing, for no outcome was asked."""

    code: ClassVar[str] = "undeclared"


class RecordsError(SchemaError):
    """The records cannot be read or encoded; says nothing of them, and is charged to a ledger."""

    code: ClassVar[str] = "records"


class NumericRangeError(PrivateAteError, ArithmeticError):
    """A noise scale or a sum leaves the range in which it can be computed exactly."""

    code: ClassVar[str] = "range"


class BudgetError(PrivateAteError):
    """The privacy budget does not allow the request."""

    code: ClassVar[str] = "budget"


class LedgerError(PrivateAteError):
    """The ledger cannot be opened, or its history does not verify."""

    code: ClassVar[str] = "ledger"


class DatasetError(PrivateAteError, LookupError):
    """A benchmark data set is not installed, or not the one that is expected."""

    code: ClassVar[str] = "dataset"
