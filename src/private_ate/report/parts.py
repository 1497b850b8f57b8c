"""Parts of a page that show a release by itself: warnings, number, promise, budget, balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from private_ate.report.drawings import Mark, draw_bar, draw_intervals, draw_track
from private_ate.report.markup import Markup, element, words_apart
from private_ate.report.numbers import number_text, pair_text
from private_ate.report.words import (
    assumption,
    estimand_name,
    formal_promise,
    headline,
    noise_error,
    noun,
    percent,
    plain_promise,
    uncertainty,
)

if TYPE_CHECKING:
    from private_ate.release import Release


def warning_boxes(release: Release) -> list[Markup]:
    """Return what to know before the number is used, each in a box of its own."""
    return [
        element("p", f"Warning: {text}.", class_="warning", role="note")
        for text in release.warnings
    ]


@dataclass(frozen=True, slots=True)
class _Range:
    """An interval as a page shows it: in words, as a mark, and what it covers."""

    text: str
    mark: Mark
    covers: str | None


def effect_part(release: Release) -> list[Markup]:
    """Return the number, its intervals as a picture and in words, and its notes."""
    written = number_text(release.ate, uncertainty(release))
    parts = [
        element("p", f"{headline(release)}{_compared(release)}", class_="soft"),
        element("p", written, *_unit(release), class_="effect"),
    ]
    if assumption(release):
        parts.append(element("p", _sentence(assumption(release))))
    ranges = _ranges(release)
    if ranges:
        told = "; ".join(f"{one.mark.name} {one.text}" for one in ranges)
        describe = f"{estimand_name(release)} {written}; {told}"
        line = f"{_units(release)} The vertical line is no {noun(release)}."
        drawn = draw_intervals([one.mark for one in ranges], describe=describe)
        parts.append(element("figure", drawn, element("figcaption", line)))
        parts.append(element("ul", *(_line(one) for one in ranges)))
    return [*parts, *(element("p", f"Note: {note}.") for note in release.facts.notes)]


def _ranges(release: Release) -> list[_Range]:
    facts, kind = release.facts, percent(release)
    found = []
    if release.interval is not None:
        text = pair_text(release.interval, uncertainty(release))
        name = f"{kind} interval for the {noun(release)}"
        mark = Mark(name, release.ate, *release.interval, strong=True)
        found.append(_Range(text, mark, facts.interval_covers))
    if release.noise_interval is not None:
        text = pair_text(release.noise_interval, noise_error(release))
        name = f"{kind} interval for the noise alone"
        mark = Mark(name, release.ate, *release.noise_interval, strong=False)
        found.append(_Range(text, mark, facts.noise_interval_covers))
    return found


def _line(one: _Range) -> Markup:
    tail = f", covers {one.covers}." if one.covers else "."
    return element("li", f"{one.mark.name}: {one.text}{tail}")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _unit(release: Release) -> list[Markup]:
    unit = release.outcome.unit if release.outcome else None
    return [] if unit is None else [element("span", f" {unit}", class_="unit")]


def _compared(release: Release) -> str:
    """Name both arms by their labels, where the release knows them."""
    if release.treatment is None:
        return ""
    control, *_, treated = release.treatment.arms
    return f": {release.treatment.column} = {treated} against {control}"


def _units(release: Release) -> str:
    unit = release.outcome.unit if release.outcome else None
    return "In units of the outcome." if unit is None else f"In {unit}."


def promise_part(release: Release, level: str) -> list[Markup]:
    """Return what is promised, plainly and formally, and what is not."""
    return [
        element(level, "What is promised"),
        element("p", plain_promise(release), class_="promise"),
        element(
            "details",
            element("summary", "In one formal sentence, and what is not protected"),
            element("p", formal_promise(release), class_="soft"),
            *_unprotected(release),
        ),
    ]


def _unprotected(release: Release) -> list[Markup]:
    if not release.not_protected:
        return []
    listed = [element("li", _sentence(text)) for text in release.not_protected]
    return [element("p", "Not protected:"), element("ul", *listed)]


def budget_part(release: Release, level: str) -> list[Markup]:
    """Return where ε went, a bar for every step."""
    steps = release.facts.budget
    if not steps:
        return []
    total = float(release.epsilon)
    mechanisms = {step.name: step.mechanism.replace("_", " ") for step in release.steps}
    rows = [
        element("tr",
            element("th", step, *_mechanism(mechanisms.get(step)), scope="row"),
            element("td", f"{spent:.4g}", class_="number"),
            element("td", draw_bar(spent / total, describe=(
                f"{step}: {100 * spent / total:.3g} % of ε")), class_="track"),
        )
        for step, spent in steps.items()
    ]  # fmt: skip
    head = element(
        "tr",
        element("th", "step", scope="col"),
        element("th", "ε", scope="col", class_="number"),
        element("th", "share", scope="col"),
    )
    caption = element("caption", f"Every step that saw private values, of ε = {total:g} in all.")
    return [
        element(level, "Where ε went"),
        element("table", caption, element("thead", head), element("tbody", *rows)),
    ]


def _mechanism(name: str | None) -> list[Markup]:
    return [] if name is None else [element("span", f" ({name})", class_="soft")]


def balance_table(
    balance: Mapping[str, Sequence[float]], between: str = "between the arms"
) -> Markup:
    """Return a love plot as a table: each covariate, its differences and where they lie."""
    reach = 1.1 * max([0.2, *(abs(side) for pair in balance.values() for side in pair)])
    rows = [
        element("tr",
            element("th", words_apart(name), scope="row"),
            element("td", _difference(before), class_="number"),
            element("td", _difference(after), class_="number"),
            element("td", draw_track(before, after, reach, describe=(
                f"{name}: {before:.3f} before, {after:.3f} after")), class_="track"),
        )
        for name, (before, after) in balance.items()
    ]  # fmt: skip
    head = element(
        "tr",
        element("th", "covariate", scope="col"),
        element("th", "before", scope="col", class_="number"),
        element("th", "after", scope="col", class_="number"),
        element("th", "difference", scope="col"),
    )
    caption = element(
        "caption",
        f"Standardised mean differences {between}, before (hollow) and after weighting "
        "(full). Thin lines: ±0.1.",
    )
    return element(
        "table", caption, element("thead", head), element("tbody", *rows), class_="balance"
    )


def _difference(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}".replace("-", "−")  # adding zero turns −0 into 0
