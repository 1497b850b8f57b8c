"""Phase 2 of the paper, Algorithm 2: units in order along the score, so that like ones are near."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from private_ate.arrays import Codes
from private_ate.methods.published.regression import Regression
from private_ate.privacy.noise import Noise
from private_ate.study import MatchingStudy, MatchPool

__all__ = ["match_similar_units"]


def match_similar_units(
    study: MatchingStudy,
    regression: Regression,
    noise: Noise,
    *,
    epsilon: Fraction | None = None,
    rows_per_person: int = 1,
) -> MatchPool:
    """Put the units in order along the score, in both arms: Algorithm 2 of the paper.

    The distance is that of Equation 3, ``|e′(x₁) − e′(x₂)|``. The paper sorts it once for every
    unit and keeps two matrices H of n₁·n₀ entries; one sort of all scores holds the same order,
    and the pool that is returned finds neighbours in it. At label level ``epsilon`` is None and
    T′ = T, which is public.

    Neighbours: one person's rows replaced. Sensitivity: one treatment for each of the person's
    rows. Cost: ε₂, by randomised response of the treatments, generalised where there are several
    arms; the order follows from what was released. Proof: docs/proofs/published.md, and of several
    arms docs/proofs/several-arms-sample.md.
    """
    scores, arms = regression.score_noise, study.domain.treatment.size
    if scores is None and epsilon is None:
        return study.public().pool(regression.coefficients)
    if scores is None or epsilon is None:
        msg = "scores and treatments are both private or both public: give both a budget, or none"
        raise TypeError(msg)

    def respond(codes: Codes) -> Codes:
        if arms > 2:
            return noise.generalized_response(
                "treatments", codes, arms=arms, changes=rows_per_person, epsilon=epsilon
            )
        bits = codes.view(np.bool_)
        return noise.randomized_response(
            "treatments", bits, changes=rows_per_person, epsilon=epsilon
        ).view(np.uint8)

    return study.noisy_pool(
        regression.coefficients, scores.bits, lambda exact: scores.add(exact, noise), respond
    )
