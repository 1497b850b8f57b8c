"""Sentences of the paper as rows: the words, and how a summary measures and judges them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

import numpy as np

from private_ate.experiments.results import Summary, SummaryRow, geometric_mean
from private_ate.experiments.tables import listing, name_arm, name_set, number

__all__ = [
    "SIMILAR",
    "Claim",
    "Verdict",
    "claims_of_allocation",
    "claims_of_coefficient",
    "claims_of_end_to_end",
    "claims_of_limit_label",
    "claims_of_limit_sample",
    "is_similar",
    "judge",
]

Verdict = Literal["reproduced", "not reproduced", "not measured", "measured"]
SIMILAR: Final = 2.0
"""An error is called good beside the best one within this factor."""
_HARDLY: Final = 0.1  # errors that differ by less look the same in a figure
_MOST: Final = 0.75  # "in most settings" means in three quarters of them
_PAPER: Final = (
    "published-label", "published-sample", "ipw", "smooth-matching", "doubly-robust", "privsyn",
    "aim",
)  # fmt: skip
_BASELINES: Final = _PAPER[2:]
_LABEL, _SAMPLE = _PAPER[:2]
_OURS: Final = (("calibrated-track", _LABEL), ("blocks", _SAMPLE))
_FLAT: Final = (
    "With a fixed small k the error hardly falls as ε grows; with the adaptive limit it does."
)
# What was measured, and whether the sentence holds: None where the run lacks what it is about.
Measured = tuple[str, bool | None]


@dataclass(frozen=True, slots=True)
class Claim:
    """What is said, what was measured, and the verdict.

    Our own questions, which the paper does not ask, have the verdict "measured".
    """

    words: str
    measured: str
    verdict: Verdict


def judge(words: str, measured: str, holds: bool | None) -> Claim:  # noqa: FBT001  # a verdict
    """Compare; ``holds`` is None where the run lacks what the sentence is about."""
    if holds is None:
        return Claim(words, measured, "not measured")
    return Claim(words, measured, "reproduced" if holds else "not reproduced")


def is_similar(first: float, second: float) -> bool:
    """Say whether two errors are within a factor of two, or a tenth apart."""
    return max(first, second) <= SIMILAR * min(first, second) or abs(first - second) <= _HARDLY


def claims_of_end_to_end(summary: Summary) -> list[Claim]:
    """Check the sentences about the end-to-end figure, then compare our own methods."""
    paper = summary.select(lambda row: row.method in _PAPER)
    claims = [judge(words, *measure(paper.where(neighbors=5))) for words, measure in _END_TO_END]
    claims.append(
        judge("PrivATE performs similarly for N = 1, 3, 5 and 7.", *_similar_for_neighbors(paper))
    )
    main = summary.where(neighbors=5)
    for pair in _OURS:
        if pair[0] in main.methods:
            shown = _by_set(main, lambda d, pair=pair: _averages(main, d, pair))  # type: ignore[misc]
            words = f"How does {name_arm(pair[0])} compare with {name_arm(pair[1])}?"
            claims.append(Claim(words, f"{shown} (geometric means over ε)", "measured"))
    return claims


def _by_set(main: Summary, text: Callable[[str], str], among: Sequence[str] | None = None) -> str:
    """Write what is found for each data set."""
    chosen = main.datasets if among is None else among
    return "; ".join(f"{name_set(dataset)}: {text(dataset)}" for dataset in chosen)


def _averages(main: Summary, dataset: str, methods: Iterable[str]) -> str:
    return listing((name_arm(m), main.average(dataset=dataset, method=m)) for m in methods)


def _known(errors: Mapping[str, float]) -> dict[str, float]:
    return {name: error for name, error in errors.items() if not math.isnan(error)}


def _errors_by_method(main: Summary, dataset: str, methods: Iterable[str]) -> dict[str, float]:
    """Return the geometric means over ε that are known."""
    return _known({m: main.average(dataset=dataset, method=m) for m in methods})


def _errors_fall(main: Summary) -> Measured:
    rising, counted = [], 0
    for dataset in main.datasets:
        for method in main.methods:
            rows = main.where(dataset=dataset, method=method).rows
            ends = sorted(rows, key=lambda row: row.budget)
            counted += len(rows) > 1
            if len(rows) > 1 and not ends[-1].relative_error_mean < ends[0].relative_error_mean:
                rising.append(f"{name_arm(method)} on {name_set(dataset)}")
    measured = f"{counted - len(rising)} of {counted} curves are lower at the largest ε"
    measured += f"; not {', '.join(rising)}" if rising else ""
    return measured, not rising if counted else None


def _label_is_best(main: Summary) -> Measured:
    others = [method for method in main.methods if method != _LABEL]
    if _LABEL not in main.methods or not others:
        return "no other method was run", None
    rivals = {d: _errors_by_method(main, d, others) for d in main.datasets}
    best = {d: min(known.items(), key=lambda one: one[1]) for d, known in rivals.items() if known}
    ours = {dataset: main.average(dataset=dataset, method=_LABEL) for dataset in best}

    def text(dataset: str) -> str:
        name, error = best[dataset]
        return listing([("label", ours[dataset]), (f"next {name_arm(name)}", error)])

    holds = all(ours[dataset] < error for dataset, (_, error) in best.items())
    return _by_set(main, text, list(best)) + " (geometric means over ε)", holds


def _sample_is_second(main: Summary) -> Measured:
    baselines = [method for method in main.methods if method in _BASELINES]
    if _SAMPLE not in main.methods or not baselines:
        return "no baseline was run", None
    sample = {d: main.average(dataset=d, method=_SAMPLE) for d in main.datasets}
    better = {
        d: [name_arm(m) for m, e in _errors_by_method(main, d, baselines).items() if e < sample[d]]
        for d in main.datasets
    }

    def text(dataset: str) -> str:
        names = better[dataset]
        ahead = f"ahead of it {', '.join(names)}" if names else "no baseline ahead"
        return f"{listing([('sample', sample[dataset])])}, {ahead}"

    return _by_set(main, text), not any(better.values())


def _levels_meet(main: Summary) -> Measured:
    pairs = {
        dataset: [main.error(dataset=dataset, method=m, epsilon="4") for m in (_LABEL, _SAMPLE)]
        for dataset in main.datasets
    }
    known = {dataset: pair for dataset, pair in pairs.items() if not any(map(math.isnan, pair))}
    if not known:
        return "ε = 4 was not run at both levels", None
    shown = _by_set(
        main, lambda d: listing(zip(("label", "sample"), known[d], strict=True)), list(known)
    )
    holds = all(is_similar(*pair) for pair in known.values())
    return shown + " (similar: within 2× or 0.1)", holds


def _lalonde_at_three(main: Summary) -> Measured:
    at_three = main.where(dataset="lalonde", epsilon="3")
    errors = {row.method: row.relative_error_mean for row in at_three.rows}
    baselines = [errors[method] for method in _BASELINES if method in errors]
    shown = listing((name_arm(method), error) for method, error in errors.items())
    if not baselines or _LABEL not in errors:
        return shown or "not run", None
    above = sum(error > 1 for error in baselines)
    return shown, above > len(baselines) / 2 and errors[_LABEL] < 0.2


def _below_one(main: Summary, *, method: str) -> Measured:
    rows = main.where(method=method).rows
    if not rows:
        return "not run", None
    worst = max(rows, key=lambda row: row.relative_error_mean)
    largest = listing([("largest", worst.relative_error_mean)])
    place = f"{name_set(worst.dataset)}, ε = {worst.epsilon}"
    return f"{largest} ({place})", worst.relative_error_mean < 1


def _privsyn_at_one(main: Summary) -> Measured:
    known = _known(
        {name_set(d): main.error(dataset=d, method="privsyn", epsilon="1") for d in main.datasets}
    )
    holds = None
    if len(known) == 4:
        lalonde = known.get("Lalonde", 0)
        holds = min(known.values()) > 1 and 4 / SIMILAR <= lalonde <= 4 * SIMILAR
    return listing(known.items()) or "PrivSyn was not run", holds


def _privsyn_on_acic(main: Summary) -> Measured:
    rows = main.where(dataset="acic", method="privsyn").rows
    if not rows:
        return "PrivSyn was not run on ACIC", None
    shown = listing((f"ε = {row.epsilon}:", row.relative_error_mean) for row in rows)
    return shown, all(1 / SIMILAR <= row.relative_error_mean <= SIMILAR for row in rows)


def _ipw_is_poorest(main: Summary) -> Measured:
    if "ipw" not in main.methods:
        return "IPW-PP was not run", None
    worst = {}
    for dataset in main.datasets:
        errors = _errors_by_method(main, dataset, main.methods)
        worst[dataset] = max(errors, key=errors.__getitem__)
    shown = ", ".join(f"{name_set(d)}: {name_arm(m)}" for d, m in worst.items())
    count = sum(method == "ipw" for method in worst.values())
    return f"poorest on {shown}", count > len(worst) / 2


def _small_budgets(main: Summary) -> Measured:
    rivals = [method for method in ("smooth-matching", "doubly-robust") if method in main.methods]
    small = main.select(lambda row: row.method in rivals and row.budget <= 1.5)
    if not small.rows:
        return "neither was run", None
    cells = {
        f"{name_arm(method)} on {name_set(dataset)}": small.average(method=method, dataset=dataset)
        for method in rivals
        for dataset in main.datasets
    }
    high = sum(error >= 0.8 for error in cells.values())
    return listing(cells.items()), high > len(cells) / 2


def _aim_before_privsyn(main: Summary) -> Measured:
    needed = ("aim", "privsyn", _SAMPLE)
    if any(method not in main.methods for method in needed):
        return "AIM or PrivSyn was not run", None
    shared = main.where(method="aim").datasets
    holds = True
    for dataset in shared:
        aim, privsyn, sample = (main.average(dataset=dataset, method=method) for method in needed)
        holds = holds and sample < aim < privsyn
    return _by_set(main, lambda d: _averages(main, d, needed), shared), holds


def _similar_for_neighbors(paper: Summary) -> Measured:
    counts = sorted(paper.values("neighbors"))
    if len(counts) < 2:
        return "one N was run", None
    ratios = {}
    for method in (_LABEL, _SAMPLE):
        for dataset in paper.datasets:
            errors = [
                paper.average(method=method, dataset=dataset, neighbors=count) for count in counts
            ]
            ratios[f"{name_arm(method)} on {name_set(dataset)}"] = max(errors) / min(errors)
    shown = "largest over smallest error: " + listing(ratios.items())
    return shown, all(ratio <= SIMILAR for ratio in ratios.values())


_END_TO_END: Final[tuple[tuple[str, Callable[[Summary], Measured]], ...]] = (
    ("The errors of all approaches fall as ε grows.", _errors_fall),
    ("Label level performs best on all data sets.", _label_is_best),
    (
        "Sample level comes second: it outperforms the baselines on all data sets.",
        _sample_is_second,
    ),
    ("At ε = 4 the two levels perform similarly.", _levels_meet),
    (
        "Lalonde at ε = 3: most baselines are above 1 and PrivATE is below 0.2.",
        _lalonde_at_three,
    ),
    *(
        (
            f"The error of PrivATE is less than 1 in all cases ({level} level).",
            partial(_below_one, method=method),
        )
        for method, level in ((_LABEL, "label"), (_SAMPLE, "sample"))
    ),
    (
        "PrivSyn at ε = 1 exceeds 1 on the four data sets and reaches 4 on Lalonde.",
        _privsyn_at_one,
    ),
    ("PrivSyn stays around 1 on ACIC whatever ε.", _privsyn_on_acic),
    ("IPW-PP performs poorest on most data sets.", _ipw_is_poorest),
    (
        "For ε ≤ 1.5 SmoothDPM and DPCI are close to 1 or above on most data sets.",
        _small_budgets,
    ),
    ("AIM is worse than PrivATE but better than PrivSyn.", _aim_before_privsyn),
)


# Of the paper's parameters; `_settings` are the data sets and budgets that were run.


def claims_of_limit_label(summary: Summary) -> list[Claim]:
    """Check the sentences about the matching limit at label level."""
    main = summary.where(neighbors=5)
    rows = (
        ("No fixed limit does well on all data sets and budgets.", _no_fixed_limit_is_good),
        (_FLAT, _small_limits_stay_flat),
        ("A small k is good at small ε, a larger k at large ε.", _large_limits_win_late),
    )
    return [*(judge(words, *measure(main)) for words, measure in rows), _adaptive_is_good(main)]


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
        all(ratio > 1.2 for ratio in ratios.values()),
    )
    return [large, _adaptive_is_good(main)]


def _adaptive_is_good(main: Summary) -> Claim:
    fixed = main.select(lambda row: row.parameters != "")
    words = "The adaptive limit performs well in almost all settings."
    return judge(words, *_close_to_best(main, "", fixed, "the best fixed limit"))


def claims_of_coefficient(summary: Summary, name: str, default: float) -> list[Claim]:
    """Check the sentences about c or h and the paper's choice of it."""
    main = summary.where(neighbors=5)
    words = f"{name} = {default} performs well across budgets and data sets."
    chosen = judge(words, *_close_to_best(main, f"{name}={default}", main, "the best on the grid"))
    found = _matters(main) if name == "c" else _grows(main)
    return [found, _optima_differ(main, name), chosen]


