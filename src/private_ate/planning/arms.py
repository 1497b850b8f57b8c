"""Predictions for three arms or more: what is expected of each arm, then of every contrast."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np
from scipy.special import expit, ndtri

from private_ate.arrays import Floats
from private_ate.estimators.calibrated.method import INTERVAL_SHARE
from private_ate.estimators.calibrated.options import CalibratedOptions, outcome_share, plan_clip
from private_ate.estimators.calibrated.several_arms.design import ArmPath, CapPrice, walk_arms
from private_ate.estimators.calibrated.several_arms.method import pose_arms
from private_ate.estimators.calibrated.several_arms.pooled_variance import PooledVariance
from private_ate.estimators.calibrated.several_arms.sums import StairRule
from private_ate.estimators.guesses import POWER, PeopleGuess
from private_ate.estimators.orthogonal.plan import OrthogonalOptions
from private_ate.estimators.orthogonal.several_arms.cells import ArmCells, CountNoise
from private_ate.estimators.orthogonal.several_arms.limits import (
    Limits,
    Weights,
    choose_weights,
    drift_variances,
    equal_weights,
    replay_variances,
)
from private_ate.estimators.orthogonal.several_arms.plan import (
    Ask,
    Path,
    Shares,
    plan_path,
    shares_of,
)
from private_ate.estimators.orthogonal.several_arms.rows import PROGNOSIS_BOUND
from private_ate.estimators.orthogonal.several_arms.sizes import NoisySizes, project
from private_ate.estimators.request import Request
from private_ate.planning.label import People
from private_ate.planning.plan import PlanRow
from private_ate.planning.sizes import StudySizes
from private_ate.privacy.cube_law import cube_variance
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.release.intervals import Rule, expected_size, half_width

__all__ = ["ArmsPredict", "ExpectedArms", "arm_rows", "label_arms", "sample_arms", "widest_row"]

_ANY_NOISE: Final = 1e30  # so much that a path of caps is walked to its end
_MOST_PAIRS: Final = 15  # beyond, a plan shows contrasts with the reference only
_LEVEL: Final = 0.1  # of the range: how far from its middle levels of arms are thought to lie


@dataclass(frozen=True, slots=True)
class ExpectedArms:
    """What to expect of every arm's level, the reference first, in units of the outcome.

    Attributes
    ----------
    laws : tuple of NoiseDistribution
        Of their noise.
    sampling : tuple of float
        Their variances without noise.
    likely : tuple of tuple of float
        The variances that intervals will be made of.
    rule : str
        How intervals put noise and sampling together.
    note : str
        The caps, or the path.
    adjusted : bool
        Whether the estimate adjusts for covariates.
    doubts : tuple of float
        How much of the variances is what weights left unbalanced; at label level.
    """

    laws: tuple[NoiseDistribution, ...]
    sampling: tuple[float, ...]
    likely: tuple[tuple[float, ...], ...]
    rule: Rule
    notes: tuple[str, ...]
    adjusted: bool
    doubts: tuple[float, ...] = ()


ArmsPredict = Callable[[int, float], ExpectedArms]
"""What to expect of the arms of so many rows at an ε."""


def arm_rows(
    expected: ExpectedArms, labels: tuple[str, ...], coverage: float, epsilon: float, rows: int
) -> tuple[PlanRow, ...]:
    """Return a row per contrast: against the reference first, then the other pairs if few."""
    arms = range(1, len(labels))
    pairs = [(arm, 0) for arm in arms]
    others = [(later, earlier) for earlier, later in combinations(arms, 2)]
    if len(pairs) + len(others) <= _MOST_PAIRS:
        pairs += others
    return tuple(_row(expected, pair, labels, coverage, epsilon, rows) for pair in pairs)


def widest_row(
    expected: ExpectedArms, labels: tuple[str, ...], coverage: float, epsilon: float, rows: int
) -> PlanRow:
    """Return the contrast with the reference that has the widest interval."""
    halves = [_half_width(expected, (arm, 0), coverage) for arm in range(1, len(labels))]
    widest = 1 + int(np.argmax(halves))
    return _row(expected, (widest, 0), labels, coverage, epsilon, rows)


def _half_width(expected: ExpectedArms, pair: tuple[int, int], coverage: float) -> float:
    laws = [expected.laws[arm] for arm in pair]
    return half_width(coverage, laws, [expected.likely[arm] for arm in pair], expected.rule)


def _row(
    expected: ExpectedArms,
    pair: tuple[int, int],
    labels: tuple[str, ...],
    coverage: float,
    epsilon: float,
    rows: int,
) -> PlanRow:
    laws = [expected.laws[arm] for arm in pair]
    variances = [(expected.sampling[arm],) for arm in pair]
    half = _half_width(expected, pair, coverage)
    return PlanRow(
        epsilon,
        expected_size(laws, ()),
        float(np.sqrt(sum(variance[0] for variance in variances))),
        expected_size(laws, variances),
        half,
        expected.notes[pair[0]],
        half + half_width(2 * POWER - 1, laws, variances, "convolved"),
        rows,
        expected.adjusted,
        labels[pair[0]],
        labels[pair[1]],
    )


def label_arms(
    people: People, request: Request, options: CalibratedOptions, alike_share: float
) -> ArmsPredict:
    """Return predictions for the method calibrated: its public phase, then its noise."""
    bounds = people.bounds
    spread, clip = outcome_share(bounds, options), plan_clip(bounds, options)
    pays = request.confidence is not None and request.target == "balance"
    left = 1 - float(clip.share) - (float(INTERVAL_SHARE) if pays else 0.0)
    kept, changes = clip.kept_share, request.rows_per_person
    alike = min(alike_share * spread**2, kept**2 / 4)

    @lru_cache(maxsize=16)
    def paths_of(rows: int) -> tuple[ArmPath, ...]:
        public = people.draw(rows)
        designs = pose_arms(public, request).designs
        return walk_arms(public, designs, _ANY_NOISE, spread)

    def predict(rows: int, epsilon: float) -> ExpectedArms:
        walked = people.walked(rows)
        paths, more = paths_of(walked), rows / walked
        used, unit = epsilon * left, bounds.width / rows
        rule = StairRule.of(changes, len(paths), used, request.outcomes)
        noise = rule.variance(used, request.outcomes) * kept**2 / more
        chosen = [path.choose(noise, spread) for path in paths]
        squares = [more * point.solution.sums.squares for point in chosen]
        doubts = [more * spread**2 * _imbalance(*both) for both in zip(paths, chosen, strict=True)]
        sampling = [
            unit**2 * (alike * square + doubt)
            for square, doubt in zip(squares, doubts, strict=True)
        ]
        likely = [(variance,) for variance in sampling]
        if pays:
            wider = math.sqrt(cube_variance(request.outcomes) / 2)
            known = _expected_variances(paths, more, alike, kept, wider * changes, epsilon)
            likely = [
                tuple((unit**2 * (known.likely_values(arm) * square + doubt)).tolist())
                for arm, (square, doubt) in enumerate(zip(squares, doubts, strict=True))
            ]
        law = rule.law(Fraction(used), request.outcomes)
        laws = [
            NoiseDistribution.of_sum(law, rule.rows * kept * point.cap * unit) for point in chosen
        ]
        notes = tuple(f"cap {point.cap:.3g}" for point in chosen)
        return ExpectedArms(
            tuple(laws), tuple(sampling), tuple(likely), "convolved", notes, True,
            tuple(unit**2 * doubt for doubt in doubts),
        )  # fmt: skip

    return predict


def _imbalance(path: ArmPath, point: CapPrice) -> float:
    """Return ``‖Fᵀw − g‖²`` under a cap; nothing where weights are given."""
    if path.design.fixed:
        return 0.0
    left = point.solution.sums.features - path.design.problem.target
    return float(left @ left)


def _expected_variances(
    paths: tuple[ArmPath, ...],
    more: float,
    alike: float,
    kept: float,
    changes: float,
    epsilon: float,
) -> PooledVariance:
    """Return the variances that a release would know if outcomes spread as guessed."""
    pairs = [round(more * path.design.members) // 2 for path in paths]
    touched = [1 if round(more * path.design.members) % 2 == 0 else 2 for path in paths]
    scale = changes * kept**2 / 2 / (epsilon * float(INTERVAL_SHARE))
    return PooledVariance.shrink(
        [alike * count for count in pairs],
        [times * scale for times in touched],
        pairs,
        kept**2 / 4,
    )


def sample_arms(
    sizes: StudySizes,
    request: Request,
    options: OrthogonalOptions,
    guess: PeopleGuess,
    shares: Floats,
    squares: int,
) -> ArmsPredict:
    """Return predictions for the method orthogonal: its steps on expected sizes and scores.

    ``squares`` is the number of covariates that are intervals.
    """
    changes, arms = request.rows_per_person, shares.size

    def predict(rows: int, epsilon: float) -> ExpectedArms:
        ask = Ask(rows, sizes.covariates, squares, arms, epsilon / changes)
        known = NoisySizes(project(shares * rows, rows), rows, 0.0)
        path = plan_path(ask, known, options).path
        paid = shares_of(
            path, ask,
            with_interval=request.confidence is not None,
            with_means=options.means and path is not Path.PLAIN,
        )  # fmt: skip
        adjusts = path is not Path.PLAIN
        width = 1 + 2 * PROGNOSIS_BOUND if adjusts else 1.0
        level = abs(guess.middle) if sizes.is_binary else _LEVEL
        per_move = epsilon * float(paid.levels) / (2 * changes)
        given = Limits(width, np.full(arms, level), rows, per_move)
        weights, mean_square, replayed = _weigh(path, known, ask, given, guess, paid, epsilon)
        bounds = weights.largest * given.reach
        variance = guess.deviation**2 * (1 - guess.explained if adjusts else 1.0)
        sampling = changes * variance * mean_square / rows
        seen = sampling
        if paid.interval:
            lift = 2 * changes / (rows * epsilon * float(paid.interval))
            share = np.clip(variance * mean_square / bounds**2 + lift, 1e-6, 1.0)
            seen = changes * share * bounds**2 / rows + replayed
        unit = sizes.outcome_width
        units = (unit * bounds / rows).tolist()
        return ExpectedArms(
            tuple(NoiseDistribution("staircase", one, per_move) for one in units),
            tuple((unit**2 * (sampling + replayed)).tolist()),
            tuple((value,) for value in (unit**2 * seen).tolist()),
            "in_squares",
            (str(path),) * arms,
            adjusts,
        )  # fmt: skip

    return predict


def _weigh(  # what the plan says, and guesses
    path: Path,
    sizes: NoisySizes,
    ask: Ask,
    given: Limits,
    guess: PeopleGuess,
    paid: Shares,
    epsilon: float,
) -> tuple[Weights, Floats, Floats]:
    """Return expected weights, ``Σ P p w²`` of each arm, and what noise of cells adds.

    Scores are thought to be normal, with the guessed deviation of log odds.
    """
    equal = equal_weights(sizes.shares)
    if path is not Path.SCORE:
        return equal, 1 / sizes.shares, np.zeros(sizes.arms)
    number = ask.cells
    normal = ndtri((np.arange(number) + 0.5) / number)
    share = np.array([_shares_along(part, guess.selection * normal) for part in sizes.shares])
    cells = ArmCells(np.full((sizes.arms, number), 1 / number), share)
    equal = equal_weights(sizes.shares, number)
    weights = choose_weights(cells, equal, sizes.counting, given)
    changes = epsilon / ask.epsilon
    scale = 4 * changes / (epsilon * float(paid.cells))
    law = CountNoise(scale, (sizes.arms - 1) * scale)
    squares = (cells.weight * cells.share * weights.weights**2).sum(axis=1)
    left = drift_variances(cells, weights, given)
    return weights, squares, left + replay_variances(cells, weights, law, given)


def _shares_along(share: float, lean: Floats) -> Floats:
    """Return an arm's share along its score, whose mean is the arm's share of all."""
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if expit(lean + middle).mean() > share else (middle, high)
    found: Floats = np.clip(expit(lean + (low + high) / 2), 0.003, 0.997)
    return found
