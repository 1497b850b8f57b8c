"""Inline drawings that keep their letter size: places in per cent, heights in pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from private_ate.report.markup import Markup, element

DEEP, WARM, SOFT, _LINE = "#0b4f8a", "#9a3b00", "#55606c", "#d5dae0"
_STEP = 46  # pixels from line to line
_EDGE = 3.0  # per cent left free on either side, so that no mark is cut


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from one number to another; ``reach`` is half the height of the lines at its ends."""

    ends: tuple[float, float]
    width: float = 5
    reach: float = 0
    color: str = DEEP
    dashes: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a drawing: its name, its point, and bars from back to front.

    The point is a circle, or a square of a given ``side``.
    """

    name: str
    value: float
    bars: Sequence[Bar] = ()
    color: str = DEEP
    side: float = 0


def interval_line(
    name: str,
    value: float,
    inner: tuple[float, float] | None,
    outer: tuple[float, float] | None = None,
) -> Line:
    """Return a line of a forest plot: a thick bar for its interval, a thin one around it."""
    bars = [Bar(outer, 1.5, 5)] if outer is not None else []
    return Line(name, value, [*bars, Bar(inner)] if inner is not None else bars)


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


def draw_lines(
    lines: Sequence[Line],
    *,
    describe: str,
    reference: float | None = 0.0,
    joined: Sequence[tuple[Sequence[float], str, str]] = (),
) -> Markup:
    """Draw lines below each other on one scale that also holds the reference, if there is one.

    ``joined`` are numbers for every line that are joined from top to bottom, with the colour and
    the dashes of what joins them; ``describe`` is what a screen reader says.
    """
    numbers = [] if reference is None else [reference]
    for line in lines:
        numbers += [line.value, *(end for bar in line.bars for end in bar.ends)]
    for held, _, _ in joined:
        numbers += held
    scale = _Scale.over(numbers)
    heights = [_STEP * index + 34 for index in range(len(lines))]
    parts: list[Markup] = []
    for held, color, dashes in joined:
        for (first, high), (second, low) in pairwise(zip(held, heights, strict=True)):
            parts.append(
                _stroke(scale.place(first), scale.place(second), high, low, color, 2, dashes)
            )
    for line, y in zip(lines, heights, strict=True):
        if reference is not None:  # not through the names
            parts.append(_vertical(scale.place(reference), y - 9, y + 19, SOFT))
        parts += _line(line, scale, y)
    bottom = _STEP * len(lines) + 8
    return _svg(describe, bottom + 26, *parts, *_axis(scale, bottom))


def _line(line: Line, scale: _Scale, y: float) -> list[Markup]:
    parts = [element("text", line.name, x=f"{_EDGE}%", y=y - 14)]
    for bar in line.bars:
        low, high = (scale.place(end) for end in bar.ends)
        parts.append(_stroke(low, high, y, y, bar.color, bar.width, bar.dashes))
        if bar.reach:
            parts += [
                _vertical(end, y - bar.reach, y + bar.reach, bar.color) for end in (low, high)
            ]
    place, half = scale.place(line.value), line.side / 2
    if half:
        point = element("rect", x=place, y=y - half, width=line.side, height=line.side,
                        fill=line.color, transform=f"translate({-half:.2f} 0)")  # fmt: skip
    else:
        point = element("circle", cx=place, cy=y, r=6, fill=line.color, stroke="#fff",
                        stroke_width=2)  # fmt: skip
    return [*parts, point]


def _stroke(
    first: str, last: str, top: float, bottom: float, color: str, width: float, dashes: str = ""
) -> Markup:
    dashed: dict[str, str | float] = {"stroke_dasharray": dashes} if dashes else {}
    return element("line", x1=first, x2=last, y1=top, y2=bottom, stroke=color, stroke_width=width,
                   **dashed)  # fmt: skip


def draw_boxes(boxes: Sequence[tuple[str, Sequence[float]]], *, describe: str) -> Markup:
    """Draw distributions of shares below each other, from 0 to 1, by five quantiles or none.

    Lines reach to the outer quantiles.
    """
    scale = _Scale(0.0, 1.0)
    bottom = 34 * len(boxes) + 6
    parts = []
    for index, (name, places) in enumerate(boxes):
        y = 34 * index + 26
        parts.append(element("text", name, x=f"{_EDGE}%", y=y - 9))
        if places:
            least, low, middle, high, most = (scale.place(value) for value in places)
            parts += [
                _stroke(least, most, y, y, SOFT, 1),
                _stroke(low, high, y, y, DEEP, 9),
                _stroke(middle, middle, y - 7, y + 7, WARM, 3),
            ]
    return _svg(describe, bottom + 26, *parts, *_axis(scale, bottom))


def draw_bar(share: float, *, describe: str) -> Markup:
    """Draw a horizontal bar that fills a share of its width."""
    width = f"{100 * min(max(share, 0.0), 1.0):.2f}%"
    return _svg(
        describe, 16,
        element("rect", x=0, y=3, width="100%", height=10, fill="#e7ebf0"),
        element("rect", x=0, y=3, width=width, height=10, fill=DEEP),
    )  # fmt: skip


def draw_track(before: float, after: float, reach: float, *, describe: str) -> Markup:
    """Draw one line of a love plot: a hollow mark before, a full one after, lines at ±0.1."""
    scale = _Scale(-reach, reach)
    parts = [_vertical(scale.place(0.0), 0, 18, SOFT)]
    parts += [_vertical(scale.place(side), 0, 18, _LINE) for side in (-0.1, 0.1) if reach > 0.1]
    parts += [
        element("circle", cx=scale.place(before), cy=9, r=4.5, fill="#fff", stroke=WARM,
                stroke_width=2),
        element("circle", cx=scale.place(after), cy=9, r=4.5, fill=DEEP),
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
            element("rect", x=x, y=84 - rise, width=wide, height=rise, fill=DEEP),
            element("rect", x=x, y=86, width=wide, height=fall, fill=WARM),
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
            _vertical(place, y, y + 5, SOFT),
            element("text", text, x=place, y=y + 20, text_anchor=anchor),
        ]
    return parts


def _vertical(place: str, top: float, bottom: float, color: str) -> Markup:
    return element("line", x1=place, x2=place, y1=top, y2=bottom, stroke=color)


def _svg(describe: str, height: float, *parts: Markup) -> Markup:
    return element("svg", *parts, role="img", aria_label=describe, width="100%", height=height)
