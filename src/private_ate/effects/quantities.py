"""The errors of weighted sums of quantities: noise, sampling, bias; released or predicted.

A row of a table is a weighted sum of quantities, so its error is one too: of independent noises
whose distributions are known, and of normal errors whose variances were paid for. All of it is
post-processing. A plan makes rows of predicted quantities, whose values are not known, as a release
makes them of released ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Floats
from private_ate.effects.estimate import Quantity
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.release.intervals import (
    expected_size,
    fixed_uniforms,
    half_width,
    noise_draws,
    noise_half_width,
)
from private_ate.release.metadata import around
from private_ate.settings import IntervalRule

DRAWS: Final = 20_000  # simulated errors behind simultaneous intervals and the test
POWER: Final = 0.8  # of the test behind the smallest detectable effect
# The same for every release, which reads them only; 320 kB at most for each name.
_uniforms: Final = lru_cache(maxsize=32)(fixed_uniforms)


@dataclass(frozen=True, slots=True)
class RowForm:
    """Which weighted sum a row is: weights of subgroups, and of what each of them released."""

    subgroups: tuple[float, ...]  # the finest
    quantities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class EqualityTest:
    """A test of equal effects: Cochran's Q, its degrees of freedom, the chance of one as large."""

    statistic: float
    degrees: int
    p_value: float


def with_intervals(
    one: Quantity, coverage: float, rule: IntervalRule, width: float = math.inf
) -> Quantity:
    """Return a quantity with the intervals that follow from its noise and sampling variance.

    That of noise and sampling lies within ``width`` of zero, as an effect does.
    """
    reach, interval = noise_half_width(coverage, one.noise), None
    if one.variances:
        half = half_width(coverage, one.noise, [one.variances], rule)
        interval = around(one.value, half, (-width, width))
    noise_interval = (one.value - reach, one.value + reach)
    return replace(one, interval=interval, noise_interval=noise_interval)


def weighted_errors(
    terms: Iterable[tuple[float, Quantity]],
) -> tuple[list[NoiseDistribution], list[list[float]]]:
    """Return the noises and the sampling variances of a weighted sum of independent quantities."""
    held = [(weight, one) for weight, one in terms if weight]
    noises = [noise.scaled(weight) for weight, one in held for noise in one.noise]
    return noises, [[weight**2 * value for value in one.variances] for weight, one in held]


def sampling_draws(
    variances: Sequence[float], normal: Floats, which: Floats, shared: float = 0.0
) -> Floats:
    """Turn uniform variables into sampling errors: normals of one of the likely variances.

    ``shared`` is the part of the variance that is drawn elsewhere.
    """
    likely = np.asarray(variances)
    chosen = likely[np.minimum((which * likely.size).astype(np.intp), likely.size - 1)]
    draws: Floats = np.sqrt(np.maximum(chosen - shared, 0.0)) * ndtri(normal)
    return draws


@dataclass(frozen=True, slots=True)
class _Source:
    """An independent noise: the quantity that it is in, and how it moves every subgroup."""

    quantity: int
    noise: NoiseDistribution
    moves: Floats


