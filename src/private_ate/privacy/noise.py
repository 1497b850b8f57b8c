"""All noise of this package, behind one recorded choke point.

Every mechanism that a release can use is a public method of `Noise`, with its neighbours,
sensitivity, cost and proof beside the call that draws; for an exact rational ε.

Every mechanism takes integers on a public grid and answers in *half* grid steps: twice the value
plus an odd integer. The half step makes the noise symmetric without counting zero twice, which
would cost another ln 2 (docs/proofs/noise.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Codes, Floats, Integers
from private_ate.errors import NumericRangeError
from private_ate.privacy.baseline_noise import BaselineNoise
from private_ate.privacy.baseline_noise import rate_of as _rate
from private_ate.privacy.entropy import Entropy
from private_ate.privacy.joint import JointCentres, JointRule, draw_centres
from private_ate.privacy.linf_noise import continuous_linf, discrete_linf, scaled_linf
from private_ate.privacy.metrics import Cost, Metric, Spend
from private_ate.privacy.objective import Objective, ObjectiveCalibration
from private_ate.privacy.rejection_samplers import draw_by_level
from private_ate.privacy.samplers import (
    Coin,
    add_two_sided,
    flip_rows,
    move_codes,
    random_order,
    stair,
    two_sided,
)
from private_ate.privacy.trimmed_mean import CentreRule

__all__ = ["Noise", "Recorder"]

Output = TypeVar("Output")

_EACH_ITS_OWN = (Metric.SHARES, Metric.ONE_OF, Metric.MOVES)  # declared for each coordinate
_MOST_ARMS = 255  # a code is one byte
_LARGEST_STEP = 1 << 61  # an int64 value in half steps, noise included, stays below 2⁶³


class Recorder(Protocol):
    """Hook for audits: observes each mechanism's input and may replace its output."""

    def record(self, spend: Spend, values: object, draw: Callable[[], object]) -> object:
        """Note the input; return an output, from ``draw`` or from an earlier run."""

    def secret(self, draw: Callable[[], Any]) -> Any:  # noqa: ANN401  # whatever is drawn
        """Return a secret that no record influences, from ``draw`` or from an earlier run."""


