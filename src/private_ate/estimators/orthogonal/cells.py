"""Cells along a private score: released counts and sums, smoothed after the fact.

A unit is matched to all units of the other arm in its cell. Everything below ``release_cells``
reads released numbers only and costs nothing. Arrays hold one entry per cell; a leading axis, if
any, runs over replays of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

import numpy as np
from scipy.special import expit

from private_ate.arrays import Floats
from private_ate.estimators.orthogonal.smoothing import blend, score_basis, weighted_fit
from private_ate.estimators.request import Estimand
from private_ate.privacy.quantiles import staircase_variance

__all__ = [
    "CellCounts", "CellModel", "CellNoise", "CellScore", "LimitedScore",
    "choose_limit", "plain_score", "replay_variance", "rough_effect", "smooth_cells",
]  # fmt: skip


_LIMITS = (2, 2.5, 3, 4, 5, 6.5, 8, 10, 13, 17, 22, 30, 45, 70, 120, 200)
_NEWTON_STEPS = 25
_SHARE_RIDGE = np.diag([1e-6, 0.5, 4.0])
_CENTRE_BOUND = 0.45  # of the range: how far from its middle outcomes are centred
_EFFECT_SPREAD = 0.15  # of the range: how large an effect is thought to be
_OUTCOME_SPREAD = 1 / 8  # of the range: how far outcomes are thought to vary within a cell
_HETEROGENEITY = 0.02  # of the range: how far effects may differ between populations


@dataclass(frozen=True, slots=True)
class CellCounts:
    """Released counts and outcome sums per arm and cell; sums in units of the declared range."""

    treated: Floats
    control: Floats
    treated_sum: Floats
    control_sum: Floats


@dataclass(frozen=True, slots=True)
class CellNoise:
    """Laplace scales of the counts and sums, the range of outcomes and the number of rows.

    The number is n, or a noisy count where rows may take no part.
    """

    count_scale: float
    sum_scale: float
    width: float
    size: float


@dataclass(frozen=True, slots=True)
class CellModel:
    """Smoothed cells: shares of rows and of treated, mean outcomes and centred outcomes.

    ``estimand`` says over whose units effects of cells are averaged.
    """

    weight: Floats
    share: Floats
    mean: Floats
    centre: Floats
    estimand: Estimand = "ate"

    @property
    def tilt(self) -> Floats:
        """By how much a row of a cell counts (ω): 1, p, 1 − p or p(1 − p)."""
        match self.estimand:
            case "ate":
                return np.ones_like(self.share)
            case "att":
                return self.share
            case "atc":
                return 1 - self.share
            case "ato":
                return self.share * (1 - self.share)
            case _:
                assert_never(self.estimand)


@dataclass(frozen=True, slots=True)
class CellScore:
    """The orthogonal score ``rate·(T − share)·(y − centre)`` of every cell, and its bounds.

    The bounds are those that no value of an outcome within its range can leave; rows are clipped
    to them all the same, so the sensitivity does not rest on this.
    """

    rate: Floats
    share: Floats
    centre: Floats
    low: float
    high: float

    @classmethod
    def of(cls, rate: Floats, share: Floats, centre: Floats, width: float) -> CellScore:
        """Take the bounds over both arms and all cells."""
        half = width / 2
        treated, control = rate * (1 - share), rate * share
        high = np.maximum(treated * (half - centre), control * (half + centre))
        low = np.maximum(treated * (half + centre), control * (half - centre))
        return cls(rate, share, centre, -float(low.max()), float(high.max()))

    @property
    def width(self) -> float:
        """The sensitivity of the sum of scores (D)."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class LimitedScore:
    """A score and the matching limit (K) it keeps."""

    score: CellScore
    limit: float


