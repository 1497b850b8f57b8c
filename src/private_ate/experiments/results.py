"""Releases as rows of a frame, their summary, and questions to it: look up, select, order."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import polars.selectors as cs

from private_ate._version import VERSION
from private_ate.experiments.arms import arm_named
from private_ate.experiments.runner import Cell, Chunk, Run, read_chunk

__all__ = [
    "CELL",
    "RESULTS",
    "TIMINGS",
    "Summary",
    "SummaryRow",
    "collect_rows",
    "geometric_mean",
    "relative_error",
    "summarize",
    "versions",
]

CELL: Final = ("dataset", "method", "level", "epsilon", "neighbors", "parameters")
"""What a row of a summary is about."""
_NUMBERS: Final = (
    "estimate", "low", "high", "relative_error", "error_against_truth", "exact_effect",
    "true_effect", "matching_against_truth", "aipw_against_truth",
)  # fmt: skip
# Of contrasts and their intervals relative to the true effects, and beside boosted AIPW on the
# same rows; `toward_plain` over `plain` is the share of the plain difference's bias that is left.
_AGAINST: Final = (
    "signed_error", "covered", "width", "plain", "toward_plain",
    "boosted_against_truth", "boosted_covered", "boosted_width",
)  # fmt: skip
_MEASURED: Final = ("seconds", "cpu", "peak_megabytes")
_COLUMNS: Final[dict[str, Any]] = (
    dict.fromkeys(("experiment", "dataset"), pl.String)
    | {"draw": pl.Int64, "method": pl.String, "level": pl.String, "epsilon": pl.String}
    | {"neighbors": pl.Int64, "parameters": pl.String, "repetition": pl.Int64, "seed": pl.Int64}
    | dict.fromkeys(_NUMBERS, pl.Float64)
    | dict.fromkeys(("guarantee", "note", "versions"), pl.String)
    | dict.fromkeys((*_AGAINST, *_MEASURED), pl.Float64)
    | {"isolated": pl.Boolean}
)
RESULTS: Final = tuple(name for name in _COLUMNS if name not in (*_MEASURED, "isolated"))
"""The columns of results.csv: one row per release; those that nothing is known of are left out."""
TIMINGS: Final = (
    "dataset", "draw", "method", "epsilon", "neighbors", "parameters", "repetition", *_MEASURED,
)  # fmt: skip
"""The columns of timings.csv: the only numbers that differ by run."""


@lru_cache(maxsize=1)
def versions() -> str:
    """Name what the numbers depend on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    return f"private-ate {VERSION}, Python {platform.python_version()}, {packages}"


def collect_rows(chunks: Iterable[Chunk], folder: Path) -> pl.DataFrame:
    """Read the chunks that are there, in the order given: one row per release.

    Of several arms ``estimate`` and the effects are those of the last arm against the reference,
    and an error is the mean over all contrasts relative to their mean size.
    """
    rows = []
    for chunk in chunks:
        found = read_chunk(chunk, folder)
        if found is None:
            continue
        known = _against_truth(found["references"])
        for (cell, repetition), run in zip(chunk.releases, found["runs"], strict=True):
            rows.append(
                _row(chunk.experiment, cell, found["references"], run)
                | known
                | {"repetition": repetition, "peak_megabytes": found["peak_megabytes"]}
            )
    return pl.DataFrame(rows, schema=_COLUMNS)


def _row(
    experiment: str, cell: Cell, references: dict[str, list[float]], run: Run
) -> dict[str, Any]:
    truth, effects = references.get("truth"), run.effects
    low, high = (
        (None, None) if run.intervals is None else map(list, zip(*run.intervals, strict=True))
    )
    return {
        "experiment": experiment,
        "dataset": cell.dataset,
        "draw": cell.draw,
        "method": cell.arm,
        "level": arm_named(cell.arm).level,
        "epsilon": cell.epsilon,
        "neighbors": cell.neighbors,
        "parameters": cell.parameters_text,
        "seed": run.seed,
        "estimate": _headline(effects),
        "low": _headline(low),
        "high": _headline(high),
        "relative_error": relative_error(effects, references.get("matching")),
        "error_against_truth": relative_error(effects, truth),
        "exact_effect": _headline(references.get("matching")),
        "guarantee": "none (seeded)",
        "note": run.note,
        "versions": versions(),
        "isolated": cell.isolated,
        "seconds": run.seconds,
        "cpu": run.cpu,
    } | _coverage(effects, run.intervals, references)


def _against_truth(references: dict[str, list[float]]) -> dict[str, float | None]:
    """Return what is known of a data set: its truth, and the errors of non-private estimates."""
    truth = references.get("truth")
    found = {
        "true_effect": _headline(truth),
        "plain": relative_error(references.get("plain"), truth),
    }
    for name in ("matching", "aipw", "boosted"):
        found[f"{name}_against_truth"] = relative_error(references.get(name), truth)
    if truth is not None and "boosted" in references:
        size, half = np.abs(truth).mean(), np.array(references["boosted half"])
        missed = np.abs(np.subtract(references["boosted"], truth))
        found["boosted_covered"] = float((missed <= half).mean())
        found["boosted_width"] = float(2 * half.mean() / size)
    return found


