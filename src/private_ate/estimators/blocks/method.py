"""Our sample-level method: regression inside blocks of rows, one private centre.

Rows are cut into small blocks by their positions. Inside a block the effect is adjusted by
ordinary regression, without noise; what is released is the centre of the block effects, by an
exponential mechanism on their ranks. A record sits in one block per partition, so it moves few
block effects whatever the number of covariates is. A public rule, and the noisy share of treated
rows, decide whether blocks can pay; if not, the arms are compared as they are. Privacy:
docs/proofs/blocks.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Integers
from private_ate.effects.estimate import Estimate
from private_ate.effects.quantities import Quantity
from private_ate.estimators.blocks.cell import CellEffect, laplace_of, packed, packed_length
from private_ate.estimators.blocks.centre import centre_rule, noise_quantile
from private_ate.estimators.blocks.facts import (
    Facts,
    adjusted_facts,
    rare_arm_note,
    released_weights,
    trial_facts,
    unadjusted_facts,
    weighted_facts,
    wide_bounds_note,
)
from private_ate.estimators.blocks.models import (
    BlockEffects,
    average_effects,
    linear_effects,
    overlap_effects,
)
from private_ate.estimators.blocks.partition import Shuffle, draw_keys, draw_shuffles
from private_ate.estimators.blocks.plan import (
    SPREAD_SHARE,
    SQUARE_SHARE,
    SUM_SHARE,
    BlocksOptions,
    BlocksPlan,
    Model,
    Scope,
    count_share,
    plan_blocks,
    worth_trying,
)
from private_ate.estimators.blocks.settings import BlocksSettings
from private_ate.estimators.blocks.unadjusted import (
    Count,
    Start,
    release_count,
    release_outcome_variance,
    release_square,
    release_start,
)
from private_ate.estimators.composition import options_of
from private_ate.estimators.orthogonal.plan import plain_shares
from private_ate.estimators.request import Estimand, Request
from private_ate.estimators.trial.method import estimate_trial
from private_ate.estimators.trial.probability import probability_of
from private_ate.models.standardization import noise_bits
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.noise import Noise
from private_ate.release import Pair
from private_ate.settings import ABSENT
from private_ate.study import Groups, Study

__all__ = [
    "MODELS", "BlocksOptions", "combined_half_width", "estimate_blocks", "estimate_cell",
    "lifted_spread", "variance_cap",
]  # fmt: skip


_LARGEST_PARTITIONS: Final = 100
# In units of its noise: how far the block variance is shifted up, and its least value. Where
# covariates explain two thirds of the outcome the true value is about as large as the noise, and
# without the floor one interval in ten would be less than half as wide as it should be.
_SHIFT: Final = 1.5
_FLOOR: Final = 1.4
MODELS: Final[dict[Model, Callable[..., BlockEffects]]] = {
    "linear": linear_effects,
    "overlap": overlap_effects,
    "doubly_robust": average_effects,
}


@dataclass(frozen=True, slots=True)
class _Result:
    """What either path hands over, in units of the outcome's range.

    ``noise`` is the quantile of the last step's noise (q), ``half`` that of the whole interval,
    None if none was paid for; ``facts`` go into the settings. ``law`` is that of the noise, where
    it has a simple one, ``variance`` that of sampling, and ``count`` tells of the rows.
    """

    effect: float
    noise: float
    half: float | None
    facts: Facts
    is_overlap_weighted: bool = False
    law: NoiseDistribution | None = None
    variance: float | None = None
    counted: Count | None = None


def estimate_blocks(study: Study, request: Request, noise: Noise) -> Estimate:
    """Estimate an average treatment effect with whole records private.

    Neighbours: one person's rows replaced, n public. Cost: the request's ε, pure. Proof:
    docs/proofs/blocks.md.
    """
    options = options_of(request, BlocksOptions, "blocks")
    if request.probability is not None:
        return _of_result(study, request, noise, _compare_trial(study, request, noise))
    # Drawn before any noise, so that partitions never depend on what was released.
    keys = draw_keys(options.partitions or _LARGEST_PARTITIONS, noise)
    scope = Scope(study.size)
    plan = _plan(study, request, options, scope)
    if not worth_trying(study.size, plan, request.design, options):
        result = _compare(study, request, noise, scope)
    else:
        result = _try_blocks(study, request, options, noise, keys, scope)
    return _of_result(study, request, noise, result)


def estimate_cell(study: Study, request: Request, noise: Noise, cells: int) -> CellEffect:
    """Estimate the effect in one of several private cells; rows outside of it take no part.

    How many rows the cell holds is private: they are counted, and the noisy count decides about
    blocks, which are cut from all n positions. Neighbours: one row enters or leaves the cell, n
    public. Cost: the request's ε, pure. Proof: docs/proofs/subgroups.md.
    """
    options = options_of(request, BlocksOptions, "blocks")
    keys = draw_keys(options.partitions or _LARGEST_PARTITIONS, noise)
    scope = Scope(study.size, cells)
    may_adjust = study.dimension > 0 and options.adjust is not False
    if request.design == "randomized" or not may_adjust:
        result = _compare(study, request, noise, scope)
    else:
        result = _try_blocks(study, request, options, noise, keys, scope)
    if result.counted is None:
        msg = "a private cell is counted on either path"
        raise TypeError(msg)
    width = study.domain.bounds.width
    return CellEffect(
        width * result.effect,
        _law(result, request, width),
        None if result.variance is None else width**2 * result.variance,
        result.counted,
        result.facts,
    )


def _of_result(study: Study, request: Request, noise: Noise, result: _Result) -> Estimate:
    """Return a result in units of the outcome."""
    width = study.domain.bounds.width
    return Estimate(
        ate=width * result.effect,
        noise_interval=_around(result.effect, result.noise, width),
        interval=None if result.half is None else _around(result.effect, result.half, width),
        settings=_settings(study, request, result, noise),
        estimand="ato" if result.is_overlap_weighted else None,
        quantities=(
            Quantity(
                width * result.effect,
                (_law(result, request, width),),
                () if result.variance is None else (width**2 * result.variance,),
            ),
        ),
    )


def _compare_trial(study: Study, request: Request, noise: Noise) -> _Result:
    """Compare the arms of a trial by the probability that its protocol names."""
    probability = probability_of(study.domain, request.probability or 0.5)
    trial = estimate_trial(study, request, noise, probability)
    facts = trial_facts(trial)
    return _Result(trial.value, trial.noise, trial.half, facts, counted=trial.counted)


def _law(result: _Result, request: Request, width: float) -> NoiseDistribution:
    """Return the law of the last step's noise in units of the outcome, or one much like it."""
    law = result.law or laplace_of(result.noise, request.coverage)
    return replace(law, unit=width * law.unit)


