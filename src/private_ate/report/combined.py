"""A combination of sites as text, as a card for notebooks and as one self-contained page."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from private_ate.report.drawings import DEEP, WARM, Bar, Line, draw_lines, short_name
from private_ate.report.effects_table import in_brackets
from private_ate.report.html import short_lists
from private_ate.report.markup import (
    Markup,
    card,
    code,
    element,
    figure,
    folded,
    page,
    pairs_table,
    points,
    table,
    warning_boxes,
)
from private_ate.report.phrasing import capital, estimand_text, factor_text, number_text, pair_text
from private_ate.report.text import WIDTH, named_lines

if TYPE_CHECKING:
    from private_ate.sites.values import Combined, CombinedEffect, SiteEffect

_MODELS = {
    "fixed": "fixed effect: all sites have one effect; inverse variances",
    "random": "random effects: effects vary between sites; REML, Hartung–Knapp (factor at least 1)",
}
_COVERED = (
    "noise and sampling of the sites; what they share, such as confounding by the same cause, does "
    "not average out"
)
_VARIANCE = (
    "A site's variance is that of its noise, which is known, and of a normal error that makes its "
    "interval as wide as it is."
)


def combined_text(combined: Combined) -> str:
    """Return the combination as aligned plain text."""
    rows = [(_printable(name), _printable(value)) for name, value in _rows(combined)]
    width = max(len(name) for name, _ in rows) + 2
    warned = [textwrap.fill(f"WARNING: {_printable(text)}", WIDTH) for text in combined.warnings]
    return "\n".join([*warned, _title(combined), *named_lines(rows, width, WIDTH)])


def _printable(text: str) -> str:
    """Return a text of somebody else's file without characters that move a cursor."""
    return "".join(letter if letter.isprintable() else "·" for letter in text)


def combined_card(combined: Combined) -> str:
    """Return a fragment for a notebook: warnings first, then a table and the forest plot."""
    return card(
        *warning_boxes(combined.warnings),
        pairs_table(_title(combined), _rows(combined)),
        _forest(combined, combined.effects[0]),
    )


def combined_page(combined: Combined) -> str:
    """Return one self-contained HTML document."""
    subject, several = _subject(combined), len(combined.sites) > 1
    return page(
        subject,
        element("h1", subject),
        *warning_boxes(combined.warnings),
        *_effect_part(combined),
        *(_heterogeneity_part(combined) if several else []),
        *(_table_part(combined) if len(combined.effects) > 1 else []),
        element("h2", "What went in"),
        _sites_table(combined),
        element("p", _VARIANCE, class_="soft"),
        *_promise_part(combined),
        *_repeat_part(combined),
        element(
            "footer",
            f"Made by private-ate {combined.version}. This page holds only releases and what "
            "follows from them; it loads nothing and sends nothing.",
        ),
    )


def _title(combined: Combined) -> str:
    name = estimand_text(combined.estimand).removesuffix(" (ATE)")
    return f"{capital(name)}, {_count(combined)} by private-ate"


def _count(combined: Combined) -> str:
    sites = len(combined.sites)
    return f"{sites} sites combined" if sites > 1 else "one site alone"


def _subject(combined: Combined) -> str:
    treatment, outcome = combined.treatment, combined.outcome
    name = estimand_text(combined.estimand)
    if treatment is None or outcome is None:
        return f"{capital(name)}: {_count(combined)}"
    if combined.estimand == "difference":
        return f"{outcome.column} by {treatment.column}: {name}, {_count(combined)}"
    return f"Effect of {treatment.column} on {outcome.column}: {_count(combined)}"


