"""From released numbers of cells to every row of a table: values, intervals, a test.

A row is a weighted sum of what cells released, so its error is one too: of independent noises
whose laws are known, and of normal errors whose variances were paid for. All of it is
post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Floats
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.release.intervals import (
    expected_size,
    fixed_uniforms,
    half_width,
    noise_draws,
    noise_half_width,
    noise_variance,
)

__all__ = ["Heterogeneity", "Quantity", "ReleasedCells", "RowWeights"]

_DRAWS: Final = 20_000  # simulated errors behind simultaneous intervals and the test


@dataclass(frozen=True, slots=True)
class Quantity:
    """One released number: a contrast of arms, or an arm's mean.

    Attributes
    ----------
    value : float
        The number, in units of the outcome.
    noise : tuple of NoiseDistribution
        Its independent noises, each by its distribution.
    variances : tuple of float
        Equally likely values of its sampling variance; empty if no interval was paid for.
    bias : float
        How much of that is a bound on the square of the bias that weights leave, of unknown sign
        and alike in all subgroups.
    """

    value: float
    noise: tuple[NoiseDistribution, ...]
    variances: tuple[float, ...] = ()
    bias: float = 0.0

    @property
    def noise_variance(self) -> float:
        """The variance of its noise."""
        return sum(map(noise_variance, self.noise))


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
    law: NoiseDistribution
    moves: Floats


@dataclass(frozen=True)
class ReleasedCells:
    """What cells released, made to add up to what was released of all units.

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
    _biases: Floats = field(repr=False)  # shape (cells, quantities)
    _direct: tuple[Quantity, ...] = ()  # of all units, where these were paid for

    @classmethod
    def reconcile(
        cls,
        shares: Sequence[float],
        cells: Sequence[Sequence[Quantity]],
        direct: Sequence[Quantity] | None = None,
    ) -> ReleasedCells:
        """Make cells add up to the direct numbers of all units, where these were paid for.

        Sampling errors of both are nearly the same; noise, and what weights left unbalanced, set
        the cells' sum apart from the direct number. Every cell is moved by its covariance with
        that sum, the least squares solution under the constraint. Without direct numbers the
        cells stay as they are.
        """
        share = np.array(shares)
        values = np.array([[one.value for one in cell] for cell in cells])
        moves = np.tile(np.eye(len(cells)), (values.shape[1], 1, 1))
        sources = []
        biases = np.array([[one.bias for one in cell] for cell in cells])
        for place in range(values.shape[1]):
            if direct is not None:
                noise = np.array([cell[place].noise_variance for cell in cells])
                unbalanced = np.sqrt(biases[:, place])  # leans the same way in all cells
                spread = noise * share + unbalanced * float(unbalanced @ share)
                whole = float(spread @ share)
                taken = spread / whole if whole > 0 else np.ones_like(share)
                values[:, place] += taken * (direct[place].value - float(share @ values[:, place]))
                moves[place] -= np.outer(taken, share)
                sources += [_Source(place, law, taken) for law in direct[place].noise]
            sources += [
                _Source(place, law, moves[place][:, number])
                for number, cell in enumerate(cells)
                for law in cell[place].noise
            ]
        variances = tuple(tuple(one.variances for one in cell) for cell in cells)
        return cls(
            tuple(share.tolist()), values, tuple(sources), variances, biases, tuple(direct or ())
        )  # fmt: skip

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
        return sum(float(np.mean(values)) for values in self._likely(row))

    def _shared(self, row: RowWeights) -> float:
        """Return the variance that a row has because what is unbalanced is alike in all cells.

        Errors of cells that are the same add up whole; their squares are in the cells' variances.
        """
        weights = np.array(row.cells)
        added = (weights @ np.sqrt(self._biases)) ** 2 - weights**2 @ self._biases
        return float(np.maximum(added, 0.0) @ np.array(row.quantities) ** 2)

    def simultaneous_factor(
        self, rows: Sequence[RowWeights], halves: Sequence[float], coverage: float
    ) -> float:
        """Return how much wider intervals must be to cover all at once, from simulated errors."""
        largest = np.zeros(_DRAWS)
        for row, half in zip(rows, halves, strict=True):
            if half > 0:
                size = np.abs(np.array(row.cells) @ self._errors_of(row.quantities, self._alike))
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
            covariance += np.outer(moved, moved) * noise_variance(source.law)
        inverse = np.linalg.pinv(covariance, hermitian=True)
        ones = inverse.sum(axis=0)
        middle = inverse - np.outer(ones, ones) / ones.sum()
        effects = self.values @ np.array(quantities)
        found = max(float(effects @ middle @ effects), 0.0)
        errors = self._errors_of(quantities, self._apart)
        chance = np.einsum("ij,ij->j", errors, middle @ errors)
        larger = int(np.count_nonzero(chance >= found))
        return Heterogeneity(found, count - 1, (1 + larger) / (1 + _DRAWS))

    def _likely(self, row: RowWeights) -> list[list[float]]:
        """Return equally likely values of each independent part of a row's sampling variance.

        All units that were paid for have the variances of their own weights.
        """
        if row.cells == self.shares and any(one.variances for one in self._direct):
            return [
                [factor**2 * value for value in one.variances]
                for factor, one in zip(row.quantities, self._direct, strict=True)
                if factor
            ]
        found = [
            [(weight * factor) ** 2 * value for value in likely]
            for weight, cell in zip(row.cells, self._variances, strict=True)
            for factor, likely in zip(row.quantities, cell, strict=True)
            if weight and factor
        ]
        return [*found, [self._shared(row)]]

    def _laws(self, row: RowWeights) -> list[NoiseDistribution]:
        found = []
        for source in self._sources:
            moved = row.quantities[source.quantity] * float(np.array(row.cells) @ source.moves)
            if moved:
                found.append(source.law.scaled(moved))
        return found

    def _errors_of(self, quantities: tuple[float, ...], simulated: tuple[Floats, ...]) -> Floats:
        """Return simulated errors of every cell, shape (cells, draws)."""
        weighted = zip(quantities, simulated, strict=True)
        errors: Floats = sum(
            (factor * errors for factor, errors in weighted if factor),
            start=np.zeros((len(self.shares), _DRAWS)),
        )
        return errors

    @cached_property
    def _alike(self) -> tuple[Floats, ...]:
        """Simulated errors of each quantity, with one draw for what is unbalanced in all cells."""
        return self._simulate(np.sqrt(self._biases))

    @cached_property
    def _apart(self) -> tuple[Floats, ...]:
        """Simulated errors of each quantity, all independent."""
        return self._simulate(np.zeros_like(self._biases))

    def _simulate(self, shared: Floats) -> tuple[Floats, ...]:
        """Simulate errors; the draws are fixed, so that rows are functions of the release.

        ``shared`` deviations, of shape (cells, quantities), are of an error that cells share.
        """
        count = len(self.shares)
        found = [np.zeros((count, _DRAWS)) for _ in range(self.values.shape[1])]
        for place, source in enumerate(self._sources):
            (uniform,) = fixed_uniforms(f"noise {place} behind subgroups", 1, _DRAWS)
            found[source.quantity] += np.outer(source.moves, noise_draws(source.law, uniform))
        for number, cell in enumerate(self._variances):
            for place, likely in enumerate(cell):
                name = f"sampling of cell {number}, {place} behind subgroups"
                normal, which = fixed_uniforms(name, 2, _DRAWS)
                held = np.asarray(likely)
                chosen = held[np.minimum((which * held.size).astype(np.intp), held.size - 1)]
                own = np.maximum(chosen - shared[number, place] ** 2, 0.0)
                found[place][number] += np.sqrt(own) * ndtri(normal)
        for place in range(len(found)):
            (normal,) = fixed_uniforms(f"imbalance {place} behind subgroups", 1, _DRAWS)
            found[place] += np.outer(shared[:, place], ndtri(normal))
        return tuple(found)
