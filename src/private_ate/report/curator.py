"""The curator's page: what the records themselves say. Not private, watermarked throughout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import combinations
from typing import TYPE_CHECKING

from private_ate.release.curator import ArmDiagnostics
from private_ate.report.arm_comparison import (
    balance_parts,
    balance_table,
    overlap_figure,
    table_one_part,
)
from private_ate.report.markup import (
    Cell,
    Markup,
    card,
    element,
    page,
    points,
    table,
    warning_boxes,
)
from private_ate.report.phrasing import (
    estimand_name,
    noun,
    number_text,
    pair_text,
    uncertainty,
)

if TYPE_CHECKING:
    from private_ate.release.curator import Diagnostics, LostValues, WithoutNoise
    from private_ate.release.release import Release

_TITLE = "Curator's page"
_MARK = "Not private, do not share"
_INTRODUCTION = (
    "Computed from the records themselves, without noise. Whoever sees this page sees private "
    "values: it is for the person who holds the data, and for nobody else. Deciding after reading "
    "it which release to publish weakens the promise of that release."
)


def curator_page(diagnostics: Diagnostics | ArmDiagnostics, release: Release | None = None) -> str:
    """Return the page as one self-contained document."""
    if isinstance(diagnostics, ArmDiagnostics):
        effects = _contrasts(diagnostics, release)
        balance = balance_parts(diagnostics.balance, diagnostics.arm_balance)
        names = [f"units of {label}" for label in diagnostics.sizes]
        sizes = _sizes(names, diagnostics.sizes.values(), diagnostics.effective.values())
    else:
        effects = _effects(diagnostics, release)
        balance = [balance_table(diagnostics.balance)]
        sizes = (
            f"{diagnostics.treated:,} treated units weigh as much as "
            f"{diagnostics.effective_treated:,.0f} of equal weight, {diagnostics.control:,} "
            f"control units as much as {diagnostics.effective_control:,.0f}"
        )
    return _page(
        element("p", _INTRODUCTION),
        *([] if release is None else warning_boxes(release.warnings)),
        *effects,
        *_lost_part(diagnostics.lost),
        *_released_part(diagnostics.without_noise),
        element("h2", "Matching within the published limits: balance"),
        *balance,
        element("h2", "Overlap"),
        overlap_figure(diagnostics.overlap),
        element("h2", "Matching within the published limits: weights"),
        _weights_table(diagnostics.weights, "Weights of the units under the published limits."),
        element("p", f"{sizes}."),
    )


def refused_page(reason: str) -> str:
    """Return a page that says why there is nothing to show; it is the curator's as well."""
    return _page(element("p", f"Nothing to compare: {reason}."))


def _page(*parts: Markup) -> str:
    return page(_TITLE, element("h1", _TITLE), *parts, watermark=_MARK)


def diagnostics_card(diagnostics: Diagnostics | ArmDiagnostics) -> str:
    """Return what a curator's view holds, and no value of it.

    A notebook is saved with its output and handed on; the page is written where it is asked for.
    """
    held = [item.name for item in fields(diagnostics) if item.name != "note"]
    call = element("code", "Path(…).write_text(diagnostics.to_html(release))")
    return card(
        element("p", f"Curator's view: {diagnostics.note}.", class_="warning", role="note"),
        element("p", "It holds, without noise:"),
        points(name.replace("_", " ") for name in held),
        element("p", "Its values are not shown here, as notebooks are saved with what they show. "
                "A page with all of them: ", call),
    )  # fmt: skip


def _released_part(found: WithoutNoise | None) -> list[Markup]:
    """Return weights and covariates of the released estimator itself, where they are known."""
    if found is None or not found.weights:
        return []
    parts = [
        element("h2", "The released estimator: its weights"),
        _weights_table(found.weights, "Weights of the units in the release."),
    ]
    if found.table is not None:
        held = found.table
        names = [f"units of arm “{label}”" for label in held.labels]
        parts += [element("p", f"{_sizes(names, held.sizes, held.effective)}."),
                  table_one_part(held, " as the release does")]  # fmt: skip
    return parts


def _sizes(names: Iterable[str], sizes: Iterable[int], effective: Iterable[float]) -> str:
    """Say how large arms are and what weights leave of them."""
    return "; ".join(
        f"{size:,} {name} weigh as much as {equal:,.0f} of equal weight"
        for name, size, equal in zip(names, sizes, effective, strict=True)
    )


