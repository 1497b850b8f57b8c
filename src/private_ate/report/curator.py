"""The curator's page: what the records themselves say. Not private, watermarked throughout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from private_ate.release.curator import ArmDiagnostics
from private_ate.report.arm_comparison import (
    balance_parts,
    balance_table,
    overlap_figure,
    table_one_part,
)
from private_ate.report.markup import Markup, element, page, table, warning_boxes
from private_ate.report.phrasing import (
    capital,
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
        sizes = "; ".join(
            f"{size:,} units of {label} weigh as much as {diagnostics.effective[label]:,.0f} of "
            "equal weight"
            for label, size in diagnostics.sizes.items()
        )
    else:
        effects = _effects(diagnostics, release)
        balance = [balance_table(diagnostics.balance)]
        sizes = (
            f"{diagnostics.treated:,} treated units weigh as much as "
            f"{diagnostics.effective_treated:,.0f} of equal weight, {diagnostics.control:,} "
            f"control units as much as {diagnostics.effective_control:,.0f}"
        )
    return page(
        _TITLE,
        element("h1", _TITLE),
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
        _weights_table(diagnostics.weights),
        element("p", f"{sizes}."),
        watermark=_MARK,
    )


def _released_part(found: WithoutNoise | None) -> list[Markup]:
    """Return weights and covariates of the released estimator itself, where they are known."""
    if found is None or not found.weights:
        return []
    parts = [
        element("h2", "The released estimator: its weights"),
        _weights_table(found.weights, "Weights of the units in the release."),
    ]
    if found.table is not None:
        sizes = "; ".join(
            f"the {size:,} units of arm “{label}” weigh as much as {effective:,.0f} of equal weight"
            for label, size, effective in zip(
                found.table.labels, found.table.sizes, found.table.effective, strict=True
            )
        )
        parts += [
            element("p", f"{capital(sizes)}."),
            table_one_part(found.table, " as the release does"),
        ]
    return parts


def _lost_part(lost: Mapping[str, LostValues]) -> list[Markup]:
    """Return which entries were not used as they are: missing, clipped, not declared."""
    if not lost:
        return []
    names = ("missing", "clipped below", "clipped above", "not declared")
    head = [element("th", "column", scope="col")]
    head += [element("th", name, scope="col", class_="number") for name in names]
    rows = [
        element("tr", element("th", name, scope="row"),
                *(element("td", f"{count:,}", class_="number")
                  for count in (one.missing, one.below, one.above, one.undeclared)))
        for name, one in lost.items()
        if one.any
    ]  # fmt: skip
    title = element("h2", "Values that were missing or lost to the declared bounds")
    if not rows:
        return [title, element("p", "None: every entry lies within what was declared.")]
    shown = table("Entries that were not used as they are.", head, rows)
    others = len(lost) - len(rows)
    return [title, shown, *([element("p", f"Nothing was lost in {others} other columns.")]
                            if others else [])]  # fmt: skip


def refused_page(reason: str) -> str:
    """Return a page that says why there is nothing to show; it is the curator's as well."""
    return page(_TITLE, element("h1", _TITLE), element("p", f"Nothing to compare: {reason}."),
                watermark=_MARK)  # fmt: skip


def _effects(diagnostics: Diagnostics, release: Release | None) -> list[Markup]:
    error = uncertainty(release) if release else 0.0
    rows = [
        ("matching, no limits, no noise", diagnostics.exact_effect),
        ("matching within the published limits, no noise", diagnostics.limited_effect),
        ("difference in means, no noise", diagnostics.plain_difference),
    ]
    if release is not None:
        how = f"{release.method}, {release.level} level"
        if diagnostics.without_noise is not None:
            name = (
                f"the released estimator, no noise{_without_noise_note(diagnostics.without_noise)}"
            )
            rows.insert(0, (name, diagnostics.without_noise.effect))
        rows.insert(0, (f"released: {estimand_name(release)} ({how})", release.ate))
    cells = [
        element("tr", element("th", name, scope="row"),
                element("td", number_text(value, error), class_="number"))
        for name, value in rows
    ]  # fmt: skip
    parts = [
        element("h2", "The effect beside its non-private relatives"),
        element("table", element("caption", "In units of the outcome."), element("tbody", *cells)),
    ]
    if release is not None:
        parts += _comparison(diagnostics, release, error)
    return parts


def _without_noise_note(found: WithoutNoise) -> str:
    """Say whether the released estimator was repeated to the letter."""
    if found.by_weights:
        return ", by its own weights"
    return " in any of its steps, so what earlier steps decide may differ"


