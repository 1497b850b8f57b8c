"""Exact samplers of L∞ noise: uniform on cubes of random size.

A vector whose neighbours differ by at most r in every coordinate is protected by the density
``∝ exp(−ε·max|v|/r)``: draw the size of a cube, then a uniform point of the cube
(docs/proofs/orthogonal.md, docs/proofs/outcomes.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from private_ate.privacy.entropy import Entropy
from private_ate.privacy.samplers import geometric, uniform_below

__all__ = ["RADIUS_BITS", "continuous_linf", "discrete_linf", "scaled_linf"]

RADIUS_BITS: Final = 40  # the radius of the continuous distribution is drawn to 2⁻⁴⁰ of its unit
_FINER_BITS: Final = 40  # a common grid is so much finer than the coarsest that it serves


def discrete_linf(rate: Fraction, dimension: int, entropy: Entropy) -> list[int]:
    """Draw a vector of odd integers with ``P(v) ∝ exp(−rate·max|v|/2)``.

    Half the side of the cube is k with ``P(k) ∝ kᴰ exp(−rate·k)``; it holds ``2k`` odd integers
    in every direction.
    """
    half = _half_side(rate, dimension, entropy)
    return [2 * (uniform_below(2 * half, entropy) - half) + 1 for _ in range(dimension)]


def scaled_linf(sensitivities: Sequence[int], epsilon: Fraction, entropy: Entropy) -> list[int]:
    """Draw noise in half steps for numbers that have sensitivities of their own.

    On a common grid number k is multiplied by the integer ``a_k = L // s_k``, so that a move by
    ``s_k`` is one by at most L there; the cube of sensitivity L is drawn on that grid, and what it
    adds is divided by ``a_k`` and rounded. No sensitivity is exceeded, and none wasted by more
    than a share of 2⁻⁴⁰ (docs/proofs/outcomes.md).
    """
    common = max(sensitivities) << _FINER_BITS
    finer = [common // size for size in sensitivities]
    drawn = discrete_linf(epsilon / common, len(finer), entropy)
    return [(2 * odd + factor) // (2 * factor) for odd, factor in zip(drawn, finer, strict=True)]


def continuous_linf(dimension: int, entropy: Entropy) -> list[Fraction]:
    """Draw a real vector of density ``∝ exp(−max|v|)`` to within ``(dimension + 2)·2⁻⁴⁰``.

    The radius is a sum of ``dimension + 1`` exponentials, each rounded down to the grid exactly
    (such a floor is geometric); a uniform point of the cube is drawn to a finer step.
    """
    rate = Fraction(1, 1 << RADIUS_BITS)
    radius = sum(geometric(rate, entropy) for _ in range(dimension + 1))
    points = 1 << (radius.bit_length() + 1)  # so that a point of the cube is off by less than half
    return [
        Fraction(radius * (2 * uniform_below(points, entropy) + 1 - points), points << RADIUS_BITS)
        for _ in range(dimension)
    ]


def _half_side(rate: Fraction, dimension: int, entropy: Entropy) -> int:
    """Draw k ≥ 1 with ``P(k) ∝ kᴰ exp(−rate·k)``.

    One plus a sum of D + 1 geometric variables has ``P(k) ∝ k(k+1)…(k+D−1) exp(−rate·k)``; it is
    kept with probability ``kᴰ / (k(k+1)…(k+D−1))``, a product of coins ``k/(k+i)``.
    """
    while True:
        half = 1 + sum(geometric(rate, entropy) for _ in range(dimension + 1))
        if all(uniform_below(half + i, entropy) < half for i in range(1, dimension)):
            return half
