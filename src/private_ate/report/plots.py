"""Figures for papers and slides; each needs matplotlib, which the `plots` extra installs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_ate.effects import monotone_means
from private_ate.errors import ArgumentError
from private_ate.release.public_facts import ArmOverlap
from private_ate.report.effects_table import (
    Scope,
    arms_in_order,
    has_subgroups,
    marked_subgroup,
    shown_contrasts,
    shown_effects,
)
from private_ate.report.phrasing import (
    capital,
    column_title,
    compared_line,
    noun,
    outcome_unit,
    percent,
    promise_text,
    unit_of,
)
from private_ate.report.survival import curve_points

if TYPE_CHECKING:
    from private_ate.planning import Plan
    from private_ate.release.metadata import Effect
    from private_ate.release.public_facts import Overlap
    from private_ate.release.release import Release

_DOTS = 200  # to the inch, for slides
_STYLES = ("o-", "s--", "^:", "D-.", "v-", "x--")


@contextmanager
def _figure(
    path: Path, height: float = 4.4, panels: int = 1, *, columns: int = 3
) -> Iterator[tuple[Any, list[Any]]]:
    """Yield a figure and its panels, one below the other; then write it, with its legend."""
    if path.suffix.lower() not in {".svg", ".png", ".pdf"}:
        msg = f"a plot is written as .svg, .png or .pdf, not {path.name!r}"
        raise ArgumentError(msg)
    try:
        from matplotlib.figure import Figure  # an extra
    except ImportError as cause:
        msg = "plots need matplotlib: pip install 'private-ate[plots]'"
        raise ArgumentError(msg) from cause
    figure = Figure(figsize=(6.4, height), layout="constrained")
    axes = list(figure.subplots(panels, squeeze=False)[:, 0])
    yield figure, axes
    handles, labels = axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
    figure.savefig(path, dpi=_DOTS)


def _on_log_scales(
    axes: Any,  # noqa: ANN401  # matplotlib is an extra
    lines: Mapping[str, Mapping[float, float]],
    ylabel: str,
) -> None:
    """Draw lines of numbers by ε."""
    for place, (name, values) in enumerate(lines.items()):
        style = _STYLES[place % len(_STYLES)]
        by_epsilon = zip(*sorted(values.items()), strict=True) if values else ((), ())
        axes.plot(*by_epsilon, style, color="black", label=name, markersize=5)
    axes.set(xscale="log", yscale="log", xlabel="privacy budget ε", ylabel=ylabel)


def draw_plan(plan: Plan, path: Path) -> None:
    """Draw expected error and half-width against ε into an SVG or PNG file."""
    first = plan.rows[0]  # of several outcomes the headline
    rows = [row for row in plan.rows if row.outcome == first.outcome]
    rows = [row for row in rows if row.arm is None or row.against == first.against]
    rows = [row for row in rows if row.arm == rows[-1].arm]  # of several arms the headline
    about = "" if rows[0].arm is None else f": {rows[0].arm} against {rows[0].against}"
    lines = {
        "half-width of the interval": {row.epsilon: row.half_width for row in rows},
        "expected error": {row.epsilon: row.expected_error for row in rows},
        "of which noise": {row.epsilon: row.noise_error for row in rows},
    }
    with _figure(path) as (_, (axes,)):
        _on_log_scales(axes, lines, "in units of the outcome")
        axes.set_title(f"What to expect, {plan.level} level{about}")
        if plan.half_width is not None:
            axes.axhline(plan.half_width, color="0.6", linewidth=1)
            axes.text(rows[0].epsilon, plan.half_width, " wanted", va="bottom", color="0.4")


def draw_errors(errors: Mapping[str, Mapping[float, float]], path: Path) -> None:
    """Draw measured errors against ε, a line per method."""
    with _figure(path) as (_, (axes,)):
        _on_log_scales(axes, errors, "error")


def draw_curves(release: Release, path: Path) -> None:
    """Draw survival curves with bands for whole curves; points are the edges of the bins."""
    if not release.curves:
        msg = "this release holds no survival curves"
        raise ArgumentError(msg)
    adjusted = all(curve.adjusted for curve in release.curves.values())
    unit = unit_of(release)
    with _figure(path) as (_, (axes,)):
        for place, (label, curve) in enumerate(release.curves.items()):
            color = str(0.65 * place / max(len(release.curves) - 1, 1))
            band = {"color": color, "alpha": 0.15, "linewidth": 0}
            axes.fill_between(curve.time, curve.low, curve.high, **band)
            style = _STYLES[place % len(_STYLES)]
            times, values = zip(*curve_points(curve), strict=True)
            axes.plot(times, values, style[1:], color=color, label=label)
            axes.plot(curve.time, curve.survival, style[0], color=color)
        axes.set(
            ylim=(0, 1.02), xlabel=f"time ({unit})" if unit else "time",
            ylabel="share without the event",
            title="" if adjusted else "arms as they are, not adjusted",
        )  # fmt: skip


def draw_balance(balance: Mapping[str, Sequence[float]], path: Path) -> None:
    """Draw a love plot: standardised differences before and after weighting."""
    with _figure(path, 1.6 + 0.28 * len(balance), columns=2) as (_, (axes,)):
        places = range(len(balance))
        for side, (name, filled) in enumerate((("before", "none"), ("after", "black"))):
            values = [pair[side] for pair in balance.values()]
            axes.plot(values, places, "o", color="black", markerfacecolor=filled, label=name)
        for edge in (-0.1, 0.0, 0.1):
            axes.axvline(edge, color="0.6", linewidth=1, linestyle="-" if edge == 0 else ":")
        axes.set_yticks(list(places), [_plain(name) for name in balance])
        axes.invert_yaxis()
        axes.set_xlabel("standardised mean difference between the arms")


def draw_overlap(overlap: Overlap | ArmOverlap, path: Path) -> None:
    """Draw propensity scores by arm, as shares of the arm, back to back; of several a panel each.

    The panel of an arm shows how likely it was for the units of every arm.
    """
    if isinstance(overlap, ArmOverlap):
        _draw_panels(overlap, path)
        return
    bins = len(overlap.treated)
    centres = [(index + 0.5) / bins for index in range(bins)]
    with _figure(path, columns=2) as (_, (axes,)):
        for name, counts, sign, color in (
            ("treated", overlap.treated, 1, "0.25"),
            ("control", overlap.control, -1, "0.7"),
        ):
            heights = [sign * count / (sum(counts) or 1) for count in counts]
            axes.bar(centres, heights, width=0.95 / bins, color=color, label=name)
        axes.axhline(0, color="black", linewidth=1)
        axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):.2g}")
        axes.set(xlabel="propensity score", ylabel="share of the arm")


def _draw_panels(overlap: ArmOverlap, path: Path) -> None:
    count = len(overlap.labels)
    with _figure(path, 1.2 + 1.5 * count, count) as (_, panels):
        for axes, label, counts in zip(panels, overlap.labels, overlap.counts, strict=True):
            edges = [index / len(counts[0]) for index in range(len(counts[0]) + 1)]
            for place, (own, held) in enumerate(zip(overlap.labels, counts, strict=True)):
                shares = [count / (sum(held) or 1) for count in held]
                style, tone = ("-", "--", ":", "-.")[place % 4], str(0.15 * (place // 4))
                axes.stairs(shares, edges, linestyle=style, color=tone, label=own)
            axes.set_title(f"probability of {label}", fontsize="medium")


def draw_effects(release: Release, path: Path, contrasts: Scope = "all") -> None:
    """Draw the table of effects as a forest plot for a slide, a panel for each outcome.

    Thick bars are intervals, thin ones those that cover all rows at once. Below it stands what the
    numbers promise.
    """
    with _forest(release, shown_effects(release, contrasts), path) as figure:
        figure.suptitle(_wrapped(capital(compared_line(release))), fontsize="medium")
        is_several = len(release.effects) > 1 and release.interval is not None
        together = "Thin bars cover all rows at once. " if is_several else ""
        promised = f"{together}{capital(promise_text(release))}."
        figure.supxlabel(_wrapped(promised), fontsize="x-small")


def draw_contrasts(release: Release, path: Path, contrasts: Scope = "all") -> None:
    """Draw a forest plot: intervals of contrasts, thin ones that cover all of them at once."""
    with _forest(release, shown_contrasts(release, contrasts), path):
        pass


@contextmanager
def _forest(release: Release, rows: Sequence[Effect], path: Path) -> Iterator[Any]:
    """Draw a panel for each outcome and a line for each row, and yield the figure."""
    names = list(dict.fromkeys(row.outcome for row in rows))
    height = 1.2 + 0.8 * len(names) + 0.3 * len(rows)
    kind = "interval" if release.interval is not None else "interval for the noise alone"
    with _figure(path, height, len(names)) as (figure, panels):
        for axes, name in zip(panels, names, strict=True):
            held = [row for row in rows if row.outcome == name]
            for place, row in enumerate(held):
                together = row.simultaneous if len(rows) > 1 and row.interval else None
                for pair, width in ((together, 0.8), (row.interval or row.noise_interval, 3.0)):
                    if pair is not None:
                        axes.plot(pair, (place, place), color="black", linewidth=width)
                axes.plot(row.estimate, place, "o", color="black", markersize=5)
            axes.axvline(0, color="0.6", linewidth=1)
            axes.set_yticks(range(len(held)), [_plain(_row_name(release, row)) for row in held])
            axes.set_ylim(len(held) - 0.5, -0.5)
            unit = outcome_unit(release, name)
            about = f"{noun(release)} on {column_title(release, name)}{f', {unit}' if unit else ''}"
            axes.set_xlabel(_plain(f"{about}, with {percent(release)} {kind}"))
        yield figure


def _row_name(release: Release, row: Effect) -> str:
    compared = f"{row.arm} against {row.against}"
    if not has_subgroups(release):
        return compared
    name = marked_subgroup(release, row)
    return f"{name}: {compared}" if release.arms else name


def _wrapped(text: str) -> str:
    return _plain(textwrap.fill(text, 84))


def _plain(text: str) -> str:
    """Keep a name with dollar signs from being read as a formula."""
    return text.replace("$", r"\$")


def draw_means(release: Release, path: Path, *, monotone: bool = False) -> None:
    """Draw the means of several arms with intervals, as a curve if they are bins of a dose.

    ``monotone`` adds the nearest curve that never turns (``monotone_means``).
    """
    held = [(arm, arm.mean) for arm in arms_in_order(release) if arm.mean is not None]
    if not held:
        msg = "this release holds no means of several arms to draw"
        raise ArgumentError(msg)
    with _figure(path) as (_, (axes,)):
        for place, (arm, _) in enumerate(held):
            ends = arm.interval or arm.noise_interval
            if ends is not None:
                axes.plot((place, place), ends, color="black", linewidth=1)
        style, places = "o-" if release.facts.doses else "o", range(len(held))
        axes.plot(places, [mean for _, mean in held], style, color="black", markersize=5)
        if monotone:
            curve = list(monotone_means(release).values())
            axes.plot(places, curve, "--", color="0.5", label="never turns")
        axes.set_xticks(places, [arm.label for arm, _ in held])
        axes.set_ylabel("mean outcome")