@dataclass(frozen=True)
class ReleasedSubgroups:
    """What subgroups released, made to add up to what was released of all units.

    All units alone are one subgroup.

    Attributes
    ----------
    shares : tuple of float
        The share of units in each subgroup; they add up to one.
    values : array, shape (subgroups, quantities)
        The numbers, reconciled.
    """

    shares: tuple[float, ...]
    values: Floats
    _sources: tuple[_Source, ...] = field(repr=False)
    _variances: tuple[tuple[tuple[float, ...], ...], ...] = field(repr=False)
    _biases: Floats = field(repr=False)  # shape (subgroups, quantities)
    _direct: tuple[Quantity, ...] = ()  # of all units, where these were paid for

    @classmethod
    def reconcile(
        cls,
        shares: Sequence[float],
        subgroups: Sequence[Sequence[Quantity]],
        direct: Sequence[Quantity] | None = None,
    ) -> ReleasedSubgroups:
        """Make subgroups add up to the direct numbers of all units, where these were paid for.

        Sampling errors of both are nearly the same; noise, and what weights left unbalanced, set
        the subgroups' sum apart from the direct number. Every subgroup is moved by its covariance
        with that sum, the least squares solution under the constraint. Without direct numbers the
        subgroups stay as they are.
        """
        share = np.array(shares)
        values = np.array([[one.value for one in subgroup] for subgroup in subgroups])
        moves = np.tile(np.eye(len(subgroups)), (values.shape[1], 1, 1))
        sources = []
        biases = np.array([[one.bias for one in subgroup] for subgroup in subgroups])
        for place in range(values.shape[1]):
            if direct is not None:
                spreads = np.array([subgroup[place].noise_variance for subgroup in subgroups])
                unbalanced = np.sqrt(biases[:, place])  # has the same sign in all subgroups
                spread = spreads * share + unbalanced * float(unbalanced @ share)
                whole = float(spread @ share)
                taken = spread / whole if whole > 0 else np.ones_like(share)
                values[:, place] += taken * (direct[place].value - float(share @ values[:, place]))
                moves[place] -= np.outer(taken, share)
                sources += [_Source(place, noise, taken) for noise in direct[place].noise]
            sources += [
                _Source(place, noise, moves[place][:, number])
                for number, subgroup in enumerate(subgroups)
                for noise in subgroup[place].noise
            ]
        variances = tuple(tuple(one.variances for one in subgroup) for subgroup in subgroups)
        return cls(
            tuple(share.tolist()), values, tuple(sources), variances, biases, tuple(direct or ())
        )  # fmt: skip

    @property
    def has_variances(self) -> bool:
        """Whether an interval was paid for in every subgroup."""
        return all(likely for subgroup in self._variances for likely in subgroup)

    @property
    def is_whole(self) -> bool:
        """Whether these are the quantities of all units, each with one noise."""
        return len(self.shares) == 1 and len(self._sources) == self.values.shape[1]

    def value(self, row: RowForm) -> float:
        """Return the row's number."""
        return float(np.array(row.subgroups) @ self.values @ np.array(row.quantities))

    def noise_half(self, row: RowForm, coverage: float) -> float:
        """Return the half-width that covers the noise alone."""
        return noise_half_width(coverage, self.noises(row))

    def half(self, row: RowForm, coverage: float, rule: IntervalRule = "convolved") -> float:
        """Return the half-width that covers noise and sampling."""
        return half_width(coverage, self.noises(row), self.likely(row), rule)

    def variance(self, row: RowForm) -> float:
        """Return the row's expected sampling variance."""
        return sum(float(np.mean(values)) for values in self.likely(row))

    def _shared(self, row: RowForm) -> float:
        """Return the variance that a row has because what is unbalanced is alike in all subgroups.

        Errors of subgroups that are the same add up whole; their squares are in the variances.
        """
        weights = np.array(row.subgroups)
        added = (weights @ np.sqrt(self._biases)) ** 2 - weights**2 @ self._biases
        return float(np.maximum(added, 0.0) @ np.array(row.quantities) ** 2)

    def simultaneous_factor(
        self, rows: Sequence[RowForm], halves: Sequence[float], coverage: float
    ) -> float:
        """Return how much wider intervals of rows must be to cover all at once.

        Rows share quantities, which Tukey's and Dunnett's intervals use and Bonferroni's do not:
        the factor is a quantile of the largest error of a row relative to its own half-width.
        """
        largest = np.zeros(DRAWS)
        for row, half in zip(rows, halves, strict=True):
            if half > 0:
                errors = np.array(row.subgroups) @ self._errors_of(row.quantities, self._alike)
                np.maximum(largest, np.abs(errors) / half, out=largest)
        return max(1.0, float(np.quantile(largest, coverage)))

    def test_equal(self, quantities: tuple[float, ...]) -> EqualityTest | None:
        """Test whether all subgroups have the same effect, by Cochran's Q with known noise.

        Subgroups that were reconciled err together: Q is taken with the covariances of their
        errors, and compared with its simulated distribution under these, noise and all.
        """
        count = len(self.shares)
        if count < 2 or not self.has_variances:
            return None
        covariance = np.diag(
            [self.variance(RowForm(tuple(one), quantities)) for one in np.eye(count).tolist()]
        )
        for source in self._sources:
            moved = quantities[source.quantity] * source.moves
            covariance += np.outer(moved, moved) * source.noise.variance
        inverse = np.linalg.pinv(covariance, hermitian=True)
        ones = inverse.sum(axis=0)
        middle = inverse - np.outer(ones, ones) / ones.sum()
        effects = self.values @ np.array(quantities)
        found = max(float(effects @ middle @ effects), 0.0)
        errors = self._errors_of(quantities, self._apart)
        chance = np.einsum("ij,ij->j", errors, middle @ errors)
        larger = int(np.count_nonzero(chance >= found))
        return EqualityTest(found, count - 1, (1 + larger) / (1 + DRAWS))

    def likely(self, row: RowForm) -> list[list[float]]:
        """Return equally likely values of each independent part of a row's sampling variance.

        All units that were paid for have the variances of their own weights.
        """
        if row.subgroups == self.shares and any(one.variances for one in self._direct):
            return [
                [factor**2 * value for value in one.variances]
                for factor, one in zip(row.quantities, self._direct, strict=True)
                if factor
            ]
        found = [
            [(weight * factor) ** 2 * value for value in likely]
            for weight, subgroup in zip(row.subgroups, self._variances, strict=True)
            for factor, likely in zip(row.quantities, subgroup, strict=True)
            if weight and factor
        ]
        return [*found, [self._shared(row)]]

    def noises(self, row: RowForm) -> list[NoiseDistribution]:
        """Return the independent noises of a row."""
        found = []
        for source in self._sources:
            moved = row.quantities[source.quantity] * float(np.array(row.subgroups) @ source.moves)
            if moved:
                found.append(source.noise.scaled(moved))
        return found

    def _errors_of(self, quantities: tuple[float, ...], simulated: tuple[Floats, ...]) -> Floats:
        """Return simulated errors of every subgroup, shape (subgroups, draws)."""
        weighted = zip(quantities, simulated, strict=True)
        errors: Floats = sum(
            (factor * errors for factor, errors in weighted if factor),
            start=np.zeros((len(self.shares), DRAWS)),
        )
        return errors

    @cached_property
    def _alike(self) -> tuple[Floats, ...]:
        """Simulated errors of each quantity, with one draw for what is unbalanced in all."""
        return self._simulate(np.sqrt(self._biases))

    @cached_property
    def _apart(self) -> tuple[Floats, ...]:
        """Simulated errors of each quantity, all independent."""
        return self._simulate(np.zeros_like(self._biases))

    def _simulate(self, shared: Floats) -> tuple[Floats, ...]:
        """Simulate errors; the draws are fixed, so that rows are functions of the release.

        ``shared`` deviations, of shape (subgroups, quantities), are of an error that all share.
        """
        if self.is_whole:
            return self._simulate_whole()
        count = len(self.shares)
        found = [np.zeros((count, DRAWS)) for _ in range(self.values.shape[1])]
        for place, source in enumerate(self._sources):
            (uniform,) = _uniforms(f"noise {place} behind subgroups", 1, DRAWS)
            found[source.quantity] += np.outer(source.moves, noise_draws(source.noise, uniform))
        for number, subgroup in enumerate(self._variances):
            for place, likely in enumerate(subgroup):
                name = f"sampling of cell {number}, {place} behind subgroups"
                normal, which = _uniforms(name, 2, DRAWS)
                found[place][number] += sampling_draws(
                    likely, normal, which, shared[number, place] ** 2
                )
        for place in range(len(found)):
            (normal,) = _uniforms(f"imbalance {place} behind subgroups", 1, DRAWS)
            found[place] += np.outer(shared[:, place], ndtri(normal))
        return tuple(found)

    def _simulate_whole(self) -> tuple[Floats, ...]:
        """Simulate errors of all units; streams go by errors, so that the arms' order is free."""
        noises, variances = [one.noise for one in self._sources], self._variances[0]
        in_order = sorted(
            range(len(noises)),
            key=lambda place: (
                noises[place].unit, noises[place].name, noises[place].epsilon, variances[place],
            ),
        )  # fmt: skip
        found = {}
        for stream, place in enumerate(in_order):
            name = f"errors of place {stream} behind simultaneous intervals"
            noise, normal, which = fixed_uniforms(name, 3, DRAWS)
            errors = noise_draws(noises[place], noise)
            found[place] = (errors + sampling_draws(variances[place], normal, which))[None]
        return tuple(found[place] for place in range(len(noises)))