def _per_row(request: Request) -> Fraction:
    return request.epsilon / request.rows_per_person


def _plan(
    study: Study,
    request: Request,
    options: BlocksOptions,
    scope: Scope,
    counted: Count | None = None,
) -> BlocksPlan:
    weighted = counted is not None and counted.squares is not None
    return plan_blocks(
        scope.expected,
        study.dimension,
        float(_per_row(request)),
        share=0.5 if counted is None else counted.share,
        members=None if counted is None else counted.worth(scope.rows),
        mass=counted.total if weighted and counted is not None else None,
        rows=scope.rows,
        estimand=request.estimand,
        with_interval=request.confidence is not None,
        options=options,
    )


def _compare(
    study: Study, request: Request, noise: Noise, scope: Scope, counted: Count | None = None
) -> _Result:
    """Compare the arms as they are; a count that was paid for already is made use of."""
    changes, epsilon = request.rows_per_person, request.epsilon
    shares = plain_shares(
        scope.expected, float(_per_row(request)), with_interval=request.confidence is not None
    )
    tried = counted is not None
    counted, used = _count_for_comparison(study, request, noise, scope, shares.counts, counted)
    start = release_start(
        study, noise, counted,
        sum_epsilon=epsilon * shares.sums,
        effect_epsilon=epsilon * (1 - used - shares.sums - shares.interval),
        changes=changes,
        in_cell=scope.in_cell,
    )  # fmt: skip
    reach = start.noise_quantile(request.coverage)
    half = variance = None
    if shares.interval:
        square = release_square(
            study, noise, start, epsilon=epsilon * shares.interval, changes=changes
        )
        variance = changes * square / start.members + start.count_variance
        half = combined_half_width(variance, reach, request.coverage)
    return _Result(
        start.value, reach, half, unadjusted_facts(request.design, tried=tried),
        law=NoiseDistribution("staircase", start.unit, start.epsilon), variance=variance,
        counted=counted,
    )  # fmt: skip