def claims_of_allocation(summary: Summary) -> list[Claim]:
    """Check the sentences about the shares of the phases."""
    ends = {}
    for dataset in summary.datasets:
        groups: dict[float, list[float]] = {}
        for row in summary.where(dataset=dataset).rows:
            groups.setdefault(float(row.setting.split("/")[2]), []).append(row.relative_error_mean)
        ends[dataset] = [geometric_mean(groups[end(groups)]) for end in (min, max)]
    starved = judge(
        "A small share for the second phase (ε₂) produces a high error.",
        "from the smallest to the largest share of ε₂: "
        + _by_set(summary, lambda d: f"{number(ends[d][0])} to {number(ends[d][1])}"),
        all(first > last for first, last in ends.values()),
    )
    paper = judge(
        "0.1 : 0.7 : 0.2 gives low errors on various data sets and budgets.",
        *_close_to_best(summary, "shares=0.05/0.05/0.7/0.2", summary, "the best on the grid"),
    )
    return [starved, _optima_differ(summary, "allocation"), paper]


def _settings(main: Summary) -> list[dict[str, str | int]]:
    """Return the data sets and budgets that were run, as conditions on rows."""
    return [
        {"dataset": dataset, "epsilon": epsilon}
        for dataset in main.datasets
        for epsilon in main.values("epsilon")
    ]


