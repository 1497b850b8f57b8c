"""What a release of private subgroups tells of itself: noisy sizes, and what was adjusted."""

from __future__ import annotations

from typing import Final

from private_ate.estimators.blocks.cell import CellEffect
from private_ate.estimators.blocks.settings import BlocksSettings
from private_ate.estimators.request import Request
from private_ate.settings import ABSENT, SubgroupNote, SubgroupsNote

__all__ = ["cell_note", "private_settings", "private_warnings"]

_TARGETS: Final = {"ate": "units", "att": "treated units", "atc": "control units"}
_HOW: Final = (
    "effects by {0}: which subgroup somebody is in is private, so each has half of ε for every "
    "record that enters or leaves it, and numbers of units are noisy"
)
_QUARTER: Final = (
    "effects by {0} with half of ε, the other half for all units; which subgroup somebody is in "
    "is private, so numbers of units are noisy. Subgroups and all units are not reconciled: they "
    "need not add up"
)
_MERE: Final = (
    "too few rows to adjust in {0}: what is told there is a difference in means, not an effect"
)
_COVERS: Final = (
    "noise and sampling; not confounding, where arms are compared as they are, nor what the model "
    "inside the blocks leaves, nor unmeasured confounding"
)
_TRIAL: Final = "noise and sampling; treatment is taken to be random, as declared"


def cell_note(name: str, run: CellEffect, labels: tuple[str, str]) -> SubgroupNote:
    """Return what was released of one cell's size: noisy numbers, none below zero."""
    count = run.count
    arms = zip(labels, (count.treated, count.total - count.treated), strict=True)
    sizes = {label: max(round(size), 0) for label, size in arms}
    return SubgroupNote(name, sum(sizes.values()), sizes, True, adjusted=run.facts["adjusted"])


def private_settings(request: Request, note: SubgroupsNote, *, is_adjusted: bool) -> BlocksSettings:
    """Return the settings of all cells as one; what each chose for itself is not told."""
    how = _QUARTER if request.overall else _HOW
    half = float(request.epsilon) / 2
    budget = {"all units": half, "every subgroup": half} if request.overall else {
        "every subgroup": float(request.epsilon)
    }  # fmt: skip
    covers = _TRIAL if request.design == "randomized" else _COVERS
    return BlocksSettings(
        adjusted=is_adjusted,
        population=_population(request, is_adjusted=is_adjusted),
        interval_covers=ABSENT if request.confidence is None else covers,
        notes=(how.format(", ".join(request.by)),),
        design=request.design,
        estimand=request.estimand,
        confidence=request.coverage,
        rows_per_person=request.rows_per_person,
        budget=budget,
        noise_interval_covers="the last step's noise only; not sampling, not confounding",
        subgroups=note,
    )


def private_warnings(request: Request, note: SubgroupsNote) -> tuple[str, ...]:
    """Name the subgroups that are compared as they are beside others that are adjusted."""
    mere = [cell.name for cell in note.cells if cell.adjusted is False]
    if request.design == "randomized" or not mere or len(mere) == len(note.cells):
        return ()
    return (_MERE.format("; ".join(mere)),)


def _population(request: Request, *, is_adjusted: bool) -> str:
    as_they_are = "" if is_adjusted else ", arms compared as they are in some subgroup or in all"
    if request.overall:
        return f"all {_TARGETS[request.estimand]}" + (
            "" if is_adjusted else ", arms compared as they are"
        )
    return (
        f"all {_TARGETS[request.estimand]} whose subgroup is known, rolled up by noisy numbers"
        f"{as_they_are}"
    )
