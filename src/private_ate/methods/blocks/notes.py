"""What a release of the blocks method says in words, from public and released numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from private_ate.domain import Domain
from private_ate.methods.blocks.plan import BlocksPlan
from private_ate.parameters import Estimand
from private_ate.request import Request

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
_TRIAL: Final = "all n units (the ATE of a trial)"
_TRIAL_IN_BLOCKS: Final = (
    "outcomes are compared inside blocks of rows, given the covariates, for precision"
)
_RANDOM_COVERS: Final = "noise and sampling; treatment is taken to be random, as declared"
_WIDE_FACTOR: Final = 40.0  # honest bounds allow for spreads about ten times as large


@dataclass(frozen=True, slots=True)
class Words:
    """What is said of the path that a run took; ``warnings`` head the release."""

    population: str
    interval_covers: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def adjusted_words(
    plan: BlocksPlan,
    request: Request,
    domain: Domain,
    *,
    flagged: Sequence[str],
    shares: Sequence[float],
    spread: float,
    apart: bool,
) -> Words:
    """Say how an effect came about that was adjusted inside blocks.

    ``flagged`` names the coordinates of which a plain model gives another effect; one that is the
    only one has the empty name. ``shares`` are those of the arms, ``spread`` is that of block
    effects in units of the range, and ``apart`` says that blocks voted that arms do not overlap.
    """
    warnings: list[str] = []
    if plan.inside.treatment_forest:
        population, covers = _TARGETS[request.estimand], _COVERS
        if request.estimand != "ato":
            population += _TOWARDS_OVERLAP
        notes = ["adjusted for the declared covariates inside blocks of rows", _TRIMMED]
        if flagged:
            named = "; ".join(name for name in flagged if name)
            warnings.append(_MODELS.format(f" ({named})" if named else ""))
        elif not plan.asks_flags or not plan.inside.forest.trees:
            notes.append(_SMALL.format(round(plan.rows)))
        if not plan.inside.vote and request.estimand != "ato":
            notes.append(_NOT_ASKED)
    else:
        population, covers, notes = _TRIAL, _RANDOM_COVERS, [_TRIAL_IN_BLOCKS]
    rarer = min(shares)
    if rarer * plan.rows < _RARE_ROWS:
        label = domain.treatment.coded[list(shares).index(rarer)]
        notes.append(_RARE_ARM.format(rarer, label, rarer * plan.rows, round(plan.rows)))
    bounds = domain.bounds
    if not bounds.is_binary and spread * _WIDE_FACTOR < plan.spread:
        notes.append(_WIDE.format(bounds.low, bounds.high, plan.spread / spread))
    if domain.weights is not None:
        notes.append(_UNEVEN)
    if apart:
        population = _OVERLAP
        warnings = [_APART, *([_ONE_ARM] if request.estimand == "ate" else []), *warnings]
    return Words(population, covers, tuple(notes), tuple(warnings))


def unadjusted_words(request: Request, *, tried: bool, dimension: int) -> Words:
    """Say how arms were compared as they are, perhaps after a count that forbade more."""
    if request.probability is not None:
        return Words(_TRIAL, _RANDOM_COVERS, ("outcomes are compared as they are",))
    covers = "noise and sampling; not confounding, as nothing was adjusted for"
    if request.design == "randomized":
        note = "arms compared as they are, because the design is declared to be randomised"
        covers = _RANDOM_COVERS
    elif dimension == 0:
        note = "no covariate is declared, so this is a difference in means"
    elif tried:
        note = "too few rows of an arm or subgroup to adjust, so this is a difference in means"
    else:
        note = "n·ε is too small to adjust, so this is a difference in means"
    return Words(
        "all n units, arms compared as they are (the ATE if treatment was random)", covers, (note,)
    )
