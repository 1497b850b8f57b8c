"""What a call of the choke point declares and costs, and how costs add up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

__all__ = ["Cost", "Metric", "Spend"]


class Metric(StrEnum):
    """What a declared sensitivity bounds, for the inputs of two neighbouring data sets.

    Every ``Spend`` names one. With ``d`` the coordinates of the difference and ``s`` what is
    declared, a mechanism rests on the inequality beside its metric; ``audit.replay`` measures the
    left side of it on neighbours, for every mechanism alike.
    """

    L1 = "L1"
    """``Σ|d_k| ≤ s``; of bits, the number of rows that differ; of one integer, its distance."""
    L2 = "L2"
    """``√Σ d_k² ≤ s``."""
    L2_SQUARED = "L2 squared"
    """``Σ d_k² ≤ s``: an L2 distance whose square is whole and whose root is not."""
    LINF = "L∞"
    """``max|d_k| ≤ s``; of the scores of an exponential mechanism, each of them."""
    SHARES = "shares"
    """``Σ|d_k|/s_k ≤ 1``: a record may enter several coordinates, in shares."""
    ONE_OF = "one-of"
    """One coordinate k moves at most, by ``|d_k| ≤ s_k``; the others are equal."""
    MOVES = "moves"
    """``Σ⌈|d_k|/s_k⌉ ≤ moves``: so many moves of one coordinate each, by at most ``s_k``."""
    GROUPS = "group shares"
    """``Σ_g max_k |d_gk|/s_gk ≤ 1``: a record may enter several groups of coordinates in shares,
    and all coordinates of a group at once; ``Spend.groups`` says how many groups there are."""
    PLACES = "places"
    """At most s of the coordinates differ, by any amount."""
    ROWS = "rows"
    """At most s rows of a table differ, by any amount."""
    GRADIENT = "gradient"
    """``max|∇_k − ∇'_k| ≤ s`` at every point; the input is the objective itself."""
    SMOOTH = "smooth"
    """The input is a value and a private bound b: ``|d| ≤ b`` for the smaller of both bounds, and
    the bounds' logarithms differ by at most ``smoothing_rate(ε, δ)``. Nothing is declared."""


@dataclass(frozen=True, slots=True)
class Spend:
    """What one call of the choke point cost and on which declared sensitivity it rests.

    A cost is pure ε, (ε, δ), or ρ of zero-concentrated privacy. ``part`` names a set of rows that
    the call reads and no other part does; costs of different parts do not add up. ``metric`` says
    in which sense neighbours are within the sensitivity, so that a replay can measure it;
    ``groups`` belong to the metric of that name. Where neighbours are several ``moves`` apart,
    each is within the sensitivity and has its share of the cost; moves may then be in several
    parts. ``rule`` is a digest of what else the call takes as public, so that a replay notices if
    it depends on a record. A smooth sensitivity is private, so it is not written here.
    """

    step: str
    mechanism: str
    epsilon: Fraction
    sensitivity: tuple[int, ...]
    size: int
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    part: str = ""
    metric: Metric = field(kw_only=True)
    moves: int = field(default=1, kw_only=True)
    groups: int = field(default=1, kw_only=True)
    rule: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Cost:
    """A composed cost: ε and δ of all calls priced in those, ρ of all calls priced in that."""

    epsilon: Fraction
    delta: Fraction
    rho: Fraction

    @classmethod
    def of(cls, spends: Iterable[Spend]) -> Cost:
        """Compose costs: calls add up, and of disjoint parts of the rows the dearest counts."""
        sums: dict[str, tuple[Fraction, ...]] = {"": (Fraction(0),) * 3}
        for spend in spends:
            before = sums.get(spend.part, (Fraction(0),) * 3)
            each = zip(before, (spend.epsilon, spend.delta, spend.rho), strict=True)
            sums[spend.part] = tuple(one + more for one, more in each)
        whole = sums.pop("")
        dearest = zip(*sums.values(), strict=True) if sums else [(Fraction(0),)] * 3
        return cls(*(one + max(parts) for one, parts in zip(whole, dearest, strict=True)))