@dataclass(slots=True)
class Noise(BaselineNoise):
    """The one place where noise is drawn and where its cost is written down.

    ``outcomes`` is how many outcomes of the same units are released by draws that they share.
    ``authorize`` is called before the first draw: it charges the ledger, or raises.
    """

    entropy: Entropy = field(repr=False)
    recorder: Recorder | None = field(default=None, repr=False)
    authorize: Callable[[], None] | None = field(default=None, repr=False)
    spends: list[Spend] = field(default_factory=list)
    outcomes: int = field(default=1, kw_only=True)

    @property
    def spent(self) -> Fraction:
        """The ε of all calls so far, by sequential composition."""
        return self.cost.epsilon

    @property
    def cost(self) -> Cost:
        """The composed cost: calls add up, disjoint parts of the rows count once."""
        return Cost.of(self.spends)

    def secret_order(self, rows: int) -> Integers:
        """Draw a uniformly random order of the rows, to be used inside and never released.

        Neighbours: any two tables with as many rows; only their number is used. A method that
        takes the rows in such an order has the same distribution for every order in which they
        come, so replacing a record and moving rows costs what replacing it in place costs.
        Cost: none (docs/proofs/published.md).
        """
        order: Integers = self._secret(lambda: random_order(rows, self.entropy))
        return order

    def secret_bytes(self, size: int) -> bytes:
        """Draw keys that assign positions of rows to parts, or seed a generator of synthetic rows.

        Neighbours: any; the keys depend on no row. Cost: none (docs/proofs/blocks.md).
        """
        drawn: bytes = self._secret(lambda: self.entropy.draw(size))
        return drawn

    def _secret(self, draw: Callable[[], Any]) -> Any:  # noqa: ANN401  # whatever is drawn
        return draw() if self.recorder is None else self.recorder.secret(draw)

    def laplace(
        self,
        step: str,
        values: Sequence[int],
        *,
        sensitivity: int,
        epsilon: Fraction,
        part: str = "",
    ) -> list[int]:
        """Add discrete Laplace noise of scale sensitivity/ε to a short integer vector.

        Neighbours: vectors at L1 distance ≤ ``sensitivity``. Cost: ε (docs/proofs/noise.md).
        """
        rate = _rate(epsilon, sensitivity)
        return self._add(
            Spend(
                step, "laplace", epsilon, (sensitivity,), len(values), part=part, metric=Metric.L1
            ),
            values,
            lambda: (two_sided(rate, self.entropy) for _ in values),
        )

    def laplace_disjoint(
        self,
        step: str,
        values: Sequence[int],
        *,
        sensitivities: Sequence[int],
        epsilon: Fraction,
    ) -> list[int]:
        """Add to each coordinate Laplace noise of its own sensitivity, at ε in all.

        Neighbours: ``Σ |difference_k| / sensitivity_k ≤ 1``, as when one record enters one
        coordinate only. Cost: ε, because the losses add up to at most ε times that sum
        (docs/proofs/noise.md).
        """
        rates = [_rate(epsilon, sensitivity) for sensitivity in sensitivities]
        declared, size = tuple(sensitivities), len(values)
        return self._add(
            Spend(step, "laplace_disjoint", epsilon, declared, size, metric=Metric.SHARES),
            values,
            lambda: (two_sided(rate, self.entropy) for rate in rates),
        )

    def laplace_rows(
        self, step: str, values: Integers, *, sensitivity: int, epsilon: Fraction
    ) -> npt.NDArray[np.generic]:
        """Add discrete Laplace noise to every row of a long integer vector.

        Neighbours: columns at L1 distance ≤ ``sensitivity``. Cost: ε (docs/proofs/noise.md).
        Answers int64, or Python integers in an object array where the noise could leave 64 bits.
        """
        rate = _rate(epsilon, sensitivity)
        if values.size and max(-int(values.min()), int(values.max())) >= _LARGEST_STEP:
            msg = "row values leave the range of exact noise; use a coarser grid"
            raise NumericRangeError(msg)
        return self._release(
            Spend(step, "laplace_rows", epsilon, (sensitivity,), values.size, metric=Metric.L1),
            values,
            lambda: add_two_sided(values, rate, self.entropy),
        )

    def randomized_response(
        self, step: str, bits: Bits, *, changes: int = 1, epsilon: Fraction
    ) -> Bits:
        """Flip every bit with probability ``1/(1 + exp(ε/changes))``.

        Neighbours: columns that differ in at most ``changes`` rows. Cost: ε
        (docs/proofs/noise.md).
        """
        coin = Coin.logistic(_rate(epsilon, changes), public=True)
        return self._release(
            Spend(step, "randomized_response", epsilon, (changes,), bits.size, metric=Metric.L1),
            bits,
            lambda: bits ^ flip_rows(coin, bits.size, self.entropy),
        )

    def generalized_response(
        self, step: str, codes: Codes, *, arms: int, changes: int = 1, epsilon: Fraction
    ) -> Codes:
        """Keep every code with probability ``e^x/(e^x + K − 1)``, x = ε/changes; else draw another.

        The other is any of the K − 1 remaining arms, equally likely; for two arms this is
        randomised response. Neighbours: columns that differ in at most ``changes`` rows, by any
        codes. Cost: ε (docs/proofs/several-arms.md).
        """
        if not 2 <= arms <= _MOST_ARMS:
            msg = f"a response is drawn among 2 to {_MOST_ARMS} arms, not {arms}"
            raise NumericRangeError(msg)
        coin = Coin(arms - 1, arms - 1, 1, _rate(epsilon, changes), public=True)
        size = codes.size
        return self._release(
            Spend(step, "generalized_response", epsilon, (changes,), size, metric=Metric.PLACES),
            codes,
            lambda: move_codes(codes, arms, coin, self.entropy),
        )

    def staircase(self, step: str, value: int, *, sensitivity: int, epsilon: Fraction) -> int:
        """Add integer staircase noise, the pure-ε distribution of least expected size.

        Neighbours: integers at distance ≤ ``sensitivity``. Cost: ε (docs/proofs/noise.md).
        """
        exact = int(value)
        _rate(epsilon, sensitivity)
        return self._release(
            Spend(step, "staircase", epsilon, (sensitivity,), 1, metric=Metric.L1),
            exact,
            lambda: 2 * exact + self._stair(sensitivity, epsilon),
        )

    def staircase_disjoint(
        self,
        step: str,
        values: Sequence[int],
        *,
        sensitivities: Sequence[int],
        epsilon: Fraction,
    ) -> list[int]:
        """Add staircase noise to coordinates of which a neighbour moves only one.

        Neighbours: one coordinate k differs, by at most ``sensitivities[k]``. Cost: ε, as for
        the one staircase that sees the difference (docs/proofs/noise.md).
        """
        declared, size = tuple(sensitivities), len(values)
        return self._add(
            Spend(step, "staircase_disjoint", epsilon, declared, size, metric=Metric.ONE_OF),
            values,
            lambda: (self._stair(sensitivity, epsilon) for sensitivity in declared),
        )

    def staircase_by_arm(
        self,
        step: str,
        values: Sequence[int],
        *,
        sensitivities: Sequence[int],
        moves: int,
        epsilon: Fraction,
        part: str = "",
    ) -> list[int]:
        """Add staircase noise of budget ``ε/moves`` to sums of rows that are in one arm each.

        Neighbours: ``moves`` moves lead from one to the other, each of the sum of one arm t by at
        most ``sensitivities[t]``. Where m rows are replaced and may change arm, every row leaves
        a sum and enters one: 2m moves, and a sensitivity bounds the size of what one row adds.
        Where m outcomes are replaced there are m moves. Cost: ε, as each move costs ``ε/moves``
        (Lemma S of docs/proofs/several-arms.md). A staircase of twice the sensitivity at ε would
        lose ε on either sum that a row moves between: 2ε.
        """
        declared, size = tuple(sensitivities), len(values)
        spend = Spend(
            step, "staircase_by_arm", epsilon, declared, size,
            part=part, metric=Metric.MOVES, moves=moves,
        )  # fmt: skip
        return self._add(
            spend,
            values,
            lambda: (self._stair(sensitivity, epsilon / moves) for sensitivity in declared),
        )

    def cube(
        self, step: str, values: Sequence[int], *, sensitivity: int, epsilon: Fraction
    ) -> list[int]:
        """Add discrete L∞ noise, uniform on cubes of random size, to a short integer vector.

        Neighbours: vectors at L∞ distance ≤ ``sensitivity``. Cost: ε, whatever the dimension
        (Lemma 1 of docs/proofs/orthogonal.md).
        """
        rate = _rate(epsilon, sensitivity)
        return self._add(
            Spend(step, "cube", epsilon, (sensitivity,), len(values), metric=Metric.LINF),
            values,
            lambda: discrete_linf(rate, len(values), self.entropy),
        )

    def cubes(
        self,
        step: str,
        values: Sequence[Sequence[int]],
        *,
        sensitivities: Sequence[Sequence[int]],
        epsilon: Fraction,
        part: str = "",
    ) -> list[list[int]]:
        """Add L∞ noise to every row of a table, each number scaled by its own sensitivity.

        A row holds the sums of several outcomes in one arm. Neighbours:
        ``Σ_rows max_k |difference_k|/sensitivity_k ≤ 1``, as when a person is in one row and may
        move all of its numbers. Cost: ε, whatever the number of outcomes: a row's density falls
        by at most ``exp(ε·max_k …)``, and rows are drawn independently. Answers are rounded to
        half steps, even ones among them. Proof: docs/proofs/outcomes.md.
        """
        exact = [[int(value) for value in row] for row in values]
        bounds = [[int(size) for size in row] for row in sensitivities]
        _require_one_each(exact, bounds)
        flat = tuple(size for row in bounds for size in row)
        spend = Spend(
            step, "cubes", epsilon, flat, len(flat),
            part=part, metric=Metric.GROUPS, groups=len(exact),
        )  # fmt: skip
        for row, sizes in zip(exact, bounds, strict=True):
            _require_one_each(row, sizes)
        for size in flat:
            _rate(epsilon, size)

        def draw() -> list[list[int]]:
            noise = [scaled_linf(sizes, epsilon, self.entropy) for sizes in bounds]
            return [_added(row, odd) for row, odd in zip(exact, noise, strict=True)]

        return self._release(spend, exact, draw)

    def objective(
        self, step: str, objective: Objective, *, changes: int, epsilon: Fraction
    ) -> Floats:
        """Minimise a sum of convex losses under a random linear term; answer the weights.

        Neighbours: sums that differ in at most ``changes`` of their rows, so that the gradient
        moves by at most ``2L·changes`` in every coordinate, L the Lipschitz constant of the loss, 1
        if it is logistic. Cost: ε, of which 1 % pays for Laplace noise that covers the solver's
        error (Lemmas 2 and 3 of docs/proofs/orthogonal.md, which name the probability that this
        error exceeds its bound; other losses: section 12 of docs/proofs/baselines.md). The
        recorder gets the objective itself and may evaluate its gradient.
        """
        calibration = ObjectiveCalibration.of(objective, changes, epsilon)
        declared, size = (calibration.movement,), calibration.dimension
        minimising = epsilon - calibration.smoothing
        computed = self._release(
            Spend(step, "objective", minimising, declared, size, metric=Metric.GRADIENT),
            objective,
            lambda: objective.minimize(
                calibration.perturbation(continuous_linf(calibration.dimension, self.entropy))
            ),
        )
        return calibration.weights(
            self.laplace(
                f"{step}, rounding",
                calibration.steps(computed),
                sensitivity=calibration.sensitivity,
                epsilon=calibration.smoothing,
            )
        )

    def trimmed_centre(
        self, step: str, values: Integers, *, rule: CentreRule, changes: int, epsilon: Fraction
    ) -> int:
        """Release a candidate c with probability ∝ ``exp(−ε·level(c)/(2·changes))``.

        Neighbours: numbers that differ in at most ``changes`` places, by any amount: every level
        then moves by at most ``changes``. Cost: ε (docs/proofs/blocks.md).
        """
        rate = _rate(epsilon, 2 * changes)
        spend = Spend(
            step, "trimmed_centre", epsilon, (changes,), values.size,
            metric=Metric.PLACES, rule="" if self.recorder is None else rule.fingerprint(),
        )  # fmt: skip
        return self._release(
            spend,
            values,
            lambda: int(rule.candidates[draw_by_level(rule.levels(values), rate, self.entropy)]),
        )

    def joint_centres(
        self, step: str, blocks: Integers, *, rule: JointRule, changes: int, epsilon: Fraction
    ) -> JointCentres:
        """Release centres, spreads and flags with probability ∝ ``exp(−ε·level/(2·changes))``.

        Neighbours: tables that differ in at most ``changes`` rows, a row for each block of records,
        by any amount: the level of every candidate then moves by at most ``changes``, however many
        coordinates there are. Cost: ε (Lemmas A and B of docs/proofs/blocks.md).
        """
        rate = _rate(epsilon, 2 * changes)
        spend = Spend(
            step, "joint_centres", epsilon, (changes,), len(blocks),
            metric=Metric.ROWS, rule="" if self.recorder is None else rule.fingerprint(),
        )  # fmt: skip
        return self._release(spend, blocks, lambda: draw_centres(rule, blocks, rate, self.entropy))

    def choose(
        self, step: str, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction
    ) -> int:
        """Choose an index by the exponential mechanism, exactly.

        Neighbours: each score moves by at most ``sensitivity``, in either direction. Cost: ε
        (docs/proofs/baselines.md).
        """
        spend = Spend(step, "choose", epsilon, (sensitivity,), len(scores), metric=Metric.LINF)
        return self._choose(spend, scores, epsilon)

    def _add(
        self, spend: Spend, values: Sequence[int], noise: Callable[[], Iterable[int]]
    ) -> list[int]:
        """Release integers in half steps, each with its odd integer of noise."""
        exact = [int(value) for value in values]
        if spend.metric in _EACH_ITS_OWN:
            _require_one_each(exact, spend.sensitivity)
        for size in (*spend.sensitivity, spend.moves):
            _rate(spend.epsilon, size)
        return self._release(spend, exact, lambda: _added(exact, noise()))

    def _release(self, spend: Spend, values: object, draw: Callable[[], Output]) -> Output:
        """Have the first draw paid for, write the cost down, show it to the recorder, draw."""
        if self.authorize is not None and not self.spends:
            self.authorize()
        self.spends.append(spend)
        if self.recorder is not None:
            return self.recorder.record(spend, values, draw)  # type: ignore[return-value]  # Output
        return draw()

    def _stair(self, sensitivity: int, epsilon: Fraction) -> int:
        return stair(sensitivity, stair_width(sensitivity, epsilon), epsilon, self.entropy)


def stair_width(sensitivity: int, epsilon: Fraction) -> int:
    """Return the integer width of the inner part of a stair, near Δ/(1 + exp(ε/2)).

    Any width from 1 to Δ is equally private; this one makes the expected noise least.
    """
    share = 1.0 / (1.0 + math.exp(min(float(epsilon) / 2.0, 700.0)))
    return min(max(round(sensitivity * Fraction(share)), 1), sensitivity)


def _added(exact: Sequence[int], noise: Iterable[int]) -> list[int]:
    return [2 * value + odd for value, odd in zip(exact, noise, strict=True)]


def _require_one_each(values: Sequence[object], sensitivities: Sequence[object]) -> None:
    if len(values) != len(sensitivities):
        msg = "numbers that are released together need one sensitivity each"
        raise NumericRangeError(msg)