def _comparison(diagnostics: Diagnostics, release: Release, error: float) -> list[Markup]:
    found = diagnostics.without_noise
    name, value = "matching without noise", diagnostics.exact_effect
    if found is not None:
        name, value = "its own estimator without noise", found.effect
    distance = number_text(release.ate - value, error)
    texts = [f"The released {noun(release)} lies {distance} from {name}."]
    if release.interval is not None:
        inside = release.interval[0] <= value <= release.interval[1]
        where = "inside" if inside else "outside"
        texts.append(f"That lies {where} the released interval "
                     f"{pair_text(release.interval, error)}.")  # fmt: skip
    return [element("p", " ".join(texts))]


def _weights_table(
    weights: Mapping[str, Sequence[float]],
    caption: str = "Weights of the units under the published limits.",
) -> Markup:
    """Return quantiles of the weights of each arm."""
    names = ("least", "median", "90 %", "99 %", "most")
    head = [element("th", "arm", scope="col")]
    head += [element("th", name, scope="col", class_="number") for name in names]
    rows = [
        element("tr", element("th", arm, scope="row"),
                *(element("td", f"{value:.2f}", class_="number") for value in values))
        for arm, values in weights.items()
    ]  # fmt: skip
    return table(caption, head, rows)


def _contrasts(diagnostics: ArmDiagnostics, release: Release | None) -> list[Markup]:
    """Return every contrast beside its non-private relatives, a row for each."""
    error = uncertainty(release) if release else 0.0
    labels = list(diagnostics.sizes)
    ways = {
        **_own(diagnostics),
        "matching": diagnostics.exact_means,
        "within limits": diagnostics.limited_means,
        "plain": diagnostics.plain_means,
    }
    pairs = sorted(combinations(labels, 2), key=lambda pair: labels.index(pair[0]) > 0)
    rows = [
        _row(arm, against, _numbers(arm, against, ways, release), error) for against, arm in pairs
    ]
    caption = (
        "In units of the outcome, all but the released ones without noise: matching without "
        "limits, matching within the published limits, and plain differences in means."
    )
    found = diagnostics.without_noise
    if found is not None and found.means:
        caption += f" Its own: the released estimator, no noise{_without_noise_note(found)}."
    table = element("table", element("caption", caption), element("tbody", *rows))
    return [
        element("h2", "The effects beside their non-private relatives"),
        table,
        *_compare_contrasts(diagnostics, release, pairs),
    ]


def _own(diagnostics: ArmDiagnostics) -> dict[str, Mapping[str, float]]:
    """Return the means of the released estimator without noise, if they are known."""
    found = diagnostics.without_noise
    return {} if found is None or not found.means else {"its own": found.means}


def _numbers(
    arm: str, against: str, ways: Mapping[str, Mapping[str, float]], release: Release | None
) -> dict[str, float]:
    found = {name: means[arm] - means[against] for name, means in ways.items()}
    if release is None:
        return found
    return {"released": release.contrast(arm, against).effect, **found}


def _row(arm: str, against: str, numbers: Mapping[str, float], error: float) -> Markup:
    names, values = [], []
    for name, value in numbers.items():
        names += [element("span", name, class_="soft"), element("br")]
        values += [element("span", number_text(value, error)), element("br")]
    return element(
        "tr",
        element("th", f"{arm} against {against}", scope="row"),
        element("td", *names[:-1]),
        element("td", *values[:-1], class_="number"),
    )


def _compare_contrasts(
    diagnostics: ArmDiagnostics, release: Release | None, pairs: list[tuple[str, str]]
) -> list[Markup]:
    """Say how many released intervals hold the contrast by matching without noise."""
    if release is None:
        return []
    own = _own(diagnostics).get("its own")
    name = "matching" if own is None else "their own estimator"
    exact = diagnostics.exact_means if own is None else own
    gaps, inside, known = [], 0, 0
    for against, arm in pairs:
        row = release.contrast(arm, against)
        truth = exact[arm] - exact[against]
        gaps.append(abs(row.effect - truth))
        if row.interval is not None:
            known += 1
            inside += row.interval[0] <= truth <= row.interval[1]
    mean = number_text(sum(gaps) / len(gaps), uncertainty(release))
    texts = [f"The released {noun(release)}s lie {mean} from {name} without noise on average."]
    if known:
        texts.append(f"{inside} of {known} released intervals hold the contrast by {name}.")
    return [element("p", " ".join(texts))]
