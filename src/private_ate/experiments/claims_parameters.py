"""What the paper says about its parameters, checked against a summary."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from private_ate.experiments.claims import SIMILAR, Claim, judge, listing, name_set, number
from private_ate.experiments.results import Summary, SummaryRow, geometric_mean

__all__ = [
    "claims_of_allocation",
    "claims_of_coefficient_c",
    "claims_of_coefficient_h",
    "claims_of_limit_label",
    "claims_of_limit_sample",
]

_MOST = 0.75  # "in most settings" means in three quarters of them


def claims_of_limit_label(summary: Summary) -> list[Claim]:
    """Check the sentences about the matching limit at label level."""
    main = summary.where(neighbors=5)
    return [
        _no_fixed_limit_is_good(main),
        _small_limits_stay_flat(main),
        _large_limits_win_late(main),
        _adaptive_is_good(main),
    ]


def claims_of_limit_sample(summary: Summary) -> list[Claim]:
    """Check the sentences about the matching limit at sample level."""
    main = summary.where(neighbors=5)
    ratios = {
        name_set(dataset): main.average(dataset=dataset, parameters="k=50")
        / main.average(dataset=dataset, parameters="k=1")
        for dataset in main.datasets
    }
    large = judge(
        "The error of a large fixed limit is significantly higher than that of a small one.",
        "error at k = 50 over error at k = 1: " + listing(ratios.items()),
        holds=all(ratio > 1.2 for ratio in ratios.values()),
    )
    return [large, _adaptive_is_good(main)]


def claims_of_coefficient_c(summary: Summary) -> list[Claim]:
    """Check the sentences about c."""
    main = summary.where(neighbors=5)
    spreads = {
        name_set(dataset): max(
            max(errors) / min(errors)
            for epsilon in main.values("epsilon")
            for errors in [main.where(dataset=dataset, epsilon=epsilon).errors]
        )
        for dataset in main.datasets
    }
    matters = judge(
        "The impact of c on the error is significant.",
        "largest over smallest error along c, at the ε where it matters most: "
        + listing(spreads.items()),
        holds=all(spread >= 1.5 for spread in spreads.values()),
    )
    return [matters, *_optima_differ(main, "c"), _default_is_good(main, "c", 0.01)]


def claims_of_coefficient_h(summary: Summary) -> list[Claim]:
    """Check the sentences about h."""
    main = summary.where(neighbors=5)
    trends = {name_set(dataset): _trend(main.where(dataset=dataset)) for dataset in main.datasets}
    grows = judge(
        "A larger h tends to produce higher errors.",
        "rank correlation of h and error: " + listing(trends.items()),
        holds=all(trend > 0 for trend in trends.values()),
    )
    return [grows, *_optima_differ(main, "h"), _default_is_good(main, "h", 0.001)]


def claims_of_allocation(summary: Summary) -> list[Claim]:
    """Check the sentences about the shares of the phases."""
    shown, holds = [], True
    for dataset in summary.datasets:
        ends = [
            geometric_mean(row.relative_error_mean for row in rows)
            for rows in _by_treatment_share(summary.where(dataset=dataset))
        ]
        holds = holds and ends[0] > ends[-1]
        shown.append(f"{name_set(dataset)}: {number(ends[0])} to {number(ends[-1])}")
    starved = judge(
        "A small share for the second phase (ε₂) produces a high error.",
        "from the smallest to the largest share of ε₂: " + "; ".join(shown),
        holds=holds,
    )
    return [starved, *_optima_differ(summary, "allocation"), _paper_shares_are_good(summary)]


def _no_fixed_limit_is_good(main: Summary) -> Claim:
    fixed = main.select(lambda row: row.parameters != "")
    settings = [
        fixed.where(dataset=dataset, epsilon=epsilon)
        for dataset in main.datasets
        for epsilon in main.values("epsilon")
    ]
    good: dict[str, int] = {}
    for setting in settings:
        least = _best(setting).relative_error_mean
        for row in setting.rows:
            is_good = row.relative_error_mean <= SIMILAR * least
            good[row.parameters] = good.get(row.parameters, 0) + is_good
    shown = ", ".join(f"{limit} in {count}" for limit, count in good.items())
    return judge(
        "No fixed limit does well on all data sets and budgets.",
        f"within {SIMILAR:g}× of the best fixed limit, of {len(settings)} settings: {shown}",
        holds=max(good.values()) < len(settings),
    )


def _small_limits_stay_flat(main: Summary) -> Claim:
    falls = {choice: _fall(main, choice) for choice in ("k=1", "")}
    names = {"k=1": "k = 1", "": "adaptive"}
    return judge(
        "With a fixed small k the error hardly falls as ε grows; with the adaptive limit it does.",
        "error at the largest over the smallest ε: "
        + listing((names[choice], fall) for choice, fall in falls.items()),
        holds=falls[""] < falls["k=1"],
    )


def _large_limits_win_late(main: Summary) -> Claim:
    ratios = [
        geometric_mean(
            main.error(dataset=dataset, epsilon=epsilon, parameters="k=50")
            / main.error(dataset=dataset, epsilon=epsilon, parameters="k=1")
            for dataset in main.datasets
        )
        for epsilon in (main.values("epsilon")[0], main.values("epsilon")[-1])
    ]
    return judge(
        "A small k is good at small ε, a larger k at large ε.",
        "error at k = 50 over error at k = 1: "
        + listing(zip(("smallest ε", "largest ε"), ratios, strict=True)),
        holds=ratios[0] > 1 > ratios[1],
    )


def _adaptive_is_good(main: Summary) -> Claim:
    ratios = [
        main.error(dataset=dataset, epsilon=epsilon, parameters="")
        / _best(
            main.where(dataset=dataset, epsilon=epsilon).select(lambda row: row.parameters != "")
        ).relative_error_mean
        for dataset in main.datasets
        for epsilon in main.values("epsilon")
    ]
    good = sum(ratio <= SIMILAR for ratio in ratios)
    return judge(
        "The adaptive limit performs well in almost all settings.",
        f"within {SIMILAR:g}× of the best fixed limit in {good} of {len(ratios)} settings, "
        f"worst {number(max(ratios))}×",
        holds=good >= _MOST * len(ratios),
    )


def _optima_differ(main: Summary, name: str) -> Iterator[Claim]:
    best = {
        (dataset, epsilon): _best(main.where(dataset=dataset, epsilon=epsilon)).parameters
        for dataset in main.datasets
        for epsilon in main.values("epsilon")
    }
    shown = "; ".join(
        f"{name_set(dataset)}: "
        + ", ".join(
            f"{best[dataset, epsilon].split('=')[1]} (ε = {epsilon})"
            for epsilon in main.values("epsilon")
        )
        for dataset in main.datasets
    )
    # Among equals chance decides which one is best, so only clear differences count.
    good = [value for value in main.values("parameters") if _is_never_clearly_worse(main, value)]
    if good:
        names = ", ".join(value.split("=")[1] for value in good)
        shown += f"; but nowhere clearly worse than the best (by three standard errors): {names}"
    yield judge(
        f"There is no {name} that is best for all budgets and data sets.", shown, holds=not good
    )


def _is_never_clearly_worse(main: Summary, parameters: str) -> bool:
    for dataset in main.datasets:
        for epsilon in main.values("epsilon"):
            rows = main.where(dataset=dataset, epsilon=epsilon)
            best = _best(rows)
            for row in rows.where(parameters=parameters).rows:
                margin = 3 * math.hypot(_standard_error(row), _standard_error(best))
                if row.relative_error_mean - best.relative_error_mean > margin:
                    return False
    return True


def _standard_error(row: SummaryRow) -> float:
    return row.relative_error_sd / math.sqrt(row.n)


def _default_is_good(main: Summary, name: str, default: float) -> Claim:
    return _close_to_best(
        main, f"{name}={default}", f"{name} = {default} performs well across budgets and data sets."
    )


def _paper_shares_are_good(summary: Summary) -> Claim:
    return _close_to_best(
        summary,
        "shares=0.05/0.05/0.7/0.2",
        "0.1 : 0.7 : 0.2 gives low errors on various data sets and budgets.",
    )


def _close_to_best(main: Summary, parameters: str, words: str) -> Claim:
    ratios = [
        main.error(dataset=dataset, epsilon=epsilon, parameters=parameters)
        / _best(main.where(dataset=dataset, epsilon=epsilon)).relative_error_mean
        for dataset in main.datasets
        for epsilon in main.values("epsilon")
    ]
    good = sum(ratio <= SIMILAR for ratio in ratios)
    return judge(
        words,
        f"within {SIMILAR:g}× of the best on the grid in {good} of {len(ratios)} settings, "
        f"worst {number(max(ratios))}×",
        holds=good >= _MOST * len(ratios),
    )


def _best(rows: Summary) -> SummaryRow:
    return min(rows.rows, key=lambda row: row.relative_error_mean)


def _fall(main: Summary, parameters: str) -> float:
    first, last = main.values("epsilon")[0], main.values("epsilon")[-1]
    return geometric_mean(
        main.error(dataset=dataset, epsilon=last, parameters=parameters)
        / main.error(dataset=dataset, epsilon=first, parameters=parameters)
        for dataset in main.datasets
    )


def _trend(rows: Summary) -> float:
    """Return the rank correlation of the coefficient and the error, averaged over ε."""
    from scipy.stats import spearmanr  # slow to load

    correlations = []
    for epsilon in rows.values("epsilon"):
        members = rows.where(epsilon=epsilon).rows
        coefficients = [float(row.parameters.split("=")[1]) for row in members]
        errors = [row.relative_error_mean for row in members]
        correlations.append(float(spearmanr(coefficients, errors).statistic))
    return float(np.mean(correlations))


def _by_treatment_share(rows: Summary) -> list[list[SummaryRow]]:
    """Group rows by the share of ε₂, smallest first."""
    groups: dict[float, list[SummaryRow]] = {}
    for row in rows.rows:
        share = float(row.parameters.split("/")[2])
        groups.setdefault(share, []).append(row)
    return [groups[share] for share in sorted(groups)]
