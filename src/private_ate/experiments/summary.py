"""Questions to a summary: look up, select, order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from private_ate.experiments.results import SummaryRow

__all__ = ["Summary", "geometric_mean"]


@dataclass(frozen=True, slots=True)
class Summary:
    """The rows of a summary, in the order of the plan."""

    rows: tuple[SummaryRow, ...]

    def where(self, **wanted: str | int) -> Summary:
        """Return the rows whose columns have the wanted values."""
        return self.select(
            lambda row: all(getattr(row, name) == value for name, value in wanted.items())
        )

    def select(self, wanted: Callable[[SummaryRow], bool]) -> Summary:
        """Return the rows for which a question is answered with yes."""
        return Summary(tuple(row for row in self.rows if wanted(row)))

    def values(self, column: str) -> list[str]:
        """Return the different values of a column in the order of their appearance."""
        return list(dict.fromkeys(str(getattr(row, column)) for row in self.rows))

    @property
    def datasets(self) -> list[str]:
        """The data sets in the order of the plan."""
        return self.values("dataset")

    @property
    def methods(self) -> list[str]:
        """The arms in the order of the plan."""
        return self.values("method")

    @property
    def errors(self) -> list[float]:
        """Mean relative errors of the rows that have any."""
        return [
            row.relative_error_mean for row in self.rows if not math.isnan(row.relative_error_mean)
        ]

    def error(self, **wanted: str | int) -> float:
        """Return the mean relative error of the one row with these values; NaN if none."""
        rows = self.where(**wanted).rows
        return rows[0].relative_error_mean if len(rows) == 1 else math.nan

    def average(self, **wanted: str | int) -> float:
        """Return the geometric mean of the relative errors of these rows; NaN if none."""
        return geometric_mean(self.where(**wanted).errors)


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean, in which no large error hides the others; NaN for nothing."""
    known: Sequence[float] = [value for value in values if value > 0]
    return math.exp(math.fsum(map(math.log, known)) / len(known)) if known else math.nan