@dataclass(frozen=True, slots=True)
class Prediction:
    """One quantity that a method will release, as it is predicted before a record is read.

    Attributes
    ----------
    quantity : Quantity
        Its linear form of arms, its noise, and the likely variances that its interval will be made
        of, in units of the outcome; its value is not known and zero.
    sampling : float
        Its sampling variance as it is thought to be.
    note : str
        The weight cap, or whether and how the method adjusts.
    adjusted : bool
        Whether covariates are adjusted for.
    rule : str
        How its interval puts noise and sampling together.
    """

    quantity: Quantity
    sampling: float
    note: str
    adjusted: bool = True
    rule: IntervalRule = "convolved"

    @property
    def erring(self) -> Quantity:
        """The quantity as it errs: with its sampling variance instead of the interval's."""
        return replace(self.quantity, variances=(self.sampling,))


Predict = Callable[[int, float], tuple[Prediction, ...]]
"""What a method will release of so many rows at an ε, a prediction for each quantity."""


class ExpectedError(NamedTuple):
    """What to expect of a row: sizes of its errors, and its half-width near releases' median."""

    noise: float  # its expected size
    sampling: float  # standard deviation of the estimate without noise
    error: float  # expected size of both together
    half_width: float
    margin: float  # what the error falls short of four times of five, on one side


