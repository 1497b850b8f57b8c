"""What a reader looks for first beside the number: whose data, which sizes, ratios, budget."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from private_ate.effects import (
    e_value,
    number_needed_to_treat,
    odds_ratio_interval,
    risk_ratio_interval,
)
from private_ate.report.markup import Markup, element
from private_ate.report.phrasing import number_text, percent, sampling_words, uncertainty

if TYPE_CHECKING:
    from private_ate.effects.of_releases import NumberNeeded
    from private_ate.release.release import Release


def summary_table(
    release: Release, *, analyst: str = "", spent_before: float | None = None
) -> Markup:
    """Return the table of facts below the number."""
    rows = [
        *_source(release, analyst),
        *_units(release),
        *_means(release),
        *ratio_rows(release),
        *_budget(release, spent_before),
    ]
    cells = [
        element("tr", element("th", name, scope="row"), element("td", text)) for name, text in rows
    ]
    return element("table", element("tbody", *cells), class_="facts")


def _source(release: Release, analyst: str) -> Iterator[tuple[str, str]]:
    """Say which data the release is about, where somebody gave them a name."""
    if release.dataset is not None:
        version = "" if release.dataset_version is None else f", version {release.dataset_version}"
        yield "data set", f"{release.dataset}{version}"
    elif release.dataset_version is not None:
        yield "data set", f"version {release.dataset_version}"
    asked = [release.released_at or "", f"by {analyst}" if analyst else ""]
    if any(asked):
        yield "asked for", " ".join(text for text in asked if text)
    yield "method", f"{release.method}, {release.level} level, private-ate {release.version}"


def _units(release: Release) -> Iterator[tuple[str, str]]:
    facts = release.facts
    text = f"{release.n:,}"
    arms, effective = facts.arms, facts.effective_arms
    if arms is not None:
        control, treated = _labels(release)
        text += f": {arms.treated:,} {treated}, {arms.control:,} {control}"
        if effective is not None:
            text += f"; worth {effective.treated:,.0f} and {effective.control:,.0f} of equal weight"
    yield "units", text
    yield "speaks of", facts.population or "all n units (ATE)"
    if facts.sampling is not None:
        yield "weights", sampling_words(facts.sampling)
    if facts.left_out_outcome:
        yield "left out", f"{facts.left_out_outcome:,} units without an outcome"


def _labels(release: Release) -> tuple[str, str]:
    """Return what the page calls both arms: their labels, and which of them is which."""
    if release.treatment is None:
        return "control", "treated"
    column = release.treatment.column
    control, treated = release.treatment.arms[0], release.treatment.arms[-1]
    return f"with {column} = {control} (control)", f"with {column} = {treated} (treated)"


def _means(release: Release) -> Iterator[tuple[str, str]]:
    means = release.facts.means
    if means is None or release.arms:
        return
    error = uncertainty(release)
    treated, control = (number_text(mean, error) for mean in (means.treated, means.control))
    yield "mean outcome", f"{treated} if all were treated, {control} if none were"


def ratio_rows(release: Release) -> list[tuple[str, str]]:
    """Return what follows from two arms of a binary outcome, with intervals and for nothing.

    The number needed to treat follows from the effect; ratios and the E-value need the means.
    """
    facts = release.facts
    if release.arms or not facts.is_binary:
        return []
    rows = []
    if facts.means is not None:
        rows += [
            ("risk ratio", _ratio(release, facts.risk_ratio, risk_ratio_interval(release))),
            ("odds ratio", _ratio(release, facts.odds_ratio, odds_ratio_interval(release))),
        ]
    if release.estimand != "difference":  # which says nothing about treating anybody
        needed = needed_text(number_needed_to_treat(release), percent(release))
        rows.append(("needed to treat", needed))
    if facts.means is not None and 0 < facts.means.control < 1:
        rows.append(("E-value", _confounding(release)))
    return rows


def _ratio(release: Release, ratio: float | None, interval: tuple[float, float] | None) -> str:
    if ratio is None:
        return "not available: the control risk is at its bound"
    if release.interval is None:
        return f"{ratio:.3g}; no interval was paid for"
    if interval is None:
        return f"{ratio:.3g}; no interval, as a risk is within its error of 0 or 1"
    return f"{ratio:.3g}, {percent(release)} interval {span_text(*interval)}"


def span_text(low: float, high: float) -> str:
    """Write an interval of ratios, which may be open above."""
    return f"from {low:.3g} {'upwards' if math.isinf(high) else f'to {high:.3g}'}"


def needed_text(found: NumberNeeded, share: str) -> str:
    """Say how many have to be treated for one event more or less."""
    if math.isinf(found.estimate):
        return "not available: the effect is zero"
    text = f"{abs(found.estimate):.3g} for one event {'more' if found.estimate > 0 else 'less'}"
    if found.interval is None:
        return f"{text}; no interval was paid for"
    if not found.holds_none:
        ends = sorted(abs(end) for end in found.interval)
        return f"{text}, {share} interval {span_text(*ends)}"
    fewer, more = found.interval
    rays = [
        f"{abs(end):.3g} or more for one event {word}"
        for end, word in ((more, "more"), (fewer, "less"))
        if not math.isinf(end)
    ]
    return f"{text}; the {share} interval holds no effect, so it is two rays: {', or '.join(rays)}"


def _confounding(release: Release) -> str:
    """Say how strong an unmeasured confounder would have to be, if the release shows it."""
    found = e_value(release)
    text = f"{found.estimate:.3g}"
    if found.limit is not None:
        text += f", {found.limit:.3g} for the interval's end nearer to no effect"
    return f"{text} (with the control risk taken as known)"


def _budget(release: Release, spent_before: float | None) -> Iterator[tuple[str, str]]:
    cost = f"ε = {float(release.epsilon):g}"
    if release.delta > 0:
        cost += f", δ = {release.delta:g}"
    if spent_before is not None:
        cost += f"; ε = {spent_before:.6g} was spent on these data before"
    note = release.facts.ledger
    if note is not None:
        cost += f"; ε = {note.left:.6g} of the budget of {note.dataset} is left"
    yield "privacy cost", cost
