"""The curator's page: what the records themselves say. Not private, watermarked throughout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from private_ate.report.markup import Markup, element, page
from private_ate.report.overlap import overlap_figure
from private_ate.report.parts import balance_table, warning_boxes
from private_ate.report.words import estimand_name, noun, number_text, pair_text, uncertainty

if TYPE_CHECKING:
    from private_ate.release import Diagnostics, Release

__all__ = ["INTRODUCTION", "MARK", "TITLE", "curator_page", "refused_page", "weights_table"]

TITLE = "Curator's page"
MARK = "Not private, do not share"
INTRODUCTION = (
    "Computed from the records themselves, without noise. Whoever sees this page sees private "
    "values: it is for the person who holds the data, and for nobody else. Deciding after reading "
    "it which release to publish weakens the promise of that release."
)


def curator_page(diagnostics: Diagnostics, release: Release | None = None) -> str:
    """Return the page as one self-contained document."""
    return page(
        TITLE,
        element("h1", TITLE),
        element("p", INTRODUCTION),
        *_warnings(release),
        *_effects(diagnostics, release),
        element("h2", "Balance"),
        balance_table(diagnostics.balance),
        element("h2", "Overlap"),
        overlap_figure(diagnostics.overlap),
        *_weights(diagnostics),
        watermark=MARK,
    )  # fmt: skip


def refused_page(reason: str) -> str:
    """Return a page that says why there is nothing to show; it is the curator's as well."""
    return page(TITLE, element("h1", TITLE), element("p", f"Nothing to compare: {reason}."),
                watermark=MARK)  # fmt: skip


def _warnings(release: Release | None) -> list[Markup]:
    return [] if release is None else warning_boxes(release)


def _effects(diagnostics: Diagnostics, release: Release | None) -> list[Markup]:
    error = uncertainty(release) if release else 0.0
    rows = [
        ("matching, no limits, no noise", diagnostics.exact_effect),
        ("matching within the published limits, no noise", diagnostics.limited_effect),
        ("difference in means, no noise", diagnostics.plain_difference),
    ]
    if release is not None:
        how = f"{release.method}, {release.level} level"
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


def _comparison(diagnostics: Diagnostics, release: Release, error: float) -> list[Markup]:
    distance = number_text(release.ate - diagnostics.exact_effect, error)
    texts = [f"The released {noun(release)} lies {distance} from matching without noise."]
    if release.interval is not None:
        inside = release.interval[0] <= diagnostics.exact_effect <= release.interval[1]
        where = "inside" if inside else "outside"
        texts.append(
            f"The exact effect lies {where} the released interval "
            f"{pair_text(release.interval, error)}."
        )
    return [element("p", " ".join(texts))]


def _weights(diagnostics: Diagnostics) -> list[Markup]:
    sizes = (
        f"{diagnostics.treated:,} treated units weigh as much as "
        f"{diagnostics.effective_treated:,.0f} of equal weight, {diagnostics.control:,} control "
        f"units as much as {diagnostics.effective_control:,.0f}."
    )
    return [
        element("h2", "Weights"),
        weights_table(diagnostics.weights),
        element("p", sizes),
    ]


def weights_table(weights: Mapping[str, Sequence[float]]) -> Markup:
    """Return quantiles of the weights of each arm."""
    names = ("least", "median", "90 %", "99 %", "most")
    head = [element("th", "arm", scope="col")]
    head += [element("th", name, scope="col", class_="number") for name in names]
    rows = [
        element("tr", element("th", arm, scope="row"),
                *(element("td", f"{value:.2f}", class_="number") for value in values))
        for arm, values in weights.items()
    ]  # fmt: skip
    return element(
        "table",
        element("caption", "Weights of the units under the published limits."),
        element("thead", element("tr", *head)),
        element("tbody", *rows),
    )
