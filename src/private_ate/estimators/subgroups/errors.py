"""From released numbers of cells to every row of a table: values, intervals, a test.

A row is a weighted sum of what cells released, so its error is one too: of independent noises
whose laws are known, and of normal errors whose variances were paid for. All of it is
post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, assert_never

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Floats
from private_ate.contents.arms import NoiseLaw
from private_ate.contents.laws import (
    expected_size,
    fixed_uniforms,
    half_width,
    law_draws,
    noise_half_width,
)
from private_ate.privacy.cube_law import cube_variance
from private_ate.privacy.quantiles import staircase_variance

__all__ = ["Heterogeneity", "Quantity", "ReleasedCells", "RowWeights"]

_DRAWS: Final = 20_000  # simulated errors behind simultaneous intervals and the test


@dataclass(frozen=True, slots=True)
class Quantity:
    """One released number: an effect, or an arm's mean.

    Attributes
    ----------
    value : float
        The number, in units of the outcome.
    laws : tuple of NoiseLaw
        Laws of its independent noises.
    variances : tuple of float
        Equally likely values of its sampling variance; empty if no interval was paid for.
    """

    value: float
    laws: tuple[NoiseLaw, ...]
    variances: tuple[float, ...] = ()

    @property
    def noise_variance(self) -> float:
        """The variance of its noise."""
        return sum(map(_law_variance, self.laws))


@dataclass(frozen=True, slots=True)
class RowWeights:
    """Which weighted sum a row is: weights of cells, and of the quantities that each released."""

    cells: tuple[float, ...]
    quantities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """A test of equal effects: Cochran's Q, its degrees of freedom, the chance of one as large."""

    statistic: float
    degrees: int
    p_value: float


@dataclass(frozen=True, slots=True)
class _Source:
    """An independent noise: the quantity that it is in, its law, and how it moves every cell."""

    quantity: int
    law: NoiseLaw
    moves: Floats


