"""How many rows each arm holds, as released: the first step, on which the plan rests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.estimators.orthogonal.several_arms.sums import Sums
from private_ate.privacy.noise import Noise
from private_ate.study import Block, Study

__all__ = ["NoisySizes", "release_sizes"]

_COUNT_BITS: Final = 20  # counts are released on the grid 2⁻²⁰
_COUNTING: Final = 0.02  # the share of rows from which an arm has a say in the plan
_FEWEST: Final = 4  # rows that are thought to take part at least
_BEYOND_NOISE: Final = 2.0  # standard deviations by which counts fall short before rows are missing


@dataclass(frozen=True, slots=True)
class NoisySizes:
    """Sizes of the arms that add up to the number of rows that take part.

    Attributes
    ----------
    sizes : array, shape (K,)
        Rows of each arm (ĉ), none of them near zero.
    members : int
        Rows that take part (n̂): n, or what the released counts say.
    scale : float
        Of the Laplace noise of one count.
    deviation : float
        Standard deviation of the noise of ``members``; zero for n itself.
    """

    sizes: Floats
    members: int
    scale: float
    deviation: float = 0.0

    @property
    def arms(self) -> int:
        """The number of arms (K)."""
        return int(self.sizes.size)

    @property
    def shares(self) -> Floats:
        """The share of each arm (p)."""
        shares: Floats = self.sizes / self.members
        return shares

    @property
    def counting(self) -> Bits:
        """Which arms are large enough to have a say in the plan and to be weighted."""
        return self.shares >= _COUNTING

    @property
    def smallest_share(self) -> float:
        """The share of the smallest arm that counts."""
        return float(self.shares[self.counting].min())


def release_sizes(study: Study, noise: Noise, *, epsilon: Fraction, changes: int) -> NoisySizes:
    """Release how many rows are in each arm and let the counts add up.

    Neighbours: ``changes`` rows replaced. Sensitivity (L1): ``2·changes``, because a row leaves
    one count and enters another; less if it takes no part before or after. Cost: ε. Proof:
    docs/proofs/several-arms-sample.md.
    """
    arms = study.domain.treatment.size
    exact = study.fold(lambda block: _count(block, arms), title="arms").steps
    noisy = noise.laplace(
        "arm sizes",
        [count << _COUNT_BITS for count in exact],
        sensitivity=2 * changes << _COUNT_BITS,
        epsilon=epsilon,
    )
    counts = np.array([value / (1 << (_COUNT_BITS + 1)) for value in noisy])
    scale = 2 * changes / float(epsilon)
    if study.everyone_takes_part:
        return NoisySizes(project(counts, study.size), study.size, scale)
    deviation = math.sqrt(2 * arms) * scale
    missing = max(study.size - float(counts.sum()) - _BEYOND_NOISE * deviation, 0.0)
    members = max(round(study.size - missing), _FEWEST)
    return NoisySizes(project(counts, members), members, scale, deviation if missing else 0.0)


def project(counts: Floats, members: int) -> Floats:
    """Move all counts by one number so that they add up, none below a small share of all rows.

    The number θ solves ``Σ max(c_t − θ, least) = members``, ``least`` being half a percent of the
    rows, two rows or an equal share, whichever is allowed.
    """
    least = min(max(2.0, 0.005 * members), members / counts.size)
    spare = max(members - counts.size * least, 0.0)
    above = np.sort(counts - least)[::-1]
    moves = (np.cumsum(above) - spare) / np.arange(1, counts.size + 1)
    # The largest set of arms that stay above the least; the largest arm always does.
    kept = np.flatnonzero(above >= moves)[-1]
    moved: Floats = least + np.maximum(counts - least - moves[kept], 0.0)
    return moved


def _count(block: Block, arms: int) -> Sums:
    return Sums(tuple(map(int, np.bincount(block.arm[block.present], minlength=arms))))