def _lost_part(lost: Mapping[str, LostValues]) -> list[Markup]:
    """Return which entries were not used as they are: missing, clipped, not declared."""
    if not lost:
        return []
    rows = [
        (name, *(f"{count:,}" for count in (one.missing, one.below, one.above, one.undeclared)))
        for name, one in lost.items()
        if one.any
    ]
    title = element("h2", "Values that were missing or lost to the declared bounds")
    if not rows:
        return [title, element("p", "None: every entry lies within what was declared.")]
    counts = ("missing", "clipped below", "clipped above", "not declared")
    columns = [("column", ""), *((name, "number") for name in counts)]
    parts = [title, table("Entries that were not used as they are.", columns, rows)]
    if len(lost) > len(rows):
        others = len(lost) - len(rows)
        parts.append(element("p", f"Nothing was lost in {others} other columns."))
    return parts


def _effects(diagnostics: Diagnostics, release: Release | None) -> list[Markup]:
    """Return the effect of two arms beside its non-private relatives."""
    found, error = diagnostics.without_noise, 0.0
    rows = [
        ("matching, no limits, no noise", diagnostics.exact_effect),
        ("matching within the published limits, no noise", diagnostics.limited_effect),
        ("difference in means, no noise", diagnostics.plain_difference),
    ]
    texts = []
    if release is not None:
        error = uncertainty(release)
        name, value = "matching without noise", diagnostics.exact_effect
        if found is not None:
            rows.insert(0, (f"the released estimator, no noise{_how(found)}", found.effect))
            name, value = "its own estimator without noise", found.effect
        how = f"{release.method}, {release.level} level"
        rows.insert(0, (f"released: {estimand_name(release)} ({how})", release.ate))
        distance = number_text(release.ate - value, error)
        texts.append(f"The released {noun(release)} lies {distance} from {name}.")
        if release.interval is not None:
            inside = release.interval[0] <= value <= release.interval[1]
            texts.append(f"That lies {'inside' if inside else 'outside'} the released interval "
                         f"{pair_text(release.interval, error)}.")  # fmt: skip
    cells = [(name, number_text(value, error)) for name, value in rows]
    return [
        element("h2", "The effect beside its non-private relatives"),
        table("In units of the outcome.", [("", ""), ("", "number")], cells),
        *([element("p", " ".join(texts))] if texts else []),
    ]


def _how(found: WithoutNoise) -> str:
    """Say whether the released estimator was repeated to the letter."""
    if found.by_weights:
        return ", by its own weights"
    return " in any of its steps, so what earlier steps decide may differ"


def _weights_table(weights: Mapping[str, Sequence[float]], caption: str) -> Markup:
    """Return quantiles of the weights of each arm."""
    names = ("least", "median", "90 %", "99 %", "most")
    rows = [(arm, *(f"{value:.2f}" for value in values)) for arm, values in weights.items()]
    return table(caption, [("arm", ""), *((name, "number") for name in names)], rows)


def _contrasts(diagnostics: ArmDiagnostics, release: Release | None) -> list[Markup]:
    """Return every contrast beside its non-private relatives, a row for each."""
    found, labels = diagnostics.without_noise, list(diagnostics.sizes)
    error = uncertainty(release) if release else 0.0
    caption = (
        "In units of the outcome, all but the released ones without noise: matching without "
        "limits, matching within the published limits, and plain differences in means."
    )
    ways = {
        "matching": diagnostics.exact_means,
        "within limits": diagnostics.limited_means,
        "plain": diagnostics.plain_means,
    }
    exact, name = diagnostics.exact_means, "matching"
    if found is not None and found.means:
        ways = {"its own": found.means, **ways}
        exact, name = found.means, "their own estimator"
        caption += f" Its own: the released estimator, no noise{_how(found)}."
    rows: list[tuple[Cell, ...]] = []
    gaps, inside = [], []
    for against, arm in sorted(combinations(labels, 2), key=lambda one: labels.index(one[0]) > 0):
        numbers = {way: means[arm] - means[against] for way, means in ways.items()}
        if release is not None:
            row, truth = release.contrast(arm, against), exact[arm] - exact[against]
            numbers = {"released": row.effect, **numbers}
            gaps.append(abs(row.effect - truth))
            if row.interval is not None:
                inside.append(row.interval[0] <= truth <= row.interval[1])
        values = [number_text(value, error) for value in numbers.values()]
        rows.append((f"{arm} against {against}", list(numbers), values))
    parts = [
        element("h2", "The effects beside their non-private relatives"),
        table(caption, [("", ""), ("", ""), ("", "number")], rows),
    ]
    if release is not None:
        mean = number_text(sum(gaps) / len(gaps), error)
        text = f"The released {noun(release)}s lie {mean} from {name} without noise on average."
        if inside:
            text += (
                f" {sum(inside)} of {len(inside)} released intervals hold the contrast by {name}."
            )
        parts.append(element("p", text))
    return parts