@dataclass(frozen=True)
class ReleasedCells:
    """What cells released, made to agree with what was released of all units together.

    Attributes
    ----------
    shares : tuple of float
        The share of units in each cell; they add up to one.
    values : array, shape (cells, quantities)
        The numbers, reconciled.
    """

    shares: tuple[float, ...]
    values: Floats
    _sources: tuple[_Source, ...] = field(repr=False)
    _variances: tuple[tuple[tuple[float, ...], ...], ...] = field(repr=False)

    @classmethod
    def reconcile(
        cls,
        shares: Sequence[float],
        cells: Sequence[Sequence[Quantity]],
        direct: Sequence[Quantity] | None = None,
    ) -> ReleasedCells:
        """Make cells add up to the direct numbers as far as their noises are to be believed.

        The weighted least squares solution under known noise variances: what is missing in the
        sum is given to the cells in proportion to the variances of their parts of it. Without
        direct numbers the cells stay as they are.
        """
        share = np.array(shares)
        values = np.array([[one.value for one in cell] for cell in cells])
        moves = np.tile(np.eye(len(cells)), (values.shape[1], 1, 1))
        sources = []
        for place in range(values.shape[1]):
            spread = np.array([cell[place].noise_variance for cell in cells]) * share
            if direct is not None:
                whole = direct[place].noise_variance + float(spread @ share)
                taken = spread / whole if whole > 0 else np.zeros_like(share)
                values[:, place] += taken * (direct[place].value - float(share @ values[:, place]))
                moves[place] -= np.outer(taken, share)
                sources += [_Source(place, law, taken) for law in direct[place].laws]
            sources += [
                _Source(place, law, moves[place][:, number])
                for number, cell in enumerate(cells)
                for law in cell[place].laws
            ]
        variances = tuple(tuple(one.variances for one in cell) for cell in cells)
        return cls(tuple(share.tolist()), values, tuple(sources), variances)

    @property
    def has_variances(self) -> bool:
        """Whether an interval was paid for in every cell."""
        return all(likely for cell in self._variances for likely in cell)

    def value(self, row: RowWeights) -> float:
        """Return the row's number."""
        return float(np.array(row.cells) @ self.values @ np.array(row.quantities))

    def noise_half(self, row: RowWeights, coverage: float) -> float:
        """Return the half-width that covers the noise alone."""
        return noise_half_width(coverage, self._laws(row))

    def half(self, row: RowWeights, coverage: float) -> float:
        """Return the half-width that covers noise and sampling."""
        return half_width(coverage, self._laws(row), self._likely(row), "convolved")

    def expected_size(self, row: RowWeights) -> float:
        """Return the expected size of noise and sampling together."""
        return expected_size(self._laws(row), self._likely(row))

    def noise_size(self, row: RowWeights) -> float:
        """Return the expected size of the noise alone."""
        return expected_size(self._laws(row), ())

    def variance(self, row: RowWeights) -> float:
        """Return the row's expected sampling variance."""
        return sum(
            (weight * factor) ** 2 * float(np.mean(likely))
            for weight, cell in zip(row.cells, self._variances, strict=True)
            for factor, likely in zip(row.quantities, cell, strict=True)
        )

    def simultaneous_factor(
        self, rows: Sequence[RowWeights], halves: Sequence[float], coverage: float
    ) -> float:
        """Return how much wider intervals must be to cover all at once, from simulated errors."""
        largest = np.zeros(_DRAWS)
        for row, half in zip(rows, halves, strict=True):
            if half > 0:
                size = np.abs(np.array(row.cells) @ self._errors_of(row.quantities))
                np.maximum(largest, size / half, out=largest)
        return max(1.0, float(np.quantile(largest, coverage)))

    def test_equal(self, quantities: tuple[float, ...]) -> Heterogeneity | None:
        """Test whether all cells have the same effect, by Cochran's Q with known noise.

        Cells that were reconciled err together: Q is taken with the covariances of their errors,
        and compared with what it is under the simulated law of these, noise and all.
        """
        count = len(self.shares)
        if count < 2 or not self.has_variances:
            return None
        covariance = np.diag(
            [self.variance(RowWeights(tuple(one), quantities)) for one in np.eye(count).tolist()]
        )
        for source in self._sources:
            moved = quantities[source.quantity] * source.moves
            covariance += np.outer(moved, moved) * _law_variance(source.law)
        inverse = np.linalg.pinv(covariance, hermitian=True)
        ones = inverse.sum(axis=0)
        middle = inverse - np.outer(ones, ones) / ones.sum()
        effects = self.values @ np.array(quantities)
        found = max(float(effects @ middle @ effects), 0.0)
        errors = self._errors_of(quantities)
        chance = np.einsum("ij,ij->j", errors, middle @ errors)
        larger = int(np.count_nonzero(chance >= found))
        return Heterogeneity(found, count - 1, (1 + larger) / (1 + _DRAWS))

    def _likely(self, row: RowWeights) -> list[list[float]]:
        return [
            [(weight * factor) ** 2 * value for value in likely]
            for weight, cell in zip(row.cells, self._variances, strict=True)
            for factor, likely in zip(row.quantities, cell, strict=True)
            if weight and factor
        ]

    def _laws(self, row: RowWeights) -> list[NoiseLaw]:
        found = []
        for source in self._sources:
            moved = row.quantities[source.quantity] * float(np.array(row.cells) @ source.moves)
            if moved:
                found.append(source.law.scaled(moved))
        return found

    def _errors_of(self, quantities: tuple[float, ...]) -> Floats:
        """Return simulated errors of every cell, shape (cells, draws)."""
        weighted = zip(quantities, self._simulated, strict=True)
        errors: Floats = sum(
            (factor * errors for factor, errors in weighted if factor),
            start=np.zeros((len(self.shares), _DRAWS)),
        )
        return errors

    @cached_property
    def _simulated(self) -> tuple[Floats, ...]:
        """Simulated errors of each quantity; fixed, so that rows are functions of the release."""
        count = len(self.shares)
        found = [np.zeros((count, _DRAWS)) for _ in range(self.values.shape[1])]
        for place, source in enumerate(self._sources):
            (uniform,) = fixed_uniforms(f"noise {place} behind subgroups", 1, _DRAWS)
            found[source.quantity] += np.outer(source.moves, law_draws(source.law, uniform))
        for number, cell in enumerate(self._variances):
            for place, likely in enumerate(cell):
                name = f"sampling of cell {number}, {place} behind subgroups"
                normal, which = fixed_uniforms(name, 2, _DRAWS)
                held = np.asarray(likely)
                chosen = held[np.minimum((which * held.size).astype(np.intp), held.size - 1)]
                found[place][number] += np.sqrt(chosen) * ndtri(normal)
        return tuple(found)


def _law_variance(law: NoiseLaw) -> float:
    epsilon = float(law.epsilon)
    match law.name:
        case "laplace":
            return cube_variance(law.outcomes) * (law.unit / epsilon) ** 2
        case "staircase":
            return law.unit**2 * staircase_variance(epsilon)
    assert_never(law.name)
