"""Cells along the scores: how many rows of an arm and of all others, and smooth shares of it.

Arrays have shape (K, G): an arm, then a cell along the score of that arm. A leading axis, if any,
runs over replays of the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import expit

from private_ate.arrays import Floats, Integers
from private_ate.estimators.orthogonal.several_arms.models import Step
from private_ate.estimators.orthogonal.several_arms.rows import Scores
from private_ate.estimators.orthogonal.smoothing import blend, score_basis, weighted_fit
from private_ate.models.folds import by_chunks
from private_ate.privacy.noise import Noise
from private_ate.study import Block, Study

__all__ = ["ArmCells", "CountNoise", "NoisyCells", "release_cells", "smooth_cells"]

_COUNT_BITS: Final = 20  # counts are released on the grid 2⁻²⁰
_NEWTON_STEPS: Final = 25
_SHARE_RIDGE: Final = np.diag([1e-6, 0.5, 4.0])
_LEAST_SHARE: Final = 0.003


@dataclass(frozen=True, slots=True)
class CountNoise:
    """Laplace scales of the counts of an arm's own rows and of all other rows in its cells."""

    inside: float
    outside: float


@dataclass(frozen=True, slots=True)
class NoisyCells:
    """Released counts of rows of the arm and of other arms; shape (K, G)."""

    inside: Floats
    outside: Floats


@dataclass(frozen=True, slots=True)
class ArmCells:
    """Smooth cells: the part of all rows in each (P), and the arm's share of it (p)."""

    weight: Floats
    share: Floats


@dataclass(frozen=True, slots=True)
class _Counts:
    inside: Integers
    total: Integers

    def __add__(self, other: _Counts) -> _Counts:
        return _Counts(self.inside + other.inside, self.total + other.total)


def release_cells(
    study: Study, scores: Scores, noise: Noise, step: Step
) -> tuple[NoisyCells, CountNoise]:
    """Release for every arm and cell how many rows of the arm and of other arms there are.

    Neighbours: ``changes`` rows replaced, given the cells. Sensitivity (L1): a row is inside one
    cell and outside in K − 1, so ``2·changes`` and ``2(K − 1)·changes``; less if it takes no part.
    Half of ε each, which makes the relative errors of both equal. Proof:
    docs/proofs/several-arms-sample.md.
    """
    half = step.part(Fraction(1, 2))
    exact = study.fold(by_chunks(_kernel(scores)), title="cells")
    others = scores.arms - 1
    inside, outside = (
        _noisy(noise, title, counts, 2 * times * half.changes, half.epsilon)
        for title, counts, times in (
            ("cell counts inside", exact.inside, 1),
            ("cell counts outside", exact.total - exact.inside, others),
        )
    )
    scale = 2 * half.changes / float(half.epsilon)
    return NoisyCells(inside, outside), CountNoise(scale, others * scale)


def _kernel(scores: Scores) -> Callable[[Block], _Counts]:
    arms, cells = scores.arms, scores.cells

    def kernel(block: Block) -> _Counts:
        present = block.present
        place = scores.all_cells(block)[:, present]
        place += cells * np.arange(arms)[:, None]
        arm = block.arm[present]
        own = place[arm, np.arange(arm.size)]
        inside, total = (np.bincount(of.ravel(), minlength=arms * cells) for of in (own, place))
        return _Counts(inside.reshape(arms, cells), total.reshape(arms, cells))

    return kernel


def _noisy(
    noise: Noise, title: str, counts: Integers, sensitivity: int, epsilon: Fraction
) -> Floats:
    values = noise.laplace(
        title,
        [int(count) << _COUNT_BITS for count in counts.ravel()],
        sensitivity=sensitivity << _COUNT_BITS,
        epsilon=epsilon,
    )
    noisy = np.array([value / (1 << (_COUNT_BITS + 1)) for value in values])
    return noisy.reshape(counts.shape)


def smooth_cells(cells: NoisyCells, noise: CountNoise) -> ArmCells:
    """Fit a quadratic logit to the arm's shares along its score, weighted by noise, and blend."""
    basis = score_basis(cells.inside.shape[-1])
    own, other = 2 * noise.inside**2, 2 * noise.outside**2
    total = np.maximum(cells.inside + cells.outside, 1.0)
    inside = np.clip(cells.inside, 0.0, total)
    overall = np.clip(inside.sum(axis=-1) / total.sum(axis=-1), 0.01, 0.99)
    logit = np.broadcast_to(np.log(overall / (1 - overall))[..., None], total.shape)
    for _ in range(_NEWTON_STEPS):
        share = expit(logit)
        spread = np.maximum(share * (1 - share), 1e-3)
        variance = own * (1 - share) ** 2 + other * share**2
        weight = (total * spread) ** 2 / (total * spread + 2 * variance)
        response = np.clip(logit + (inside / total - share) / spread, -6.0, 6.0)
        logit = weighted_fit(basis, weight, response, _SHARE_RIDGE)
    share = expit(logit)
    variance = own * (1 - share) ** 2 + other * share**2
    uncertainty = variance / total**2 + share * (1 - share) / total
    raw = np.clip(cells.inside / total, 0.0, 1.0)
    blended = np.clip(blend(share, raw, uncertainty), _LEAST_SHARE, 1 - _LEAST_SHARE)
    return ArmCells(total / total.sum(axis=-1, keepdims=True), blended)
