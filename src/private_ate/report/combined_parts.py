"""Tables and the forest plot of a combination of sites."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from private_ate.report.drawings import Mark, draw_sites
from private_ate.report.markup import Markup, element
from private_ate.report.numbers import number_text, pair_text

if TYPE_CHECKING:
    from private_ate.sites.values import Combined, CombinedEffect

_LONGEST = 40  # letters of a name that fit beside each other on a phone


def forest_figure(combined: Combined, effect: CombinedEffect) -> Markup:
    """Return the forest plot of one effect, with a legend."""
    error = effect.standard_error
    sites = [
        Mark(f"{_short(told.site)} ({100 * told.weight:.2g} %)", told.estimate, *told.interval)
        for told in effect.sites
    ]
    name = f"all, {combined.model} model"
    pooled = Mark(name, effect.estimate, *effect.interval)
    told = "; ".join(
        f"{mark.name} {number_text(mark.value, error)}, {pair_text((mark.low, mark.high), error)}"
        for mark in (*sites, pooled)
    )
    drawn = draw_sites(
        sites, [told.weight for told in effect.sites], pooled, effect.prediction_interval,
        describe=f"Forest plot. {told}",
    )  # fmt: skip
    noun = "difference" if effect.estimand == "difference" else "effect"
    legend = (
        f"{_units(combined, effect)} Squares: sites, as large as their weight (in brackets), with "
        f"their own intervals. Bar: the pooled {noun}. The grey line is no {noun}."
    )
    if effect.prediction_interval is not None:
        legend += " Dashed: where the effect of another site is expected."
    return element("figure", drawn, element("figcaption", legend))


def sites_table(combined: Combined) -> Markup:
    """Return what each site told and promised; it fits a phone."""
    head = combined.effects[0]
    rows = []
    for site, told in zip(combined.sites, head.sites, strict=True):
        error = math.sqrt(told.sampling_variance + told.noise_variance)
        about = f"n {site.n:,}, {site.method}, {site.level} level, ε {float(site.epsilon):g}"
        if site.delta:
            about += f", δ {site.delta:g}"
        if site.population is not None:
            about += f"; {site.population}"
        rows.append(
            element("tr",
                element("th", site.name, scope="row"),
                element("td", number_text(told.estimate, error), class_="number"),
                element("td", _deviation(told.sampling_variance), class_="number"),
                element("td", _deviation(told.noise_variance), class_="number"),
                element("td", f"{100 * told.weight:.3g} %", class_="number"),
            )
        )  # fmt: skip
        rows.append(element("tr", element("td", about, colspan=5, class_="soft")))
    caption = element("caption", "Each site, the standard deviations of its sampling and of its "
                      "noise, and its weight.")  # fmt: skip
    head_row = _head("site", "effect", "sampling", "noise", "weight")
    return element("table", caption, element("thead", head_row), element("tbody", *rows))


def effects_table(combined: Combined, name: Callable[[CombinedEffect], str]) -> Markup:
    """Return all pooled effects with their intervals."""
    rows = [
        element("tr",
            element("th", name(effect), scope="row"),
            element("td", number_text(effect.estimate, effect.standard_error), class_="number"),
            element("td", pair_text(effect.interval, effect.standard_error)),
            element("td", pair_text(effect.simultaneous, effect.standard_error)),
        )
        for effect in combined.effects
    ]  # fmt: skip
    caption = element("caption", "Pooled effects; the last column covers all rows together.")
    head_row = _head("effect of", "pooled", "interval", "all together")
    return element("table", caption, element("thead", head_row), element("tbody", *rows))


def _deviation(variance: float) -> str:
    return number_text(math.sqrt(variance), math.sqrt(variance))


def _head(first: str, *others: str) -> Markup:
    cells = [element("th", text, scope="col", class_="number") for text in others]
    return element("tr", element("th", first, scope="col"), *cells)


def _units(combined: Combined, effect: CombinedEffect) -> str:
    """Name the unit of the row's own outcome, which is known of the headline's alone."""
    outcome = combined.outcome
    known = outcome is not None and outcome.column == effect.outcome and outcome.unit is not None
    return f"In {outcome.unit}." if known and outcome else "In units of the outcome."


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
