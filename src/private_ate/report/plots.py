"""Figures for papers and slides; each needs matplotlib, which the `plots` extra installs."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_ate.errors import ArgumentError
from private_ate.report.survival import curve_points

if TYPE_CHECKING:
    from private_ate.planning import Plan
    from private_ate.release.metadata import Effect
    from private_ate.release.public_facts import ArmOverlap, Overlap
    from private_ate.release.release import Release
    from private_ate.report.effects_table import Scope

_DOTS = 200  # to the inch, for slides
_STYLES = ("o-", "s--", "^:", "D-.", "v-", "x--")


def draw_plan(plan: Plan, path: Path) -> None:
    """Draw expected error and half-width against ε into an SVG or PNG file."""
    _require_format(path)
    figure, axes = _figure()
    first = plan.rows[0]  # of several outcomes the headline
    rows = [row for row in plan.rows if row.outcome == first.outcome]
    rows = [row for row in rows if row.arm is None or row.against == first.against]
    rows = [row for row in rows if row.arm == rows[-1].arm]  # of several arms the headline
    epsilons = [row.epsilon for row in rows]
    for name, style, values in (
        ("half-width of the interval", "o-", [row.half_width for row in rows]),
        ("expected error", "s--", [row.expected_error for row in rows]),
        ("of which noise", "^:", [row.noise_error for row in rows]),
    ):
        axes.plot(epsilons, values, style, color="black", label=name, markersize=5)
    if plan.half_width is not None:
        axes.axhline(plan.half_width, color="0.6", linewidth=1)
        axes.text(epsilons[0], plan.half_width, " wanted", va="bottom", color="0.4")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("privacy budget ε")
    axes.set_ylabel("in units of the outcome")
    about = "" if rows[0].arm is None else f": {rows[0].arm} against {rows[0].against}"
    axes.set_title(f"What to expect, {plan.level} level{about}")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path)


def draw_curves(release: Release, path: Path) -> None:
    """Draw survival curves with bands for whole curves; points are the edges of the bins."""
    _require_format(path)
    if not release.curves:
        msg = "this release holds no survival curves"
        raise ArgumentError(msg)
    figure, axes = _figure()
    for place, (label, curve) in enumerate(release.curves.items()):
        color = str(0.65 * place / max(len(release.curves) - 1, 1))
        axes.fill_between(curve.time, curve.low, curve.high, color=color, alpha=0.15, linewidth=0)
        times, values = zip(*curve_points(curve, curve.survival), strict=True)
        axes.plot(times, values, _STYLES[place % len(_STYLES)][1:], color=color, label=label)
        axes.plot(curve.time, curve.survival, _STYLES[place % len(_STYLES)][0], color=color)
    unit = "" if release.outcome is None or not release.outcome.unit else release.outcome.unit
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(f"time ({unit})" if unit else "time")
    axes.set_ylabel("share without the event")
    adjusted = all(curve.adjusted for curve in release.curves.values())
    axes.set_title("" if adjusted else "arms as they are, not adjusted")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=_DOTS)


def draw_balance(balance: Mapping[str, Sequence[float]], path: Path) -> None:
    """Draw a love plot: standardised differences before and after weighting."""
    _require_format(path)
    figure, axes = _figure(height=1.6 + 0.28 * len(balance))
    places = range(len(balance))
    for side, (name, filled) in enumerate((("before", "none"), ("after", "black"))):
        values = [pair[side] for pair in balance.values()]
        axes.plot(values, places, "o", color="black", markerfacecolor=filled, label=name)
    for edge in (-0.1, 0.0, 0.1):
        axes.axvline(edge, color="0.6", linewidth=1, linestyle="-" if edge == 0 else ":")
    axes.set_yticks(list(places), [_plain(name) for name in balance])
    axes.invert_yaxis()
    axes.set_xlabel("standardised mean difference between the arms")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(path, dpi=_DOTS)


def draw_overlap(overlap: Overlap | ArmOverlap, path: Path) -> None:
    """Draw propensity scores by arm, as shares of the arm, back to back; of several a panel each.

    The panel of an arm shows how likely it was for the units of every arm.
    """
    _require_format(path)
    from private_ate.release.public_facts import ArmOverlap  # as below

    if isinstance(overlap, ArmOverlap):
        _draw_panels(overlap, path)
        return
    figure, axes = _figure()
    bins = len(overlap.treated)
    centres = [(index + 0.5) / bins for index in range(bins)]
    for name, counts, sign, color in (
        ("treated", overlap.treated, 1, "0.25"),
        ("control", overlap.control, -1, "0.7"),
    ):
        total = sum(counts) or 1
        heights = [sign * count / total for count in counts]
        axes.bar(centres, heights, width=0.95 / bins, color=color, label=name)
    axes.axhline(0, color="black", linewidth=1)
    axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):.2g}")
    axes.set_xlabel("propensity score")
    axes.set_ylabel("share of the arm")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(path)


def _draw_panels(overlap: ArmOverlap, path: Path) -> None:
    figure, panels = _figure(height=1.2 + 1.5 * len(overlap.labels), panels=len(overlap.labels))
    for axes, label, counts in zip(panels, overlap.labels, overlap.counts, strict=True):
        edges = [index / len(counts[0]) for index in range(len(counts[0]) + 1)]
        for place, (own, held) in enumerate(zip(overlap.labels, counts, strict=True)):
            shares = [count / (sum(held) or 1) for count in held]
            style = ("-", "--", ":", "-.")[place % 4]
            tone = str(0.15 * (place // 4))
            axes.stairs(shares, edges, linestyle=style, color=tone, label=own)
        axes.set_title(f"probability of {label}", fontsize="medium")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path)


def draw_effects(release: Release, path: Path, contrasts: Scope = "all") -> None:
    """Draw the table of effects as a forest plot for a slide, a panel for each outcome.

    Thick bars are intervals, thin ones those that cover all rows at once. Below it stands what the
    numbers promise.
    """
    from private_ate.report.effects_table import shown_effects  # needs no matplotlib
    from private_ate.report.phrasing import compared_line
    from private_ate.report.tables import promise_text

    figure = _draw_forest(release, shown_effects(release, contrasts), path)
    title = compared_line(release)
    figure.suptitle(_wrapped(f"{title[:1].upper()}{title[1:]}"), fontsize="medium")
    is_several = len(release.effects) > 1 and release.interval is not None
    together = "Thin bars cover all rows at once. " if is_several else ""
    figure.supxlabel(_wrapped(f"{together}{promise_text(release)}."), fontsize="x-small")
    figure.savefig(path, dpi=_DOTS)


def draw_contrasts(release: Release, path: Path, contrasts: Scope = "all") -> None:
    """Draw a forest plot: intervals of contrasts, thin ones that cover all of them at once."""
    from private_ate.report.effects_table import shown_contrasts  # as above

    rows = shown_contrasts(release, contrasts)
    _draw_forest(release, rows, path).savefig(path, dpi=_DOTS)


def _draw_forest(release: Release, rows: Sequence[Effect], path: Path) -> Any:  # noqa: ANN401
    """Return a figure with a panel for each outcome and a line for each row."""
    from private_ate.report.phrasing import outcome_unit  # as above

    _require_format(path)
    names = list(dict.fromkeys(row.outcome for row in rows))
    figure, panels = _figure(height=1.2 + 0.8 * len(names) + 0.3 * len(rows), panels=len(names))
    for axes, name in zip([panels] if len(names) == 1 else panels, names, strict=True):
        held = [row for row in rows if row.outcome == name]
        for place, row in enumerate(held):
            ends = row.interval or row.noise_interval
            together = row.simultaneous if len(rows) > 1 and row.interval else None
            for pair, width in ((together, 0.8), (ends, 3.0)):
                if pair is not None:
                    axes.plot(pair, (place, place), color="black", linewidth=width)
            axes.plot(row.estimate, place, "o", color="black", markersize=5)
        axes.axvline(0, color="0.6", linewidth=1)
        axes.set_yticks(range(len(held)), [_plain(_row_name(release, row)) for row in held])
        axes.set_ylim(len(held) - 0.5, -0.5)
        axes.set_xlabel(_plain(_axis_title(release, name, outcome_unit(release, name))))
    return figure


def _row_name(release: Release, row: Effect) -> str:
    from private_ate.report.effects_table import has_subgroups, marked_subgroup  # as above

    compared = f"{row.arm} against {row.against}"
    if not has_subgroups(release):
        return compared
    name = marked_subgroup(release, row)
    return f"{name}: {compared}" if release.arms else name


def _axis_title(release: Release, outcome: str, unit: str) -> str:
    from private_ate.report.phrasing import column_title, noun, percent  # as above

    kind = "interval" if release.interval is not None else "interval for the noise alone"
    measured = f", {unit}" if unit else ""
    title = column_title(release, outcome)
    return f"{noun(release)} on {title}{measured}, with {percent(release)} {kind}"


def _wrapped(text: str) -> str:
    return _plain(textwrap.fill(text, 84))


def _plain(text: str) -> str:
    """Keep a name with dollar signs from being read as a formula."""
    return text.replace("$", r"\$")


def draw_means(release: Release, path: Path, *, monotone: bool = False) -> None:
    """Draw the means of several arms with intervals, as a curve if they are bins of a dose.

    ``monotone`` adds the nearest curve that never turns (``monotone_means``).
    """
    from private_ate.effects import monotone_means  # as above
    from private_ate.report.effects_table import arms_in_order

    _require_format(path)
    held = [(arm, arm.mean) for arm in arms_in_order(release) if arm.mean is not None]
    if not held:
        msg = "this release holds no means of several arms to draw"
        raise ArgumentError(msg)
    figure, axes = _figure()
    for place, (arm, _) in enumerate(held):
        ends = arm.interval or arm.noise_interval
        if ends is not None:
            axes.plot((place, place), ends, color="black", linewidth=1)
    style = "o-" if release.facts.doses else "o"
    axes.plot(range(len(held)), [mean for _, mean in held], style, color="black", markersize=5)
    if monotone:
        curve = list(monotone_means(release).values())
        axes.plot(range(len(held)), curve, "--", color="0.5", label="never turns")
        figure.legend(loc="outside lower center", frameon=False)
    axes.set_xticks(range(len(held)), [arm.label for arm, _ in held])
    axes.set_ylabel("mean outcome")
    figure.savefig(path)


def draw_errors(errors: Mapping[str, Mapping[float, float]], path: Path) -> None:
    """Draw measured errors against ε, a line per method."""
    _require_format(path)
    figure, axes = _figure()
    for index, (name, by_epsilon) in enumerate(errors.items()):
        epsilons = sorted(by_epsilon)
        values = [by_epsilon[epsilon] for epsilon in epsilons]
        style = _STYLES[index % len(_STYLES)]
        axes.plot(epsilons, values, style, color="black", label=name, markersize=5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("privacy budget ε")
    axes.set_ylabel("error")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path)


def _require_format(path: Path) -> None:
    if path.suffix.lower() not in {".svg", ".png", ".pdf"}:
        msg = f"a plot is written as .svg, .png or .pdf, not {path.name!r}"
        raise ArgumentError(msg)


def _figure(height: float = 4.4, panels: int = 1) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure  # an extra
    except ImportError as cause:
        msg = "plots need matplotlib: pip install 'private-ate[plots]'"
        raise ArgumentError(msg) from cause
    figure = Figure(figsize=(6.4, height), layout="constrained")
    return figure, figure.subplots(panels)
