"""The local engine: encoded rows of one machine, folded in blocks on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Codes, Floats, Integers
from private_ate.data.encoding import FurtherOutcome, map_columns
from private_ate.data.missing_rules import MissingRules, Reading
from private_ate.data.tables import Table
from private_ate.domain import Domain, Outcome
from private_ate.engines.disk_columns import CompactColumns, encode_columns, reorder_rows
from private_ate.engines.grouping import GatheredRows, RowOrder, batches, groups_per_stack
from private_ate.engines.matching_pools import LocalArmPool, LocalPool, LocalWeights
from private_ate.engines.threads import run_all, single_threaded_blas, threads
from private_ate.privacy.quantization import (
    MOST_SORTED_ROWS,
    OUTCOME_BITS,
    OUTCOME_STEPS,
    WEIGHT_BITS,
    require_rows,
    weighted_sum,
)
from private_ate.study import Block, Grouping, Groups, RowWeights, Summable

__all__ = [
    "LocalArmPool", "LocalPool", "LocalStudy", "LocalWeights", "Progress",
]  # fmt: skip

S = TypeVar("S", bound=Summable)
Part = TypeVar("Part")

Progress = Callable[[str, int, int], None]  # title of a pass, blocks done, blocks in all

_BLOCK_ROWS = 1 << 14  # large enough for two threads, small enough for the cache
_SHUFFLED_ROWS = 1 << 16  # enough to outweigh the calls, few enough for the cache
_FEW_ROWS = 2000
_SCORE_BITS = 40  # scores live on the grid 2⁻⁴⁰, where distances and ties are exact
_LARGEST_SCORE = 1 << 61


@dataclass(frozen=True, slots=True)
class LocalStudy:
    """Rows in memory or mapped from disk: covariates by feature, treatment, outcomes or none.

    ``treatment`` is True for treated rows where two arms are declared, and the code of the arm
    where there are more; ``arm`` is the code in either case. ``further`` are outcomes after the
    first; a method sees one outcome at a time, see :meth:`with_outcome`.
    """

    domain: Domain
    covariates: Floats | CompactColumns = field(repr=False)
    treatment: Bits | Codes = field(repr=False)
    outcome: npt.NDArray[np.int32] | None = field(repr=False)
    progress: Progress | None = field(default=None, repr=False, compare=False)
    takes_part: Bits | None = field(default=None, repr=False)
    observed: Bits | None = field(default=None, repr=False)
    rules: MissingRules | None = None
    weights: Floats | None = field(default=None, repr=False)  # sampling weights over their bound
    further: tuple[FurtherOutcome, ...] = field(default=(), repr=False)

    @classmethod
    def encode(
        cls,
        table: Table,
        domain: Domain,
        progress: Progress | None = None,
        reading: Reading | None = None,
        *,
        outcome: bool = True,
    ) -> LocalStudy:
        """Encode a table as its domain says; at sample level the shape follows the schema only.

        With a reading at label level public columns are looked over: what was not declared is
        refused or left out, and missing entries have indicators.
        """
        settled, rules, rows = encode_columns(
            table, domain, outcome=outcome, progress=progress, reading=reading
        )
        return cls(
            settled, rows.covariates, rows.treatment, rows.outcome, progress, rows.takes_part,
            rows.observed, rules, rows.weights, rows.further,
        )  # fmt: skip

    @classmethod
    def encode_public(
        cls,
        table: Table,
        domain: Domain,
        progress: Progress | None = None,
        reading: Reading | None = None,
    ) -> LocalStudy:
        """Encode covariates and treatment only; the outcome column is not read."""
        study = cls.encode(table, domain, progress, reading, outcome=False)
        return replace(study, takes_part=None)

    @property
    def size(self) -> int:
        """The number of rows (n)."""
        return int(self.treatment.size)

    @property
    def arm(self) -> Codes:
        """The code of each row's arm: 0 is the reference, the others follow as declared."""
        return self.treatment.view(np.uint8)

    @property
    def treated(self) -> Bits:
        """True for treated rows, where two arms are declared."""
        if self.arms != 2:
            msg = f"this method compares two arms; {self.arms} are declared"
            raise TypeError(msg)
        return self.treatment.view(np.bool_)

    @property
    def arms(self) -> int:
        """How many arms are declared (K)."""
        return 2 if self.treatment.dtype == np.bool_ else self.domain.treatment.size

    @property
    def dimension(self) -> int:
        """The number of encoded covariates (d)."""
        return int(self.covariates.shape[0])

    @property
    def everyone_takes_part(self) -> bool:
        """Whether no row could be left out; rows that were encoded from a table could."""
        return self.takes_part is None and self.observed is None and self.weights is None

    def public(self) -> Self:
        """Return a view without outcomes; who lacks one is shown only if that is public."""
        shown = self.observed if self.domain.outcome.missing == "public" else None
        return replace(self, outcome=None, observed=shown, further=())

    def with_outcome(self, place: int) -> Self:
        """Return a view with one of several outcomes alone, by its place among those declared."""
        domain = self.domain.of_outcome(place)
        if place == 0:
            return replace(self, domain=domain, further=())
        one = self.further[place - 1]
        return replace(self, domain=domain, outcome=one.steps, observed=one.observed, further=())

    def recoded(self, outcome: Outcome, code: Callable[[Block], npt.NDArray[np.int32]]) -> Self:
        """Return the same rows with another outcome, computed by a kernel of each block."""
        codes = self._by_rows(np.int32, lambda rows: code(self._block(rows.start)))
        return replace(self, domain=self.domain.with_outcome(outcome), outcome=codes, further=())

    def unannounced(self) -> Self:
        """Return a view whose passes the progress bar does not show."""
        return replace(self, progress=None)

    @contextmanager
    def thinned(self, stride: int) -> Iterator[Self]:
        """Lend a copy of one row in ``stride``."""
        yield map_columns(
            self,
            lambda column: column[::stride].copy(),
            covariates=np.ascontiguousarray(self.covariates[:, ::stride]),
        )

    def reordered(self, order: Integers) -> Self:
        """Return a copy whose rows are in another order; no sum over rows remembers the first."""
        covariates = reorder_rows(self.covariates, order)
        return map_columns(self, lambda column: reorder_rows(column, order), covariates=covariates)

    def divided(self, cell_of: Callable[[Block], Codes], cells: int) -> tuple[Self, ...]:
        """Return copies of the rows of each cell; cells follow from public columns alone."""
        public = self.public()
        codes = self._by_rows(np.uint8, lambda rows: cell_of(public._block(rows.start)))  # noqa: SLF001  # a view of its own rows
        return tuple(self.reordered(np.flatnonzero(codes == cell)) for cell in range(cells))

    def with_outcomes(self) -> Self:
        """Return the rows that have an outcome, where who lacks one is public; else all rows."""
        if self.observed is None or self.domain.outcome.missing != "public":
            return self
        return self.reordered(np.flatnonzero(self.observed))

    def fold(self, kernel: Callable[[Block], S], *, title: str = "pass over the rows") -> S:
        """Return the sum of the kernel over all blocks, in row order."""
        return self._fold(lambda start: kernel(self._block(start)), title)

    def fold_with(
        self,
        weights: RowWeights,
        kernel: Callable[[Block, Floats], S],
        *,
        title: str = "pass over the rows",
    ) -> S:
        """Return the sum of a kernel that also sees the weight of each row."""
        if not isinstance(weights, LocalWeights):
            msg = "these weights belong to another engine"
            raise TypeError(msg)
        steps = weights.steps

        def run(start: int) -> S:
            rows = steps[start : start + _BLOCK_ROWS]
            return kernel(self._block(start), rows / (1 << WEIGHT_BITS))

        return self._fold(run, title)

    def by_groups(
        self,
        grouping: Grouping,
        kernel: Callable[[Groups], Integers],
        *,
        title: str = "blocks of rows",
    ) -> Integers:
        """Return the kernel's values for every group, groups stacked to runs of about 2¹⁴ rows."""
        if self.outcome is None:
            msg = "values of groups need a study with outcomes"
            raise TypeError(msg)
        places = self._places(grouping)
        stack = groups_per_stack(grouping)

        def values() -> Iterator[Integers]:
            for first, last in batches(grouping):
                rows = self._gather(RowOrder.of(grouping, places, first, last))
                run = partial(_run_stack, kernel, rows, grouping, last)
                yield from threads().map(run, range(first, last, stack))

        with single_threaded_blas():
            total = -(-grouping.count // stack)
            return np.concatenate(list(self._watched(values(), title, total)))

    def _places(self, grouping: Grouping) -> Integers:
        """Return the shuffled place of every row."""
        return self._by_rows(
            np.int64,
            lambda rows: grouping.places(rows.start, rows.stop - rows.start),
            _SHUFFLED_ROWS,
        )

    def _by_rows(
        self, kind: type, compute: Callable[[slice], npt.NDArray[Any]], step: int | None = None
    ) -> npt.NDArray[Any]:
        """Return a column that is computed for one run of rows after the other, on threads."""
        column: npt.NDArray[Any] = np.empty(self.size, dtype=kind)
        size = step or _BLOCK_ROWS

        def run(start: int) -> None:
            rows = slice(start, min(start + size, self.size))
            column[rows] = compute(rows)

        run_all(run, range(0, self.size, size))
        return column

    def _gather(self, order: RowOrder) -> GatheredRows:
        """Copy some rows in the order of their places."""
        features = list(self.covariates)
        covariates = np.empty((len(features), order.rows.size))

        def copy(index: int) -> None:
            order.copy(features[index], covariates[index])

        run_all(copy, range(len(features)))
        masks = [mask for mask in (self.takes_part, self.observed) if mask is not None]
        mask = np.logical_and.reduce(masks) if masks else None
        return GatheredRows(
            order.start,
            covariates,
            order.copy(self.arm),
            order.copy(self.outcome),  # type: ignore[arg-type]  # by_groups has looked
            None if mask is None else order.copy(mask),
            None if self.weights is None else order.copy(self.weights),
        )

    def _fold(self, run: Callable[[int], S], title: str) -> S:
        starts = range(0, self.size, _BLOCK_ROWS)
        if len(starts) == 1:
            # Products of few rows stay on one thread by themselves.
            with single_threaded_blas() if self.size > _FEW_ROWS else nullcontext():
                return run(0)
        with single_threaded_blas():
            parts = threads().map(run, starts)
            return reduce(add, self._watched(parts, title, len(starts)))

    def _watched(self, parts: Iterable[Part], title: str, total: int) -> Iterator[Part]:
        """Update the progress bar after each block."""
        for done, part in enumerate(parts, 1):
            if self.progress is not None:
                self.progress(title, done, total)
            yield part

    def pool(self, coefficients: Floats) -> LocalPool | LocalArmPool:
        """Order the rows along the propensity score of a logistic model, or along every arm's.

        ``coefficients`` have shape (d + 1,) for two arms, or (K, d + 1) of a multinomial model.
        """
        require_rows(self.size, MOST_SORTED_ROWS)
        if coefficients.ndim == 1:
            return LocalPool.sort(self._scores(coefficients, _SCORE_BITS), self.treated)
        return LocalArmPool(self.arm, self.arm_scores(coefficients), len(coefficients))

    def noisy_pool(
        self,
        coefficients: Floats,
        score_bits: int,
        score_noise: Callable[[Integers], npt.NDArray[np.generic]],
        arm_noise: Callable[[Codes], Codes],
    ) -> LocalPool | LocalArmPool:
        """Order the rows along noisy scores, shape (n,) or (K, n), with arms as noisy codes say."""
        require_rows(self.size, MOST_SORTED_ROWS)
        count = len(coefficients)
        if coefficients.ndim == 1:
            exact = self._scores(coefficients, score_bits)
        else:
            scores_of = self.arm_scores(coefficients, score_bits)
            exact = np.stack([scores_of(arm) for arm in range(count)])
        noisy = score_noise(exact)
        released = arm_noise(self.arm)
        bounded = np.clip(noisy, -_LARGEST_SCORE, _LARGEST_SCORE).astype(np.int64)
        if coefficients.ndim == 1:
            return LocalPool.sort(bounded, released.view(np.bool_))
        return LocalArmPool(released, bounded.__getitem__, count)

    def arm_sums(self, weights: RowWeights) -> tuple[int, ...]:
        """Return the weighted sums of outcomes minus the middle of their bounds."""
        if self.outcome is None or not isinstance(weights, LocalWeights):
            msg = "sums need a study with outcomes and weights of this engine"
            raise TypeError(msg)
        centred = self.outcome - np.int32(OUTCOME_STEPS // 2)
        totals = [
            weighted_sum(np.where(weights.arm == arm, weights.steps, 0), centred)
            for arm in range(1, len(weights.largest))
        ]
        return weighted_sum(weights.steps, centred) - sum(totals), *totals

    def effect(self, weights: LocalWeights) -> float:
        """Return the sum of signed weighted outcomes in units of their range; not private."""
        control, treated = self.arm_sums(weights)
        return (treated - control) / (1 << (OUTCOME_BITS + WEIGHT_BITS))

    def __getstate__(self) -> NoReturn:
        msg = "a study holds records and is not pickled"
        raise TypeError(msg)

    def _block(self, start: int) -> Block:
        rows = slice(start, start + _BLOCK_ROWS)
        outcome = None if self.outcome is None else self.outcome[rows]
        columns = {
            name: held[rows]
            for name in ("takes_part", "observed", "weights")
            if (held := getattr(self, name)) is not None
        }
        return Block(
            self.covariates[:, rows].T, self.arm[rows], outcome, start, arms=self.arms, **columns
        )

    def _scores(self, coefficients: Floats, bits: int) -> Integers:
        """Return propensity scores in steps of 2^−bits; equal rows get equal scores."""

        def score(rows: slice) -> Floats:
            linear = self._linear(coefficients, rows)
            np.clip(linear, -700.0, 700.0, out=linear)
            found: Floats = np.rint(2.0**bits / (1.0 + np.exp(-linear)))
            return found

        return self._by_rows(np.int64, score)

    def _linear(self, coefficients: Floats, rows: slice) -> Floats:
        """Return linear predictors of some rows; equal rows get equal ones."""
        # Feature by feature: a matrix product may round equal rows differently.
        linear = np.full(rows.stop - rows.start, coefficients[0])
        for slope, feature in zip(coefficients[1:], self.covariates, strict=True):
            linear += slope * feature[rows]
        return linear

    def arm_scores(
        self, coefficients: Floats, bits: int = _SCORE_BITS
    ) -> Callable[[int], Integers]:
        """Return what computes e_t of all rows for an arm t, in steps of 2^−bits.

        ``coefficients`` are those of a multinomial model, shape (K, d + 1). Only the logarithm of
        what makes probabilities add up to one is kept, a number per row. Of two arms e_1 serves
        for both: 1 − e would round ties apart.
        """
        if len(coefficients) == 2:
            return lambda _: self._scores(coefficients[1] - coefficients[0], bits)

        def norm(rows: slice) -> Floats:
            linear = np.stack([self._linear(each, rows) for each in coefficients])
            top = linear.max(axis=0)
            found: Floats = top + np.log(np.exp(linear - top).sum(axis=0))
            return found

        norms = self._by_rows(np.float64, norm)

        def score(arm: int, rows: slice) -> Floats:
            log_share = np.minimum(self._linear(coefficients[arm], rows) - norms[rows], 0.0)
            found: Floats = np.rint(2.0**bits * np.exp(log_share))
            return found

        return lambda arm: self._by_rows(np.int64, partial(score, arm))


def _run_stack(
    kernel: Callable[[Groups], Integers],
    rows: GatheredRows,
    grouping: Grouping,
    last: int,
    start: int,
) -> Integers:
    """Return the kernel's values for a stack of groups that ends at the last one gathered."""
    return kernel(rows.groups(grouping, start, min(start + groups_per_stack(grouping), last)))
