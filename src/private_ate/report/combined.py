"""A combination of sites as text, as a card for notebooks and as one self-contained page."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from private_ate.report.drawings import Mark, draw_sites
from private_ate.report.effects_table import in_brackets
from private_ate.report.html import short_lists
from private_ate.report.markup import Markup, card, element, folded, page, table, warning_boxes
from private_ate.report.phrasing import capital, estimand_text, factor_text, number_text, pair_text

if TYPE_CHECKING:
    from private_ate.sites.values import Combined, CombinedEffect

_WIDTH = 88
_MODELS = {
    "fixed": "fixed effect: all sites have one effect; inverse variances",
    "random": "random effects: effects vary between sites; REML, Hartung–Knapp (factor at least 1)",
}
_COVERED = (
    "noise and sampling of the sites; what they share, such as confounding by the same cause, does "
    "not average out"
)
_VARIANCE = (
    "a site's variance is that of its noise, which is known, and of a normal error that makes its "
    "interval as wide as it is"
)
_LONGEST = 40  # letters of a name that fit beside each other on a phone


def combined_text(combined: Combined) -> str:
    """Return the combination as aligned plain text."""
    rows = [(_printable(name), _printable(value)) for name, value in _rows(combined)]
    width = max(len(name) for name, _ in rows) + 2
    lines = [
        textwrap.fill(
            value, _WIDTH, initial_indent=name.ljust(width), subsequent_indent=" " * width
        )
        for name, value in rows
    ]
    warned = [textwrap.fill(f"WARNING: {_printable(text)}", _WIDTH) for text in combined.warnings]
    return "\n".join([*warned, _title(combined), *lines])


def _printable(text: str) -> str:
    """Return a text of somebody else's file without characters that move a cursor."""
    return "".join(letter if letter.isprintable() else "·" for letter in text)


def combined_card(combined: Combined) -> str:
    """Return a fragment for a notebook: warnings first, then a table and the forest plot."""
    rows = [
        element("tr", element("th", name.strip(), scope="row"), element("td", value))
        for name, value in _rows(combined)
    ]
    table = element("table", element("caption", _title(combined)), element("tbody", *rows))
    return card(
        *warning_boxes(combined.warnings), table, forest_figure(combined, combined.effects[0])
    )


def combined_page(combined: Combined) -> str:
    """Return one self-contained HTML document."""
    subject = _subject(combined)
    return page(
        subject,
        element("h1", subject),
        *warning_boxes(combined.warnings),
        *_effect_part(combined),
        *_heterogeneity_part(combined),
        *_table_part(combined),
        element("h2", "What went in"),
        sites_table(combined),
        element("p", f"{capital(_VARIANCE)}.", class_="soft"),
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
    if treatment is None or outcome is None:
        name = estimand_text(combined.estimand)
        return f"{capital(name)}: {_count(combined)}"
    if combined.estimand == "difference":
        name = estimand_text(combined.estimand)
        return f"{outcome.column} by {treatment.column}: {name}, {_count(combined)}"
    return f"Effect of {treatment.column} on {outcome.column}: {_count(combined)}"


def _rows(combined: Combined) -> Iterator[tuple[str, str]]:
    """Yield name and value of each line of the summary."""
    head, share = combined.effects[0], _share(combined)
    error = head.standard_error
    noun = "difference" if combined.estimand == "difference" else "effect"
    letters = "in means" if combined.estimand == "difference" else f"({combined.estimand.upper()})"
    unit = (
        "" if combined.outcome is None or combined.outcome.unit is None else combined.outcome.unit
    )
    yield f"{noun} {letters}", f"{number_text(head.estimate, error)} {unit}".rstrip()
    if combined.estimand == "difference":
        yield "  assumes", "nothing was adjusted for: an effect only if treatment was random"
    yield "standard error", number_text(error, error)
    yield f"{share} interval", in_brackets(head.interval, error)
    yield "  covers", _COVERED
    if head.prediction_interval is not None:
        yield (
            f"{share} prediction",
            f"{in_brackets(head.prediction_interval, error)} for another site",
        )
    yield f"{share} noise interval", in_brackets(head.noise_interval, error)
    yield "model", _MODELS[combined.model]
    if len(combined.sites) > 1:
        yield "heterogeneity", _heterogeneity(head)
    yield from _site_rows(combined, head)
    for effect in combined.effects[1:]:
        pooled = f"{number_text(effect.estimate, effect.standard_error)} "
        yield row_name(effect), pooled + in_brackets(effect.interval, effect.standard_error)
    yield "guarantee", combined.guarantee
    yield "  neighbours", combined.adjacency
    yield "  means", _meaning(combined)
    yield "  not protected", "; ".join(combined.not_protected[:2])


def _site_rows(combined: Combined, head: CombinedEffect) -> Iterator[tuple[str, str]]:
    for site, found in zip(combined.sites, head.sites, strict=True):
        error = math.sqrt(found.sampling_variance + found.noise_variance)
        sampling, noise = (
            number_text(math.sqrt(part), math.sqrt(part))
            for part in (found.sampling_variance, found.noise_variance)
        )
        text = f"{number_text(found.estimate, error)} {in_brackets(found.interval, error)}, "
        text += f"n {site.n:,}, ε {float(site.epsilon):g}, {site.level} level, "
        text += f"sd {sampling} sampling and {noise} noise, weight {100 * found.weight:.3g} %"
        yield f"  {site.name[:40]}", text


def row_name(effect: CombinedEffect) -> str:
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
    name = estimand_text(combined.estimand)
    found = pair_text(head.interval, error)
    intervals = [f"{share} interval for the mean over sites: {found}, covers {_COVERED}."]
    if head.prediction_interval is not None:
        found = pair_text(head.prediction_interval, error)
        intervals.append(f"{share} prediction interval, for the effect in another site: {found}.")
    without = pair_text(head.noise_interval, error)
    intervals.append(f"{share} interval for the noise of the sites alone: {without}.")
    return [
        element("p", capital(name), class_="soft"),
        element("p", number_text(head.estimate, error), class_="effect"),
        element("p", f"Model: {_MODELS[combined.model]}."),
        forest_figure(combined, head),
        element("ul", *(element("li", line) for line in intervals)),
    ]


def _heterogeneity_part(combined: Combined) -> list[Markup]:
    if len(combined.sites) == 1:
        return []
    return [
        element("h2", "How much sites differ"),
        element("p", f"{_heterogeneity(combined.effects[0])}."),
        element(
            "p",
            "I² is the share of the variation between sites that their noise and their sampling do "
            "not explain; Q tests whether there is any.",
            class_="soft",
        ),
    ]


def _table_part(combined: Combined) -> list[Markup]:
    if len(combined.effects) == 1:
        return []
    figures = [
        folded(row_name(effect), forest_figure(combined, effect)) for effect in combined.effects[1:]
    ]
    return [element("h2", "All effects"), pooled_table(combined, row_name), *figures]


def _promise_part(combined: Combined) -> list[Markup]:
    several = len(combined.sites) > 1
    text = (
        "Each person is in one site, and who is in which site is public: combining spends nothing, "
        "and the whole keeps the largest ε of the sites. Somebody who is in two sites has less: "
        "there the ε of both add up."
        if several
        else "One site alone: its own promise."
    )
    listed = [element("li", f"{capital(one)}.") for one in combined.not_protected]
    meaning = _meaning(combined)
    return [
        element("h2", "What is promised"),
        element("p", text, class_="promise"),
        element("p", f"{combined.guarantee}. {capital(meaning)}. "
                f"Neighbours: {combined.adjacency}.", class_="soft"),
        element("p", "Not protected:"),
        element("ul", *listed),
    ]  # fmt: skip


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
        element("pre", element("code", call)),
        folded(
            "The combination as data",
            element("pre", element("code", short_lists(combined.to_json()))),
        ),
    ]


