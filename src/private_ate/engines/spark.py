"""The cluster engine: encoded blocks on Spark, folded by a map and a tree of additions.

Rows are encoded once, in Arrow batches, where they are; each pass runs a kernel over the blocks of
every partition and adds the results in a fixed order. Only sums reach the driver, and only the
driver draws noise, so a task that is lost and repeated changes nothing.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import accumulate
from operator import add, itemgetter
from typing import Any, Final, NoReturn, Self, TypeVar

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Integers
from private_ate.data.files import without_words
from private_ate.data.missing_rules import MissingRules, Reading
from private_ate.data.tables import Table, table_of
from private_ate.data.validate_public import PublicCounts, settle_public
from private_ate.domain import Domain, Outcome
from private_ate.engines.grouping import GatheredRows, groups_of, groups_per_stack
from private_ate.engines.local import Progress
from private_ate.engines.spark_table import (
    FAILED,
    SparkColumns,
    count_public,
    encode_block,
    one_row,
    quoted,
)
from private_ate.engines.threads import single_threaded_blas
from private_ate.errors import ArgumentError, RecordsError, SchemaError
from private_ate.study import ALL_PRESENT, Block, Grouping, Groups, Summable

__all__ = ["NEEDS_ORDER", "UNFINISHED", "SparkStudy"]

S = TypeVar("S", bound=Summable)

_BLOCK_ROWS: Final = 1 << 14
_ENCODED: Final = "rows int, block binary"
_FAN_IN: Final = 64  # values that one task, or the driver, adds up
UNFINISHED: Final = (
    "Spark could not finish a pass over the records; nothing was released. What it said could "
    "quote a record and is not repeated: see the cluster's own logs, which only its keepers may"
)
NEEDS_ORDER: Final = (
    "matching puts all rows in order along the score, which a cluster does not do; "
    "use method 'auto' with target 'balance', or engine 'local'"
)


@dataclass(frozen=True, slots=True)
class SparkStudy:
    """Encoded blocks of rows, kept by the executors.

    ``blocks`` is an RDD of pickled arrays of up to 2¹⁴ rows; ``starts`` holds the place of each
    partition's first row.
    """

    domain: Domain
    size: int
    blocks: Any = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)
    shows_outcome: bool = True
    progress: Progress | None = field(default=None, repr=False, compare=False)
    rules: MissingRules | None = None

    @classmethod
    def encode(
        cls,
        columns: SparkColumns,
        domain: Domain,
        progress: Progress | None = None,
        reading: Reading | None = None,
    ) -> SparkStudy:
        """Encode the rows where they are and keep them there, in memory or on local disks."""
        from pyspark import StorageLevel  # an extra

        domain, rules = _settle(columns, domain, reading)
        blocks = _encoded_blocks(columns, domain, reading).persist(StorageLevel.MEMORY_AND_DISK)
        size, starts = _places(blocks)
        if size < 0:
            raise RecordsError(UNFINISHED)
        if size == 0:
            msg = "the table has no rows"
            raise SchemaError(msg)
        return cls(domain, size, blocks, starts, progress=progress, rules=rules)

    @property
    def dimension(self) -> int:
        """The number of encoded covariates (d)."""
        return len(self.domain.features)

    @property
    def everyone_takes_part(self) -> bool:
        """Whether no row could be left out, as where the domain gives odd labels an arm."""
        domain = self.domain
        gaps = domain.weights is not None or domain.outcome.missing is not None
        return domain.treatment.other is not None and not gaps

    def public(self) -> Self:
        """Return a view without outcomes."""
        return replace(self, shows_outcome=False)

    def recoded(self, outcome: Outcome, code: Callable[[Block], npt.NDArray[np.int32]]) -> Self:
        """Return the same rows with another outcome, computed by a kernel of each block."""
        blocks = self.blocks.map(_recoder(code, self.domain.treatment.size))
        return replace(self, domain=self.domain.with_outcome(outcome), blocks=blocks)

    def unannounced(self) -> Self:
        """Return a view whose passes the progress bar does not show."""
        return replace(self, progress=None)

    @contextmanager
    def thinned(self, stride: int) -> Iterator[Self]:
        """Lend one row in ``stride`` of every block, the first at least; forgotten afterwards."""
        from pyspark import StorageLevel  # an extra

        blocks = self.blocks.map(_thinner(stride)).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            size, starts = _places(blocks)
            yield replace(self, size=size, blocks=blocks, starts=starts)
        finally:
            blocks.unpersist()

    def close(self) -> None:
        """Let the executors forget the encoded rows."""
        self.blocks.unpersist()

    def fold(self, kernel: Callable[[Block], S], *, title: str = "pass over the rows") -> S:
        """Return the sum of the kernel over all blocks, partition by partition in order."""
        self._report(title, 0)
        runner = _runner(
            kernel, self.starts, self.domain.treatment.size,
            shows_outcome=self.shows_outcome, shows_observed=self._shows_observed,
        )  # fmt: skip
        parts = self.blocks.mapPartitionsWithIndex(runner)
        result: S = without_words(lambda: _add_up(parts, len(self.starts)), UNFINISHED)
        self._report(title, 1)
        return result

    def by_groups(
        self,
        grouping: Grouping,
        kernel: Callable[[Groups], Integers],
        *,
        title: str = "blocks of rows",
    ) -> Integers:
        """Return the kernel's values for every group: rows are keyed by place and grouped."""
        stack = groups_per_stack(grouping)
        total = -(-grouping.count // stack)
        self._report(title, 0)
        pieces = self.blocks.mapPartitionsWithIndex(_scatter(grouping, stack, self.starts))
        gather = _gather(grouping, stack, kernel, shows_observed=self._shows_observed)
        values = pieces.groupByKey(min(total, _FAN_IN)).map(gather)
        parts = without_words(lambda: sorted(values.collect(), key=itemgetter(0)), UNFINISHED)
        self._report(title, 1)
        return np.concatenate([part for _, part in parts])

    @property
    def _shows_observed(self) -> bool:
        """Whether kernels may see who lacks an outcome, and need to."""
        rule = self.domain.outcome.missing
        return rule == "public" or (rule == "private" and self.shows_outcome)

    def _report(self, title: str, done: int) -> None:
        """Report that a pass began or ended; how many partitions there are may follow values."""
        if self.progress is not None:
            self.progress(title, done, 1)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Refuse what needs all rows in one order, or an array with an entry for each row."""
        raise ArgumentError(NEEDS_ORDER)

    reordered = divided = with_outcome = with_outcomes = fold_with = arm_sums = _refuse
    pool = noisy_pool = _refuse

    def __getstate__(self) -> NoReturn:
        msg = "a study is not pickled; a kernel must not hold one"
        raise TypeError(msg)


def _settle(
    columns: SparkColumns, domain: Domain, reading: Reading | None
) -> tuple[Domain, MissingRules | None]:
    """Look over public columns in a pass of their own; return the domain in use and the rules."""

    def count() -> PublicCounts:
        counts = None if reading is None else count_public(columns, domain, reading)
        if counts is None:
            raise RecordsError(UNFINISHED)
        return counts

    by_lines = columns.lines is not None and columns.lines.files == 1
    return settle_public(domain, reading, count, by_lines=by_lines)


def _encoded_blocks(columns: SparkColumns, domain: Domain, reading: Reading | None) -> Any:  # noqa: ANN401  # an RDD
    """Return the number of rows and the pickled arrays of each block."""
    if columns.lines is not None:
        return columns.lines.encode(domain, reading)
    frame = columns.frame.select(*(quoted(name) for name in domain.columns))
    encoder = _encoder(domain, reading, typed=columns.typed)
    encoded = frame.mapInArrow(encoder, _ENCODED)
    return encoded.rdd.map(lambda row: (row[0], bytes(row[1])))


def _encoder(
    domain: Domain, reading: Reading | None, *, typed: bool
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a map from Arrow batches to rows that hold an encoded block each."""

    def encode(batches: Iterable[Any]) -> Iterator[Any]:
        for table in _whole_blocks(batches, typed=typed):
            rows, block = encode_block(table, domain, reading)
            if rows:  # of some block all may have been left out
                yield one_row(_ENCODED, rows, block)

    return encode


def _whole_blocks(batches: Iterable[Any], *, typed: bool) -> Iterator[Table]:
    """Cut a stream of Arrow batches into tables of 2¹⁴ rows; the last may be shorter."""
    import pyarrow as pa  # comes with the extra

    kept: list[Any] = []
    rows = 0
    for batch in batches:
        kept.append(batch)
        rows += batch.num_rows
        if rows < _BLOCK_ROWS:
            continue
        whole = pa.Table.from_batches(kept)
        end = rows - rows % _BLOCK_ROWS
        for first in range(0, end, _BLOCK_ROWS):
            yield table_of(whole.slice(first, _BLOCK_ROWS), typed=typed)
        kept = whole.slice(end).to_batches()
        rows -= end
    if rows:
        yield table_of(pa.Table.from_batches(kept), typed=typed)


def _places(blocks: Any) -> tuple[int, tuple[int, ...]]:  # noqa: ANN401  # an RDD
    """Return the number of rows, and the place of the first one of each partition."""
    counts = dict(blocks.mapPartitionsWithIndex(_count_rows).collect())
    sizes = [counts.get(index, 0) for index in range(blocks.getNumPartitions())]
    if min(sizes, default=0) < 0:
        return FAILED, ()
    return sum(sizes), tuple(accumulate(sizes, initial=0))[:-1]


def _thinner(stride: int) -> Callable[[tuple[int, bytes]], tuple[int, bytes]]:
    def thin(one: tuple[int, bytes]) -> tuple[int, bytes]:
        arrays = [np.ascontiguousarray(array[..., ::stride]) for array in pickle.loads(one[1])]  # noqa: S301  # written by our own tasks
        return arrays[1].size, pickle.dumps(tuple(arrays), protocol=5)

    return thin


def _recoder(
    code: Callable[[Block], npt.NDArray[np.int32]], arms: int
) -> Callable[[tuple[int, bytes]], tuple[int, bytes]]:
    def recode(one: tuple[int, bytes]) -> tuple[int, bytes]:
        covariates, treatment, outcome, *rest = pickle.loads(one[1])  # noqa: S301  # as above
        coded = code(Block(covariates.T, treatment, outcome, arms=arms))
        return one[0], pickle.dumps((covariates, treatment, coded, *rest), protocol=5)

    return recode


def _count_rows(index: int, blocks: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, int]]:
    sizes = [rows for rows, _ in blocks]
    yield index, min(sizes, default=0) if min(sizes, default=0) < 0 else sum(sizes)


