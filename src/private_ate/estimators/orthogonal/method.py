"""Our sample-level method: a private score, cells along it, one orthogonal aggregate.

Noise is added to sums over records, never to records. A public rule decides from n, d and ε
whether a private propensity score can pay for itself. If so, units are matched within cells of
that score up to a limit chosen from released numbers; if not, the arms are compared as they are.
Either way the estimate is the mean of a score whose error is a product of two small errors.
Three arms and more are released together, by a package of their own (``several_arms``).
Privacy: docs/proofs/orthogonal.md.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from private_ate.arrays import Floats
from private_ate.domain.weights import WEIGHTED
from private_ate.effects.estimate import Estimate
from private_ate.estimators.blocks.facts import released_weights
from private_ate.estimators.blocks.unadjusted import Count, release_count
from private_ate.estimators.orthogonal.aggregate import (
    Effect,
    Members,
    release_effect,
    release_variance,
)
from private_ate.estimators.orthogonal.cells import (
    CellModel,
    CellNoise,
    CellScore,
    LimitedScore,
    choose_limit,
    plain_score,
    replay_variance,
    rough_effect,
    smooth_cells,
)
from private_ate.estimators.orthogonal.plan import (
    Layout,
    OrthogonalOptions,
    orthogonal_options,
    plain_shares,
    plan_orthogonal,
)
from private_ate.estimators.orthogonal.settings import OrthogonalSettings
from private_ate.estimators.orthogonal.several_arms.estimate import estimate_several_arms
from private_ate.estimators.orthogonal.strata import (
    OneCell,
    Partition,
    Strata,
    release_arms,
    release_cells,
    release_strata,
)
from private_ate.estimators.request import Estimand, Request
from private_ate.models.private_logistic import LogisticObjective
from private_ate.models.standardization import release_scaling
from private_ate.privacy.noise import Noise
from private_ate.release import Pair
from private_ate.settings import ABSENT
from private_ate.study import Study

__all__ = ["OrthogonalOptions", "estimate_orthogonal"]

_PROPENSITY_PART: Final = Fraction(3, 5)  # of the models' share, if there are two
_OVERLAP_LIMIT = 2  # the limit at which units count by their overlap alone
_REPLAYS: Final = 40
_MEMBERS_PART: Final = Fraction(1, 5)  # of the counts' share, for how many rows take part


@dataclass(frozen=True, slots=True)
class _Part:
    """What either path hands over.

    ``variance`` is that of the estimate apart from the noise of its last step; None if no
    interval was paid for. ``limit`` is the matching limit (K); None without adjustment.
    """

    effect: Effect
    variance: float | None
    limit: float | None
    count: Count


def estimate_orthogonal(study: Study, request: Request, noise: Noise) -> Estimate:
    """Estimate an average treatment effect with whole records private.

    Neighbours: one person's rows replaced, n public. Cost: the request's ε, pure. Proof:
    docs/proofs/orthogonal.md.
    """
    options = orthogonal_options(request)
    if study.domain.treatment.size > 2:
        return estimate_several_arms(study, request, options, noise)
    per_row = float(request.epsilon) / request.rows_per_person
    plan = plan_orthogonal(study.size, study.dimension, per_row, options)
    if plan.adjusted:
        part = _adjust(study, request, options, plan, noise)
    else:
        part = _compare(study, request, noise)
    width = study.domain.bounds.width
    coverage = request.coverage
    return Estimate(
        ate=width * _bounded(part.effect.value),
        noise_interval=_around(part.effect, part.effect.noise_quantile(coverage), width),
        interval=None if part.variance is None else _interval(part, coverage, width),
        settings=_settings(study, request, options, plan, part, noise),
        estimand="ato" if part.limit == _OVERLAP_LIMIT else None,
    )


def _compare(study: Study, request: Request, noise: Noise) -> _Part:
    """Compare the arms as they are: counts and sums, then the centred aggregate."""
    changes = request.rows_per_person
    shares = plain_shares(
        study.size,
        float(request.epsilon) / changes,
        with_interval=request.confidence is not None,
    )
    count_epsilon, sum_epsilon = request.epsilon * shares.counts, request.epsilon * shares.sums
    count, arms = release_arms(
        study, noise, count_epsilon=count_epsilon, sum_epsilon=sum_epsilon, changes=changes
    )
    law = CellNoise(count.scale, changes / float(sum_epsilon), 1.0, count.members)
    score = plain_score(arms, law)
    partition = OneCell()
    epsilon = request.epsilon * shares.effect
    mean = (arms.treated_sum + arms.control_sum) / count.members
    members = _members(study, count, rough_effect(arms, law, mean))
    effect = release_effect(
        study, partition, score, noise, members, epsilon=epsilon, changes=changes
    )
    variance = _sampling_variance(
        study, partition, score, noise, effect, members, request, request.epsilon * shares.interval
    )
    return _Part(effect, variance, None, count)


def _adjust(
    study: Study, request: Request, options: OrthogonalOptions, plan: Layout, noise: Noise
) -> _Part:
    """Fit the score, release cells along it, choose the limit, release the aggregate."""
    changes = request.rows_per_person
    shares = options.budget(with_interval=request.confidence is not None)
    budget = {step: request.epsilon * share for step, share in shares.items()}
    count = Count(0.0, float(study.size), 0.0)
    if not study.everyone_takes_part:
        counting = budget["counts"] * _MEMBERS_PART
        budget["counts"] -= counting
        count = release_count(
            study, noise, epsilon=counting, changes=changes, step="rows that take part"
        )
    strata = _fit_strata(study, plan, budget, changes, noise, count.members)
    cells = release_cells(
        study, strata, noise,
        count_epsilon=budget["counts"], sum_epsilon=budget["sums"], changes=changes,
    )  # fmt: skip
    law = CellNoise(
        2 * changes / float(budget["counts"]),
        strata.width * changes / float(budget["sums"]),
        strata.width,
        count.members,
    )
    model = smooth_cells(cells, law, request.estimand)
    epsilon = budget["effect"]
    limited = choose_limit(model, law, epsilon=epsilon, changes=changes)
    members = _members(study, count, rough_effect(cells, law, model.mean))
    effect = release_effect(
        study, strata, limited.score, noise, members, epsilon=epsilon, changes=changes
    )
    variance = _sampling_variance(
        study, strata, limited.score, noise, effect, members, request, budget["interval"]
    )
    if variance is not None:
        variance += _cell_variance(model, law, limited, effect)
    return _Part(effect, variance, limited.limit, count)


def _members(study: Study, count: Count, effect: Floats) -> Members:
    """Return what stands for n: n itself, or the released count and a value to anchor scores."""
    if study.everyone_takes_part:
        return Members(study.size)
    return Members(count.members, float(effect.reshape(-1)[0]), count.deviation)


def _fit_strata(
    study: Study,
    plan: Layout,
    budget: dict[str, Fraction],
    changes: int,
    noise: Noise,
    members: int,
) -> Strata:
    """Release the scaling, the model or models on it, and where the cells lie."""
    scaling = release_scaling(
        study, noise,
        epsilon=budget["scaling"], changes=changes, stretch=plan.stretch, members=members,
    )  # fmt: skip
    part = _PROPENSITY_PART if plan.prognosis else Fraction(1)
    weights = noise.objective(
        "propensity model",
        LogisticObjective(study, scaling, "treatment"),
        changes=changes,
        epsilon=budget["models"] * part,
    )
    prognosis = None
    if plan.prognosis:
        prognosis = noise.objective(
            "outcome model",
            LogisticObjective(study, scaling, "outcome"),
            changes=changes,
            epsilon=budget["models"] * (1 - part),
        )
    strata = Strata(scaling, weights[1:], prognosis, plan.cells)
    return release_strata(
        study, strata, noise, epsilon=budget["score"], changes=changes, members=members
    )


def _sampling_variance(  # noqa: PLR0913  # what was released before, and the step's budget
    study: Study,
    partition: Partition,
    score: CellScore,
    noise: Noise,
    effect: Effect,
    members: Members,
    request: Request,
    epsilon: Fraction,
) -> float | None:
    """Release the variance of the mean score, rows of one person moving together at worst."""
    if not epsilon:
        return None
    changes = request.rows_per_person
    square = release_variance(
        study, partition, score, noise,
        effect=_bounded(effect.value), size=members.size, epsilon=epsilon, changes=changes,
    )  # fmt: skip
    return changes * square / members.size + effect.count_variance


def _cell_variance(
    model: CellModel, law: CellNoise, limited: LimitedScore, effect: Effect
) -> float:
    """Return how much the noise of the cells moves the estimate, by replaying it."""
    shape = (_REPLAYS, 4, model.share.size)
    return replay_variance(
        model, law, _unit_laplace(shape),
        effect=_bounded(effect.value), limit=limited.limit,
    )  # fmt: skip


def _unit_laplace(shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return fixed Laplace variables for a simulation on released numbers; they protect nothing.

    The same in every run, so that an interval is a function of what was released.
    """
    stream = hashlib.shake_128(b"replays of the cells' noise").digest(8 * math.prod(shape))
    uniform = (np.frombuffer(stream, dtype="<u8") >> np.uint64(12)).astype(np.float64) + 0.5
    centred = uniform.reshape(shape) / 2.0**51 - 1.0
    return -np.sign(centred) * np.log1p(-np.abs(centred))


