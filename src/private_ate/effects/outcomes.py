"""One estimate from the runs of several outcomes: rows of each, intervals that cover at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from private_ate.domain import Domain
from private_ate.effects.estimate import Estimate
from private_ate.facts import Facts
from private_ate.release.metadata import Pair
from private_ate.settings import ABSENT, Absent, EqualEffects, OutcomeFacts

_TOGETHER: Final = (
    "effects on {0} outcomes of the same people, {2}; the headline is {1}, and settings that "
    "outcomes have of their own are its"
)


def merge_outcomes(
    runs: Sequence[Estimate],
    domain: Domain,
    *,
    is_joint: bool,
    bounds_are_declared: bool,
) -> Estimate:
    """Return the headline's estimate with the rows of all outcomes; all of it is post-processing.

    Every run was asked with the number of outcomes, so that its intervals at once have room for all
    of them, by Bonferroni's rule between outcomes: nothing is assumed about how outcomes hang
    together. ``is_joint`` says whether outcomes were drawn together; otherwise each had an equal
    part of ε.
    """
    columns = [one.column for one in domain.outcomes]
    first, *others = runs
    held: Any = first.settings  # a frozen dataclass that has room for outcomes
    texts = held.notes if isinstance(held.notes, tuple) else ()
    how = "drawn together" if is_joint else "each with an equal part of ε"
    settings = replace(
        held,
        budget=held.budget if is_joint else _budgets(columns, runs),
        notes=(_TOGETHER.format(len(runs), columns[0], how), *texts),
        outcomes=tuple(
            _facts(run, domain, place, bounds_are_declared=bounds_are_declared)
            for place, run in enumerate(runs)
        ),
    )
    return replace(
        first,
        settings=settings,
        warnings=_warnings(columns, [run.warnings for run in runs]),
        further=tuple(zip(columns[1:], others, strict=True)),
    )


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
