"""What a release of the blocks method says in words, from public and released numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from private_ate.domain import Interval, SamplingWeights
from private_ate.domain.column_types import WEIGHTED
from private_ate.methods.blocks.plan import BlocksPlan
from private_ate.parameters import Estimand
from private_ate.request import Request

__all__ = ["Words", "adjusted_words", "overlap_words", "trial_words", "unadjusted_words"]

_TARGETS: Final[dict[Estimand, str]] = {
    "ate": "all n units",
    "att": "the treated units",
    "atc": "the control units",
    "ato": "units weighted by overlap",
}
_TOWARDS_OVERLAP: Final = "; in small blocks the effect leans to units that overlap"
_OVERLAP: Final = "units for whom both arms occur, each weighted by how open its arm was (ATO)"
_COVERS: Final = (
    "noise, sampling, and what shapes that blocks see may leave; not other confounding that the "
    "model inside the blocks leaves, nor unmeasured confounding, nor what the trimmed mean of "
    "block effects leaves out of long tails"
)
_MODELS: Final = (
    "blocks see shapes that a straight model does not follow{0}; the interval is wider for what "
    "may be left of them"
)
_SMALL: Final = (
    "blocks of {0} rows are too small to see non-linear shapes or rules; the interval covers "
    "straight relations only"
)
_APART: Final = (
    "the arms hardly overlap: for part of the people one of the arms (almost) never occurs. No "
    "estimate of the average effect over all units can be learned from these records; this is the "
    "average effect among those for whom both occur, each person weighted by how open their arm was"
)
_ONE_ARM: Final = (
    "the effect on the treated, or on the untreated, may still be learnable: estimand='att', 'atc'"
)
_NOT_ASKED: Final = (
    "whether the arms overlap was not asked: blocks hold too few rows of an arm, or there are "
    "subgroups or more than two arms. Where they do not, this is the effect among units for whom "
    "the arms occur"
)
_TRIMMED: Final = (
    "the centre of block effects is a trimmed mean: where outcomes have a long tail and the "
    "effect grows with their level, it lies below the mean effect"
)
_UNEVEN: Final = (
    "sampling weights count inside each block, and blocks count alike: where effects go with the "
    "weights, the effect leans to that of the sample, the less the more rows a block has"
)
_RARE_ROWS: Final = 20  # of the rarer arm in a block, below which slopes are not always kept
_RARE_ARM: Final = (
    "about {0:.1%} of the rows are {1!r}, as released, which is {2:.0f} in a block of {3}: the "
    "effect leans to units for whom both arms occur"
)
_WIDE: Final = (
    "the declared bounds, {0:g} to {1:g}, are wide for the released spread of block effects, which "
    "is about {2:.0f} times smaller than they allow; tighter bounds, by this released number or a "
    "code book and never by the records, would make outliers rarer"
)
_WIDE_FACTOR: Final = 40.0  # honest bounds allow for spreads about ten times as large


@dataclass(frozen=True, slots=True)
class Words:
    """What is said of the path that a run took; ``warnings`` head the release."""

    population: str
    interval_covers: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def weighted(self, weights: SamplingWeights | None, *, adjusted: bool) -> Words:
        """Add whom a weighted sample stands for, and what weights inside small blocks leave."""
        if weights is None:
            return self
        notes = (*self.notes, _UNEVEN) if adjusted else self.notes
        return Words(self.population + WEIGHTED, self.interval_covers, notes, self.warnings)


def adjusted_words(plan: BlocksPlan, estimand: Estimand, flagged: Sequence[str]) -> Words:
    """Say how an effect came about that was adjusted inside blocks.

    ``flagged`` names the coordinates of which a plain model gives another effect; one that is the
    only one has the empty name.
    """
    warnings = []
    notes = ["adjusted for the declared covariates inside blocks of rows", _TRIMMED]
    if flagged:
        named = "; ".join(name for name in flagged if name)
        warnings.append(_MODELS.format(f" ({named})" if named else ""))
    elif not plan.asks_flags or not plan.inside.forest.trees:
        notes.append(_SMALL.format(round(plan.rows)))
    if not plan.asks_vote and plan.inside.treatment_forest and estimand != "ato":
        notes.append(_NOT_ASKED)
    overlap = "" if estimand == "ato" else _TOWARDS_OVERLAP
    return Words(_TARGETS[estimand] + overlap, _COVERS, tuple(notes), tuple(warnings))


def overlap_words(words: Words, estimand: Estimand) -> Words:
    """Head a number as the overlap effect, where blocks voted that arms do not overlap."""
    known = (_APART, _ONE_ARM) if estimand == "ate" else (_APART,)
    return Words(_OVERLAP, words.interval_covers, words.notes, (*known, *words.warnings))


def rare_arm_notes(plan: BlocksPlan, shares: Sequence[float], labels: Sequence[str]) -> list[str]:
    """Say whom the effect speaks of where the released share of an arm is small."""
    rarer = min(shares)
    if rarer * plan.rows >= _RARE_ROWS:
        return []
    label = labels[list(shares).index(rarer)]
    return [_RARE_ARM.format(rarer, label, rarer * plan.rows, round(plan.rows))]


def wide_bounds_notes(bounds: Interval, plan: BlocksPlan, spread: float) -> list[str]:
    """Say that bounds are wide for the released spread of block effects, a share of the range."""
    if bounds.is_binary or spread * _WIDE_FACTOR >= plan.spread:
        return []
    return [_WIDE.format(bounds.low, bounds.high, plan.spread / spread)]


def unadjusted_words(request: Request, *, tried: bool, dimension: int) -> Words:
    """Say how arms were compared as they are, perhaps after a count that forbade more."""
    if request.design == "randomized":
        note = "arms compared as they are, because the design is declared to be randomised"
    elif dimension == 0:
        note = "no covariate is declared, so this is a difference in means"
    elif tried:
        note = "too few rows of an arm or subgroup to adjust, so this is a difference in means"
    else:
        note = "n·ε is too small to adjust, so this is a difference in means"
    covers = "noise and sampling; treatment is taken to be random, as declared"
    if request.design != "randomized":
        covers = "noise and sampling; not confounding, as nothing was adjusted for"
    return Words(
        "all n units, arms compared as they are (the ATE if treatment was random)", covers, (note,)
    )


def trial_words(*, in_blocks: bool = False) -> Words:
    """Say how the effect of a trial came about whose probability of treatment was named."""
    how = "outcomes are compared as they are"
    if in_blocks:
        how = "outcomes are compared inside blocks of rows, given the covariates, for precision"
    return Words(
        "all n units (the ATE of a trial)",
        "noise and sampling; treatment is taken to be random, as declared",
        (how,),
    )
