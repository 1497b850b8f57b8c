"""Sentences of the paper beside what was measured; here those on the end-to-end comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from private_ate.experiments.arms import arm_named
from private_ate.experiments.references import display_name
from private_ate.experiments.results import Summary

__all__ = [
    "SIMILAR",
    "Claim",
    "Verdict",
    "claims_of_end_to_end",
    "is_similar",
    "judge",
    "listing",
    "name_arm",
    "name_set",
    "number",
]

Verdict = Literal["reproduced", "not reproduced", "not measured", "measured"]
SIMILAR = 2.0
"""An error is called good beside the best one within this factor."""
_HARDLY = 0.1  # errors that differ by less look the same in a figure
_PAPER = (
    "published-label", "published-sample", "ipw", "smooth-matching", "doubly-robust", "privsyn",
    "aim",
)  # fmt: skip
_BASELINES = _PAPER[2:]
_LABEL, _SAMPLE = _PAPER[:2]


@dataclass(frozen=True, slots=True)
class Claim:
    """What is said, what was measured, and the verdict.

    Our own questions, which the paper does not ask, have the verdict "measured".
    """

    words: str
    measured: str
    verdict: Verdict


def judge(words: str, measured: str, *, holds: bool | None) -> Claim:
    """Compare; ``holds`` is None where the run lacks what the sentence is about."""
    if holds is None:
        return Claim(words, measured, "not measured")
    return Claim(words, measured, "reproduced" if holds else "not reproduced")


def is_similar(first: float, second: float) -> bool:
    """Say whether two errors are within a factor of two, or a tenth apart."""
    return max(first, second) <= SIMILAR * min(first, second) or abs(first - second) <= _HARDLY


def number(value: float) -> str:
    """Write an error or a time with two or three significant digits."""
    if math.isnan(value):
        return "–"
    if abs(value) < 1e-9 or 0.01 <= abs(value) < 100:
        return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{value:.2g}" if abs(value) < 1 else f"{value:,.0f}"


def name_set(family: str) -> str:
    """Return the display name of a data set."""
    return display_name(family)


def name_arm(label: str) -> str:
    """Return the display name of an arm."""
    return arm_named(label).display


def listing(pairs: Iterable[tuple[str, float]]) -> str:
    """Write named numbers as one line."""
    return ", ".join(f"{name} {number(value)}" for name, value in pairs)


def claims_of_end_to_end(summary: Summary) -> list[Claim]:
    """Check the sentences about the end-to-end figure, then compare our own methods."""
    paper = summary.select(lambda row: row.method in _PAPER)
    main = paper.where(neighbors=5)
    return [
        _errors_fall(main),
        _label_is_best(main),
        _sample_is_second(main),
        _levels_meet(main),
        _lalonde_at_three(main),
        *_always_below_one(main),
        *_named_baselines(main),
        _neighbors_do_not_matter(paper),
        *_ours_beside_published(summary.where(neighbors=5)),
    ]


def _errors_fall(main: Summary) -> Claim:
    curves = [(dataset, method) for dataset in main.datasets for method in main.methods]
    rising, counted = [], 0
    for dataset, method in curves:
        rows = main.where(dataset=dataset, method=method).rows
        if len(rows) < 2:
            continue
        counted += 1
        ends = sorted(rows, key=lambda row: row.budget)
        if not ends[-1].relative_error_mean < ends[0].relative_error_mean:
            rising.append(f"{name_arm(method)} on {name_set(dataset)}")
    measured = f"{counted - len(rising)} of {counted} curves are lower at the largest ε"
    measured += f"; not {', '.join(rising)}" if rising else ""
    return judge(
        "The errors of all approaches fall as ε grows.",
        measured,
        holds=not rising if counted else None,
    )


def _label_is_best(main: Summary) -> Claim:
    words = "Label level performs best on all data sets."
    others = [method for method in main.methods if method != _LABEL]
    if _LABEL not in main.methods or not others:
        return judge(words, "no other method was run", holds=None)
    shown, holds = [], True
    for dataset in main.datasets:
        rivals = {method: main.average(dataset=dataset, method=method) for method in others}
        rivals = {method: error for method, error in rivals.items() if not math.isnan(error)}
        if not rivals:
            continue
        best = min(rivals, key=rivals.__getitem__)
        ours = main.average(dataset=dataset, method=_LABEL)
        holds = holds and ours < rivals[best]
        pair = listing([("label", ours), (f"next {name_arm(best)}", rivals[best])])
        shown.append(f"{name_set(dataset)}: {pair}")
    return judge(words, "; ".join(shown) + " (geometric means over ε)", holds=holds)


def _sample_is_second(main: Summary) -> Claim:
    words = "Sample level comes second: it outperforms the baselines on all data sets."
    baselines = [method for method in main.methods if method in _BASELINES]
    if _SAMPLE not in main.methods or not baselines:
        return judge(words, "no baseline was run", holds=None)
    shown, holds = [], True
    for dataset in main.datasets:
        sample = main.average(dataset=dataset, method=_SAMPLE)
        better = [
            name_arm(method)
            for method in baselines
            if main.average(dataset=dataset, method=method) < sample
        ]
        holds = holds and not better
        ahead = f"ahead of it {', '.join(better)}" if better else "no baseline ahead"
        shown.append(f"{name_set(dataset)}: {listing([('sample', sample)])}, {ahead}")
    return judge(words, "; ".join(shown), holds=holds)


def _levels_meet(main: Summary) -> Claim:
    words = "At ε = 4 the two levels perform similarly."
    pairs = {
        dataset: [main.error(dataset=dataset, method=m, epsilon="4") for m in (_LABEL, _SAMPLE)]
        for dataset in main.datasets
    }
    known = {dataset: pair for dataset, pair in pairs.items() if not any(map(math.isnan, pair))}
    if not known:
        return judge(words, "ε = 4 was not run at both levels", holds=None)
    shown = [
        f"{name_set(dataset)}: {listing(zip(('label', 'sample'), pair, strict=True))}"
        for dataset, pair in known.items()
    ]
    holds = all(is_similar(*pair) for pair in known.values())
    return judge(words, "; ".join(shown) + " (similar: within 2× or 0.1)", holds=holds)


def _lalonde_at_three(main: Summary) -> Claim:
    words = "Lalonde at ε = 3: most baselines are above 1 and PrivATE is below 0.2."
    at_three = main.where(dataset="lalonde", epsilon="3")
    errors = {row.method: row.relative_error_mean for row in at_three.rows}
    baselines = [errors[method] for method in _BASELINES if method in errors]
    if not baselines or _LABEL not in errors:
        shown = listing((name_arm(method), error) for method, error in errors.items())
        return judge(words, shown or "not run", holds=None)
    above = sum(error > 1 for error in baselines)
    shown = listing((name_arm(method), error) for method, error in errors.items())
    return judge(words, shown, holds=above > len(baselines) / 2 and errors[_LABEL] < 0.2)


def _always_below_one(main: Summary) -> Iterator[Claim]:
    for method, level in ((_LABEL, "label"), (_SAMPLE, "sample")):
        rows = main.where(method=method).rows
        worst = max(rows, key=lambda row: row.relative_error_mean, default=None)
        words = f"The error of PrivATE is less than 1 in all cases ({level} level)."
        if worst is None:
            yield judge(words, "not run", holds=None)
            continue
        place = f"{name_set(worst.dataset)}, ε = {worst.epsilon}"
        largest = listing([("largest", worst.relative_error_mean)])
        yield judge(words, f"{largest} ({place})", holds=worst.relative_error_mean < 1)


def _named_baselines(main: Summary) -> Iterator[Claim]:
    at_one = {
        name_set(d): main.error(dataset=d, method="privsyn", epsilon="1") for d in main.datasets
    }
    known = {name: error for name, error in at_one.items() if not math.isnan(error)}
    yield judge(
        "PrivSyn at ε = 1 exceeds 1 on the four data sets and reaches 4 on Lalonde.",
        listing(known.items()) or "PrivSyn was not run",
        holds=min(known.values()) > 1 and 4 / SIMILAR <= known.get("Lalonde", 0) <= 4 * SIMILAR
        if len(known) == 4
        else None,
    )
    rows = main.where(dataset="acic", method="privsyn").rows
    yield judge(
        "PrivSyn stays around 1 on ACIC whatever ε.",
        listing((f"ε = {row.epsilon}:", row.relative_error_mean) for row in rows)
        or "PrivSyn was not run on ACIC",
        holds=all(1 / SIMILAR <= row.relative_error_mean <= SIMILAR for row in rows)
        if rows
        else None,
    )
    yield _ipw_is_poorest(main)
    yield _small_budgets(main)
    yield _aim_before_privsyn(main)


def _ipw_is_poorest(main: Summary) -> Claim:
    words = "IPW-PP performs poorest on most data sets."
    if "ipw" not in main.methods:
        return judge(words, "IPW-PP was not run", holds=None)
    worst = {}
    for dataset in main.datasets:
        errors = {m: main.average(dataset=dataset, method=m) for m in main.methods}
        errors = {method: error for method, error in errors.items() if not math.isnan(error)}
        worst[dataset] = max(errors, key=errors.__getitem__)
    shown = ", ".join(f"{name_set(d)}: {name_arm(m)}" for d, m in worst.items())
    count = sum(method == "ipw" for method in worst.values())
    return judge(words, f"poorest on {shown}", holds=count > len(worst) / 2)


def _small_budgets(main: Summary) -> Claim:
    words = "For ε ≤ 1.5 SmoothDPM and DPCI are close to 1 or above on most data sets."
    rivals = [method for method in ("smooth-matching", "doubly-robust") if method in main.methods]
    small = main.select(lambda row: row.method in rivals and row.budget <= 1.5)
    if not small.rows:
        return judge(words, "neither was run", holds=None)
    cells = {
        f"{name_arm(method)} on {name_set(dataset)}": small.average(method=method, dataset=dataset)
        for method in rivals
        for dataset in main.datasets
    }
    high = sum(error >= 0.8 for error in cells.values())
    return judge(words, listing(cells.items()), holds=high > len(cells) / 2)


def _aim_before_privsyn(main: Summary) -> Claim:
    words = "AIM is worse than PrivATE but better than PrivSyn."
    needed = ("aim", "privsyn", _SAMPLE)
    if any(method not in main.methods for method in needed):
        return judge(words, "AIM or PrivSyn was not run", holds=None)
    shared = [d for d in main.datasets if main.where(dataset=d, method="aim").rows]
    errors = {
        method: [main.average(dataset=dataset, method=method) for dataset in shared]
        for method in needed
    }
    holds = all(
        sample < aim < privsyn
        for aim, privsyn, sample in zip(*(errors[method] for method in needed), strict=True)
    )
    shown = "; ".join(
        f"{name_set(dataset)}: "
        + listing((name_arm(method), errors[method][place]) for method in needed)
        for place, dataset in enumerate(shared)
    )
    return judge(words, shown, holds=holds)


def _neighbors_do_not_matter(paper: Summary) -> Claim:
    words = "PrivATE performs similarly for N = 1, 3, 5 and 7."
    counts = sorted({row.neighbors for row in paper.rows})
    if len(counts) < 2:
        return judge(words, "one N was run", holds=None)
    ratios = {}
    for method in (_LABEL, _SAMPLE):
        for dataset in paper.datasets:
            errors = [
                paper.average(method=method, dataset=dataset, neighbors=count) for count in counts
            ]
            ratios[f"{name_arm(method)} on {name_set(dataset)}"] = max(errors) / min(errors)
    shown = "largest over smallest error: " + listing(ratios.items())
    return judge(words, shown, holds=all(ratio <= SIMILAR for ratio in ratios.values()))


def _ours_beside_published(main: Summary) -> Iterator[Claim]:
    """Compare our estimator of each level with the published one; the paper does not ask."""
    pairs = (("calibrated-track", _LABEL), ("blocks", _SAMPLE))
    for ours, published in pairs:
        if ours not in main.methods:
            continue
        shown = "; ".join(
            f"{name_set(dataset)}: "
            + listing(
                (name_arm(method), main.average(dataset=dataset, method=method))
                for method in (ours, published)
            )
            for dataset in main.datasets
        )
        words = f"How does {name_arm(ours)} compare with {name_arm(published)}?"
        yield Claim(words, f"{shown} (geometric means over ε)", "measured")
