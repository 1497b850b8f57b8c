"""The summary that a terminal shows, in the shape statisticians know."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from private_ate.effects import standard_error
from private_ate.privacy.levels import private_part
from private_ate.report.words import (
    assumption,
    headline,
    noise_error,
    number_text,
    uncertainty,
)
from private_ate.settings import Facts

if TYPE_CHECKING:
    from rich.table import Table

    from private_ate.release import Release

__all__ = ["release_table", "summarize", "summary_rows"]

_WIDTH = 88
_LEVELS = {
    "label": "outcomes are private; covariates and treatment are public",
    "sample": "whole records are private; only n and the declared domain are public",
    "hidden size": "whole records and their number are private; the declared domain is public",
}


def summarize(release: Release) -> str:
    """Return the release as aligned plain text."""
    rows = list(summary_rows(release))
    width = max(len(name) for name, _ in rows) + 2
    lines = [
        textwrap.fill(
            value, _WIDTH, initial_indent=name.ljust(width), subsequent_indent=" " * width
        )
        for name, value in rows
    ]
    warned = [textwrap.fill(f"WARNING: {text}", _WIDTH) for text in release.warnings]
    return "\n".join([*warned, _title(release), *lines])


def release_table(release: Release) -> Table:
    """Return the release as a rich table, which wraps to the width of the terminal."""
    from rich.table import Table  # not needed for plain text

    warned = [f"WARNING: {text}" for text in release.warnings]
    title = "\n".join([*warned, _title(release)])
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in summary_rows(release):
        table.add_row(name, value)
    return table


def _title(release: Release) -> str:
    name = headline(release).removesuffix(" (ATE)")
    return f"{name}, released by private-ate"


def summary_rows(release: Release) -> Iterator[tuple[str, str]]:
    """Yield name and value of each line of the summary."""
    facts = Facts.of(release.settings)
    digits = uncertainty(release)
    unit = "" if release.outcome is None or release.outcome.unit is None else release.outcome.unit
    yield _name(release), f"{number_text(release.ate, digits)} {unit}".rstrip()
    if assumption(release):
        yield "  assumes", assumption(release)
    error = standard_error(release)
    if error is not None:
        known = number_text(error, error)
        yield "standard error", f"{known} (half the interval over its normal quantile)"
    share = f"{100 * facts.confidence:g} %"
    if release.interval is not None:
        yield f"{share} interval", _pair(release.interval, digits)
        if facts.interval_covers is not None:
            yield "  covers", facts.interval_covers
    if release.noise_interval is not None:
        yield f"{share} noise interval", _pair(release.noise_interval, noise_error(release))
        if facts.noise_interval_covers is not None:
            yield "  covers", facts.noise_interval_covers
    hides_size = release.adjacency.startswith("add/remove")
    yield ("units (noisy n)" if hides_size else "units (n)"), f"{release.n:,}"
    if facts.arms is not None:
        yield "arms", f"{facts.arms.treated:,} treated, {facts.arms.control:,} control"
    if facts.population is not None:
        yield "population", facts.population
    yield from _balance(facts)
    yield from _ratios(facts, digits)
    yield "method", f"{release.method}, {release.level} level"
    yield "guarantee", release.guarantee
    yield "  neighbours", release.adjacency
    yield "  protects", _LEVELS["hidden size" if hides_size else release.level]
    yield from _meaning(release)
    for note in facts.notes:
        yield "note", note


def _balance(facts: Facts) -> Iterator[tuple[str, str]]:
    """Sum up the public balance table; only the label level has one."""
    if facts.balance:
        before, after = (max(abs(pair[side]) for pair in facts.balance.values()) for side in (0, 1))
        yield (
            "balance",
            f"largest standardised difference {before:.3f} before, {after:.3f} after weighting",
        )


def _ratios(facts: Facts, digits: float) -> Iterator[tuple[str, str]]:
    means = facts.means
    if means is not None:
        treated, control = (number_text(mean, digits) for mean in (means.treated, means.control))
        yield "means", f"{treated} if treated, {control} if not"
    for name, ratio in (("risk ratio", facts.risk_ratio), ("odds ratio", facts.odds_ratio)):
        if ratio is not None:
            yield name, f"{ratio:.3g}"


def _meaning(release: Release) -> Iterator[tuple[str, str]]:
    if not release.is_private:
        yield "  means", "nothing: do not publish this number as private"
        return
    import math  # one line of one summary

    factor = math.exp(min(float(release.epsilon), 700.0))
    whose = private_part(release.level)
    yield (
        "  means",
        f"no one's {whose} changes the chance of any published result by more than {factor:.3g}×"
        + (f", except with probability {release.delta:g}" if release.delta else ""),
    )


def _name(release: Release) -> str:
    """Return what stands beside the number: an estimand by its letters, or what was compared."""
    if release.estimand == "difference":
        return "difference in means"
    known = Facts.of(release.settings).estimand if release.schema == 1 else release.estimand
    return f"effect ({known.upper()})"


def _pair(pair: tuple[float, float], digits: float) -> str:
    return f"[{number_text(pair[0], digits)}, {number_text(pair[1], digits)}]"