def _runner(
    kernel: Callable[[Block], S],
    starts: tuple[int, ...],
    arms: int,
    *,
    shows_outcome: bool,
    shows_observed: bool,
) -> Callable[[int, Iterable[tuple[int, bytes]]], Iterator[tuple[int, S]]]:
    """Return a map from a partition's blocks to its place and the sum of the kernel over them."""

    def run(index: int, blocks: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, S]]:
        start, total = starts[index], None
        with single_threaded_blas():
            for rows, block in blocks:
                # The bytes were written by an executor of this very run.
                covariates, treatment, outcome, *masks = pickle.loads(block)  # noqa: S301
                takes_part, observed, *weights = masks
                shown = outcome if shows_outcome else None
                seen = observed if shows_observed else ALL_PRESENT
                part = kernel(
                    Block(covariates.T, treatment, shown, start, takes_part, seen, arms, *weights)
                )
                total = part if total is None else total + part
                start += rows
        if total is not None:
            yield index, total

    return run


# Places, covariates, treatment, outcome, who takes part, whose outcome is observed; then sampling
# weights where any are declared.
Piece = tuple[npt.NDArray[Any], ...]


def _scatter(
    grouping: Grouping, stack: int, starts: tuple[int, ...]
) -> Callable[[int, Iterable[tuple[int, bytes]]], Iterator[tuple[int, Piece]]]:
    """Return a map from a partition's rows to pieces, keyed by the stack of groups they are in."""

    def run(index: int, blocks: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Piece]]:
        start = starts[index]
        for rows, block in blocks:
            covariates, *columns = pickle.loads(block)  # noqa: S301  # as above
            places = grouping.places(start, rows)
            stacks = groups_of(grouping, places) // stack
            order = np.argsort(stacks, kind="stable")
            edges = np.flatnonzero(np.diff(stacks[order])) + 1
            for part in np.split(order, edges):
                piece = places[part], covariates[:, part], *(column[part] for column in columns)
                yield int(stacks[part[0]]), piece
            start += rows

    return run


