"""A time to an event in a report: a sentence, risks, the curves as a table and a figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from private_ate.report.effects_table import Cells, cells_of
from private_ate.report.markup import Markup, element, folded, table
from private_ate.report.phrasing import capital, number_text, percent, unit_of

if TYPE_CHECKING:
    from private_ate.release.metadata import Curve, Effect, RiskContrast
    from private_ate.release.release import Release

_COLORS: Final = ("#55606c", "#0b4f8a", "#9a3b00", "#2f6b2f", "#6a3d9a", "#8a6d0b")
_TOP: Final = 26  # above the curves, for the name of the axis
_HEIGHT: Final = 260
_STEPS: Final = 12  # of a drawn curve within a bin


def survival_sentence(release: Release) -> str:
    """Say the headline in one sentence; empty for other outcomes."""
    if release.horizon is None:
        return ""
    arms = 2 if release.treatment is None else len(release.treatment.arms)
    row: Effect = release.effects[arms - 2]
    ends, error = row.interval, 0.5
    if release.quantity == "risk":
        ends = ends and (100 * ends[0], 100 * ends[1])
    else:
        error = (ends[1] - ends[0]) / 4 if ends else 0.0
    shown = ""
    if ends:
        low, high = (number_text(end, error) for end in ends)
        shown = f" ({percent(release)} interval of the difference {low} to {high})"
    compared = f"with {row.arm} than with {row.against}{shown}."
    if release.quantity == "risk":
        word = "higher" if row.estimate > 0 else "lower"
        return (
            f"By {_span(release)} the risk of the event is {abs(100 * row.estimate):.1f} "
            f"percentage points {word} {compared}"
        )
    word = "later" if row.estimate > 0 else "earlier"
    return (
        f"Up to {_span(release)}, the event comes {number_text(abs(row.estimate), error)} "
        f"{unit_of(release) or 'units of time'} {word} on average {compared}"
    )


def _span(release: Release) -> str:
    return f"{release.horizon:g} {unit_of(release)}".strip()


def survival_rows(release: Release) -> Iterator[tuple[str, str]]:
    """Yield the lines of the summary that only a time to an event has."""
    if release.horizon is None or release.risks is None:
        return
    yield "survival", survival_sentence(release)
    how = "adjusted" if release.risks.adjusted else "NOT adjusted"
    source = "from the curves" if release.risks.source == "curves" else "paid for"
    listed = ", ".join(
        f"{label} {100 * risk:.1f} %" for label, risk in release.risks.by_arm.items()
    )
    if listed:
        yield f"risks by {_span(release)}", f"{listed} ({how}, {source})"
    for one in release.risks.contrasts:
        yield f"  {one.arm} : {one.against}", _risk_words(one)


def _risk_words(one: RiskContrast) -> str:
    """Return the difference and the ratio of two risks with their intervals."""
    ends = one.difference_interval
    text = f"difference {one.difference:+.3f}".replace("-", "−")
    if ends is not None:
        text += f" [{ends[0]:.3f}, {ends[1]:.3f}]".replace("-", "−")
    if one.ratio is not None:
        text += f", ratio {one.ratio:.2f}"
        if one.ratio_interval is not None:
            low, high = one.ratio_interval
            text += f" [{low:.2f}, {'∞' if high is None else f'{high:.2f}'}]"
    return text


def curve_cells(release: Release) -> Cells:
    """Return the curves as a table: a row for each edge, the band that covers all of them."""
    curves = list(release.curves.items())
    first = curves[0][1]
    columns: list[tuple[str, bool, list[str]]] = [
        ("time", True, [f"{time:.5g}" for time in first.time])
    ]
    for label, curve in curves:
        points = zip(curve.survival, curve.low, curve.high, strict=True)
        texts = [f"{at:.3f} [{low:.3f}, {high:.3f}]" for at, low, high in points]
        columns += [(label, True, texts), ("at risk", True, [f"{n:,}" for n in curve.at_risk])]
    how = "weighted by covariates" if first.adjusted else "of the arms as they are, NOT adjusted"
    return cells_of(columns, f"survival curves, {how}; band for whole curves")


def survival_part(release: Release) -> list[Markup]:
    """Return the figure of the curves and what is expected to be at risk, for a page."""
    if release.horizon is None:
        return []
    cells = curve_cells(release)
    columns = [(name, "number") for name in cells.head]
    caption = (
        f"{capital(cells.title)}. Points are the edges of {release.bins} bins; "
        "between them a curve is exponential. Numbers at risk are expected ones."
    )
    colors = [_COLORS[place % len(_COLORS)] for place in range(len(release.curves))]
    marks = [
        element("span", f"● {label}   ", style=f"color:{color}")
        for label, color in zip(release.curves, colors, strict=True)
    ]
    shown = [element("p", *marks), _drawing(release, colors), element("figcaption", caption)]
    return [
        element("h2", "Survival curves"),
        *(element("p", f"{name.strip()}: {text}") for name, text in survival_rows(release)),
        element("figure", *shown),
        folded("The curves as numbers", table("", columns, cells.rows)),
    ]


def curve_points(curve: Curve) -> list[tuple[float, float]]:
    """Return points along a curve that is exponential between its edges."""
    points = []
    ends = zip(pairwise(curve.time), pairwise(curve.survival), strict=True)
    for (start, stop), (first, last) in ends:
        for step in range(_STEPS):
            share = step / _STEPS
            value = first + share * (last - first)
            if first > 0 and last > 0:
                value = first ** (1 - share) * last**share
            points.append((start + share * (stop - start), value))
    return [*points, (curve.time[-1], curve.survival[-1])]


def _drawing(release: Release, colors: Sequence[str]) -> Markup:
    """Draw bands as light areas, curves as lines and their edges as points."""
    width, height, horizon = 1000.0, float(_HEIGHT), release.horizon or 1.0

    def path(points: Iterable[tuple[float, float]]) -> str:
        places = [(width * time / horizon, height * (1 - value)) for time, value in points]
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)

    curves = list(zip(release.curves.values(), colors, strict=True))
    bands, lines = [], []
    for curve, color in curves:
        upper = zip(curve.time, curve.high, strict=True)
        lower = zip(reversed(curve.time), reversed(curve.low), strict=True)
        band = path([*upper, *lower]) + "Z"
        bands.append(element("path", d=band, fill=color, opacity=0.15))
        lines.append(
            element("path", d=path(curve_points(curve)), fill="none", stroke=color,
                    stroke_width=2, vector_effect="non-scaling-stroke")
        )  # fmt: skip
    area = element(
        "svg", *bands, *lines, viewBox=f"0 0 {width:g} {height:g}", preserveAspectRatio="none",
        x="0", y=str(_TOP), width="100%", height=str(_HEIGHT),
    )  # fmt: skip
    dots = [
        element("circle", cx=f"{100 * time / horizon:.2f}%", cy=_TOP + _HEIGHT * (1 - value), r=3.5,
                fill=color)
        for curve, color in curves
        for time, value in zip(curve.time, curve.survival, strict=True)
    ]  # fmt: skip
    floor = _TOP + _HEIGHT
    axis = [
        *(
            element("line", x1="0", x2="100%", y1=y, y2=y, stroke="#55606c", stroke_opacity=shade)
            for y, shade in ((_TOP, 0.25), (_TOP + _HEIGHT / 2, 0.25), (floor, 1))
        ),
        element("text", "share without the event: 1", x="0", y=_TOP - 8),
        element("text", "0.5", x="0", y=_TOP + _HEIGHT / 2 - 4),
        element("text", "0", x="0", y=floor + 18),
        element("text", _span(release), x="100%", y=floor + 18, text_anchor="end"),
    ]
    title = element("title", survival_sentence(release))
    return element(
        "svg", title, *axis, area, *dots, height=str(floor + 26), role="img", overflow="visible"
    )
