"""Exact samplers of L∞ noise: uniform on cubes of random size.

A vector whose neighbours differ by at most r in every coordinate is protected by the density
``∝ exp(−ε·max|v|/r)``: draw the size of a cube, then a uniform point of the cube
(docs/proofs/orthogonal.md, docs/proofs/outcomes.md). The last section does the same for matrices
with a row per arm whose columns add up to zero (docs/proofs/several-arms.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Final

import numpy as np

from private_ate.arrays import Floats
from private_ate.privacy.entropy import Entropy
from private_ate.privacy.samplers import geometric, uniform_below

__all__ = [
    "RADIUS_BITS", "continuous_linf", "discrete_linf", "helmert", "largest_column", "scaled_linf",
    "zero_sum_linf",
]  # fmt: skip

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


def helmert(arms: int) -> Floats:
    """Return the Helmert matrix U, shape (K − 1, K): orthonormal rows that add up to zero.

    Row j has j + 1 equal negative entries, one positive and zeros after it.
    """
    matrix = np.zeros((arms - 1, arms))
    for row in range(arms - 1):
        before = row + 1
        matrix[row, :before] = -1 / math.sqrt(before * (before + 1))
        matrix[row, before] = before / math.sqrt(before * (before + 1))
    return matrix


def largest_column(coordinates: Floats, arms: int) -> float:
    """Return N of the matrix with these Helmert coordinates, K − 1 runs of one per column."""
    matrix = helmert(arms).T @ coordinates.reshape(arms - 1, -1)
    return float(np.abs(matrix).sum(axis=0).max())


def zero_sum_linf(arms: int, columns: int, entropy: Entropy) -> list[list[Fraction]]:
    """Draw a matrix b of density ``∝ exp(−N(b))``, as a list of columns that add up to zero.

    Every entry is within ``((K − 1)·columns + 2)·2⁻⁴⁰`` of an ideal draw. The radius is a sum of
    one exponential per free number and one more, each rounded down to the grid exactly.
    """
    rate = Fraction(1, 1 << RADIUS_BITS)
    radius = sum(geometric(rate, entropy) for _ in range((arms - 1) * columns + 1))
    bits = radius.bit_length() + 1  # so that a point of the ball is off by less than half a step
    size = Fraction(radius, 1 << RADIUS_BITS)
    return [[size * part for part in _ball_point(arms, bits, entropy)] for _ in range(columns)]


def _ball_point(arms: int, bits: int, entropy: Entropy) -> list[Fraction]:
    """Draw a uniform point of ``{c: Σc = 0, Σ|c| ≤ 1}``, its uniforms to ``bits`` bits.

    The faces with a positive entries are C(K, a) products of two simplices, each as large as
    C(K − 2, a − 1) unit simplices; a point of a face is shrunk by the largest of K − 1 uniforms.
    """
    weights = [math.comb(arms, a) * math.comb(arms - 2, a - 1) for a in range(1, arms)]
    drawn = uniform_below(sum(weights), entropy)
    positive = 1 + next(a for a, last in enumerate(accumulate(weights)) if drawn < last)
    shrunk = max(_uniform(bits, entropy) for _ in range(arms - 1)) / 2
    parts = [shrunk * part for part in _spacings(positive, bits, entropy)]
    parts += [-shrunk * part for part in _spacings(arms - positive, bits, entropy)]
    for last in range(arms - 1, 0, -1):  # any order of the entries is equally likely
        other = uniform_below(last + 1, entropy)
        parts[last], parts[other] = parts[other], parts[last]
    return parts


def _spacings(count: int, bits: int, entropy: Entropy) -> list[Fraction]:
    """Draw a uniform point of the simplex: the gaps between sorted uniforms."""
    cuts = sorted(_uniform(bits, entropy) for _ in range(count - 1))
    return [after - before for before, after in pairwise([Fraction(0), *cuts, Fraction(1)])]


def _uniform(bits: int, entropy: Entropy) -> Fraction:
    """Draw the middle of one of ``2^bits`` equal parts of the unit interval."""
    return Fraction(2 * uniform_below(1 << bits, entropy) + 1, 2 << bits)
