"""The boundary: a study answers folds over its rows and nothing else.

A kernel is a pure function of a block of rows that returns a small value which adds up; the
engine runs it over all blocks and hands back the sum. Methods never hold an array with a row per
person, engines never know ε.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from operator import add
from typing import Final, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Codes
from private_ate.domain.domain import Domain
from private_ate.domain.outcome import Outcome

__all__ = [
    "ALL_PRESENT",
    "Added",
    "ArmSizes",
    "Block",
    "Grouping",
    "Groups",
    "MatchPool",
    "MatchingLimits",
    "MatchingStudy",
    "RowWeights",
    "Rows",
    "Study",
    "Summable",
]


class Summable(Protocol):
    """A value of sums over rows: two of them add up to the sums over both sets of rows."""

    def __add__(self, other: Self, /) -> Self: ...


class Added:
    """A dataclass of sums over rows, added field by field.

    A field whose metadata have ``add`` is joined by that function of two values instead.
    """

    __slots__ = ()

    def __add__(self, other: Self) -> Self:
        """Add up the sums over two sets of rows."""
        added = (
            one.metadata.get("add", add)(getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)  # type: ignore[arg-type]  # dataclasses inherit from it
        )
        return type(self)(*added)


S = TypeVar("S", bound=Summable)

# One entry stands for all rows of a chunk.
ALL_PRESENT: Final = np.ones(1, dtype=np.bool_)
_ALIKE: Final = np.ones(1)


@dataclass(frozen=True, slots=True)
class Block:
    """A run of encoded rows; its repr shows none of them.

    Attributes
    ----------
    covariates : array, shape (m, d)
        Encoded covariates in [0, 1], without an intercept.
    arm : array of uint8, shape (m,)
        The arm of each row: 0 is the reference, the others follow as declared.
    outcome : array of int32, shape (m,), or None
        Outcomes on the grid {0, …, 2³⁰} across the declared bounds; None in a public view.
    first : int
        Index of the first row in the study, by which rows are split into public parts.
    takes_part : array of bool, shape (m,)
        False for rows whose treatment is missing or not a declared label. Methods that follow the
        paper's reading count such rows as control.
    observed : array of bool, shape (m,)
        False for rows without an outcome, where the domain says that they are left out; in a public
        view only where who lacks an outcome is public.
    arms : int
        How many arms are declared (K).
    weights : array, shape (m,)
        Sampling weights as shares of their declared bound, in [0, 1]; ones where none are declared.
    """

    covariates: npt.NDArray[np.float64] = field(repr=False)
    arm: Codes = field(repr=False)
    outcome: npt.NDArray[np.int32] | None = field(repr=False)
    first: int = 0
    takes_part: npt.NDArray[np.bool_] = field(default_factory=lambda: ALL_PRESENT, repr=False)
    observed: npt.NDArray[np.bool_] = field(default_factory=lambda: ALL_PRESENT, repr=False)
    arms: int = 2
    weights: npt.NDArray[np.float64] = field(default_factory=lambda: _ALIKE, repr=False)

    def __post_init__(self) -> None:
        if self.arm.dtype == np.bool_:  # treated or not is a code too
            object.__setattr__(self, "arm", self.arm.view(np.uint8))
        for name in ("takes_part", "observed", "weights"):
            held = getattr(self, name)
            if held.shape != self.arm.shape:  # one entry that stands for all rows
                object.__setattr__(self, name, np.full(self.arm.shape, held[0]))

    @property
    def treatment(self) -> npt.NDArray[np.bool_]:
        """True for treated rows, where two arms are declared."""
        if self.arms != 2:
            msg = f"this method compares two arms; {self.arms} are declared"
            raise TypeError(msg)
        return self.arm.view(np.bool_)

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which rows have a declared treatment and, where that matters, an outcome."""
        return self.takes_part & self.observed

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """How much each row counts: its sampling weight's share of the bound or 1; 0 if absent."""
        return self.present * self.weights


@dataclass(frozen=True, slots=True)
class Groups:
    """Some groups of encoded rows, stacked; short groups end in rows that take no part.

    Attributes
    ----------
    covariates : array, shape (g, b, d)
        Encoded covariates in [0, 1] of g groups of up to b rows.
    arm : array of uint8, shape (g, b)
        The arm of each row: 0 is the reference.
    outcome : array of int32, shape (g, b)
        Outcomes on the grid {0, …, 2³⁰}.
    takes_part : array of bool, shape (g, b)
        False for padding and for rows that take no part.
    weights : array, shape (g, b)
        Sampling weights as shares of their declared bound, in [0, 1]; ones where none are declared.
    """

    covariates: npt.NDArray[np.float64] = field(repr=False)
    arm: Codes = field(repr=False)
    outcome: npt.NDArray[np.int32] = field(repr=False)
    takes_part: npt.NDArray[np.bool_] = field(repr=False)
    weights: npt.NDArray[np.float64] = field(default_factory=lambda: _ALIKE, repr=False)

    def __post_init__(self) -> None:
        if self.arm.dtype == np.bool_:  # treated or not is a code too
            object.__setattr__(self, "arm", self.arm.view(np.uint8))
        if self.weights.shape != self.arm.shape:
            object.__setattr__(self, "weights", np.full(self.arm.shape, self.weights[0]))

    @property
    def treatment(self) -> npt.NDArray[np.bool_]:
        """True for treated rows, where two arms are declared."""
        return self.arm.view(np.bool_)


