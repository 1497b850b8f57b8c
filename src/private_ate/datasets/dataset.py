"""A benchmark data set: its rows, its declared domain and what is known about the effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

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
        Treatment (0 or 1, or the arms' labels), outcome and covariates; never a potential outcome.
    domain : Domain
        Declared bounds. They are the observed ranges written down as constants, which is the
        paper's convention for benchmarks; a user's domain comes from a code book.
    true_effect : float or None
        The average effect over the units, where the outcomes were simulated; of several arms that
        of the last one against the reference.
    treated, control : int
        How many units each arm holds; checked against the rows. Of several arms the last one and
        the reference.
    source : str
        Where the rows come from.
    true_means : mapping of str to float
        The average over all units of the expected outcome in each arm, by its label, where several
        arms were simulated; empty otherwise.
    """

    name: str
    frame: pl.DataFrame = field(repr=False)
    domain: Domain = field(repr=False)
    true_effect: float | None
    treated: int
    control: int
    source: str
    true_means: Mapping[str, float] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        held = _sizes(self.frame, self.domain)
        if held != (self.treated, self.control):
            msg = (
                f"data set {self.name!r} should hold {self.treated} treated and {self.control} "
                f"control units but holds {held[0]} and {held[1]}"
            )
            raise DatasetError(msg)

    @classmethod
    def generated(  # the fields, but the arms' sizes
        cls,
        name: str,
        frame: pl.DataFrame,
        domain: Domain,
        true_effect: float,
        source: str,
        true_means: Mapping[str, float] | None = None,
    ) -> Dataset:
        """Return generated rows, of which each arm holds as many as it happens to."""
        sizes = _sizes(frame, domain)
        return cls(name, frame, domain, true_effect, *sizes, source, true_means or {})

    @property
    def size(self) -> int:
        """The number of units (n)."""
        return self.frame.height

    @property
    def true_contrasts(self) -> dict[tuple[str, str], float]:
        """True differences of means by (arm, against): those with the reference come first."""
        return {
            (arm, against): self.true_means[arm] - self.true_means[against]
            for arm, against in pairs_of_arms(self.domain.treatment.coded)
            if self.true_means
        }

    def exact_effect(self, neighbors: int = 5) -> float:
        """Return the matching estimate without limits and noise; **not private**."""
        from private_ate.diagnostics.exact import exact_effect  # numba loads here

        return exact_effect(self.frame, domain=self.domain, neighbors=neighbors)


def _sizes(frame: pl.DataFrame, domain: Domain) -> tuple[int, int]:
    """Return how many rows are treated and how many are controls."""
    arms, column = domain.treatment, frame[domain.treatment.column]
    return int((column == arms.treated).sum()), int((column == arms.control).sum())


def pairs_of_arms(coded: Sequence[str]) -> list[tuple[str, str]]:
    """Return all pairs (arm, against) of arms in code order, those with the reference first.

    Examples
    --------
    >>> pairs_of_arms(("none", "low", "high"))
    [('low', 'none'), ('high', 'none'), ('high', 'low')]
    """
    return [(arm, against) for against, arm in combinations(coded, 2)]
