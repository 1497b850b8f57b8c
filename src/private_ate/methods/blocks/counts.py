"""Noisy numbers of rows by subgroup and arm: by them blocks are planned and arms compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.arrays import Codes, Floats, Integers
from private_ate.domain.subgroups import Cells
from private_ate.privacy.noise import Noise
from private_ate.study import Block, Study

_BITS: Final = 20  # counts and weights are released on the grid 2⁻²⁰
_MOST_IN_CUBE: Final = 3  # numbers up to which noise on cubes is smaller than Laplace noise
_LEAST_SHARE: Final = 0.005


@dataclass(frozen=True, slots=True)
class Subgroups:
    """Whose effects are asked for: all units, or those of each of the finest subgroups.

    ``cells`` is None for all units alone; with ``overall`` all units follow the subgroups.
    """

    cells: Cells | None = None
    overall: bool = False

    @property
    def count(self) -> int:
        """How many sets of rows have effects of their own."""
        return 1 if self.cells is None else len(self.names) + self.overall

    @property
    def names(self) -> tuple[str, ...]:
        """The finest subgroups; rows of which no subgroup is known are in none of them."""
        return () if self.cells is None else self.cells.names[:-1]

    def codes(self, covariates: Floats) -> Codes:
        """Return the subgroup of every row of encoded covariates, shape (..., d)."""
        if self.cells is None:
            return np.zeros(covariates.shape[:-1], dtype=np.uint8)
        flat = self.cells.codes(covariates.reshape(-1, covariates.shape[-1]))
        return flat.reshape(covariates.shape[:-1])

    def members(self, codes: Codes) -> list[Codes]:
        """Return for each set of rows which rows are in it, as an array as long as all of them."""
        return [
            codes == (group if group < len(self.names) else codes) for group in range(self.count)
        ]


@dataclass(frozen=True, slots=True)
class Counts:
    """Released numbers of rows, shape (subgroups, arms); with weights, shares of their bound.

    Attributes
    ----------
    rows : array
        The numbers, kept away from zero.
    deviation : float
        The standard deviation of the noise of each.
    effective_share : float
        Effective sample size over the rows that take part: 1 without weights.
    mean_share : float
        What rows are counted as on average, of all n; of weights, their share of the bound.
    """

    rows: Floats
    deviation: float
    effective_share: float = 1.0
    mean_share: float = 1.0

    @property
    def members(self) -> Floats:
        """The number of rows in each subgroup."""
        found: Floats = self.rows.sum(axis=1)
        return found

    @property
    def shares(self) -> Floats:
        """The share of each arm in each subgroup, kept away from zero."""
        return np.maximum(self.rows / self.members[:, None], _LEAST_SHARE)

    @classmethod
    def known(cls, size: int, shares: Sequence[float]) -> Counts:
        """Return expected numbers of rows, without noise."""
        return cls(np.array([shares]) * size, 0.0)


def release_counts(
    study: Study,
    subgroups: Subgroups,
    noise: Noise,
    *,
    epsilon: Fraction,
    changes: int,
    shares: Sequence[float] = (),
) -> Counts:
    """Release how many rows each arm of each subgroup holds.

    Where the arms' shares are known, how many rows take part. Of two arms that all rows are in,
    one number: n is public. With sampling weights numbers are sums of weights as shares of the
    declared bound, and one is that of squared shares. Neighbours: ``changes`` rows replaced, which
    may move to other arms and subgroups. Sensitivity: ``changes`` in every number (L∞), and
    ``2·changes`` in all counts together (L1), ``changes`` more with squares; of one number
    ``changes``. Cost: ε. Proof: docs/proofs/blocks.md.
    """
    weighted = study.domain.weights is not None
    arms = 1 if shares else study.domain.treatment.size
    cells = 1 if subgroups.cells is None else subgroups.cells.count

    def kernel(block: Block) -> Integers:
        steps, squares = (
            np.rint(block.shares**power * (1 << _BITS)).astype(np.int64) for power in (1, 2)
        )
        place = subgroups.codes(block.covariates).astype(np.int64) * arms + block.arm * (arms > 1)
        found = np.zeros(cells * arms + weighted, dtype=np.int64)
        np.add.at(found, place, steps)
        if weighted:
            found[-1] = squares.sum()
        return found

    is_full = study.everyone_takes_part and not weighted and cells == 1 and not shares
    values = study.fold(kernel, title="arms")[int(is_full) :].tolist()
    step = "rows that take part" if shares else "treated count"
    moved, deviation = changes, math.sqrt(2)
    if len(values) > _MOST_IN_CUBE:
        moved = (3 if weighted else 2) * changes
    if 1 < len(values) <= _MOST_IN_CUBE:
        noisy = noise.cube(step, values, sensitivity=moved << _BITS, epsilon=epsilon)
        deviation = math.sqrt((len(values) + 1) * (len(values) + 2) / 3)
    else:
        noisy = noise.laplace(step, values, sensitivity=moved << _BITS, epsilon=epsilon)
    found = np.array([value / (1 << (_BITS + 1)) for value in noisy])
    squares = float(found[-1]) if weighted else 0.0
    if is_full:
        found = np.concatenate([[study.size - found.sum()], found])
    table = found[: cells * arms].reshape(cells, arms) * (np.array(shares) if shares else 1.0)
    return _settled(table, subgroups, study.size, squares, deviation * moved / float(epsilon))


def _settled(
    table: Floats, subgroups: Subgroups, size: int, squares: float, deviation: float
) -> Counts:
    """Keep numbers within what they can be, and drop rows of which no subgroup is known."""
    table = np.clip(table, 0.0, float(size))
    if subgroups.cells is not None:
        whole = table.sum(axis=0, keepdims=True)
        table = np.concatenate([table[:-1], whole[: int(subgroups.overall)]])
    members = np.maximum(table.sum(axis=1, keepdims=True), 4.0)
    least = np.minimum(np.maximum(2.0, _LEAST_SHARE * members), members / table.shape[1])
    table = np.maximum(table, least)
    effective_share = 1.0
    if squares:
        # A share is at most one, so that squares never add up to more than shares do.
        total = max(float(table.sum()), 4.0)
        effective_share = total / min(max(squares, total**2 / size), total)
    return Counts(table, deviation, effective_share, float(table.sum()) / size)