def _rows(combined: Combined) -> Iterator[tuple[str, str]]:
    """Yield name and value of each line of the summary."""
    head, share = combined.effects[0], _share(combined)
    error, outcome = head.standard_error, combined.outcome
    unit = "" if outcome is None or outcome.unit is None else outcome.unit
    is_plain = combined.estimand == "difference"
    name = "difference in means" if is_plain else f"effect ({combined.estimand.upper()})"
    yield name, f"{number_text(head.estimate, error)} {unit}".rstrip()
    if is_plain:
        yield "  assumes", "nothing was adjusted for: an effect only if treatment was random"
    yield "standard error", number_text(error, error)
    yield f"{share} interval", in_brackets(head.interval, error)
    yield "  covers", _COVERED
    if head.prediction_interval is not None:
        expected = in_brackets(head.prediction_interval, error)
        yield f"{share} prediction", f"{expected} for another site"
    yield f"{share} noise interval", in_brackets(head.noise_interval, error)
    yield "model", _MODELS[combined.model]
    if len(combined.sites) > 1:
        yield "heterogeneity", _heterogeneity(head)
    for site, found in zip(combined.sites, head.sites, strict=True):
        estimate, sampling, noise = _site_numbers(found)
        yield (
            f"  {site.name[:40]}",
            (
                f"{estimate} {in_brackets(found.interval, _site_error(found))}, "
                f"n {site.n:,}, ε {float(site.epsilon):g}, {site.level} level, "
                f"sd {sampling} sampling and {noise} noise, weight {100 * found.weight:.3g} %"
            ),
        )
    for effect in combined.effects[1:]:
        pooled = f"{number_text(effect.estimate, effect.standard_error)} "
        yield _row_name(effect), pooled + in_brackets(effect.interval, effect.standard_error)
    yield "guarantee", combined.guarantee
    yield "  neighbours", combined.adjacency
    yield "  means", _meaning(combined)
    yield "  not protected", "; ".join(combined.not_protected[:2])


def _site_error(found: SiteEffect) -> float:
    return math.sqrt(found.sampling_variance + found.noise_variance)


def _site_numbers(found: SiteEffect) -> tuple[str, str, str]:
    """Write a site's estimate, and the standard deviations of its sampling and of its noise."""
    sampling, noise = (
        number_text(math.sqrt(part), math.sqrt(part))
        for part in (found.sampling_variance, found.noise_variance)
    )
    return number_text(found.estimate, _site_error(found)), sampling, noise


def _row_name(effect: CombinedEffect) -> str:
    """Name a row of the table of effects."""
    where = "" if effect.subgroup is None else f", {effect.subgroup}"
    return f"{effect.outcome}: {effect.arm} against {effect.against}{where}"


def _heterogeneity(effect: CombinedEffect) -> str:
    found = effect.heterogeneity
    parts = []
    if found.tau_squared is not None:
        spread = math.sqrt(found.tau_squared)
        digits = number_text(spread, effect.standard_error) if spread else "0"
        parts.append(f"τ = {digits} between sites")
    parts.append(f"I² = {100 * found.i_squared:.3g} %")
    tested = f"Q = {found.q:.3g} on {found.degrees} degree{'s' * (found.degrees > 1)} of freedom"
    parts.append(tested if found.p_value is None else f"{tested} (p = {found.p_value:.2g})")
    return ", ".join(parts)


def _meaning(combined: Combined) -> str:
    several = ": the largest ε of the sites" if len(combined.sites) > 1 else ""
    return factor_text(combined.level, float(combined.epsilon), combined.delta) + several


def _share(combined: Combined) -> str:
    return f"{100 * combined.confidence:g} %"


def _effect_part(combined: Combined) -> list[Markup]:
    head, share = combined.effects[0], _share(combined)
    error = head.standard_error
    found = pair_text(head.interval, error)
    intervals = [f"{share} interval for the mean over sites: {found}, covers {_COVERED}."]
    if head.prediction_interval is not None:
        found = pair_text(head.prediction_interval, error)
        intervals.append(f"{share} prediction interval, for the effect in another site: {found}.")
    without = pair_text(head.noise_interval, error)
    intervals.append(f"{share} interval for the noise of the sites alone: {without}.")
    return [
        element("p", capital(estimand_text(combined.estimand)), class_="soft"),
        element("p", number_text(head.estimate, error), class_="effect"),
        element("p", f"Model: {_MODELS[combined.model]}."),
        _forest(combined, head),
        points(intervals),
    ]


def _heterogeneity_part(combined: Combined) -> list[Markup]:
    note = (
        "I² is the share of the variation between sites that their noise and their sampling do "
        "not explain; Q tests whether there is any."
    )
    return [
        element("h2", "How much sites differ"),
        element("p", f"{_heterogeneity(combined.effects[0])}."),
        element("p", note, class_="soft"),
    ]