def _gather(
    grouping: Grouping,
    stack: int,
    kernel: Callable[[Groups], Integers],
    *,
    shows_observed: bool,
) -> Callable[[tuple[int, Iterable[Piece]]], tuple[int, Integers]]:
    """Return a map from the pieces of a stack to its number and the values of its groups."""

    def run(keyed: tuple[int, Iterable[Piece]]) -> tuple[int, Integers]:
        number, pieces = keyed
        columns = [np.concatenate(parts, axis=-1) for parts in zip(*pieces, strict=True)]
        order = np.argsort(columns[0])
        covariates, arm, outcome, takes_part, observed, *weights = (
            column[..., order] for column in columns[1:]
        )
        present = takes_part & observed if shows_observed else takes_part
        start = number * stack
        first = start * grouping.size // grouping.count
        rows = GatheredRows(first, covariates, arm, outcome, present, *weights)
        with single_threaded_blas():
            values = kernel(rows.groups(grouping, start, min(start + stack, grouping.count)))
        return number, values

    return run


def _add_up(parts: Any, count: int) -> Any:  # noqa: ANN401  # an RDD of places and sums
    """Add sums in the order of their places, by a tree whose shape depends on the count alone."""
    while count > _FAN_IN:
        count = -(-count // _FAN_IN)
        grouped = parts.map(lambda pair: (pair[0] // _FAN_IN, pair)).groupByKey(count)
        parts = grouped.mapValues(_in_order)
    return _in_order(parts.collect())


def _in_order(pairs: Iterable[tuple[int, Any]]) -> Any:  # noqa: ANN401  # whatever adds up
    return reduce(add, (value for _, value in sorted(pairs, key=itemgetter(0))))