def _count_for_comparison(
    study: Study,
    request: Request,
    noise: Noise,
    scope: Scope,
    share: Fraction,
    counted: Count | None,
) -> tuple[Count, Fraction]:
    """Return a count with ``share`` of ε behind it, and the share that counting took in all."""
    changes = request.rows_per_person
    if counted is None:
        fresh = release_count(
            study, noise, epsilon=request.epsilon * share, changes=changes, in_cell=scope.in_cell
        )
        return fresh, share
    used = count_share(scope.expected, float(_per_row(request)))
    if share <= used:
        return counted, used
    again = request.epsilon * (share - used)
    step = "treated count, once more"
    fresh = release_count(
        study, noise, epsilon=again, changes=changes, step=step, in_cell=scope.in_cell
    )
    return counted.combine(fresh), share


def _try_blocks(
    study: Study,
    request: Request,
    options: BlocksOptions,
    noise: Noise,
    keys: bytes,
    scope: Scope,
) -> _Result:
    """Count the treated rows, and cut blocks if their share leaves enough in every block.

    In a private cell the count also stands for the rows by which the public rule decides.
    """
    per_row, changes = float(_per_row(request)), request.rows_per_person
    counting = request.epsilon * count_share(scope.expected, per_row)
    counted = release_count(study, noise, epsilon=counting, changes=changes, in_cell=scope.in_cell)
    plan = _plan(study, request, options, scope, counted)
    rows = counted.members if scope.in_cell else study.size
    if not worth_trying(rows, plan, request.design, options):
        return _compare(study, request, noise, scope, counted)
    start = release_start(
        study, noise, counted,
        sum_epsilon=request.epsilon * SUM_SHARE,
        effect_epsilon=request.epsilon * plan.centre,
        changes=changes,
        step="starting point",
        in_cell=scope.in_cell,
    )  # fmt: skip
    cap = spread = None
    if request.confidence is not None:
        variance = release_outcome_variance(
            study, noise, start, epsilon=request.epsilon * SQUARE_SHARE, changes=changes
        )
        square = variance * float(start.score.rate[0])
        cap = variance_cap(square, counted.worth(study.size) / plan.blocks, study.dimension)
        spread = math.sqrt(variance)
    shuffles = draw_shuffles(study.size, plan.blocks, plan.partitions, keys)
    result = _release_centre(study, request, noise, _Cut(plan, start, cap, tuple(shuffles), scope))
    notes = (
        *result.facts["notes"],
        *rare_arm_note(plan, counted.share, study.domain.treatment.coded),
        *wide_bounds_note(study.domain.bounds, spread),
    )
    return replace(result, counted=counted, facts={**result.facts, "notes": notes})


@dataclass(frozen=True, slots=True)
class _Cut:
    """Everything about the blocks that was decided before they are looked at."""

    plan: BlocksPlan
    start: Start
    cap: float | None
    shuffles: tuple[Shuffle, ...]
    scope: Scope

    @property
    def block_rows(self) -> int | None:
        """How many rows of a cell a block is expected to hold; None where all rows are meant."""
        return round(self.start.members / self.plan.blocks) if self.scope.in_cell else None

    @property
    def steps(self) -> int:
        """Steps across the outcome's range, for block effects and candidates."""
        return 1 << self.plan.value_bits

    @property
    def size(self) -> int:
        """The number of block effects (N)."""
        return self.plan.blocks * self.plan.partitions


def variance_cap(square: float, rows: float, dimension: int) -> float:
    """Return the bound to which a block's variance is clipped, twice what is expected of it.

    Covariates that explain nothing of the outcome are what is expected.
    """
    return 2 * square / max(rows - 1.6 * dimension - 2, rows / 4)


