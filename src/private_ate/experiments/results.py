"""Rows of results, their summary, and questions to it: look up, select, order."""

from __future__ import annotations

import csv
import io
import math
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from private_ate._version import VERSION
from private_ate.experiments.arms import arm_named
from private_ate.experiments.chunks import Chunk, ChunkResult, Run, read_chunk

__all__ = [
    "Row",
    "Summary",
    "SummaryRow",
    "Timing",
    "collect_rows",
    "geometric_mean",
    "summarize",
    "to_csv",
    "versions",
]


@dataclass(frozen=True, slots=True)
class Row:
    """One repetition, as in results.csv.

    Of several arms ``estimate`` and the effects are those of the last arm against the reference,
    and an error is the mean over all contrasts relative to their mean size.
    """

    experiment: str
    dataset: str
    draw: int
    method: str
    level: str
    epsilon: str
    neighbors: int
    parameters: str
    repetition: int
    seed: int
    estimate: float | None
    relative_error: float | None
    error_against_truth: float | None
    exact_effect: float | None
    true_effect: float | None
    matching_against_truth: float | None
    aipw_against_truth: float | None
    guarantee: str
    note: str
    versions: str


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one repetition took, as in timings.csv; the only numbers that differ by run."""

    dataset: str
    draw: int
    method: str
    epsilon: str
    neighbors: int
    parameters: str
    repetition: int
    seconds: float
    peak_megabytes: float | None


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """Errors of one cell over its repetitions and draws, as in summary.csv.

    ``matching_against_truth`` is the error of the matching estimate without limits and noise,
    ``aipw_against_truth`` that of the doubly robust one, where it was computed.
    """

    dataset: str
    method: str
    level: str
    epsilon: str
    neighbors: int
    parameters: str
    n: int
    failed: int
    relative_error_mean: float
    relative_error_sd: float
    error_against_truth_mean: float
    error_against_truth_sd: float
    matching_against_truth: float
    aipw_against_truth: float = math.nan

    @property
    def budget(self) -> float:
        """The total ε as a number."""
        return float(self.epsilon)


@lru_cache(maxsize=1)
def versions() -> str:
    """Name what the numbers depend on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    return f"private-ate {VERSION}, Python {platform.python_version()}, {packages}"


def collect_rows(chunks: Iterable[Chunk], folder: Path) -> tuple[list[Row], list[Timing]]:
    """Read all chunks, in the order given, as rows and timings."""
    rows: list[Row] = []
    timings: list[Timing] = []
    for chunk in chunks:
        result = read_chunk(chunk, folder)
        for repetition, run in enumerate(result.runs, chunk.first):
            rows.append(_row(chunk, result, repetition, run))
            timings.append(_timing(chunk, result, repetition, run))
    return rows, timings


