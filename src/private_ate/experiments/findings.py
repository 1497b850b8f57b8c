"""What our own experiments and measurements say, in sentences computed from their numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Final

import polars as pl

from private_ate.experiments.claims import Claim, judge
from private_ate.experiments.results import Summary, SummaryRow
from private_ate.experiments.tables import listing, name_arm, name_set, number, pivot

__all__ = [
    "against_matching",
    "against_truth",
    "budget_text",
    "budgets_for",
    "claims_of_timings",
    "findings_of_arms",
    "findings_of_size",
    "findings_of_ten_percent",
    "findings_of_truth",
    "table_of_memory",
    "table_of_seconds",
    "table_of_ten_percent",
]

TEN_PERCENT: Final = 0.1
_SETS: Final = ("ihdp", "lalonde", "acic", "synth")
_PAPER_SECONDS: Final = {
    (method, dataset): seconds
    for method, row in {
        "ipw": (0.29, 0.16, 0.32, 0.06),
        "smooth-matching": (0.03, 0.04, 0.06, 0.02),
        "doubly-robust": (0.09, 0.04, 0.94, 0.08),
        "privsyn": (67.02, 5.18, 4861.72, 8.11),
        "aim": (210.35, 22.24, 12569.72, 104.63),
        "published-sample": (0.08, 0.04, 0.68, 0.05),
        "published-label": (0.06, 0.02, 0.55, 0.04),
    }.items()
    for dataset, seconds in zip(_SETS, row, strict=True)
}
"""Running times in the paper's table, in seconds, on another machine (i7-11700K)."""


def findings_of_truth(summary: Summary) -> list[Claim]:
    """Name the arm closest to the truth at each level, data set by data set, at ε = 1."""
    claims = []
    for level in summary.values("level"):
        shown = []
        for dataset in summary.datasets:
            rows = summary.where(dataset=dataset, level=level, epsilon="1").rows
            if not rows:
                continue
            best = min(rows, key=lambda row: row.error_against_truth_mean)
            pairs = [
                (name_arm(best.method), best.error_against_truth_mean),
                ("matching itself", best.matching_against_truth),
            ]
            shown.append(f"{name_set(dataset)}: {listing(pairs)}")
        words = f"Which method is closest to the true effect at {level} level, ε = 1?"
        claims.append(Claim(words, "; ".join(shown), "measured"))
    return claims


def findings_of_size(summary: Summary) -> list[Claim]:
    """Say how the error of each arm changes from the smallest to the largest study."""
    ends = summary.datasets[0], summary.datasets[-1]
    shown = []
    for method in summary.methods:
        rows = [summary.where(dataset=dataset, method=method).rows for dataset in ends]
        errors = [one[0].error_against_truth_mean if one else math.nan for one in rows]
        shown.append(f"{name_arm(method)} {number(errors[0])} to {number(errors[1])}")
    sizes = [name_set(dataset).removeprefix("confounded, ") for dataset in ends]
    words = f"How does the error against the truth change from {sizes[0]} to {sizes[1]}?"
    return [Claim(words, "; ".join(shown), "measured")]


def findings_of_arms(summary: Summary) -> list[Claim]:
    """Say how far each method's contrasts of several arms are from the truth, level by level."""
    claims = []
    for level, dataset in product(summary.values("level"), summary.datasets):
        rows = summary.where(dataset=dataset, level=level)
        shown = [
            f"{name_arm(method)} "
            + ", ".join(
                f"{number(row.error_against_truth_mean)} (ε = {row.epsilon})"
                for row in sorted(rows.where(method=method).rows, key=lambda row: row.budget)
            )
            for method in rows.methods
        ]
        if not shown:
            continue
        first = rows.rows[0]
        shown.append(
            f"without privacy: matching {number(first.matching_against_truth)}, "
            f"AIPW {number(first.aipw_against_truth)}"
        )
        words = f"How far are the contrasts of {name_set(dataset)} at {level} level?"
        claims.append(Claim(words, "; ".join(shown), "measured"))
    return claims


def findings_of_ten_percent(summary: Summary) -> list[Claim]:
    """Say for each data set which ε brings the mean relative error to 10 %."""
    return [
        Claim(
            f"Which ε gives a relative error of 10 % on {name_set(dataset)}?",
            "; ".join(
                f"{name_arm(method)} {budget_text(summary.where(dataset=dataset, method=method))}"
                for method in summary.methods
            ),
            "measured",
        )
        for dataset in summary.datasets
    ]


def table_of_ten_percent(summary: Summary, error: Callable[[SummaryRow], float]) -> str:
    """Write the ε for an error of 10 %, a column per data set on which the error is known."""
    known = summary.select(lambda row: not math.isnan(error(row)))
    return pivot(
        product(known.methods, known.datasets),
        {"method": lambda pair: name_arm(pair[0])},
        lambda pair: name_set(pair[1]),
        lambda pair: budget_text(known.where(method=pair[0], dataset=pair[1]), error),
    )


