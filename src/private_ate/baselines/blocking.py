"""Subclassification along a private score: differences of means in a few blocks, averaged.

The score comes from objective perturbation, blocks lie at normal quantiles of its released centre
and spread, and counts and outcome sums of every block and arm are released. What follows reads
released numbers only.
Proofs: docs/proofs/baselines.md.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, assert_never

import numpy as np

from private_ate.arguments import exact_shares, settle, whole_number
from private_ate.arrays import Bits, Floats
from private_ate.baselines.estimand_weights import POPULATIONS
from private_ate.baselines.strata import (
    CellCounts,
    CellNoise,
    OneCell,
    Partition,
    Strata,
    release_cells,
    release_strata,
)
from private_ate.effects.estimate import Estimate, Quantity
from private_ate.errors import ArgumentError
from private_ate.methods.composition import options_of
from private_ate.models.private_score import ScoreObjective, release_scaling
from private_ate.parameters import Estimand
from private_ate.privacy.noise import Noise
from private_ate.release.metadata import Pair
from private_ate.request import Request
from private_ate.settings import ABSENT, Absent, Settings
from private_ate.study import Study

__all__ = ["BlockingOptions", "block_effect", "estimate_blocking", "kept_blocks"]

_SHARES: Final = ("0.05", "0.35", "0.1", "0.2")
_COUNT_PART: Final = Fraction(2, 5)  # of ε, where there is no covariate to make a score of
_STRETCH: Final = 2.0  # standard deviations to which covariates are stretched
_FEWEST: Final = 2.0  # rows of an arm, and scales of a count's noise, that a block is kept with
_REPLAYS: Final = 400


@dataclass(frozen=True, slots=True)
class BlockingOptions:
    """Parameters of subclassification.

    Attributes
    ----------
    blocks : int
        How many blocks along the score, of equal size if scores were normal.
    shares : four texts or fractions
        Shares of ε: standardisation, model, place of the blocks, counts. Sums get the rest.
    """

    blocks: int = 5
    shares: tuple[str | Fraction, ...] = _SHARES

    def __post_init__(self) -> None:
        settle(self, blocks=whole_number("the number of blocks", self.blocks, 1, 160))
        if sum(self.fractions) >= 1:
            msg = "the four shares leave a part of epsilon to the sums"
            raise ArgumentError(msg)
        settle(self, shares=tuple(self.shares))

    @property
    def fractions(self) -> tuple[Fraction, ...]:
        """The shares as exact fractions."""
        return exact_shares(
            self.shares,
            len(_SHARES),
            "give four shares of epsilon: standardisation, model, place of the blocks, counts",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingSettings(Settings):
    """Settings of subclassification.

    Attributes
    ----------
    score_blocks : int
        Blocks along the score.
    kept_blocks : int
        Blocks whose released counts were large enough to be compared in.
    """

    methods: ClassVar[tuple[str, ...]] = ("blocking",)
    levels: ClassVar[tuple[str, ...]] = ("sample",)

    score_blocks: int
    kept_blocks: int
    estimand: Estimand
    confidence: float
    budget: Mapping[str, float]
    noise_interval_covers: str
    population: str
    notes: tuple[str, ...] | Absent = ABSENT


def estimate_blocking(study: Study, request: Request, noise: Noise) -> Estimate:
    """Release the effect of blocks along a private score.

    Neighbours: one record replaced, n public. Cost: the request's ε, pure, over five steps. Proof:
    docs/proofs/baselines.md.
    """
    options = options_of(request, BlockingOptions, "blocking")
    partition, counting = _place_blocks(study, request, options, noise)
    adding = request.epsilon - noise.spent - counting
    cells = release_cells(
        study, partition, noise, count_epsilon=counting, sum_epsilon=adding, changes=1
    )
    cell_noise = CellNoise(2 / float(counting), 1 / float(adding), 1.0, study.size)
    kept = kept_blocks(cells, cell_noise.count_scale)
    effect = float(block_effect(cells, kept, request.estimand))
    errors = _replay(cells, cell_noise, kept, request.estimand) - effect
    reach = float(np.quantile(np.abs(errors), request.coverage))
    width = study.domain.bounds.width
    settings = BlockingSettings(
        score_blocks=partition.count,
        kept_blocks=int(kept.sum()),
        estimand=request.estimand,
        confidence=request.coverage,
        budget={spend.step: float(spend.epsilon) for spend in noise.spends},
        noise_interval_covers="the noise of counts and sums; not that of the score, not sampling",
        population=POPULATIONS[request.estimand],
    )
    released = Quantity(width * effect, noise_interval=_around(effect, reach, width))
    return Estimate.of(released, settings)


def kept_blocks(cells: CellCounts, scale: float) -> Bits:
    """Return which blocks have two rows and two scales of noise in either arm, by their counts.

    If none has, all are kept: their means are held within the range.
    """
    least = _FEWEST * max(scale, 1.0)
    kept = (cells.treated >= least) & (cells.control >= least)
    return kept if kept.any() else np.ones_like(kept)


def block_effect(cells: CellCounts, kept: Bits, estimand: Estimand) -> Floats:
    """Return the share-weighted difference of block means; arrays may have leading axes."""
    treated, control = np.maximum(cells.treated, 1.0), np.maximum(cells.control, 1.0)
    weight = _weights(treated, control, estimand) * kept
    means = [
        np.clip(sums / count, -0.5, 0.5)
        for sums, count in ((cells.treated_sum, treated), (cells.control_sum, control))
    ]
    effect: Floats = (weight * (means[0] - means[1])).sum(axis=-1) / weight.sum(axis=-1)
    return effect


def _place_blocks(
    study: Study, request: Request, options: BlockingOptions, noise: Noise
) -> tuple[Partition, Fraction]:
    """Release where blocks lie and return them with the ε of their counts."""
    if study.dimension == 0:
        return OneCell(), request.epsilon * _COUNT_PART
    scaling, model, place, counts = (request.epsilon * share for share in options.fractions)
    scaled = release_scaling(study, noise, epsilon=scaling, changes=1, stretch=_STRETCH)
    weights = noise.objective(
        "propensity model", ScoreObjective(study, scaled), changes=1, epsilon=model
    )
    strata = Strata(scaled, weights[1:], options.blocks)
    return release_strata(study, strata, noise, epsilon=place, changes=1), counts


def _weights(treated: Floats, control: Floats, estimand: Estimand) -> Floats:
    """Return what blocks of these counts stand for."""
    match estimand:
        case "ate":
            return treated + control
        case "att":
            return treated
        case "atc":
            return control
        case "ato":
            return treated * control / (treated + control)
        case _:
            assert_never(estimand)


def _replay(cells: CellCounts, cell_noise: CellNoise, kept: Bits, estimand: Estimand) -> Floats:
    """Return estimates under fresh noise if the released numbers were exact, shape (replays,)."""
    drawn = _unit_laplace((_REPLAYS, 4, cells.treated.size))
    again = CellCounts(
        np.maximum(cells.treated, 1.0) + cell_noise.count_scale * drawn[:, 0],
        np.maximum(cells.control, 1.0) + cell_noise.count_scale * drawn[:, 1],
        cells.treated_sum + cell_noise.sum_scale * drawn[:, 2],
        cells.control_sum + cell_noise.sum_scale * drawn[:, 3],
    )
    return block_effect(again, kept, estimand)


def _around(effect: float, half: float, width: float) -> Pair:
    """Return an interval around the effect, within what an effect can be."""
    return width * max(effect - half, -1.0), width * min(effect + half, 1.0)


def _unit_laplace(shape: tuple[int, ...]) -> Floats:
    """Return fixed Laplace variables for a simulation on released numbers; they protect nothing.

    The same in every run, so that an interval is a function of what was released.
    """
    stream = hashlib.shake_128(b"replays of the blocks' noise").digest(8 * math.prod(shape))
    uniform = (np.frombuffer(stream, dtype="<u8") >> np.uint64(12)).astype(np.float64) + 0.5
    centred = uniform.reshape(shape) / 2.0**51 - 1.0
    drawn: Floats = -np.sign(centred) * np.log1p(-np.abs(centred))
    return drawn
