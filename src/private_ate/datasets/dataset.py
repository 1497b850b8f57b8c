"""A benchmark data set: its rows, its declared domain and what is known about the effect."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from private_ate.domain import Domain
from private_ate.errors import DatasetError

__all__ = ["Dataset"]


@dataclass(frozen=True, slots=True)
class Dataset:
    """Rows of a public benchmark with the domain that describes them.

    Attributes
    ----------
    name : str
        The name under which the set is loaded.
    frame : polars.DataFrame
        Treatment (0 or 1), outcome and covariates; never a potential outcome.
    domain : Domain
        Declared bounds. They are the observed ranges written down as constants, which is the
        paper's convention for benchmarks; a user's domain comes from a code book.
    true_effect : float or None
        The average effect over the units, where the outcomes were simulated.
    treated, control : int
        How many units each arm holds; checked against the rows.
    source : str
        Where the rows come from.
    """

    name: str
    frame: pl.DataFrame = field(repr=False)
    domain: Domain = field(repr=False)
    true_effect: float | None
    treated: int
    control: int
    source: str

    def __post_init__(self) -> None:
        treated = int((self.frame[self.domain.treatment.column] == 1).sum())
        if (treated, self.frame.height - treated) != (self.treated, self.control):
            msg = (
                f"data set {self.name!r} should hold {self.treated} treated and {self.control} "
                f"control units but holds {treated} and {self.frame.height - treated}"
            )
            raise DatasetError(msg)

    @property
    def size(self) -> int:
        """The number of units (n)."""
        return self.frame.height

    def exact_effect(self, neighbors: int = 5) -> float:
        """Return the matching estimate without limits and noise; **not private**."""
        from private_ate.estimators.exact import exact_effect  # numba loads here

        return exact_effect(self.frame, domain=self.domain, neighbors=neighbors)