def _table_part(combined: Combined) -> list[Markup]:
    """Return all pooled effects with their intervals, and a forest plot of each."""
    rows = []
    for effect in combined.effects:
        error = effect.standard_error
        pairs = [pair_text(pair, error) for pair in (effect.interval, effect.simultaneous)]
        rows.append((_row_name(effect), number_text(effect.estimate, error), *pairs))
    columns = [("effect of", ""), ("pooled", "number"), ("interval", ""), ("all together", "")]
    return [
        element("h2", "All effects"),
        table("Pooled effects; the last column covers all rows together.", columns, rows),
        *(folded(_row_name(one), _forest(combined, one)) for one in combined.effects[1:]),
    ]


def _promise_part(combined: Combined) -> list[Markup]:
    text = "One site alone: its own promise."
    if len(combined.sites) > 1:
        text = (
            "Each person is in one site, and who is in which site is public: combining spends "
            "nothing, and the whole keeps the largest ε of the sites. Somebody who is in two sites "
            "has less: there the ε of both add up."
        )
    formal = (
        f"{combined.guarantee}. {capital(_meaning(combined))}. Neighbours: {combined.adjacency}."
    )
    return [
        element("h2", "What is promised"),
        element("p", text, class_="promise"),
        element("p", formal, class_="soft"),
        element("p", "Not protected:"),
        points(f"{capital(one)}." for one in combined.not_protected),
    ]


def _repeat_part(combined: Combined) -> list[Markup]:
    files = "".join(f'    "SITE {place}.json",\n' for place in range(1, len(combined.sites) + 1))
    call = (
        "from pathlib import Path\n\nfrom private_ate import Release, combine\n\n"
        f"files = [\n{files}]  # the releases\n"
        "releases = {file: Release.from_json(Path(file).read_text()) for file in files}\n"
        f'print(combine(releases, model="{combined.model}", confidence={combined.confidence!r}))'
    )
    return [
        element("h2", "How to repeat it"),
        element("p", "The same releases give the same numbers; nothing is drawn or spent."),
        code(call),
        folded("The combination as data", code(short_lists(combined.to_json()))),
    ]


def _forest(combined: Combined, effect: CombinedEffect) -> Markup:
    """Return the forest plot of one effect: sites as squares of their weight, the pooled bar."""
    error, expected = effect.standard_error, effect.prediction_interval
    noun = "difference" if effect.estimand == "difference" else "effect"
    shown = [(short_name(site.site, 40), site) for site in effect.sites]
    lines = [
        Line(f"{name} ({100 * site.weight:.2g} %)", site.estimate, [Bar(site.interval, 2)],
             side=5 + 13 * math.sqrt(site.weight))
        for name, site in shown
    ]  # fmt: skip
    dashed = [] if expected is None else [Bar(expected, 2, color=WARM, dashes="5 4")]
    pooled = Bar(effect.interval, 9, color=WARM)
    lines.append(Line(f"all, {combined.model} model", effect.estimate, [*dashed, pooled], DEEP))
    described = "; ".join(
        f"{line.name} {number_text(line.value, error)}, {pair_text(line.bars[-1].ends, error)}"
        for line in lines
    )
    outcome, unit = combined.outcome, "units of the outcome"
    if outcome is not None and outcome.column == effect.outcome and outcome.unit is not None:
        unit = outcome.unit  # known of the headline's outcome alone
    legend = (
        f"In {unit}. Squares: sites, as large as their weight (in brackets), with "
        f"their own intervals. Bar: the pooled {noun}. The grey line is no {noun}."
    )
    if expected is not None:
        legend += " Dashed: where the effect of another site is expected."
    return figure(draw_lines(lines, describe=f"Forest plot. {described}"), legend)


def _sites_table(combined: Combined) -> Markup:
    """Return what each site released and promised; it fits a phone."""
    rows: list[Sequence[str]] = []
    for site, found in zip(combined.sites, combined.effects[0].sites, strict=True):
        about = f"n {site.n:,}, {site.method}, {site.level} level, ε {float(site.epsilon):g}"
        if site.delta:
            about += f", δ {site.delta:g}"
        if site.population is not None:
            about += f"; {site.population}"
        rows.append((site.name, *_site_numbers(found), f"{100 * found.weight:.3g} %"))
        rows.append(element("tr", element("td", about, colspan=5, class_="soft")))
    caption = "Each site, the standard deviations of its sampling and of its noise, and its weight."
    names = ("effect", "sampling", "noise", "weight")
    return table(caption, [("site", ""), *((name, "number") for name in names)], rows)