def plain_score(arms: CellCounts, noise: CellNoise) -> CellScore:
    """Return the score of a single cell; the share of treated is kept away from 0 and 1."""
    least = min(max(2.0, 0.005 * noise.size), noise.size / 2)
    treated = np.clip(arms.treated, least, noise.size - least)
    control = noise.size - treated
    bound = _CENTRE_BOUND * noise.width
    mean = np.clip((arms.treated_sum + arms.control_sum) / noise.size, -bound, bound)
    raw = arms.treated_sum / treated - arms.control_sum / control
    variance = 2 * noise.sum_scale**2 * (1 / treated**2 + 1 / control**2)
    variance = variance + 2 * noise.count_scale**2 * mean**2 * (1 / treated + 1 / control) ** 2
    share = treated / noise.size
    effect = _shrunken(raw, variance, noise.width)
    centre = np.clip(mean + (1 - 2 * share) * effect, -bound, bound)
    return CellScore.of(1 / (share * (1 - share)), share, centre, noise.width)


def smooth_cells(cells: CellCounts, noise: CellNoise, estimand: Estimand = "ate") -> CellModel:
    """Smooth shares and means along the score, then blend with each cell's own value."""
    basis = score_basis(cells.treated.shape[-1])
    share, total = _smooth_shares(cells, noise, basis)
    weight = total / total.sum(axis=-1, keepdims=True)
    mean = _smooth_means(cells, noise, basis, weight * noise.size)
    effect = rough_effect(cells, noise, mean)
    bound = _CENTRE_BOUND * noise.width
    centre = np.clip(mean + (1 - 2 * share) * effect[..., None], -bound, bound)
    return CellModel(weight, share, mean, centre, estimand)


def choose_limit(
    model: CellModel, noise: CellNoise, *, epsilon: Fraction, changes: int
) -> LimitedScore:
    """Choose the matching limit K by the expected error it leads to; released numbers only."""
    scores = [LimitedScore(_limited_score(model, noise.width, k), float(k)) for k in _LIMITS]
    unit_variance = staircase_variance(float(epsilon)) * (changes / noise.size) ** 2
    return min(scores, key=lambda one: _expected_error(model, noise, one.score, unit_variance))


def _expected_error(
    model: CellModel, noise: CellNoise, score: CellScore, unit_variance: float
) -> float:
    """Return noise and sampling variance, and the square of a drift of the population."""
    overlap = model.weight * score.rate * model.share * (1 - model.share)
    sampling = (_OUTCOME_SPREAD * noise.width) ** 2 / noise.size * float(overlap @ score.rate)
    wanted = model.weight * model.tilt
    wanted = wanted / wanted.sum()
    drift = _HETEROGENEITY * noise.width * float(np.abs(overlap - wanted).sum())
    return unit_variance * score.width**2 + sampling + drift**2


def _limited_score(model: CellModel, width: float, limit: float) -> CellScore:
    """Return the score in which no unit is used more than ``limit`` times, before normalising."""
    return CellScore.of(_limited_rate(model, limit), model.share, model.centre, width)


def _limited_rate(model: CellModel, limit: float) -> Floats:
    """Return ``ω/(p(1 − p))`` with p kept within the limit, so that weights of cells add to one.

    The effect of a cell is ``E[(T − p)(y − C)]/(p(1 − p))``; averaged with weights ω it is that
    of the estimand.
    """
    kept = np.clip(model.share, 1 / limit, 1 - 1 / limit)
    rate = model.tilt / (kept * (1 - kept))
    total = (model.weight * rate * model.share * (1 - model.share)).sum(axis=-1, keepdims=True)
    scaled: Floats = rate / total
    return scaled


def replay_variance(
    model: CellModel, noise: CellNoise, laplace: Floats, *, effect: float, limit: float
) -> float:
    """Return the mean square change of the estimate when the cells' noise is drawn again.

    ``laplace`` holds unit Laplace draws of shape (replays, 4, cells).
    """
    drawn = smooth_cells(_replayed(model, noise, laplace, effect), noise, model.estimand)
    rate = _limited_rate(drawn, limit)
    treated = model.share * (1 - drawn.share)
    treated = treated * (model.mean + (1 - model.share) * effect - drawn.centre)
    control = (1 - model.share) * drawn.share
    control = control * (model.mean - model.share * effect - drawn.centre)
    estimates = (model.weight * rate * (treated - control)).sum(axis=-1)
    return float(np.mean((estimates - effect) ** 2))