@dataclass(frozen=True, slots=True)
class PredictedRow:
    """The errors of a row: independent noises, and normals with their likely variances.

    Attributes
    ----------
    noises : sequence of NoiseDistribution
        Its independent noises.
    sampling : sequence of sequences of float
        Variances of the normal errors as they are thought to be.
    likely : sequence of sequences of float
        Equally likely values of the variances that its interval will be made of.
    rule : str
        How the interval puts noise and sampling together.
    note : str
        The weight cap, or whether and how the method adjusts.
    adjusted : bool
        Whether covariates are adjusted for.
    """

    noises: Sequence[NoiseDistribution]
    sampling: Sequence[Sequence[float]]
    likely: Sequence[Sequence[float]]
    rule: IntervalRule = "convolved"
    note: str = ""
    adjusted: bool = True

    def half_width(self, coverage: float) -> float:
        """Return the half-width of the interval that a release will show."""
        return half_width(coverage, self.noises, self.likely, self.rule)

    def expected(self, coverage: float) -> ExpectedError:
        """Return the sizes of the row's errors, and its half-width."""
        return ExpectedError(
            expected_size(self.noises, ()),
            math.sqrt(sum(float(np.mean(values)) for values in self.sampling)),
            expected_size(self.noises, self.sampling),
            self.half_width(coverage),
            half_width(2 * POWER - 1, self.noises, self.sampling, "convolved"),
        )


def predicted_contrast(predictions: Sequence[Prediction], arm: int, against: int) -> PredictedRow:
    """Return the errors of a contrast of two arms, by their codes.

    A method that releases the very contrast has predicted it. Otherwise it is the difference of
    what was predicted for both: of their means, or of their contrasts with the reference.
    """
    arms = len(predictions[0].quantity.arms)
    known = {one.quantity.arms: one for one in predictions}

    def form(code: int, other: int | None) -> tuple[float, ...]:
        return tuple(float(place == code) - float(place == other) for place in range(arms))

    terms = [(1.0, known.get(form(arm, against)))]
    if terms[0][1] is None:
        terms = [
            (weight, known.get(form(code, None)) or known.get(form(code, 0)))
            for weight, code in ((1.0, arm), (-1.0, against))
        ]
    held = [(weight, one) for weight, one in terms if one is not None]  # none for the reference
    noises, likely = weighted_errors((weight, one.quantity) for weight, one in held)
    _, sampling = weighted_errors((weight, one.erring) for weight, one in held)
    first = held[0][1]
    return PredictedRow(
        noises, sampling, likely, first.rule, first.note, all(one.adjusted for _, one in held)
    )
