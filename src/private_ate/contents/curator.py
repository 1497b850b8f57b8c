"""What a curator may see of a release's own estimator and of values that the domain cut off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from private_ate.contents.table_one import TableOne

__all__ = ["LostValues", "WithoutNoise"]


@dataclass(frozen=True, slots=True)
class LostValues:
    """Entries of a column that were not used as they are. Not private.

    Attributes
    ----------
    missing : int
        Entries that are missing or could not be read.
    below, above : int
        Numbers beyond the declared bounds, which were clipped to them.
    undeclared : int
        Labels that nobody declared.
    """

    missing: int = field(default=0, repr=False)
    below: int = field(default=0, repr=False)
    above: int = field(default=0, repr=False)
    undeclared: int = field(default=0, repr=False)

    @property
    def any(self) -> bool:
        """Whether any entry was lost."""
        return bool(self.missing or self.below or self.above or self.undeclared)


@dataclass(frozen=True, slots=True)
class WithoutNoise:
    """The estimator of a release without noise, and its weights where they are known. Not private.

    Attributes
    ----------
    effect : float
        What the release would have been; of several arms the headline.
    means : mapping
        Of several arms: the mean of each without noise, by its label.
    by_weights : bool
        Whether it was computed with the very weights of the release; otherwise the method ran once
        more with all of its steps silent, and what these decide may be another.
    weights : mapping
        Smallest, median, 90 %, 99 % and largest weight of each arm; empty where not known.
    table : TableOne or None
        The covariates by arm under these weights.
    """

    effect: float = field(repr=False)
    means: Mapping[str, float] = field(default_factory=dict, repr=False)
    by_weights: bool = False
    weights: Mapping[str, tuple[float, ...]] = field(default_factory=dict, repr=False)
    table: TableOne | None = field(default=None, repr=False)