def _coverage(
    effects: list[float] | None,
    intervals: list[list[float]] | None,
    references: dict[str, list[float]],
) -> dict[str, float | None]:
    """Return the mean signed error, coverage and width, and what is left of the plain bias."""
    if effects is None or "truth" not in references:
        return {}
    truth = np.array(references["truth"])
    size, error = np.abs(truth).mean(), np.array(effects) - truth
    found: dict[str, float | None] = {"signed_error": float((np.sign(truth) * error).mean() / size)}
    if "plain" in references:
        direction = np.sign(references["plain"] - truth)
        found["toward_plain"] = float((direction * error).mean() / size)
    if intervals is not None:
        low, high = np.array(intervals).T
        found["covered"] = float(((low <= truth) & (truth <= high)).mean())
        found["width"] = float((high - low).mean() / size)
    return found


def _headline(effects: Sequence[float] | None) -> float | None:
    """Return the effect of the last arm against the reference: of K arms the (K − 1)th contrast."""
    if effects is None:
        return None
    pairs = len(effects)
    arms = (1 + math.isqrt(1 + 8 * pairs)) // 2  # K(K − 1)/2 pairs
    return effects[arms - 2]


def relative_error(effects: Sequence[float] | None, wanted: Sequence[float] | None) -> float | None:
    """Return Σ|τ̂ − τ|/Σ|τ| over the contrasts, of which two arms have one."""
    if effects is None or wanted is None:
        return None
    return float(np.abs(np.subtract(effects, wanted)).sum() / np.abs(wanted).sum())


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """Errors of one cell over its repetitions and draws, as in summary.csv.

    ``matching_against_truth`` is the error of the matching estimate without limits and noise,
    ``aipw_against_truth`` and ``boosted_against_truth`` those of the doubly robust ones with least
    squares and with boosting, where they were computed.
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
    boosted_against_truth: float = math.nan

    @property
    def budget(self) -> float:
        """The total ε as a number."""
        return float(self.epsilon)

    @property
    def size(self) -> float:
        """The number of units, where the data set's name ends with it."""
        return float(self.dataset.rsplit("-", 1)[1])

    @property
    def setting(self) -> str:
        """The value of the method's parameter, of which there is one at most."""
        return self.parameters.partition("=")[2]

    @property
    def relative_error_se(self) -> float:
        """The standard error of the mean."""
        return self.relative_error_sd / math.sqrt(self.n)

    @property
    def error_against_truth_se(self) -> float:
        """The standard error of the mean."""
        return self.error_against_truth_sd / math.sqrt(self.n)


def summarize(rows: pl.DataFrame) -> pl.DataFrame:
    """Summarise repetitions and draws, in the order in which cells first appear."""
    errors = [
        getattr(pl.col(name), {"sd": "std"}.get(end, end))().alias(f"{name}_{end}")
        for name in ("relative_error", "error_against_truth")
        for end in ("mean", "sd")
    ]
    return rows.group_by(CELL, maintain_order=True).agg(
        pl.col("estimate").count().alias("n"),
        pl.col("estimate").null_count().alias("failed"),
        *errors,
        pl.mean("matching_against_truth", "aipw_against_truth", "boosted_against_truth"),
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """The rows of a summary, in the order of the plan."""

    rows: tuple[SummaryRow, ...]

    @classmethod
    def of(cls, frame: pl.DataFrame) -> Summary:
        """Return the rows of a frame; what is not known is NaN."""
        rows = frame.with_columns(cs.float().fill_null(math.nan)).to_dicts()
        return cls(tuple(SummaryRow(**row) for row in rows))

    def where(self, **wanted: str | int) -> Summary:
        """Return the rows whose columns have the wanted values."""
        return self.select(
            lambda row: all(getattr(row, name) == value for name, value in wanted.items())
        )

    def select(self, wanted: Callable[[SummaryRow], bool]) -> Summary:
        """Return the rows for which a question is answered with yes."""
        return Summary(tuple(row for row in self.rows if wanted(row)))

    def values(self, column: str) -> list[Any]:
        """Return the different values of a column in the order of their appearance."""
        return list(dict.fromkeys(getattr(row, column) for row in self.rows))

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
        means = [row.relative_error_mean for row in self.rows]
        return [mean for mean in means if not math.isnan(mean)]

    def error(self, **wanted: str | int) -> float:
        """Return the mean relative error of the one row with these values; NaN if none."""
        rows = self.where(**wanted).rows
        return rows[0].relative_error_mean if len(rows) == 1 else math.nan

    def average(self, **wanted: str | int) -> float:
        """Return the geometric mean of the relative errors of these rows; NaN if none."""
        return geometric_mean(self.where(**wanted).errors)

    def best(self, **wanted: str | int) -> SummaryRow:
        """Return the row with these values whose mean relative error is smallest."""
        return min(self.where(**wanted).rows, key=lambda row: row.relative_error_mean)


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean, in which no large error hides the others; NaN for nothing."""
    known = [value for value in values if value > 0]
    return math.exp(math.fsum(map(math.log, known)) / len(known)) if known else math.nan
