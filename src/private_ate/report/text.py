"""The summary that a terminal shows, in the shape statisticians know."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from private_ate.effects import standard_error
from private_ate.privacy.levels import private_part
from private_ate.report.words import is_mere_difference
from private_ate.settings import Facts

if TYPE_CHECKING:
    from rich.table import Table

    from private_ate.release import Release

__all__ = ["release_table", "summarize", "summary_rows"]

_WIDTH = 88
_TITLES = (
    "Average treatment effect, released by private-ate",
    "Difference in means, not adjusted, released by private-ate",
)
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
    return "\n".join([_TITLES[is_mere_difference(release)], *lines])


def release_table(release: Release) -> Table:
    """Return the release as a rich table, which wraps to the width of the terminal."""
    from rich.table import Table  # not needed for plain text

    title = _TITLES[is_mere_difference(release)]
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in summary_rows(release):
        table.add_row(name, value)
    return table


def summary_rows(release: Release) -> Iterator[tuple[str, str]]:
    """Yield name and value of each line of the summary."""
    facts = Facts.of(release.settings)
    if is_mere_difference(release):
        yield "difference in means", f"{release.ate:.6g}"
        yield "  assumes", "nothing was adjusted for: an effect only if treatment was random"
    else:
        yield f"effect ({facts.estimand.upper()})", f"{release.ate:.6g}"
    error = standard_error(release)
    if error is not None:
        yield "standard error", f"{error:.4g} (half the interval over its normal quantile)"
    share = f"{100 * facts.confidence:g} %"
    if release.interval is not None:
        yield f"{share} interval", _pair(release.interval)
        if facts.interval_covers is not None:
            yield "  covers", facts.interval_covers
    if release.noise_interval is not None:
        yield f"{share} noise interval", _pair(release.noise_interval)
        if facts.noise_interval_covers is not None:
            yield "  covers", facts.noise_interval_covers
    hides_size = release.adjacency.startswith("add/remove")
    yield ("units (noisy n)" if hides_size else "units (n)"), f"{release.n:,}"
    if facts.arms is not None:
        yield "arms", f"{facts.arms.treated:,} treated, {facts.arms.control:,} control"
    if facts.population is not None:
        yield "population", facts.population
    yield from _balance(facts)
    yield from _ratios(facts)
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


def _ratios(facts: Facts) -> Iterator[tuple[str, str]]:
    means = facts.means
    if means is not None:
        yield "means", f"{means.treated:.6g} if treated, {means.control:.6g} if not"
    for name, ratio in (("risk ratio", facts.risk_ratio), ("odds ratio", facts.odds_ratio)):
        if ratio is not None:
            yield name, f"{ratio:.4g}"


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


def _pair(pair: tuple[float, float]) -> str:
    return f"[{pair[0]:.6g}, {pair[1]:.6g}]"
