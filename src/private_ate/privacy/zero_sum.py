"""Matrices with a row per arm whose columns add up to zero: coordinates, and noise for them.

Of such a matrix b let ``N(b)`` be the largest L1 norm of a column. The law ``∝ exp(−N(b))`` is
uniform on a ball of N of random size, and in a ball the columns are independent. Proofs:
docs/proofs/several-arms.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np

from private_ate.arrays import Floats
from private_ate.privacy.cubes import RADIUS_BITS
from private_ate.privacy.entropy import Entropy
from private_ate.privacy.samplers import geometric, uniform_below

__all__ = ["helmert", "largest_column", "zero_sum_cube"]


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


def zero_sum_cube(arms: int, columns: int, entropy: Entropy) -> list[list[Fraction]]:
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