class Grouping(Protocol):
    """A partition of row positions that never looks at a row.

    Positions are put in a shuffled order; group g holds the places from ``g·n // count`` up to
    ``(g + 1)·n // count``, so that groups have the same size, or one row more.
    """

    @property
    def size(self) -> int:
        """The number of positions (n)."""

    @property
    def count(self) -> int:
        """The number of groups."""

    def places(self, first: int, rows: int) -> npt.NDArray[np.int64]:
        """Return the shuffled places of a run of positions."""


class Rows(Protocol):
    """Encoded rows that answer folds."""

    @property
    def size(self) -> int:
        """The number of rows (n), public at both levels."""

    @property
    def dimension(self) -> int:
        """The number of encoded covariates (d), without the intercept."""

    def fold(self, kernel: Callable[[Block], S], *, title: str = "") -> S:
        """Return the sum of the kernel over all blocks, in row order."""


class Study(Rows, Protocol):
    """Encoded rows behind the boundary."""

    @property
    def domain(self) -> Domain:
        """The declared domain."""

    @property
    def everyone_takes_part(self) -> bool:
        """Whether no row could be left out, by the way the rows were encoded; public."""

    def public(self) -> Self:
        """Return a view without outcomes, for the public phase of the label level."""

    def thinned(self, stride: int) -> AbstractContextManager[Self]:
        """Lend one row in ``stride`` as a study of its own, behind the same boundary."""

    def recoded(self, outcome: Outcome, code: Callable[[Block], npt.NDArray[np.int32]]) -> Self:
        """Return the same rows with another outcome, made from each block by a kernel.

        The kernel answers on the grid {0, …, 2³⁰} across the bounds of that outcome.
        """

    def unannounced(self) -> Self:
        """Return a view whose passes report no progress, for passes that follow records."""

    def by_groups(
        self,
        grouping: Grouping,
        kernel: Callable[[Groups], npt.NDArray[np.int64]],
        *,
        title: str = "",
    ) -> npt.NDArray[np.int64]:
        """Return the kernel's values for every group of rows, in the order of the groups.

        The kernel maps stacked groups to integers, a row of them per group, each a function of
        that group alone; groups are given by row positions.
        """


@dataclass(frozen=True, slots=True)
class ArmSizes:
    """How many rows each arm holds, the reference first; adds up over blocks."""

    counts: tuple[int, ...]

    @classmethod
    def count(cls, arm: Codes, arms: int) -> ArmSizes:
        """Count the codes of ``arms`` arms."""
        return cls(tuple(map(int, np.bincount(arm, minlength=arms))))

    def __add__(self, other: ArmSizes) -> ArmSizes:
        pairs = zip(self.counts, other.counts, strict=True)
        return ArmSizes(tuple(one + another for one, another in pairs))

    def __getitem__(self, arm: int) -> int:
        return self.counts[arm]

    @property
    def total(self) -> int:
        """All rows."""
        return sum(self.counts)

    @property
    def smaller(self) -> int:
        """The size of the smallest arm that is not empty."""
        return min((count for count in self.counts if count), default=0)

    @property
    def others(self) -> int:
        """How many rows the smallest arm has to stand in for (n₁); of two arms the larger."""
        return self.total - self.smaller


MatchingLimits = tuple[int | None, ...]
"""How often a unit of each arm may be used in matching, by the arms' codes; None for no limit."""


class RowWeights(Protocol):
    """One weight per row, kept by the engine; only summaries are shown."""

    @property
    def largest(self) -> tuple[int, ...]:
        """The largest weight of each arm on the grid of 2⁻²⁴, in the order of their codes."""

    @property
    def imbalance(self) -> float:
        """Total variation between the weights and equal weights within the arms, in [0, 1]."""


class MatchPool(Protocol):
    """Rows in order along a score, ready to be matched across the arms."""

    @property
    def arms(self) -> ArmSizes:
        """How many rows each arm holds."""

    def peak_reuse(self, neighbors: int) -> int:
        """Return how often the most used unit is among the first neighbours (M)."""

    def match(self, neighbors: int, limits: MatchingLimits) -> RowWeights:
        """Match greedily in row order within the limits and return the weights."""

    def match_sharing_ties(self, neighbors: int) -> RowWeights:
        """Match without limits, units at equal distance sharing their mass."""


class MatchingStudy(Study, Protocol):
    """A study that can also order its rows along a score; a local-engine ability."""

    def reordered(self, order: npt.NDArray[np.int64]) -> Self:
        """Return the same rows in another order, behind the same boundary."""

    def divided(self, cell_of: Callable[[Block], Codes], cells: int) -> tuple[Self, ...]:
        """Return the rows of each public cell as a study of their own, in the order of cells."""

    def with_outcomes(self) -> Self:
        """Return the rows that have an outcome, where who lacks one is public; else all rows."""

    def with_outcome(self, place: int) -> Self:
        """Return a view with one of several outcomes alone, by its place among those declared."""

    def pool(self, coefficients: npt.NDArray[np.float64]) -> MatchPool:
        """Order the rows along the propensity score of a logistic model, or along every arm's.

        Coefficients have shape (d + 1,) for two arms, or (K, d + 1) of a multinomial model.
        """

    def noisy_pool(
        self,
        coefficients: npt.NDArray[np.float64],
        score_bits: int,
        score_noise: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.generic]],
        arm_noise: Callable[[Codes], Codes],
    ) -> MatchPool:
        """Order the rows along noisy scores, shape (n,) or (K, n), with arms as noisy codes say."""

    def fold_with(
        self,
        weights: RowWeights,
        kernel: Callable[[Block, npt.NDArray[np.float64]], S],
        *,
        title: str = "",
    ) -> S:
        """Return the sum of a kernel that also sees the weight of each row."""

    def arm_sums(self, weights: RowWeights) -> tuple[int, ...]:
        """Return the weighted sums of centred outcomes by arm, exactly; the reference first."""
