"""Inline drawings that keep their letter size: places in per cent, heights in pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from private_ate.report.markup import Markup, element

_DEEP, _WARM, _SOFT, _LINE = "#0b4f8a", "#9a3b00", "#55606c", "#d5dae0"
_EDGE = 3.0  # per cent left free on either side, so that no mark is cut


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of an interval plot: its name, its point, its ends, and how it is drawn."""

    name: str
    value: float
    low: float
    high: float
    strong: bool = True


@dataclass(frozen=True, slots=True)
class ForestMark:
    """One line of a forest plot: its name, its point, its interval and a wider, thinner one."""

    name: str
    value: float
    inner: tuple[float, float] | None
    outer: tuple[float, float] | None = None

    @property
    def ends(self) -> tuple[float, ...]:
        """Every number that the line reaches."""
        return (self.value, *(self.inner or ()), *(self.outer or ()))


@dataclass(frozen=True, slots=True)
class Box:
    """A distribution by five of its quantiles, from low to high."""

    name: str
    places: tuple[float, float, float, float, float] | None


@dataclass(frozen=True, slots=True)
class _Scale:
    """Maps numbers to places across a drawing."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> _Scale:
        low, high = min(values), max(values)
        room = 0.03 * (high - low) or 1.0
        return cls(low - room, high + room)

    def place(self, value: float) -> str:
        share = (value - self.low) / (self.high - self.low)
        return f"{_EDGE + (100 - 2 * _EDGE) * share:.2f}%"

    def ticks(self, wanted: int = 4) -> list[float]:
        """Return round numbers inside the scale, about as many as wanted."""
        raw = (self.high - self.low) / wanted
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw)
        first = math.ceil(self.low / step)
        return [i * step for i in range(first, math.floor(self.high / step) + 1)]


def short_name(text: str, most: int = 20) -> str:
    """Return a text that fits a drawing on a phone; tables have it in full."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def draw_intervals(marks: Sequence[Mark], *, describe: str) -> Markup:
    """Draw intervals below each other on one scale that also holds zero.

    ``describe`` is what a screen reader says.
    """
    scale = _Scale.over([0.0, *(end for mark in marks for end in (mark.low, mark.high))])
    bottom = 46 * len(marks) + 8
    parts = []
    for index, mark in enumerate(marks):
        y = 46 * index + 34
        parts.append(_vertical(scale.place(0.0), y - 9, y + 19, _SOFT))  # not through the names
        color = _DEEP if mark.strong else _WARM
        low, high = scale.place(mark.low), scale.place(mark.high)
        parts += [
            element("text", mark.name, x=f"{_EDGE}%", y=y - 14),
            element("line", x1=low, x2=high, y1=y, y2=y, stroke=color,
                    stroke_width=4 if mark.strong else 2),
            _vertical(low, y - 6, y + 6, color),
            _vertical(high, y - 6, y + 6, color),
            element("circle", cx=scale.place(mark.value), cy=y, r=6, fill=color,
                    stroke="#fff", stroke_width=2),
        ]  # fmt: skip
    return _svg(describe, bottom + 26, *parts, *_axis(scale, bottom))


def draw_forest(marks: Sequence[ForestMark], *, describe: str, zero: bool = True) -> Markup:
    """Draw a line for each contrast: a thick bar for its interval, a thin one around it."""
    scale = _Scale.over([*([0.0] if zero else []), *(end for mark in marks for end in mark.ends)])
    bottom = 40 * len(marks) + 8
    parts = []
    for index, mark in enumerate(marks):
        y = 40 * index + 32
        if zero:
            parts.append(_vertical(scale.place(0.0), y - 9, y + 15, _SOFT))
        parts += _forest_line(mark, scale, y)
    return _svg(describe, bottom + 26, *parts, *_axis(scale, bottom))


