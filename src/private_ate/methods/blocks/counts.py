"""Noisy numbers of rows by subgroup and arm: by them blocks are planned and arms compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.arrays import Floats, Integers
from private_ate.methods.blocks.run import Run, Subgroups
from private_ate.study import Block

_BITS: Final = 20  # counts and weights are released on the grid 2⁻²⁰
_MOST_IN_CUBE: Final = 3  # numbers up to which noise on cubes is smaller than Laplace noise
_LEAST_SHARE: Final = 0.005


@dataclass(frozen=True, slots=True)
class Counts:
    """Released numbers of rows, shape (subgroups, arms); with weights, shares of their bound."""

    rows: Floats  # kept away from zero
    deviation: float  # the standard deviation of the noise of each
    effective_share: float = 1.0  # effective sample size over the rows that take part
    mean_share: float = 1.0  # what rows are counted as on average, of all n: of weights, a share

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


def release_counts(run: Run, epsilon: Fraction) -> Counts:
    """Release how many rows each arm of each subgroup holds; in a trial how many take part.

    Of two arms that all rows are in, one number: n is public. With sampling weights numbers are
    sums of weights as shares of the declared bound, and one is that of squared shares. Neighbours:
    ``changes`` rows replaced, which may move to other arms and subgroups. Sensitivity: ``changes``
    in every number (L∞), and ``2·changes`` in all counts together (L1), ``changes`` more with
    squares; of one number ``changes``. Cost: ε. Proof: docs/proofs/blocks.md.
    """
    study, subgroups, trial, changes = run.study, run.subgroups, run.trial, run.changes
    weighted = study.domain.weights is not None
    arms = study.domain.treatment.size if trial is None else 1
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

    is_full = study.everyone_takes_part and not weighted and cells == 1 and trial is None
    values = study.fold(kernel, title="arms")[int(is_full) :].tolist()
    step = "treated count" if trial is None else "rows that take part"
    moved, deviation = changes, math.sqrt(2)
    if len(values) > _MOST_IN_CUBE:
        moved = (3 if weighted else 2) * changes
    if 1 < len(values) <= _MOST_IN_CUBE:
        noisy = run.noise.cube(step, values, sensitivity=moved << _BITS, epsilon=epsilon)
        deviation = math.sqrt((len(values) + 1) * (len(values) + 2) / 3)
    else:
        noisy = run.noise.laplace(step, values, sensitivity=moved << _BITS, epsilon=epsilon)
    found = np.array([value / (1 << (_BITS + 1)) for value in noisy])
    squares = float(found[-1]) if weighted else 0.0
    if is_full:
        found = np.concatenate([[study.size - found.sum()], found])
    table = found[: cells * arms].reshape(cells, arms)
    if trial is not None:
        table = table * np.array(trial.shares)
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
