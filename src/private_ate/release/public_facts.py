"""What a page may add to a release: overlap, Table 1 and how the release was asked for.

At label level all of it is a function of public columns; otherwise overlap and Table 1 are the
curator's alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, Literal

Verdict = Literal["balanced", "nearly", "not balanced"]
_BALANCED: Final = 0.1  # standardised difference that is usually called balanced
_NEARLY: Final = 0.25
_LEAST_RATIO: Final = 0.5  # of variances; its inverse is the greatest


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and standard deviation of a covariate in one arm, in its own units.

    Attributes
    ----------
    mean : float
        The mean, or the share of a category.
    deviation : float
        The standard deviation.
    """

    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class CovariateRow:
    """One covariate in every arm.

    Attributes
    ----------
    name : str
        The covariate, or one of its categories.
    is_share : bool
        Whether its means are shares of an arm.
    before, after : tuple of Moments
        One for each arm, the reference first; ``after`` is empty where weights are not known.
    """

    name: str
    is_share: bool
    before: tuple[Moments, ...] = field(repr=False)
    after: tuple[Moments, ...] = field(default=(), repr=False)

    def difference(self, moments: tuple[Moments, ...]) -> float:
        """Return the standardised difference of means; of several arms the greatest of any pair."""
        found = [
            _standardised(first, second, was_first, was_second)
            for (first, was_first), (second, was_second) in combinations(
                zip(moments, self.before, strict=True), 2
            )
        ]
        return max(found, key=abs)

    def variance_ratio(self, moments: tuple[Moments, ...]) -> float | None:
        """Return the ratio of variances; of several arms the greatest by the least.

        None for a share, whose variance follows from its mean, and where an arm does not vary.
        """
        spreads = [one.deviation**2 for one in moments]
        if self.is_share or min(spreads) == 0:
            return None
        return spreads[1] / spreads[0] if len(spreads) == 2 else max(spreads) / min(spreads)

    @property
    def verdict(self) -> Verdict:
        """Say whether the arms are alike, after weighting where that is known."""
        moments = self.after or self.before
        far = abs(self.difference(moments))
        ratio = self.variance_ratio(moments)
        alike = ratio is None or _LEAST_RATIO <= ratio <= 1 / _LEAST_RATIO
        if far <= _BALANCED and alike:
            return "balanced"
        return "nearly" if far <= _NEARLY and alike else "not balanced"


@dataclass(frozen=True, slots=True)
class TableOne:
    """Every covariate in every arm, the reference first.

    Public at label level, where covariates and treatment are; the curator's otherwise. Its repr
    shows no value.

    Attributes
    ----------
    labels : tuple of str
        The arms.
    sizes : tuple of int
        How many units each arm holds.
    effective : tuple of float
        The effective sample size of each; empty where weights are not known.
    rows : tuple of CovariateRow
        The covariates, a row for each category.
    """

    labels: tuple[str, ...]
    sizes: tuple[int, ...] = field(repr=False)
    effective: tuple[float, ...] = field(repr=False)
    rows: tuple[CovariateRow, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Counts of units by propensity score, in equal bins from 0 to 1.

    Public at label level, where covariates and treatment are; the curator's otherwise. Its repr
    shows no count.

    Attributes
    ----------
    treated : tuple of int
        Treated units in each bin.
    control : tuple of int
        Control units in each bin.
    """

    treated: tuple[int, ...] = field(repr=False)
    control: tuple[int, ...] = field(repr=False)

    @property
    def alone(self) -> int:
        """Units in bins that hold nobody of the other arm."""
        return sum(
            first + second
            for first, second in zip(self.treated, self.control, strict=True)
            if not (first and second)
        )


@dataclass(frozen=True, slots=True)
class ArmOverlap:
    """Counts of units of three arms or more by the score of each arm, in equal bins from 0 to 1.

    ``counts[t][s]`` are the units of arm s by the probability of arm t; arms are in the order of
    ``labels``. Public at label level, the curator's otherwise. Its repr shows no count.

    Attributes
    ----------
    labels : tuple of str
        The arms.
    counts : tuple
        Units by score, as above.
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[tuple[int, ...], ...], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """What a page may add to a release: all of it known without looking at a private column.

    Attributes
    ----------
    command : str
        The command line that made the release.
    domain : str
        The declared domain as TOML.
    treatment, outcome : str
        Column names.
    overlap : Overlap, ArmOverlap or None
        Scores by arm, at label level, where covariates and treatment are public.
    table : TableOne or None
        Table 1, covariates by arm before and after weighting; at label level too.
    analyst : str
        Who asked.
    spent_before : float or None
        ε that was spent on the same data before this release.
    """

    command: str = ""
    domain: str = ""
    treatment: str = ""
    outcome: str = ""
    overlap: Overlap | ArmOverlap | None = None
    table: TableOne | None = None
    analyst: str = ""
    spent_before: float | None = None


def _standardised(
    first: Moments, second: Moments, was_first: Moments, was_second: Moments
) -> float:
    """Return second less first, in deviations before weighting."""
    spread = math.sqrt((was_first.deviation**2 + was_second.deviation**2) / 2) or 1.0
    return (second.mean - first.mean) / spread
