"""Public columns on a cluster, looked over where they are before a row is encoded.

One pass over treatment and covariates: executors send counts, the driver adds them up in the order
of rows. Outcomes are not read.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import reduce
from operator import add
from typing import Any

from private_ate.data.encoding import (
    encode_covariates,
    encode_participation,
    encode_weights,
)
from private_ate.data.missing_rules import Reading
from private_ate.data.tables import Table, table_of
from private_ate.data.validate_public import PublicCounts, look_over
from private_ate.domain import Domain
from private_ate.engines.spark_columns import quoted
from private_ate.engines.spark_lines import SparkLines

__all__ = ["count_public"]


def count_public(
    frame: Any,  # noqa: ANN401  # a Spark data frame
    lines: SparkLines | None,
    domain: Domain,
    reading: Reading,
) -> PublicCounts | None:
    """Return what the public columns hold that was not declared; None if a task failed."""
    columns = [name for name in domain.columns if name not in domain.private_columns]
    if lines is not None:
        found = lines.look(columns, _looker(domain, reading))
    else:
        found = _counts_of_frame(frame, columns, domain, reading)
    if not all(found):
        return None
    # The bytes were written by an executor of this very run.
    return reduce(add, (pickle.loads(one) for one in found), PublicCounts())  # noqa: S301


def _looker(domain: Domain, reading: Reading) -> Callable[[Table, int], bytes]:
    def look(table: Table, first: int) -> bytes:
        gaps: dict[str, Any] = {}
        encode_covariates(table, domain, gaps)
        part = encode_participation(table, domain)
        _, unweighted = encode_weights(table, domain)
        rows = look_over(
            table, domain, reading,
            takes_part=part, gaps=gaps, first=first, unweighted=unweighted,
        )  # fmt: skip
        return pickle.dumps(rows.counts, protocol=5)

    return look


def _counts_of_frame(
    frame: Any,  # noqa: ANN401  # as above
    columns: list[str],
    domain: Domain,
    reading: Reading,
) -> list[bytes]:
    """Look at each batch of a data frame; rows are counted partition by partition."""
    names = [quoted(name) for name in columns]
    look = _looker(domain, reading)

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa  # comes with the extra
        from pyspark import TaskContext  # as above

        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        rows = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            counts = b""
            with suppress(Exception):  # Spark would print what it says, and that could quote a row
                counts = look(table_of(pa.Table.from_batches([batch]), typed=True), rows)
            rows += batch.num_rows
            values = [
                pa.array([partition], pa.int64()),
                pa.array([batch.num_rows], pa.int64()),
                pa.array([counts], pa.binary()),
            ]
            yield pa.RecordBatch.from_arrays(values, ["partition", "rows", "counts"])

    schema = "partition long, rows long, counts binary"
    pieces = frame.select(*names).mapInArrow(run, schema).collect()
    before, moved = 0, list[bytes]()
    sizes: dict[int, int] = {}
    for partition, rows, _ in pieces:
        sizes[partition] = sizes.get(partition, 0) + rows
    starts: dict[int, int] = {}
    for partition in sorted(sizes):
        starts[partition] = before
        before += sizes[partition]
    for partition, _, counts in pieces:
        if not counts:
            return [b""]
        found: PublicCounts = pickle.loads(bytes(counts))  # noqa: S301  # as above
        moved.append(pickle.dumps(found.after(starts[partition]), protocol=5))
    return moved
