"""How far apart two inputs of a mechanism are: the metric that its declared sensitivity is in."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Metric"]


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
