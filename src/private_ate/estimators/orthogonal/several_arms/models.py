"""Released models of rows: the scaling, one prognosis for all arms, a score for every arm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.arrays import Floats
from private_ate.estimators.orthogonal.several_arms.rows import Prognosis, Scores
from private_ate.estimators.orthogonal.several_arms.sums import Sums
from private_ate.models.folds import by_chunks
from private_ate.models.private_logistic import LogisticObjective, RowFeatures
from private_ate.models.private_multinomial import release_private_multinomial
from private_ate.models.standardization import noise_bits
from private_ate.privacy.noise import Noise
from private_ate.study import Block, Study

__all__ = ["Step", "fit_joint_scores", "fit_prognosis", "fit_scores", "place_cells"]

_MAD_TO_SPREAD: Final = 1.2533  # the standard deviation of a normal over its mean deviation
_LEAST_SPREAD: Final = 0.02  # of a score's reach
_REACH: Final = 3.0  # in Euclidean norms of a score's weights


@dataclass(frozen=True, slots=True)
class Step:
    """What a step may spend, and how many rows of a neighbour differ."""

    epsilon: Fraction
    changes: int

    def part(self, share: Fraction) -> Step:
        """Return a step with a share of the budget."""
        return Step(self.epsilon * share, self.changes)


def fit_prognosis(study: Study, design: RowFeatures, noise: Noise, step: Step) -> Prognosis:
    """Release one model of outcomes for all arms.

    Neighbours: ``changes`` rows replaced. Cost: ε, whatever the number of arms, by Lemmas 2 and 3
    of docs/proofs/orthogonal.md.
    """
    weights = noise.objective(
        "outcome model",
        LogisticObjective(study, design, "outcome"),
        changes=step.changes,
        epsilon=step.epsilon,
    )
    return Prognosis(design, weights)


def fit_scores(
    study: Study, design: RowFeatures, noise: Noise, step: Step, *, cells: int
) -> Scores:
    """Release a model of being in each arm rather than in any other.

    Neighbours: ``changes`` rows replaced. Cost: ε, an equal share of it for each of the K models,
    by Lemmas 2 and 3 of docs/proofs/orthogonal.md and sequential composition.
    """
    labels = study.domain.treatment.coded
    each = step.part(Fraction(1, len(labels)))
    slopes = np.array([
        noise.objective(
            f"score model of {label!r}",
            LogisticObjective(study, design, "treatment", arm),
            changes=each.changes,
            epsilon=each.epsilon,
        )[1:]
        for arm, label in enumerate(labels)
    ])  # fmt: skip
    reach = _reach(slopes[:, None])
    return Scores(design, slopes, reach, cells, np.zeros(len(labels)), reach)


def fit_joint_scores(
    study: Study, design: RowFeatures, noise: Noise, step: Step, *, cells: int
) -> Scores:
    """Release one multinomial model of all arms.

    Neighbours: ``changes`` rows replaced. Cost: ε, by Lemma 2K of docs/proofs/several-arms.md.
    """
    model = release_private_multinomial(
        study, design, noise, changes=step.changes, epsilon=step.epsilon
    )
    slopes = model.coefficients[:, 1:]
    reach = _reach(slopes[:, None] - slopes)
    flat = np.zeros(slopes.shape[0])
    return Scores(design, slopes, reach, cells, flat, reach, model.coefficients[:, 0])


def _reach(slopes: Floats) -> Floats:
    """Return how far scores lie from zero at most, from slopes of shape (K, ·, p − 1).

    A score's gradient is a mean of the slopes on the second axis, so the largest of them counts.
    """
    sums = np.abs(slopes).sum(axis=-1).max(axis=1)
    norms = _REACH * np.linalg.norm(slopes, axis=-1).max(axis=1)
    reach: Floats = np.maximum(np.minimum(sums, norms), np.finfo(np.float64).tiny)
    return reach


def place_cells(study: Study, scores: Scores, noise: Noise, step: Step, *, members: int) -> Scores:
    """Release mean and mean deviation of every arm's score and place its cells by them.

    Neighbours: ``changes`` rows replaced, given the released weights. Sensitivity (L∞): a row adds
    K numbers in [−1, 1] to the sums of scores over their reach, ``2·changes``, then K numbers in
    [0, 1] to those of distances, ``changes``; zeros if it takes no part. Half of ε each. Proof:
    docs/proofs/several-arms-sample.md.
    """
    half = step.part(Fraction(1, 2))
    bits = noise_bits(half.changes, half.epsilon)
    unit, reach = float(members << (bits + 1)), scores.reach[:, None]

    def add(values: Floats, block: Block) -> Sums:
        steps = np.rint(values * float(1 << bits)) * block.present
        return Sums(tuple(map(int, steps.astype(np.int64).sum(axis=1))))

    def means(block: Block) -> Sums:
        return add(np.clip(scores.scores(block) / reach, -1.0, 1.0), block)

    sums = study.fold(by_chunks(means), title="scores")
    noisy = noise.cube(
        "score means", sums.steps, sensitivity=2 * half.changes << bits, epsilon=half.epsilon
    )
    centre = scores.reach * np.clip([value / unit for value in noisy], -1.0, 1.0)

    def distances(block: Block) -> Sums:
        away = np.abs(scores.scores(block) - centre[:, None])
        return add(np.minimum(away / reach, 1.0), block)

    sums = study.fold(by_chunks(distances), title="scores")
    noisy = noise.cube(
        "score spreads", sums.steps, sensitivity=half.changes << bits, epsilon=half.epsilon
    )
    share = _MAD_TO_SPREAD * np.array([value / unit for value in noisy])
    spread = scores.reach * np.clip(share, _LEAST_SPREAD, 1.0)
    return replace(scores, centre=centre, spread=spread)
