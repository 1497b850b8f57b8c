"""What our own experiments and measurements say, in sentences computed from their numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Final

from private_ate.experiments.claims import Claim, judge, listing, name_arm, name_set, number
from private_ate.experiments.results import Summary, SummaryRow, Timing

__all__ = [
    "PAPER_SECONDS",
    "against_matching",
    "against_truth",
    "budget_text",
    "budgets_for",
    "claims_of_timings",
    "findings_of_arms",
    "findings_of_size",
    "findings_of_ten_percent",
    "findings_of_truth",
    "median_seconds",
]

TEN_PERCENT: Final = 0.1
_SETS: Final = ("ihdp", "lalonde", "acic", "synth")
PAPER_SECONDS: Final = {
    method: dict(zip(_SETS, seconds, strict=True))
    for method, seconds in {
        "ipw": (0.29, 0.16, 0.32, 0.06),
        "smooth-matching": (0.03, 0.04, 0.06, 0.02),
        "doubly-robust": (0.09, 0.04, 0.94, 0.08),
        "privsyn": (67.02, 5.18, 4861.72, 8.11),
        "aim": (210.35, 22.24, 12569.72, 104.63),
        "published-sample": (0.08, 0.04, 0.68, 0.05),
        "published-label": (0.06, 0.02, 0.55, 0.04),
    }.items()
}
"""Running times in the paper's table, in seconds, on another machine (i7-11700K)."""


def findings_of_truth(summary: Summary) -> list[Claim]:
    """Name the arm closest to the truth at each level, data set by data set, at ε = 1."""
    claims = []
    for level in dict.fromkeys(row.level for row in summary.rows):
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
    first, last = summary.datasets[0], summary.datasets[-1]
    shown = []
    for method in summary.methods:
        ends = [_truth(summary.where(dataset=dataset, method=method)) for dataset in (first, last)]
        shown.append(f"{name_arm(method)} {number(ends[0])} to {number(ends[1])}")
    sizes = [name_set(dataset).removeprefix("confounded, ") for dataset in (first, last)]
    words = f"How does the error against the truth change from {sizes[0]} to {sizes[1]}?"
    return [Claim(words, "; ".join(shown), "measured")]


def findings_of_arms(summary: Summary) -> list[Claim]:
    """Say how far each method's contrasts of several arms are from the truth, level by level."""
    claims = []
    for level in dict.fromkeys(row.level for row in summary.rows):
        for dataset in summary.datasets:
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


def median_seconds(timings: Sequence[Timing]) -> dict[tuple[str, str], float]:
    """Return the median time of each method on each data set."""
    groups: dict[tuple[str, str], list[float]] = {}
    for timing in timings:
        groups.setdefault((timing.method, timing.dataset), []).append(timing.seconds)
    return {key: median(seconds) for key, seconds in groups.items()}


def claims_of_timings(timings: Sequence[Timing]) -> list[Claim]:
    """Check the sentences about the running time; machines differ, so only orders do."""
    seconds = median_seconds(timings)
    claims = []
    for method in ("published-label", "published-sample"):
        pairs = [
            (dataset, seconds[method, dataset], PAPER_SECONDS[method][dataset])
            for dataset in _SETS
            if (method, dataset) in seconds
        ]
        shown = "; ".join(
            f"{name_set(dataset)} {number(ours)} s (paper {number(paper)} s)"
            for dataset, ours, paper in pairs
        )
        claims.append(
            judge(
                f"{name_arm(method)} takes less than a second on every data set.",
                shown or "not run",
                holds=all(ours < 1 for _, ours, _ in pairs) if pairs else None,
            )
        )
    claims.append(_synthesisers_are_slow(seconds))
    return claims


def _synthesisers_are_slow(seconds: dict[tuple[str, str], float]) -> Claim:
    words = "PrivSyn and AIM take at least a hundred times as long as PrivATE."
    ratios = {
        f"{name_arm(method)} on {name_set(dataset)}": seconds[method, dataset]
        / seconds["published-sample", dataset]
        for method in ("privsyn", "aim")
        for dataset in _SETS
        if (method, dataset) in seconds and ("published-sample", dataset) in seconds
    }
    return judge(
        words,
        "times as long as the sample level: " + listing(ratios.items()) if ratios else "not run",
        holds=all(ratio >= 100 for ratio in ratios.values()) if ratios else None,
    )


def _truth(rows: Summary) -> float:
    return rows.rows[0].error_against_truth_mean if rows.rows else math.nan