def _forest_line(mark: ForestMark, scale: _Scale, y: float) -> list[Markup]:
    parts = [element("text", mark.name, x=f"{_EDGE}%", y=y - 12)]
    for ends, width, reach in ((mark.outer, 1.5, 5), (mark.inner, 5, 0)):
        if ends is None:
            continue
        low, high = scale.place(ends[0]), scale.place(ends[1])
        parts.append(element("line", x1=low, x2=high, y1=y, y2=y, stroke=_DEEP, stroke_width=width))
        parts += [_vertical(end, y - reach, y + reach, _DEEP) for end in (low, high) if reach]
    point = element("circle", cx=scale.place(mark.value), cy=y, r=5.5, fill=_DEEP, stroke="#fff",
                    stroke_width=2)  # fmt: skip
    return [*parts, point]


def draw_curve(
    marks: Sequence[ForestMark], monotone: Sequence[float] | None = None, *, describe: str
) -> Markup:
    """Draw means of rising doses from top to bottom, joined by a line; a second never turns."""
    scale = _Scale.over([*(end for mark in marks for end in mark.ends), *(monotone or ())])
    bottom = 40 * len(marks) + 8
    heights = [40 * index + 32 for index in range(len(marks))]
    parts = _joined([mark.value for mark in marks], heights, scale, _SOFT, "")
    if monotone is not None:
        parts += _joined(monotone, heights, scale, _WARM, "6 4")
    for mark, y in zip(marks, heights, strict=True):
        parts += _forest_line(mark, scale, y)
    return _svg(describe, bottom + 26, *parts, *_axis(scale, bottom))


def _joined(
    values: Sequence[float], heights: Sequence[float], scale: _Scale, color: str, dashes: str
) -> list[Markup]:
    points = list(zip(values, heights, strict=True))
    style: dict[str, str | float] = {"stroke": color, "stroke_width": 2}
    if dashes:
        style["stroke_dasharray"] = dashes
    return [
        element("line", x1=scale.place(first), y1=high, x2=scale.place(second), y2=low, **style)
        for (first, high), (second, low) in pairwise(points)
    ]


def draw_boxes(boxes: Sequence[Box], *, describe: str) -> Markup:
    """Draw box plots of shares below each other, from 0 to 1: lines to the outer quantiles."""
    scale = _Scale(0.0, 1.0)
    bottom = 34 * len(boxes) + 6
    parts = []
    for index, box in enumerate(boxes):
        y = 34 * index + 26
        parts.append(element("text", box.name, x=f"{_EDGE}%", y=y - 9))
        if box.places is None:
            continue
        least, low, middle, high, most = (scale.place(value) for value in box.places)
        parts += [
            element("line", x1=least, x2=most, y1=y, y2=y, stroke=_SOFT),
            element("line", x1=low, x2=high, y1=y, y2=y, stroke=_DEEP, stroke_width=9),
            element("line", x1=middle, x2=middle, y1=y - 7, y2=y + 7, stroke=_WARM,
                    stroke_width=3),
        ]  # fmt: skip
    return _svg(describe, bottom + 26, *parts, *_axis(scale, bottom))


def draw_sites(
    sites: Sequence[Mark],
    weights: Sequence[float],
    pooled: Mark,
    prediction: tuple[float, float] | None,
    *,
    describe: str,
) -> Markup:
    """Draw a forest plot: sites as squares of their weight, the pooled effect as a broad bar.

    ``prediction`` is a dashed line below the bar; ``describe`` is what a screen reader says.
    """
    ends = [end for mark in (*sites, pooled) for end in (mark.low, mark.high)]
    scale = _Scale.over([0.0, *ends, *(prediction or ())])
    middle = scale.place(pooled.value)
    parts = [_vertical(middle, 12, 46 * len(sites) + 34, _LINE)]
    for index, (mark, weight) in enumerate(zip(sites, weights, strict=True)):
        y, side = 46 * index + 34, 5 + 13 * math.sqrt(weight)
        parts += _site_line(scale, mark, y, _DEEP, 2)
        parts.append(
            element("rect", x=scale.place(mark.value), y=y - side / 2, width=side, height=side,
                    fill=_DEEP, transform=f"translate({-side / 2:.2f} 0)")
        )  # fmt: skip
    y = 46 * len(sites) + 34
    parts += _site_line(scale, pooled, y, _WARM, 9)
    parts.append(element("circle", cx=middle, cy=y, r=6, fill="#fff", stroke=_WARM, stroke_width=2))
    if prediction is not None:
        low, high = (scale.place(end) for end in prediction)
        parts.append(element("line", x1=low, x2=high, y1=y + 14, y2=y + 14, stroke=_WARM,
                             stroke_width=2, stroke_dasharray="5 4"))  # fmt: skip
    bottom = y + 30
    return _svg(describe, bottom + 26, *parts, *_axis(scale, bottom))


