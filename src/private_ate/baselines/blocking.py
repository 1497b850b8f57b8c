"""Subclassification along a private score: differences of means in a few blocks, averaged.

The score comes from objective perturbation, blocks lie at normal quantiles of its released centre
and spread, and counts and outcome sums of every block and arm are released. What follows reads
released numbers only.
Proofs: docs/proofs/baselines.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final, assert_never

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from private_ate.arguments import exact_shares, settle, whole_number
from private_ate.arrays import Bits, Floats, Integers
from private_ate.baselines.steps import (
    BaselineSettings,
    around,
    common_settings,
    unit_laplace,
)
from private_ate.effects.estimate import Estimate, Quantity
from private_ate.errors import ArgumentError
from private_ate.methods.composition import options_of
from private_ate.models.folds import by_chunks
from private_ate.models.private_score import Scaling, ScoreObjective, release_scaling
from private_ate.parameters import Estimand
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_BITS, OUTCOME_STEPS, noise_bits
from private_ate.release.intervals import fixed_uniforms
from private_ate.request import Request
from private_ate.settings import ABSENT, Absent
from private_ate.study import Block, Study

__all__ = [
    "BlockingOptions",
    "CellCounts",
    "Strata",
    "block_effect",
    "count_cells",
    "estimate_blocking",
    "kept_blocks",
    "release_cells",
    "release_strata",
]

_SHARES: Final = ("0.05", "0.35", "0.1", "0.2")
_COUNT_PART: Final = Fraction(2, 5)  # of ε, where there is no covariate to make a score of
_STRETCH: Final = 2.0  # standard deviations to which covariates are stretched
_FEWEST: Final = 2.0  # rows of an arm, and scales of a count's noise, that a block is kept with
_REPLAYS: Final = 400
_COUNT_BITS: Final = 20  # counts are released on the grid 2⁻²⁰
_MAD_TO_SPREAD: Final = 1.2533  # the standard deviation of a normal over its mean deviation


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
class BlockingSettings(BaselineSettings):
    """Settings of subclassification.

    Attributes
    ----------
    score_blocks : int
        Blocks along the score.
    kept_blocks : int
        Blocks whose released counts were large enough to be compared in.
    """

    methods: ClassVar[tuple[str, ...]] = ("blocking",)

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
    strata, counting = _place_blocks(study, request, options, noise)
    adding = request.epsilon - noise.spent - counting
    cells = release_cells(study, strata, noise, count_epsilon=counting, sum_epsilon=adding)
    scales = 2 / float(counting), 1 / float(adding)
    kept = kept_blocks(cells, scales[0])
    effect = float(block_effect(cells, kept, request.estimand))
    errors = _replay(cells, scales, kept, request.estimand) - effect
    reach = float(np.quantile(np.abs(errors), request.coverage))
    width = study.domain.bounds.width
    settings = BlockingSettings(
        score_blocks=strata.count,
        kept_blocks=int(kept.sum()),
        estimand=request.estimand,
        noise_interval_covers="the noise of counts and sums; not that of the score, not sampling",
        **common_settings(request, noise),
    )
    released = Quantity(width * effect, noise_interval=around(effect, reach, width))
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
) -> tuple[Strata, Fraction]:
    """Release where blocks lie and return them with the ε of their counts."""
    if study.dimension == 0:
        return Strata(
            Scaling(np.zeros(0), np.zeros(0)), np.zeros(0), 1
        ), request.epsilon * _COUNT_PART
    scaling, model, place, counts = (request.epsilon * share for share in options.fractions)
    scaled = release_scaling(study, noise, epsilon=scaling, changes=1, stretch=_STRETCH)
    weights = noise.objective(
        "propensity model", ScoreObjective(study, scaled), changes=1, epsilon=model
    )
    strata = Strata(scaled, weights[1:], options.blocks)
    return release_strata(study, strata, noise, epsilon=place), counts


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


def _replay(
    cells: CellCounts, scales: tuple[float, float], kept: Bits, estimand: Estimand
) -> Floats:
    """Return estimates under fresh noise if the released numbers were exact, shape (replays,)."""
    size = cells.treated.size
    uniforms = fixed_uniforms("replays of the blocks' noise", _REPLAYS, 4 * size)
    drawn = unit_laplace(uniforms).reshape(_REPLAYS, 4, size)
    count_scale, sum_scale = scales
    again = CellCounts(
        np.maximum(cells.treated, 1.0) + count_scale * drawn[:, 0],
        np.maximum(cells.control, 1.0) + count_scale * drawn[:, 1],
        cells.treated_sum + sum_scale * drawn[:, 2],
        cells.control_sum + sum_scale * drawn[:, 3],
    )
    return block_effect(again, kept, estimand)


@dataclass(frozen=True, slots=True)
class CellCounts:
    """Released counts and outcome sums per arm and cell; sums in units of the declared range."""

    treated: Floats
    control: Floats
    treated_sum: Floats
    control_sum: Floats


@dataclass(frozen=True, slots=True)
class Strata:
    """Cells of equal probability under a normal score; without covariates there is one.

    Attributes
    ----------
    slopes : array, shape (d,)
        Weights of the score, without the intercept.
    centre, spread : float
        The score's released mean and standard deviation.
    """

    scaling: Scaling
    slopes: Floats
    count: int
    centre: float = 0.0
    spread: float = 1.0

    def scores(self, block: Block) -> Floats:
        """Return the linear score; equal rows get equal scores, wherever they stand."""
        linear = np.zeros(block.treatment.size)
        # Feature by feature: a matrix product may round equal rows differently.
        for slope, feature in zip(self.slopes, self.scaling.features(block)[1:], strict=True):
            linear += slope * feature
        return linear

    def cells(self, block: Block) -> npt.NDArray[np.intp]:
        """Return the cell of each row."""
        if self.count == 1:
            return np.zeros(block.treatment.size, dtype=np.intp)
        place = ndtr((self.scores(block) - self.centre) / self.spread)
        return np.minimum((self.count * place).astype(np.intp), self.count - 1)


def release_strata(study: Study, strata: Strata, noise: Noise, *, epsilon: Fraction) -> Strata:
    """Release the score's mean and mean deviation and place the cells by them.

    Neighbours: one row replaced, given the released weights. Sensitivity: a score lies in ±‖w‖₁
    and a deviation is clipped to [0, R₂], both in units of that bound; half of ε each.
    Proof: docs/proofs/baselines.md.
    """
    norm, reach = float(np.linalg.norm(strata.slopes)), float(np.abs(strata.slopes).sum())
    furthest = min(3 * norm, 2 * reach)
    bits = noise_bits(1, epsilon / 2)

    def released(step: str, sensitivity: int, values: Callable[[Block], Floats]) -> float:
        def kernel(block: Block) -> int:
            steps = np.rint(values(block) * block.shares * float(1 << bits))
            return int(steps.astype(np.int64).sum())

        total = study.fold(by_chunks(kernel), title="score")
        (noisy,) = noise.laplace(
            step, [total], sensitivity=sensitivity << bits, epsilon=epsilon / 2
        )
        return noisy / (study.size << (bits + 1))

    mean = released("score mean", 2, lambda block: np.clip(strata.scores(block) / reach, -1.0, 1.0))
    centre = reach * min(max(mean, -1.0), 1.0)
    deviation = released(
        "score spread",
        1,
        lambda block: np.clip(np.abs(strata.scores(block) - centre) / furthest, 0.0, 1.0),
    )
    spread = min(max(_MAD_TO_SPREAD * furthest * deviation, 0.05 * norm), furthest)
    return replace(strata, centre=centre, spread=spread)


def release_cells(
    study: Study, strata: Strata, noise: Noise, *, count_epsilon: Fraction, sum_epsilon: Fraction
) -> CellCounts:
    """Release counts and outcome sums of every arm and cell.

    Neighbours: one row replaced, given the cells. Sensitivity (L1): a row leaves one count and
    enters another, 2, or less if it takes no part; it moves the sums by the range of outcomes at
    most, because outcomes are centred: ``|y − y'|`` in one sum or ``|y| + |y'|`` in two.
    Proof: docs/proofs/baselines.md.
    """
    exact = count_cells(study, strata)
    rows = noise.laplace(
        "cell counts", exact[0].tolist(), sensitivity=2 << _COUNT_BITS, epsilon=count_epsilon
    )
    sums = noise.laplace(
        "cell sums", exact[1].tolist(), sensitivity=OUTCOME_STEPS, epsilon=sum_epsilon
    )
    control, treated = np.array([row / (1 << (_COUNT_BITS + 1)) for row in rows]).reshape(2, -1)
    control_sum, treated_sum = np.array([one / (1 << (OUTCOME_BITS + 1)) for one in sums]).reshape(
        2, -1
    )
    return CellCounts(treated, control, treated_sum, control_sum)


def count_cells(study: Study, strata: Strata) -> Integers:
    """Count rows that take part and add their centred outcomes by arm and cell, exactly.

    Of shape (2, 2·cells): counts in steps of 2⁻²⁰ and sums in steps of 2⁻³⁰, controls first.
    """
    size = 2 * strata.count

    def kernel(block: Block) -> Integers:
        if block.outcome is None:
            msg = "this method needs a study with outcomes"
            raise TypeError(msg)
        place = strata.cells(block) + strata.count * block.treatment
        # At most 2¹² integers below 2³⁰ are exact in doubles; 2³³ of them fit into 64 bits.
        centred = (block.outcome - np.float64(OUTCOME_STEPS // 2)) * block.shares
        steps = np.rint(block.shares * float(1 << _COUNT_BITS))
        found = [np.bincount(place, values, size) for values in (steps, np.rint(centred))]
        return np.stack(found).astype(np.int64)

    return study.fold(by_chunks(kernel), title="cells")
