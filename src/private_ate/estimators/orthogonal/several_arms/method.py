"""Levels of three arms and more for one ε: a row is in one arm, so every contrast is free.

Released sizes of the arms decide how far the estimate adjusts: not at all, by a prognosis that is
taken off all outcomes, or by weights along a private score of each arm as well. Then the levels
of all arms are released at once. Privacy: docs/proofs/several-arms-sample.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from private_ate.arrays import Floats
from private_ate.domain import Interval
from private_ate.effects.estimate import ArmEstimate
from private_ate.effects.quantities import Quantity
from private_ate.estimators.orthogonal.plan import OrthogonalOptions, ScoreModel
from private_ate.estimators.orthogonal.several_arms.aggregate import (
    Levels,
    Weighing,
    release_common,
    release_means,
    release_variances,
)
from private_ate.estimators.orthogonal.several_arms.cells import release_cells, smooth_cells
from private_ate.estimators.orthogonal.several_arms.levels import release_levels
from private_ate.estimators.orthogonal.several_arms.limits import (
    Limits,
    Weights,
    choose_weights,
    drift_variances,
    equal_weights,
    replay_variances,
)
from private_ate.estimators.orthogonal.several_arms.models import (
    Step,
    fit_joint_scores,
    fit_prognosis,
    fit_scores,
    place_cells,
)
from private_ate.estimators.orthogonal.several_arms.plan import (
    Ask,
    Path,
    Plan,
    Shares,
    interval_features,
    plan_path,
    refuse_shares,
    shares_of,
    size_share,
)
from private_ate.estimators.orthogonal.several_arms.rows import (
    PROGNOSIS_BOUND,
    AsTheyAre,
    Outcomes,
    Prognosis,
    Scores,
)
from private_ate.estimators.orthogonal.several_arms.sizes import NoisySizes, release_sizes
from private_ate.estimators.request import Request
from private_ate.models.squares import SquaredFeatures
from private_ate.models.standardization import release_scaling
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.noise import Noise
from private_ate.study import Study

__all__ = ["ReleasedArms", "release_arms"]


@dataclass(frozen=True, slots=True)
class ReleasedArms:
    """Arms as released, in the order of their codes, and how they came about."""

    arms: tuple[ArmEstimate, ...]
    ask: Ask
    plan: Plan
    sizes: NoisySizes
    weights: Weights


@dataclass(frozen=True, slots=True)
class _Weighted:
    """Weights of rows, where their cells lie, and what cells and limits add to squared errors."""

    weights: Weights
    scores: Scores | None
    variance: Floats


@dataclass(frozen=True, slots=True)
class _Steps:
    """The study, its noise, and what every step may spend."""

    study: Study
    noise: Noise
    ask: Ask
    sizes: NoisySizes
    shares: Shares
    epsilon: Fraction
    changes: int

    def step(self, share: Fraction) -> Step:
        """Return a step with this share of ε."""
        return Step(self.epsilon * share, self.changes)


def release_arms(
    study: Study, request: Request, options: OrthogonalOptions, noise: Noise
) -> ReleasedArms:
    """Release the level of every arm with whole records private.

    Neighbours: one person's rows replaced, n public. Cost: the request's ε, pure. Proof:
    docs/proofs/several-arms-sample.md.
    """
    refuse_shares(options)
    changes = request.rows_per_person
    ask = Ask(
        study.size, study.dimension, len(interval_features(study.domain)),
        study.domain.treatment.size, float(request.epsilon) / changes,
    )  # fmt: skip
    sizes = release_sizes(
        study, noise,
        epsilon=request.epsilon * size_share(ask.size, ask.epsilon), changes=changes,
    )  # fmt: skip
    plan = plan_path(ask, sizes, options)
    with_means = options.means and plan.path is not Path.PLAIN
    shares = shares_of(
        plan.path, ask, with_interval=request.confidence is not None, with_means=with_means
    )
    steps = _Steps(study, noise, ask, sizes, shares, request.epsilon, changes)
    outcomes, scores = _adjust(steps, plan.path, options.score_model)
    levels = release_levels(study, outcomes, sizes, noise, steps.step(shares.sums))
    weighted = _weigh(steps, outcomes, scores, levels)
    weighing = Weighing(outcomes, weighted.scores, weighted.weights.weights, levels)
    released = release_means(study, weighing, sizes, noise, steps.step(shares.levels))
    variance = None
    if shares.interval:
        square = release_variances(study, weighing, sizes, noise, steps.step(shares.interval))
        variance = square + weighted.variance + released.count_variance
    common = _common_level(steps, outcomes)
    arms = _estimates(steps, outcomes, weighted.weights, released, variance, common)
    return ReleasedArms(arms, ask, plan, sizes, weighted.weights)


def _adjust(steps: _Steps, path: Path, score_model: ScoreModel) -> tuple[Outcomes, Scores | None]:
    """Release the scaling and the models of the path, as far as it has any."""
    if path is Path.PLAIN:
        return AsTheyAre(), None
    study, noise, ask, shares = steps.study, steps.noise, steps.ask, steps.shares
    scaling = release_scaling(
        study, noise,
        epsilon=steps.epsilon * shares.scaling, changes=steps.changes,
        stretch=ask.stretch, members=steps.sizes.members,
    )  # fmt: skip
    design = SquaredFeatures(scaling, interval_features(study.domain) if ask.with_squares else ())
    prognosis = fit_prognosis(study, design, noise, steps.step(shares.outcome_model))
    if path is Path.PROGNOSIS:
        return prognosis, None
    fit = fit_joint_scores if score_model == "joint" else fit_scores
    scores = fit(study, design, noise, steps.step(shares.score_model), cells=ask.cells)
    placed = place_cells(
        study, scores, noise, steps.step(shares.place), members=steps.sizes.members
    )
    return prognosis, placed


def _weigh(steps: _Steps, outcomes: Outcomes, scores: Scores | None, levels: Floats) -> _Weighted:
    """Weight rows along the scores of their arms, or alike where there are none."""
    if scores is None:
        return _Weighted(equal_weights(steps.sizes.shares), None, np.zeros(steps.sizes.arms))
    cells, law = release_cells(steps.study, scores, steps.noise, steps.step(steps.shares.cells))
    smooth = smooth_cells(cells, law)
    per_move = float(steps.epsilon * steps.shares.levels) / (2 * steps.changes)
    given = Limits(outcomes.width, levels, steps.sizes.members, per_move)
    equal = equal_weights(steps.sizes.shares, scores.cells)
    weights = choose_weights(smooth, equal, steps.sizes.counting, given)
    left = drift_variances(smooth, weights, given)
    return _Weighted(weights, scores, left + replay_variances(smooth, weights, law, given))


def _common_level(steps: _Steps, outcomes: Outcomes) -> float | None:
    """Return what was taken off all outcomes on average; None where nobody paid for it."""
    if not isinstance(outcomes, Prognosis):
        return 0.0
    if not steps.shares.means:
        return None
    step = steps.step(steps.shares.means)
    return release_common(steps.study, outcomes, steps.sizes, steps.noise, step)


def _estimates(
    steps: _Steps,
    outcomes: Outcomes,
    weights: Weights,
    released: Levels,
    variance: Floats | None,
    common: float | None,
) -> tuple[ArmEstimate, ...]:
    """Return the arms in units of the outcome; levels are kept within what a level can be."""
    bounds = steps.study.domain.bounds
    half = outcomes.width / 2
    width = bounds.width
    levels = np.clip(released.values, -half, half)
    shared = None
    if steps.shares.means:
        unit = 2 * PROGNOSIS_BOUND * steps.changes / steps.sizes.members
        shared = NoiseDistribution("laplace", width * unit, steps.epsilon * steps.shares.means)
    return tuple(
        ArmEstimate(
            Quantity(
                width * float(levels[arm]),
                (
                    NoiseDistribution(
                        "staircase", width * float(released.units[arm]), released.epsilon
                    ),
                ),
                () if variance is None else (width**2 * float(variance[arm]),),
            ),
            mean=None if common is None else _mean(float(levels[arm]) + common, bounds),
            weighted=weighted,
            mean_noise=shared,
        )
        for arm, weighted in enumerate(weights.weighted)
    )


def _mean(share: float, bounds: Interval) -> float:
    """Return a mean within the bounds, given in units of their width from their middle."""
    return bounds.middle + bounds.width * min(max(share, -0.5), 0.5)