def _replayed(model: CellModel, noise: CellNoise, laplace: Floats, effect: float) -> CellCounts:
    """Return what the cells would show under fresh noise if the smoothed model were true."""
    treated = noise.size * model.weight * model.share
    control = noise.size * model.weight * (1 - model.share)
    return CellCounts(
        treated + noise.count_scale * laplace[:, 0],
        control + noise.count_scale * laplace[:, 1],
        treated * (model.mean + (1 - model.share) * effect) + noise.sum_scale * laplace[:, 2],
        control * (model.mean - model.share * effect) + noise.sum_scale * laplace[:, 3],
    )


def _smooth_shares(cells: CellCounts, noise: CellNoise, basis: Floats) -> tuple[Floats, Floats]:
    """Fit a quadratic logit to the treated shares, weighted by noise, and blend."""
    variance = 2 * noise.count_scale**2
    total = np.maximum(cells.treated + cells.control, 1.0)
    treated = np.clip(cells.treated, 0.0, total)
    overall = np.clip(treated.sum(axis=-1) / total.sum(axis=-1), 0.01, 0.99)
    logit = np.broadcast_to(np.log(overall / (1 - overall))[..., None], total.shape)
    for _ in range(_NEWTON_STEPS):
        share = expit(logit)
        spread = np.maximum(share * (1 - share), 1e-3)
        weight = (total * spread) ** 2 / (total * spread + variance)
        response = np.clip(logit + (treated / total - share) / spread, -6.0, 6.0)
        logit = weighted_fit(basis, weight, response, _SHARE_RIDGE)
    share = expit(logit)
    raw = np.clip(cells.treated / total, 0.0, 1.0)
    uncertainty = variance * (1 - 2 * share + 2 * share**2) / total**2
    uncertainty = uncertainty + share * (1 - share) / total
    return np.clip(blend(share, raw, uncertainty), 0.005, 0.995), total


def _smooth_means(cells: CellCounts, noise: CellNoise, basis: Floats, total: Floats) -> Floats:
    """Fit a quadratic to the mean outcomes of the cells, weighted by noise, and blend."""
    variance = 2 * noise.sum_scale**2
    sums = cells.treated_sum + cells.control_sum
    within = (_OUTCOME_SPREAD * noise.width) ** 2
    prior = np.diag([0.0, 1 / (0.2 * noise.width) ** 2, 1 / (0.05 * noise.width) ** 2])
    weight = total**2 / (2 * variance + total * within)
    fitted = weighted_fit(basis, weight, sums / total, prior)
    uncertainty = 2 * variance / total**2 + within / total
    return blend(fitted, sums / total, uncertainty)


def rough_effect(cells: CellCounts, noise: CellNoise, mean: Floats) -> Floats:
    """Return a shrunken difference in means of the arms, to centre outcomes and scores by."""
    arms = [np.maximum(count.sum(axis=-1), 10.0) for count in (cells.treated, cells.control)]
    raw = cells.treated_sum.sum(axis=-1) / arms[0] - cells.control_sum.sum(axis=-1) / arms[1]
    level = mean.mean(axis=-1) ** 2
    number = mean.shape[-1]
    variance = number * 2 * (noise.sum_scale**2 + noise.count_scale**2 * level)
    variance = variance * (1 / arms[0] ** 2 + 1 / arms[1] ** 2)
    return _shrunken(raw, variance, noise.width)


def _shrunken(raw: Floats, variance: Floats, width: float) -> Floats:
    """Shrink a noisy difference in means as its noise suggests and keep it within the range."""
    prior = (_EFFECT_SPREAD * width) ** 2
    shrunken: Floats = np.clip(raw * prior / (prior + variance), -width / 2, width / 2)
    return shrunken
