"""The difference in means of the two arms: matching with one cell, adjusting for nothing."""

from __future__ import annotations

from dataclasses import dataclass

from private_ate.baselines.smooth_matching import release_matched_effect
from private_ate.effects.estimate import Estimate
from private_ate.methods.composition import options_of
from private_ate.privacy.accounting import DEFAULT_DELTA, noise_delta
from private_ate.privacy.noise import Noise
from private_ate.request import Request
from private_ate.study import MatchingStudy

__all__ = ["DifferenceInMeansOptions", "estimate_difference_in_means"]


@dataclass(frozen=True, slots=True)
class DifferenceInMeansOptions:
    """The δ of the guarantee; 0 uses Cauchy noise and is pure ε in idealized numerics.

    Attributes
    ----------
    delta : float or text
        δ, between 0 and 1.
    """

    delta: str | float = DEFAULT_DELTA

    def __post_init__(self) -> None:
        noise_delta(self.delta)


def estimate_difference_in_means(study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
    """Release the difference in means, the estimate that every method has to beat.

    Neighbours: one record replaced. Cost: (ε, δ), or ε with δ = 0.
    Proof: docs/proofs/baselines.md.
    """
    options = options_of(request, DifferenceInMeansOptions, "difference_in_means")
    return release_matched_effect(study, request, noise, (), noise_delta(options.delta))
