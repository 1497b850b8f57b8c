"""One estimate from the runs of several outcomes: rows of each, intervals that cover at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from private_ate.domain import Domain
from private_ate.effects.estimate import EffectRow, Estimate
from private_ate.facts import Facts
from private_ate.release.intervals import half_width
from private_ate.release.metadata import Contrast, Pair, longer_half, within
from private_ate.settings import ABSENT, Absent, EqualEffects, OutcomeFacts

_TOGETHER: Final = (
    "effects on {0} outcomes of the same people, {2}; the headline is {1}, and settings that "
    "outcomes have of their own are its"
)


def merge_outcomes(
    runs: Sequence[Estimate],
    domain: Domain,
    *,
    coverage: float,
    is_joint: bool,
    bounds_are_declared: bool,
) -> Estimate:
    """Return the headline's estimate with the rows of all outcomes; all of it is post-processing.

    Intervals that cover at once have room for all outcomes, by Bonferroni's rule between outcomes:
    nothing is assumed about how outcomes hang together. ``is_joint`` says whether outcomes were
    drawn together; otherwise each had an equal part of ε.
    """
    with_rows = [_with_row(run, domain, place, coverage) for place, run in enumerate(runs)]
    columns = [one.column for one in domain.outcomes]
    first, *others = with_rows
    held: Any = first.settings  # a frozen dataclass that has room for outcomes
    texts = held.notes if isinstance(held.notes, tuple) else ()
    how = "drawn together" if is_joint else "each with an equal part of ε"
    settings = replace(
        held,
        budget=held.budget if is_joint else _budgets(columns, with_rows),
        notes=(_TOGETHER.format(len(runs), columns[0], how), *texts),
        outcomes=tuple(
            _facts(run, domain, place, bounds_are_declared=bounds_are_declared)
            for place, run in enumerate(with_rows)
        ),
    )
    return replace(
        first,
        settings=settings,
        warnings=_warnings(columns, [run.warnings for run in with_rows]),
        further=tuple(zip(columns[1:], others, strict=True)),
    )


def _with_row(run: Estimate, domain: Domain, place: int, coverage: float) -> Estimate:
    """Return an outcome's estimate with its effect of two arms as a row, where it has none."""
    if run.rows:
        return run
    control, treated = domain.treatment.coded
    width = domain.of_outcome(place).bounds.width
    at_once = 1 - (1 - coverage) / len(domain.outcomes)
    together: Pair | None = None
    if run.interval is not None:
        known = next((one for one in run.quantities if one.noise and one.variances), None)
        if known is not None:
            half = half_width(at_once, known.noise, [known.variances], "convolved")
        else:
            half = _wider(run.ate, run.interval, coverage, at_once)
        low, high = (within(end, (-width, width)) for end in (run.ate - half, run.ate + half))
        together = (min(low, run.interval[0]), max(high, run.interval[1]))
    row = Contrast(treated, control, run.ate, run.interval, together, run.noise_interval)
    return replace(run, rows=(EffectRow(None, row),))


def _wider(effect: float, interval: Pair, coverage: float, at_once: float) -> float:
    """Return a half-width that covers more, of an error whose distribution is not known.

    If the density of an error is log-concave, as those of normal errors, of Laplace noise and of
    their sums are, the logarithm of its tail falls ever faster, so that quantiles grow at most
    like these logarithms.
    """
    return longer_half(effect, interval) * math.log(1 - at_once) / math.log(1 - coverage)


def _facts(run: Estimate, domain: Domain, place: int, *, bounds_are_declared: bool) -> OutcomeFacts:
    outcome = domain.outcomes[place]
    ends: Pair | None = None
    if bounds_are_declared and outcome.bounds is not None:
        ends = (outcome.bounds.low, outcome.bounds.high)
    return OutcomeFacts(
        outcome.column, ends, outcome.unit, _means(run), _left_out(run), _equal_effects(run)
    )


def _means(run: Estimate) -> dict[str, float] | Absent:
    """Return mean outcomes by arm, where they were released."""
    if run.arms:
        found = {arm.label: arm.mean for arm in run.arms if arm.mean is not None}
        return found or ABSENT
    means = Facts.of(run.settings).means
    return ABSENT if means is None else {"treated": means.treated, "control": means.control}


def _equal_effects(run: Estimate) -> tuple[EqualEffects, ...] | Absent:
    note = Facts.of(run.settings).subgroups
    return ABSENT if note is None else note.equal_effects


def _left_out(run: Estimate) -> int | Absent:
    counted = Facts.of(run.settings).left_out_outcome
    return ABSENT if counted is None else counted


def _budgets(columns: Sequence[str], runs: Sequence[Estimate]) -> dict[str, float]:
    """Return ε of the steps of all outcomes."""
    return {
        f"{column}: {step}": epsilon
        for column, run in zip(columns, runs, strict=True)
        for step, epsilon in Facts.of(run.settings).budget.items()
    }


def _warnings(columns: Sequence[str], warnings: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return what all outcomes warn of once, and what some do with their names."""
    shared = [text for text in warnings[0] if all(text in texts for texts in warnings)]
    own = [
        f"{column}: {text}"
        for column, texts in zip(columns, warnings, strict=True)
        for text in texts
        if text not in shared
    ]
    return (*shared, *own)