def _no_fixed_limit_is_good(main: Summary) -> Measured:
    fixed = main.select(lambda row: row.parameters != "")
    settings, good = _settings(main), dict.fromkeys(fixed.values("parameters"), 0)
    for at in settings:
        least = fixed.best(**at).relative_error_mean
        for row in fixed.where(**at).rows:
            good[row.parameters] += row.relative_error_mean <= SIMILAR * least
    shown = ", ".join(f"{limit} in {count}" for limit, count in good.items())
    return (
        f"within {SIMILAR:g}× of the best fixed limit, of {len(settings)} settings: {shown}",
        max(good.values()) < len(settings),
    )


def _small_limits_stay_flat(main: Summary) -> Measured:
    first, last = main.values("epsilon")[0], main.values("epsilon")[-1]
    falls = {
        name: geometric_mean(
            main.error(dataset=dataset, epsilon=last, parameters=parameters)
            / main.error(dataset=dataset, epsilon=first, parameters=parameters)
            for dataset in main.datasets
        )
        for name, parameters in (("k = 1", "k=1"), ("adaptive", ""))
    }
    shown = "error at the largest over the smallest ε: " + listing(falls.items())
    return shown, falls["adaptive"] < falls["k = 1"]


def _large_limits_win_late(main: Summary) -> Measured:
    ratios = [
        geometric_mean(
            main.error(dataset=dataset, epsilon=epsilon, parameters="k=50")
            / main.error(dataset=dataset, epsilon=epsilon, parameters="k=1")
            for dataset in main.datasets
        )
        for epsilon in (main.values("epsilon")[0], main.values("epsilon")[-1])
    ]
    shown = listing(zip(("smallest ε", "largest ε"), ratios, strict=True))
    return f"error at k = 50 over error at k = 1: {shown}", ratios[0] > 1 > ratios[1]