def _site_line(scale: _Scale, mark: Mark, y: float, color: str, width: float) -> list[Markup]:
    """Draw zero, the name and the interval of one line."""
    low, high = scale.place(mark.low), scale.place(mark.high)
    return [
        _vertical(scale.place(0.0), y - 9, y + 19, _SOFT),
        element("text", mark.name, x=f"{_EDGE}%", y=y - 14),
        element("line", x1=low, x2=high, y1=y, y2=y, stroke=color, stroke_width=width),
    ]


def draw_bar(share: float, *, describe: str) -> Markup:
    """Draw a horizontal bar that fills a share of its width."""
    width = f"{100 * min(max(share, 0.0), 1.0):.2f}%"
    return _svg(
        describe, 16,
        element("rect", x=0, y=3, width="100%", height=10, fill="#e7ebf0"),
        element("rect", x=0, y=3, width=width, height=10, fill=_DEEP),
    )  # fmt: skip


def draw_track(before: float, after: float, reach: float, *, describe: str) -> Markup:
    """Draw one line of a love plot: a hollow mark before, a full one after, lines at ±0.1."""
    scale = _Scale(-reach, reach)
    parts = [_vertical(scale.place(0.0), 0, 18, _SOFT)]
    parts += [_vertical(scale.place(side), 0, 18, _LINE) for side in (-0.1, 0.1) if reach > 0.1]
    parts += [
        element("circle", cx=scale.place(before), cy=9, r=4.5, fill="#fff", stroke=_WARM,
                stroke_width=2),
        element("circle", cx=scale.place(after), cy=9, r=4.5, fill=_DEEP),
    ]  # fmt: skip
    return _svg(describe, 18, *parts)


def draw_histogram(
    above: Sequence[float], below: Sequence[float], edges: tuple[float, float], *, describe: str
) -> Markup:
    """Draw two histograms back to back over one axis: one arm upwards, the other downwards."""
    top = max([*above, *below]) or 1.0
    width = (100 - 2 * _EDGE) / len(above)
    parts = []
    for index, (up, down) in enumerate(zip(above, below, strict=True)):
        x, wide = f"{_EDGE + index * width:.3f}%", f"{0.9 * width:.3f}%"
        rise, fall = 64 * up / top, 64 * down / top
        parts += [
            element("rect", x=x, y=84 - rise, width=wide, height=rise, fill=_DEEP),
            element("rect", x=x, y=86, width=wide, height=fall, fill=_WARM),
        ]
    parts += [
        element("text", "treated", x=f"{_EDGE}%", y=12),
        element("text", "control", x=f"{_EDGE}%", y=168),
    ]
    return _svg(describe, 196, *parts, *_axis(_Scale(*edges), 172))


def _axis(scale: _Scale, y: float) -> list[Markup]:
    parts = [
        element("line", x1=f"{_EDGE}%", x2=f"{100 - _EDGE}%", y1=y, y2=y, stroke=_LINE),
    ]
    for tick in scale.ticks():
        place = scale.place(tick)
        share = float(place.rstrip("%"))
        anchor = "start" if share < 12 else "end" if share > 88 else "middle"
        text = f"{tick:,.6g}".replace("-", "−")
        parts += [
            _vertical(place, y, y + 5, _SOFT),
            element("text", text, x=place, y=y + 20, text_anchor=anchor),
        ]
    return parts


def _vertical(place: str, top: float, bottom: float, color: str) -> Markup:
    return element("line", x1=place, x2=place, y1=top, y2=bottom, stroke=color)


def _svg(describe: str, height: float, *parts: Markup) -> Markup:
    return element("svg", *parts, role="img", aria_label=describe, width="100%", height=height)