def _bounded(effect: float) -> float:
    """Keep an effect within the declared range of the outcome."""
    return min(max(effect, -1.0), 1.0)


def _around(effect: Effect, half: float, width: float) -> Pair:
    """Return an interval around the effect, within what an effect can be."""
    return width * _bounded(effect.value - half), width * _bounded(effect.value + half)


def _interval(part: _Part, coverage: float, width: float) -> Pair:
    """Combine sampling and cell noise (nearly normal) with the exact quantile of the last step."""
    normal = float(ndtri((1 + coverage) / 2))
    spread = normal**2 * (part.variance or 0.0) + part.effect.noise_quantile(coverage) ** 2
    return _around(part.effect, math.sqrt(spread), width)


def _settings(
    study: Study,
    request: Request,
    options: OrthogonalOptions,
    plan: Layout,
    part: _Part,
    noise: Noise,
) -> OrthogonalSettings:
    """Return public facts and released numbers; models, scores and cells stay inside."""
    covered = (
        "noise and sampling; not confounding that the noisy score failed to remove"
        if plan.adjusted
        else "noise and sampling; not confounding, as nothing was adjusted for"
    )
    return OrthogonalSettings(
        adjusted=plan.adjusted,
        design=request.design,
        signal_to_noise=plan.signal_to_noise,
        adjust_threshold=options.threshold(),
        matching_limit_K=part.limit,
        population=_population(part.limit, request.estimand)
        + ("" if study.domain.weights is None else WEIGHTED),
        estimand=ABSENT if request.estimand == "ate" else request.estimand,
        confidence=request.coverage,
        rows_per_person=request.rows_per_person,
        budget={spend.step: float(spend.epsilon) for spend in noise.spends},
        interval_covers=ABSENT if request.confidence is None else covered,
        noise_interval_covers="the last step's noise only; not sampling, not confounding",
        notes=(_note(options, plan),),
        private_weights=released_weights(study, part.count),
    )


def _population(limit: float | None, estimand: Estimand) -> str:
    if limit is None:
        return "all n units, arms compared as they are (the ATE if treatment was random)"
    if estimand == "ate":
        return (
            f"units weighted by overlap, each used at most about {limit:g} times "
            "(K = 2: the overlap population; large K: all n units)"
        )
    if estimand == "ato":
        return "units weighted by overlap (ATO)"
    arm = "treated" if estimand == "att" else "control"
    return f"the {arm} units ({estimand.upper()}), overlap-limited (K = {limit:g})"


def _note(options: OrthogonalOptions, plan: Layout) -> str:
    if plan.adjusted:
        return "adjusted for covariates through a noisy score; some confounding may remain"
    if options.adjust is False:
        return "not adjusted for covariates, as asked: this is a difference in means"
    advice = "lower adjust_threshold or set adjust if you fear confounding more than noise"
    return f"n·ε is too small to adjust, so this is a difference in means; {advice}"