def _matters(main: Summary) -> Claim:
    spreads = {name_set(dataset): 0.0 for dataset in main.datasets}
    for at in _settings(main):
        errors, name = main.where(**at).errors, name_set(str(at["dataset"]))
        spreads[name] = max(spreads[name], max(errors) / min(errors))
    return judge(
        "The impact of c on the error is significant.",
        "largest over smallest error along c, at the ε where it matters most: "
        + listing(spreads.items()),
        all(spread >= 1.5 for spread in spreads.values()),
    )


def _grows(main: Summary) -> Claim:
    """Compare by the rank correlation of the coefficient and the error, averaged over ε."""
    from scipy.stats import spearmanr  # slow to load

    found: dict[str, list[float]] = {}
    for at in _settings(main):
        rows = main.where(**at).rows
        pairs = [(float(row.setting), row.relative_error_mean) for row in rows]
        found.setdefault(name_set(str(at["dataset"])), []).append(float(spearmanr(pairs).statistic))
    trends = {name: float(np.mean(values)) for name, values in found.items()}
    return judge(
        "A larger h tends to produce higher errors.",
        "rank correlation of h and error: " + listing(trends.items()),
        all(trend > 0 for trend in trends.values()),
    )


def _optima_differ(main: Summary, name: str) -> Claim:
    epsilons = main.values("epsilon")
    shown = _by_set(
        main,
        lambda d: ", ".join(
            f"{main.best(dataset=d, epsilon=one).setting} (ε = {one})" for one in epsilons
        ),
    )
    # Among equals chance decides which one is best, so only clear differences count.
    good = [value for value in main.values("parameters") if _is_never_clearly_worse(main, value)]
    if good:
        names = ", ".join(value.split("=")[1] for value in good)
        shown += f"; but nowhere clearly worse than the best (by three standard errors): {names}"
    return judge(f"There is no {name} that is best for all budgets and data sets.", shown, not good)


def _is_never_clearly_worse(main: Summary, parameters: str) -> bool:
    def is_worse(row: SummaryRow, best: SummaryRow) -> bool:
        margin = 3 * math.hypot(row.relative_error_se, best.relative_error_se)
        return row.relative_error_mean - best.relative_error_mean > margin

    return not any(
        is_worse(row, main.best(**at))
        for at in _settings(main)
        for row in main.where(**at, parameters=parameters).rows
    )


def _close_to_best(main: Summary, parameters: str, rivals: Summary, words: str) -> Measured:
    ratios = [
        main.error(**at, parameters=parameters) / rivals.best(**at).relative_error_mean
        for at in _settings(main)
    ]
    good = sum(ratio <= SIMILAR for ratio in ratios)
    measured = f"within {SIMILAR:g}× of {words} in {good} of {len(ratios)} settings"
    return f"{measured}, worst {number(max(ratios))}×", good >= _MOST * len(ratios)