def forest_figure(combined: Combined, effect: CombinedEffect) -> Markup:
    """Return the forest plot of one effect, with a legend."""
    error = effect.standard_error
    sites = [
        Mark(f"{_short(found.site)} ({100 * found.weight:.2g} %)", found.estimate, *found.interval)
        for found in effect.sites
    ]
    name = f"all, {combined.model} model"
    pooled = Mark(name, effect.estimate, *effect.interval)
    listed = "; ".join(
        f"{mark.name} {number_text(mark.value, error)}, {pair_text((mark.low, mark.high), error)}"
        for mark in (*sites, pooled)
    )
    drawn = draw_sites(
        sites, [found.weight for found in effect.sites], pooled, effect.prediction_interval,
        describe=f"Forest plot. {listed}",
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
    """Return what each site released and promised; it fits a phone."""
    head = combined.effects[0]
    rows = []
    for site, found in zip(combined.sites, head.sites, strict=True):
        error = math.sqrt(found.sampling_variance + found.noise_variance)
        about = f"n {site.n:,}, {site.method}, {site.level} level, ε {float(site.epsilon):g}"
        if site.delta:
            about += f", δ {site.delta:g}"
        if site.population is not None:
            about += f"; {site.population}"
        rows.append(
            element("tr",
                element("th", site.name, scope="row"),
                element("td", number_text(found.estimate, error), class_="number"),
                element("td", _deviation(found.sampling_variance), class_="number"),
                element("td", _deviation(found.noise_variance), class_="number"),
                element("td", f"{100 * found.weight:.3g} %", class_="number"),
            )
        )  # fmt: skip
        rows.append(element("tr", element("td", about, colspan=5, class_="soft")))
    caption = "Each site, the standard deviations of its sampling and of its noise, and its weight."
    return table(caption, _head("site", "effect", "sampling", "noise", "weight"), rows)


def pooled_table(combined: Combined, name: Callable[[CombinedEffect], str]) -> Markup:
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
    caption = "Pooled effects; the last column covers all rows together."
    return table(caption, _head("effect of", "pooled", "interval", "all together"), rows)


def _deviation(variance: float) -> str:
    return number_text(math.sqrt(variance), math.sqrt(variance))


def _head(first: str, *others: str) -> list[Markup]:
    cells = [element("th", text, scope="col", class_="number") for text in others]
    return [element("th", first, scope="col"), *cells]


def _units(combined: Combined, effect: CombinedEffect) -> str:
    """Name the unit of the row's own outcome, which is known of the headline's alone."""
    outcome = combined.outcome
    known = outcome is not None and outcome.column == effect.outcome and outcome.unit is not None
    return f"In {outcome.unit}." if known and outcome else "In units of the outcome."


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
