"""The curator's page of three arms or more. Not private, watermarked throughout."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from private_ate.report.arm_parts import balance_parts
from private_ate.report.curator import (
    INTRODUCTION,
    MARK,
    TITLE,
    lost_part,
    released_part,
    weights_table,
    without_noise_note,
)
from private_ate.report.markup import Markup, element, page
from private_ate.report.numbers import number_text
from private_ate.report.overlap import overlap_figure
from private_ate.report.parts import warning_boxes
from private_ate.report.words import noun, uncertainty

if TYPE_CHECKING:
    from collections.abc import Mapping

    from private_ate.release import ArmDiagnostics, Release


def arms_page(diagnostics: ArmDiagnostics, release: Release | None = None) -> str:
    """Return the page as one self-contained document."""
    sizes = [
        f"{size:,} units of {label} weigh as much as {diagnostics.effective[label]:,.0f} of equal "
        "weight"
        for label, size in diagnostics.sizes.items()
    ]
    return page(
        TITLE,
        element("h1", TITLE),
        element("p", INTRODUCTION),
        *([] if release is None else warning_boxes(release)),
        *_contrasts(diagnostics, release),
        *lost_part(diagnostics.lost),
        *released_part(diagnostics.without_noise),
        element("h2", "Matching within the published limits: balance"),
        *balance_parts(diagnostics.balance, diagnostics.arm_balance),
        element("h2", "Overlap"),
        overlap_figure(diagnostics.overlap),
        element("h2", "Matching within the published limits: weights"),
        weights_table(diagnostics.weights),
        element("p", f"{'; '.join(sizes)}."),
        watermark=MARK,
    )


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
        caption += f" Its own: the released estimator, no noise{without_noise_note(found)}."
    table = element("table", element("caption", caption), element("tbody", *rows))
    return [
        element("h2", "The effects beside their non-private relatives"),
        table,
        *_comparison(diagnostics, release, pairs),
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


def _comparison(
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
