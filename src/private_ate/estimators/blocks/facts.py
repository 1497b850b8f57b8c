"""What a release of the blocks method tells in words, by the path it took."""

from __future__ import annotations

from typing import Final, Required, TypedDict

from private_ate.domain import Interval, SamplingWeights
from private_ate.domain.weights import WEIGHTED
from private_ate.estimators.blocks.bends import Bends
from private_ate.estimators.blocks.plan import BlocksPlan, Model
from private_ate.estimators.blocks.settings import ReleasedWeights
from private_ate.estimators.blocks.unadjusted import Count
from private_ate.estimators.calibrated.clipping import WIDE_DEVIATIONS
from private_ate.estimators.request import Design, Estimand
from private_ate.estimators.trial.method import TrialEffect
from private_ate.settings import ABSENT, Absent
from private_ate.study import Study

__all__ = [
    "Facts", "adjusted_facts", "rare_arm_note", "released_weights", "trial_facts",
    "unadjusted_facts", "weighted_facts", "wide_bounds_note",
]  # fmt: skip


_LEANS: Final = "; in small blocks the effect leans to units that overlap"
_TRIMMED: Final = (
    "the centre of block effects is a trimmed mean: where outcomes have a long tail and the "
    "effect grows with their level, it lies below the mean effect"
)
_UNEVEN: Final = (
    "sampling weights count inside each block, and blocks count alike: where effects go with the "
    "weights, the effect leans to that of the sample, the less the more rows a block has"
)
_RARE: Final = 0.1  # share of the rarer arm below which a block holds few of its rows
_RARE_ARM: Final = (
    "about {0:.1%} of the rows are {1!r}, as released, which is {2:.0f} in a block of {3}: the "
    "effect leans to units for whom both arms occur, and is that of all units only where effects "
    "are alike; whether both arms occur among all kinds of units was not tested"
)
_WIDE: Final = (
    "the declared bounds, {0:g} to {1:g}, hold {2:.0f} standard deviations of the outcome within "
    "the arms or more, as that is about {3:.3g} or less as released: noise and interval follow the "
    "bounds, and about eight would do. A later request may declare bounds by this released number "
    "or a code book, never by the records"
)
_BENDS: Final[dict[Bends, str]] = {
    "squares": "",
    "chosen": " with bends of the covariates that each block chooses",
    "all": " with products and hinges",
}
_TARGETS: Final[dict[Estimand, str]] = {
    "ate": "all n units",
    "att": "the treated units",
    "atc": "the control units",
    "ato": "units weighted by overlap",
}


class Facts(TypedDict, total=False):
    """The part of the settings that depends on the path."""

    adjusted: Required[bool]
    model: str
    blocks: int
    block_rows: int
    partitions: int
    window: int
    unadjusted_effect: float
    noise_quantile: float
    population: Required[str]
    interval_covers: str
    notes: Required[tuple[str, ...]]


def adjusted_facts(
    plan: BlocksPlan, estimand: Estimand, *, window: int, start: float, reach: float
) -> Facts:
    """Tell of an effect that was adjusted inside blocks; numbers in units of the outcome."""
    return {
        "adjusted": True,
        "model": plan.model.replace("_", " ") + _BENDS[plan.bends],
        "blocks": plan.blocks,
        "block_rows": plan.rows,
        "partitions": plan.partitions,
        "window": window,
        "unadjusted_effect": start,
        "noise_quantile": reach,
        "population": _population(plan.model, estimand),
        "interval_covers": (
            "noise and sampling; not confounding that the model inside the blocks leaves, "
            "nor unmeasured confounding, nor what the trimmed mean of block effects leaves out "
            "of long tails"
        ),
        "notes": ("adjusted for the declared covariates inside blocks of rows", _TRIMMED),
    }


def _population(model: Model, estimand: Estimand) -> str:
    """Say whom the effect speaks of: the model inside decides where it was chosen by hand."""
    match model:
        case "linear":
            return _TARGETS[estimand] + ("" if estimand == "ato" else _LEANS)
        case "overlap":
            return f"{_TARGETS['ato']} (ATO)"
        case "doubly_robust":
            aimed: Estimand = "ate" if estimand == "ato" else estimand
            return f"{_TARGETS[aimed]} ({aimed.upper()})"


def unadjusted_facts(design: Design, *, tried: bool) -> Facts:
    """Tell of arms that were compared as they are, perhaps after a count that forbade more."""
    if design == "randomized":
        note = "arms compared as they are, because the design is declared to be randomised"
    elif tried:
        note = "too few treated or control rows to adjust, so this is a difference in means"
    else:
        note = "n·ε is too small to adjust, so this is a difference in means"
    return {
        "adjusted": False,
        "population": "all n units, arms compared as they are (the ATE if treatment was random)",
        "interval_covers": (
            "noise and sampling; treatment is taken to be random, as declared"
            if design == "randomized"
            else "noise and sampling; not confounding, as nothing was adjusted for"
        ),
        "notes": (note,),
    }


def rare_arm_note(plan: BlocksPlan, share: float, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Say whom the effect speaks of where the released share of an arm is small."""
    rarer = min(share, 1 - share)
    if rarer >= _RARE:
        return ()
    label = labels[1] if share < 1 - share else labels[0]
    return (_RARE_ARM.format(rarer, label, rarer * plan.rows, plan.rows),)


def wide_bounds_note(bounds: Interval, spread: float | None) -> tuple[str, ...]:
    """Say that bounds are wide for the released deviation of outcomes, a share of their range.

    That deviation is deliberately a little too high, so that tight bounds are never called wide;
    with few rows its noise is too large to call any bounds wide.
    """
    if spread is None or bounds.is_binary or spread * WIDE_DEVIATIONS >= 1:
        return ()
    return (_WIDE.format(bounds.low, bounds.high, 1 / spread, spread * bounds.width),)


def trial_facts(trial: TrialEffect) -> Facts:
    """Tell of a trial whose probability of treatment was named."""
    how = (
        "outcomes are compared with what a private model says of them, for precision"
        if trial.has_prognosis
        else "outcomes are compared as they are"
    )
    return {
        "adjusted": trial.has_prognosis,
        "population": "all n units (the ATE of a trial)",
        "interval_covers": "noise and sampling; treatment is taken to be random, as declared",
        "notes": (how,),
    }


def weighted_facts(facts: Facts, weights: SamplingWeights | None) -> Facts:
    """Add whom a weighted sample stands for, and what weights inside small blocks leave."""
    if weights is None:
        return facts
    notes = (*facts["notes"], _UNEVEN) if facts["adjusted"] else facts["notes"]
    return {**facts, "population": facts["population"] + WEIGHTED, "notes": notes}


def released_weights(study: Study, counted: Count | None) -> ReleasedWeights | Absent:
    """Tell what the count released of the sampling weights, where there are any."""
    declared = study.domain.weights
    if declared is None or counted is None:
        return ABSENT
    return ReleasedWeights(
        declared.column,
        declared.high,
        declared.high * counted.members / study.size,
        counted.worth(study.size),
    )