def against_matching(row: SummaryRow) -> float:
    """Return the paper's metric."""
    return row.relative_error_mean


def against_truth(row: SummaryRow) -> float:
    """Return the error against the true effect; NaN where that is not known."""
    return row.error_against_truth_mean


def budgets_for(
    rows: Sequence[SummaryRow],
    error: Callable[[SummaryRow], float] = against_matching,
    wanted: float = TEN_PERCENT,
) -> tuple[float, float]:
    """Return the ε at which the error is first as small as wanted, and the ε up to which it stays.

    Both are infinite if it never is, the second if it stays to the end of the grid. Between two
    points of the grid the error is taken to be a power of ε.
    """
    ordered = sorted((row for row in rows if row.n > 0), key=lambda row: row.budget)
    points = [(row.budget, error(row)) for row in ordered]
    below = [value <= wanted for _, value in points]
    if not any(below):
        return math.inf, math.inf
    first = below.index(True)
    reached = points[0][0] if first == 0 else _crossing(points[first - 1], points[first], wanted)
    if all(below[first:]):
        return reached, math.inf
    last = below.index(False, first)
    return reached, _crossing(points[last - 1], points[last], wanted)


def _crossing(one: tuple[float, float], other: tuple[float, float], wanted: float) -> float:
    """Return where a power of ε through both points has the wanted value."""
    share = math.log(one[1] / wanted) / math.log(one[1] / other[1])
    return float(one[0] * (other[0] / one[0]) ** share)


def budget_text(rows: Summary, error: Callable[[SummaryRow], float] = against_matching) -> str:
    """Write the ε for ten per cent, saying when it lies outside the grid or does not last."""
    reached, left = budgets_for(rows.rows, error)
    budgets = [row.budget for row in rows.rows]
    if math.isinf(reached):
        return f"above {max(budgets, default=0):g}"
    text = f"at most {reached:g}" if reached == min(budgets) else f"{reached:.2g}"
    return text if math.isinf(left) else f"{text} (until {left:.2g})"


def _costs(rows: pl.DataFrame) -> dict[tuple[str, str], tuple[float, float | None]]:
    """Return median seconds and the largest memory of each method on each data set."""
    found = rows.group_by("method", "dataset", maintain_order=True).agg(
        pl.median("seconds"), pl.max("peak_megabytes")
    )
    return {(method, dataset): (cost, peak) for method, dataset, cost, peak in found.iter_rows()}


def table_of_seconds(rows: pl.DataFrame) -> str:
    """Write median seconds a release, those of the paper in brackets."""
    return pivot(
        _costs(rows).items(),
        {"method": lambda one: name_arm(one[0][0])},
        lambda one: name_set(one[0][1]),
        lambda one: (
            number(one[1][0])
            + (f" ({number(_PAPER_SECONDS[one[0]])})" if one[0] in _PAPER_SECONDS else "")
        ),
    )


def table_of_memory(rows: pl.DataFrame) -> str:
    """Write the largest memory of a process that did nothing else, in megabytes."""
    return pivot(
        _costs(rows).items(),
        {"method": lambda one: name_arm(one[0][0])},
        lambda one: name_set(one[0][1]),
        lambda one: "–" if one[1][1] is None else f"{one[1][1]:.0f}",
    )


def claims_of_timings(rows: pl.DataFrame) -> list[Claim]:
    """Check the sentences about the running time; machines differ, so only orders do."""
    seconds = {key: cost for key, (cost, _) in _costs(rows).items()}
    claims = []
    for method in ("published-label", "published-sample"):
        known = {d: seconds[method, d] for d in _SETS if (method, d) in seconds}
        shown = "; ".join(
            f"{name_set(dataset)} {number(ours)} s (paper "
            f"{number(_PAPER_SECONDS[method, dataset])} s)"
            for dataset, ours in known.items()
        )
        words = f"{name_arm(method)} takes less than a second on every data set."
        holds = all(ours < 1 for ours in known.values()) if known else None
        claims.append(judge(words, shown or "not run", holds))
    ratios = {
        f"{name_arm(method)} on {name_set(dataset)}": seconds[method, dataset]
        / seconds["published-sample", dataset]
        for method, dataset in product(("privsyn", "aim"), _SETS)
        if (method, dataset) in seconds and ("published-sample", dataset) in seconds
    }
    claims.append(
        judge(
            "PrivSyn and AIM take at least a hundred times as long as PrivATE.",
            "times as long as the sample level: " + listing(ratios.items())
            if ratios
            else "not run",
            all(ratio >= 100 for ratio in ratios.values()) if ratios else None,
        )
    )
    return claims