def _release_centre(study: Study, request: Request, noise: Noise, cut: _Cut) -> _Result:
    """Look at every block once, then release the spread and the centre of their effects.

    Neighbours: at most ``rows_per_person`` rows per partition are in other hands, so at most
    ``partitions·rows_per_person`` block effects and variances change, by any amount.
    """
    changes = cut.plan.partitions * request.rows_per_person
    bits = noise_bits(changes, request.epsilon * SPREAD_SHARE)
    values = _block_values(study, request.estimand, cut, bits)
    variance = None
    if cut.cap is not None:
        variance = cut.cap * _release_spread(values[:, 1], request, noise, changes, bits)
    rule = centre_rule(
        round(cut.start.value * cut.steps),
        bits=cut.plan.candidate_bits,
        value_bits=cut.plan.value_bits,
        trim=cut.plan.trim(_per_row(request)),
    )
    epsilon = request.epsilon * cut.plan.effect
    released = noise.trimmed_centre(
        "effect", values[:, 0], rule=rule, changes=changes, epsilon=epsilon
    )
    guess = 0.0 if variance is None else math.sqrt(variance) * cut.steps
    quantile = noise_quantile(
        rule, effect=released, spread=guess, size=cut.size,
        rate=epsilon / (2 * changes), coverage=request.coverage,
    )  # fmt: skip
    reach = quantile / cut.steps
    half = sampling = None
    if variance is not None:
        sampling = 1.1 * request.rows_per_person * variance / cut.plan.blocks
        half = combined_half_width(sampling, reach, request.coverage)
    width = study.domain.bounds.width
    facts = adjusted_facts(
        cut.plan, request.estimand, window=rule.window(cut.size),
        start=width * cut.start.value, reach=width * reach,
    )  # fmt: skip
    return _Result(
        released / cut.steps, reach, half, facts, cut.plan.model == "overlap", variance=sampling
    )


def _block_values(study: Study, estimand: Estimand, cut: _Cut, bits: int) -> Integers:
    """Return the effect and the variance of every block of every partition, in steps."""
    start = round(cut.start.value * cut.steps)
    cap = 1.0 if cut.cap is None else cut.cap
    inside, bends, rows = MODELS[cut.plan.model], cut.plan.bends, cut.block_rows

    def kernel(groups: Groups) -> Integers:
        held = groups if rows is None else packed(groups, packed_length(rows))
        effects = inside(held, bends=bends, estimand=estimand, length=rows)
        return _quantized(effects, start, cut.steps, cap, 1 << bits)

    parts = [study.by_groups(shuffle, kernel, title="blocks") for shuffle in cut.shuffles]
    return np.concatenate(parts)


def _quantized(effects: BlockEffects, start: int, steps: int, cap: float, bound: int) -> Integers:
    """Put effects and variances on their grids; a block without an effect has the start's."""
    effect = np.rint(np.clip(effects.effect, -1.0, 1.0) * steps)
    share = np.where(effects.usable & np.isfinite(effects.variance), effects.variance / cap, 1.0)
    variance = np.rint(np.clip(share, 0.0, 1.0) * bound)
    return np.column_stack([np.where(effects.usable, effect, start), variance]).astype(np.int64)


def _release_spread(
    variances: Integers, request: Request, noise: Noise, changes: int, bits: int
) -> float:
    """Release the mean variance of a block effect as a share of its cap, a little too high."""
    epsilon = request.epsilon * SPREAD_SHARE
    noisy = noise.laplace(
        "block variance", [int(variances.sum())], sensitivity=changes << bits, epsilon=epsilon
    )
    scale = changes / (variances.size * float(epsilon))
    return lifted_spread(noisy[0] / (variances.size << (bits + 1)), scale)


def lifted_spread(share: float, scale: float) -> float:
    """Return a noisy mean variance as a share of its cap, lifted by the scale of its noise."""
    return min(max(share + _SHIFT * scale, 0.05, _FLOOR * scale), 1.0)


def combined_half_width(variance: float, reach: float, coverage: float) -> float:
    """Combine a nearly normal error with the exact quantile of the last step's noise."""
    normal = float(ndtri((1 + coverage) / 2))
    return math.sqrt(normal**2 * variance + reach**2)


def _around(effect: float, half: float, width: float) -> Pair:
    """Return an interval around the effect, within what an effect can be."""
    return width * max(effect - half, -1.0), width * min(effect + half, 1.0)


def _settings(study: Study, request: Request, result: _Result, noise: Noise) -> BlocksSettings:
    """Return public facts and released numbers; block effects stay inside."""
    settings = BlocksSettings(
        **weighted_facts(result.facts, study.domain.weights),
        design=request.design,
        estimand=request.estimand,
        confidence=request.coverage,
        rows_per_person=request.rows_per_person,
        budget={spend.step: float(spend.epsilon) for spend in noise.spends},
        noise_interval_covers="the last step's noise only; not sampling, not confounding",
        private_weights=released_weights(study, result.counted),
    )
    return replace(settings, interval_covers=ABSENT) if request.confidence is None else settings