def summarize(rows: Sequence[Row]) -> list[SummaryRow]:
    """Summarise repetitions and draws, in the order in which cells first appear."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = (row.dataset, row.method, row.level, row.epsilon, row.neighbors, row.parameters)
        groups.setdefault(key, []).append(row)
    return [_summary(key, members) for key, members in groups.items()]


def to_csv(rows: Sequence[Row] | Sequence[Timing] | Sequence[SummaryRow]) -> str:
    """Write rows as comma-separated values; floats survive unchanged, missing ones are empty."""
    text = io.StringIO()
    names = [field.name for field in fields(rows[0])] if rows else []
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _entry(value) for name, value in asdict(row).items()})
    return text.getvalue()


def _entry(value: object) -> object:
    return "" if isinstance(value, float) and math.isnan(value) else value


def _row(chunk: Chunk, result: ChunkResult, repetition: int, run: Run) -> Row:
    cell, references = chunk.cell, result.references
    return Row(
        experiment=chunk.experiment,
        dataset=cell.dataset,
        draw=cell.draw,
        method=cell.arm,
        level=arm_named(cell.arm).level,
        epsilon=cell.epsilon,
        neighbors=cell.neighbors,
        parameters=cell.parameters_text,
        repetition=repetition,
        seed=run.seed,
        estimate=_headline(run.effects),
        relative_error=_relative(run.effects, references.matching),
        error_against_truth=_relative(run.effects, references.truth),
        exact_effect=_headline(references.matching),
        true_effect=_headline(references.truth),
        matching_against_truth=_relative(references.matching, references.truth),
        aipw_against_truth=_relative(references.aipw, references.truth),
        guarantee="none (seeded)",
        note=run.note,
        versions=versions(),
    )


def _timing(chunk: Chunk, result: ChunkResult, repetition: int, run: Run) -> Timing:
    cell = chunk.cell
    return Timing(
        cell.dataset, cell.draw, cell.arm, cell.epsilon, cell.neighbors, cell.parameters_text,
        repetition, run.seconds, result.peak_megabytes,
    )  # fmt: skip


def _headline(effects: Sequence[float] | None) -> float | None:
    """Return the effect of the last arm against the reference: of K arms the (K − 1)th contrast."""
    if effects is None:
        return None
    pairs = len(effects)
    arms = (1 + math.isqrt(1 + 8 * pairs)) // 2  # K(K − 1)/2 pairs
    return effects[arms - 2]


def _relative(effects: Sequence[float] | None, wanted: Sequence[float] | None) -> float | None:
    """Return Σ|τ̂ − τ|/Σ|τ| over the contrasts, of which two arms have one."""
    if effects is None or wanted is None:
        return None
    misses = math.fsum(abs(found - effect) for found, effect in zip(effects, wanted, strict=True))
    return misses / math.fsum(map(abs, wanted))


def _summary(key: tuple[Any, ...], rows: Sequence[Row]) -> SummaryRow:
    errors = [row.relative_error for row in rows]
    truths = [row.error_against_truth for row in rows]
    failed = sum(row.estimate is None for row in rows)
    relative, against_truth = _mean_sd(errors), _mean_sd(truths)
    dataset, method, level, epsilon, neighbors, parameters = key
    return SummaryRow(
        dataset=dataset,
        method=method,
        level=level,
        epsilon=epsilon,
        neighbors=neighbors,
        parameters=parameters,
        n=len(rows) - failed,
        failed=failed,
        relative_error_mean=relative[0],
        relative_error_sd=relative[1],
        error_against_truth_mean=against_truth[0],
        error_against_truth_sd=against_truth[1],
        matching_against_truth=_mean_sd([row.matching_against_truth for row in rows])[0],
        aipw_against_truth=_mean_sd([row.aipw_against_truth for row in rows])[0],
    )


def _mean_sd(values: Sequence[float | None]) -> tuple[float, float]:
    """Return mean and sample standard deviation of what is known, NaN for nothing."""
    known = [value for value in values if value is not None]
    if not known:
        return math.nan, math.nan
    mean = math.fsum(known) / len(known)
    if len(known) == 1:
        return mean, math.nan
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (len(known) - 1))


@dataclass(frozen=True, slots=True)
class Summary:
    """The rows of a summary, in the order of the plan."""

    rows: tuple[SummaryRow, ...]

    def where(self, **wanted: str | int) -> Summary:
        """Return the rows whose columns have the wanted values."""
        return self.select(
            lambda row: all(getattr(row, name) == value for name, value in wanted.items())
        )

    def select(self, wanted: Callable[[SummaryRow], bool]) -> Summary:
        """Return the rows for which a question is answered with yes."""
        return Summary(tuple(row for row in self.rows if wanted(row)))

    def values(self, column: str) -> list[str]:
        """Return the different values of a column in the order of their appearance."""
        return list(dict.fromkeys(str(getattr(row, column)) for row in self.rows))

    @property
    def datasets(self) -> list[str]:
        """The data sets in the order of the plan."""
        return self.values("dataset")

    @property
    def methods(self) -> list[str]:
        """The arms in the order of the plan."""
        return self.values("method")

    @property
    def errors(self) -> list[float]:
        """Mean relative errors of the rows that have any."""
        return [
            row.relative_error_mean for row in self.rows if not math.isnan(row.relative_error_mean)
        ]

    def error(self, **wanted: str | int) -> float:
        """Return the mean relative error of the one row with these values; NaN if none."""
        rows = self.where(**wanted).rows
        return rows[0].relative_error_mean if len(rows) == 1 else math.nan

    def average(self, **wanted: str | int) -> float:
        """Return the geometric mean of the relative errors of these rows; NaN if none."""
        return geometric_mean(self.where(**wanted).errors)


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean, in which no large error hides the others; NaN for nothing."""
    known: Sequence[float] = [value for value in values if value > 0]
    return math.exp(math.fsum(map(math.log, known)) / len(known)) if known else math.nan
