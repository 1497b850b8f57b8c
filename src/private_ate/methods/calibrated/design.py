"""The weight problem of every arm: who carries weight, towards which target, near which weights.

Estimands, units of one arm, subgroups, sampling weights and missing outcomes differ only in three
public numbers of a row: how much it counts in the target (q), whether it carries weight in its arm,
and what its weight stays near to (u). Everything is computed from public columns.

==================  ==============================  ==============  ===========================
request             q                               u               carries weight
==================  ==============================  ==============  ===========================
ATE                 1                               equal           rows of the arm
ATT, ATC, among     1 in that arm, else 0           equal           same
ATO                 e(1 − e), e the line's          equal           same
sampling weights s  s times the above               s               s > 0
missing, public     as above                        as above        outcome observed
subgroup            as above, its rows              all rows' own   its rows
track               matching's weights in the arm   matching's      rows of the arm
==================  ==============================  ==============  ===========================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import numpy as np

from private_ate.arrays import Bits, Floats, Indices
from private_ate.errors import ArgumentError
from private_ate.methods.calibrated.features import FeatureMap, learn_features
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.public_arms import FoundArms, count_arms
from private_ate.models.folds import scatter
from private_ate.models.propensity import fit_propensity
from private_ate.request import Request
from private_ate.study import Block, MatchingStudy, RowWeights, Summable

__all__ = [
    "ArmProblem", "Design", "Learned", "Sums", "fold_with_base", "members_of", "pose",
]  # fmt: skip

S = TypeVar("S", bound=Summable)

_FIT_ROWS: Final = 20_000  # public rows from which features are learnt and on which caps are tried
_LEAST_NEAR: Final = 0.1  # a subgroup's weights stay near no smaller weight than this


@dataclass(frozen=True, slots=True)
class Learned:
    """What a subgroup takes over from all rows: features of every arm, and the whole's weights.

    ``weights`` returns those of a block of rows, given their base weights.
    """

    questions: tuple[FeatureMap, ...]
    weights: Callable[[Block, Floats | None], Floats] | None


@dataclass(frozen=True, slots=True)
class ArmProblem:
    """The public inputs of one arm.

    Attributes
    ----------
    code : int
        The arm.
    features : FeatureMap
        What is balanced.
    members : int
        Rows that carry weight.
    total : float
        What the weights add up to: n.
    target : array, shape (p,)
        What weighted sums of the features should be.
    level : float
        By which the numbers that weights stay near to are multiplied, so that they add up to n.
    before : array, shape (p,)
        The weighted sums of the features if weights are what they stay near to.
    effective, largest, heaviest : float
        The effective sample size of the arm under sampling weights alone; the largest
        of these over the mean of all rows; and the weight of that unit if nothing else is weighed.
    """

    code: int
    features: FeatureMap = field(repr=False)
    members: int
    total: float
    target: Floats = field(repr=False)
    level: float
    before: Floats = field(repr=False)
    effective: float
    largest: float
    heaviest: float

    @property
    def equal_weight(self) -> float:
        """The weight of every unit in a plain mean."""
        return self.total / self.members

    @property
    def missed(self) -> float:
        """What non-linear terms moved, at a full share: ``‖F'u − g‖²/b`` over these terms."""
        if self.features.share == 0:
            return 0.0
        moved = (self.before - self.target)[self.features.linear :]
        return float(moved @ moved) / self.features.share


@dataclass(frozen=True, slots=True)
class SampleRows:
    """Public rows gathered from all blocks, in the order of rows."""

    covariates: Floats = field(repr=False)
    arm: Indices = field(repr=False)
    carries: Bits = field(repr=False)
    near: Floats = field(repr=False)  # what weights stay near to, without the arm's level
    units: Floats = field(repr=False)  # for how many rows of mean sampling weight one counts

    def __add__(self, other: SampleRows) -> SampleRows:
        return SampleRows(
            np.concatenate([self.covariates, other.covariates]),
            np.concatenate([self.arm, other.arm]),
            np.concatenate([self.carries, other.carries]),
            np.concatenate([self.near, other.near]),
            np.concatenate([self.units, other.units]),
        )


@dataclass(frozen=True, slots=True)
class Design:
    """The weight problems of all arms, in the order of their codes, and the rows to solve them on.

    Attributes
    ----------
    arms : tuple of ArmProblem
        The problems.
    rows : int
        All rows (n).
    found : FoundArms
        Sizes of the arms.
    sample : SampleRows
        Public rows on which caps are tried: all, or some that stand for them.
    base : RowWeights or None
        Weights of matching that are followed; None for target "balance".
    learned : Learned or None
        What was taken over from more rows.
    moments : array, shape (K, 2, d)
        Means of the covariates and of their squares in each arm, by sampling weights.
    population : float
        What the units of the target count together: n, those of an arm, or their overlap.
    mean_weight : float
        The mean sampling weight of all rows, as a share of its bound; 1 where none is declared.
    mass : array, shape (K,)
        How many rows of mean sampling weight each arm holds.
    """

    arms: tuple[ArmProblem, ...]
    rows: int
    found: FoundArms
    sample: SampleRows = field(repr=False)
    base: RowWeights | None = field(repr=False)
    learned: Learned | None = field(repr=False)
    moments: Floats = field(repr=False)
    population: float
    mean_weight: float
    mass: Floats = field(repr=False)

    @property
    def is_complete(self) -> bool:
        """Whether the sample holds all rows."""
        return self.sample.arm.size == self.rows

    @property
    def questions(self) -> tuple[FeatureMap, ...]:
        """The features of every arm."""
        return tuple(arm.features for arm in self.arms)

    def near(self, block: Block, base: Floats | None) -> Floats:
        """Return what the weights of a block's rows stay near to, without the arms' levels."""
        return _near(block, base, self.learned)

    def units(self, block: Block) -> Floats:
        """Return for how many rows of mean sampling weight each row of a block counts."""
        return _units(block, self.mean_weight)


@dataclass(frozen=True, slots=True)
class Sums(Generic[S]):
    """Several sums over rows, such as one for each arm in the order of the codes."""

    of: tuple[S, ...]

    def __add__(self, other: Sums[S]) -> Sums[S]:
        return Sums(tuple(one + more for one, more in zip(self.of, other.of, strict=True)))


def members_of(block: Block) -> Bits:
    """Return which rows of a public block carry weight in their arm."""
    return np.asarray(block.observed & (block.weights > 0))


def fold_with_base(
    study: MatchingStudy,
    base: RowWeights | None,
    kernel: Callable[[Block, Floats | None], S],
    *,
    title: str = "calibration",
) -> S:
    """Add up a kernel over blocks of rows; it sees base weights, if any."""
    if base is None:
        return study.fold(lambda block: kernel(block, None), title=title)
    return study.fold_with(base, kernel, title=title)


def pose(public: MatchingStudy, request: Request, learned: Learned | None = None) -> Design:
    """Settle the weight problem of every arm from public columns.

    ``learned`` holds features of more rows, for a subgroup; they are then balanced as they are.
    """
    found = count_arms(public)
    mean = found.weight / public.size
    if request.target == "track":
        _refuse_tracking(public, request)
    base = _matching_weights(public, request) if request.target == "track" else None
    share = min(_FIT_ROWS / public.size, 1.0)

    def gather(block: Block, weights: Floats | None) -> SampleRows:
        kept = np.flatnonzero(scatter(block.first, block.arm.size) < share)
        # Copies: views would keep the whole block alive.
        return SampleRows(
            block.covariates[kept], block.arm[kept].astype(np.intp), members_of(block)[kept],
            _near(block, weights, learned)[kept], _units(block, mean)[kept],
        )  # fmt: skip

    sample = fold_with_base(public, base, gather)
    questions = _ask(sample, request, len(found.everyone.counts)) if learned is None else (
        learned.questions
    )  # fmt: skip
    kernel = _target_kernel(questions, request, public, learned, mean)
    sums = fold_with_base(public, base, kernel).of
    arms = tuple(
        _problem(code, questions[code], found.members[code], public.size, one, request)
        for code, one in enumerate(sums)
    )
    mass = np.array([one.mass for one in sums])
    moments = np.stack([one.moments for one in sums]) / mass[:, None, None]
    return Design(
        arms, public.size, found, sample, base, learned, moments, sums[0].whom, mean, mass
    )


def _ask(sample: SampleRows, request: Request, arms: int) -> tuple[FeatureMap, ...]:
    """Learn features from a 0/1 question per arm; two arms that carry all rows share one."""
    options = request.options
    plain = isinstance(options, CalibratedOptions) and options.terms == "plain"
    linear = plain or request.design == "randomized" or request.target == "track"

    def learn(code: int) -> FeatureMap:
        member = ((sample.arm == code) & sample.carries).astype(np.float64)
        return learn_features(sample.covariates, member, linear=linear)

    if arms == 2 and sample.carries.all():
        return (learn(1),) * 2
    return tuple(learn(code) for code in range(arms))


@dataclass(frozen=True, slots=True)
class _ArmSums:
    """Sums over one arm's rows, but of q over all rows; s is a sampling weight over the mean."""

    whom: float  # Σ q over all rows, or over the arm's where matching is followed
    target: Floats  # Σ q f over the same rows
    near: float  # Σ u over the members
    before: Floats  # Σ u f over them
    units: float  # Σ s over them
    squares: float  # Σ s² over them
    largest: float  # of s
    moments: Floats  # Σ s x and Σ s x² over all rows of the arm, shape (2, d)
    mass: float  # Σ s over them

    def __add__(self, other: _ArmSums) -> _ArmSums:
        return _ArmSums(
            self.whom + other.whom,
            self.target + other.target,
            self.near + other.near,
            self.before + other.before,
            self.units + other.units,
            self.squares + other.squares,
            max(self.largest, other.largest),
            self.moments + other.moments,
            self.mass + other.mass,
        )


def _target_kernel(
    questions: tuple[FeatureMap, ...],
    request: Request,
    public: MatchingStudy,
    learned: Learned | None,
    mean: float,
) -> Callable[[Block, Floats | None], Sums[_ArmSums]]:
    labels = public.domain.treatment.coded
    among = None if request.among is None else labels.index(request.among)
    among = {"att": 1, "atc": 0}.get(request.estimand, among)

    def kernel(block: Block, base: Floats | None) -> Sums[_ArmSums]:
        carries, near = members_of(block), _near(block, base, learned)
        units, squares = _units(block, mean), block.covariates**2
        counted = block.weights
        if among is not None:
            counted = counted * (block.arm == among)
        elif request.estimand == "ato":
            chance = questions[1].probability(block.covariates)
            counted = counted * chance * (1 - chance)
        everyone, targets = np.arange(block.arm.size), dict[int, Floats]()
        found = []
        for code, features in enumerate(questions):
            inside = np.flatnonzero(block.arm == code)
            held = inside[carries[inside]]
            if base is not None:
                whom, wanted = base[inside], features.add_up(block.covariates, inside, base[inside])
            else:
                whom = counted
                if id(features) not in targets:
                    targets[id(features)] = features.add_up(block.covariates, everyone, counted)
                wanted = targets[id(features)]
            of_arm, of_members = np.where(block.arm == code, units, 0.0), units[held]
            found.append(
                _ArmSums(
                    float(whom.sum()), wanted, float(near[held].sum()),
                    features.add_up(block.covariates, held, near[held]),
                    float(of_members.sum()), float(of_members @ of_members),
                    float(of_members.max(initial=0.0)),
                    np.stack([of_arm @ block.covariates, of_arm @ squares]), float(of_arm.sum()),
                )
            )  # fmt: skip
        return Sums(tuple(found))

    return kernel


def _problem(
    code: int, features: FeatureMap, members: int, rows: int, sums: _ArmSums, request: Request
) -> ArmProblem:
    total = float(rows)
    # Matching's weights are followed as they are; their sums are the target.
    scale = 1.0 if request.target == "track" else total / sums.whom
    level = total / sums.near
    return ArmProblem(
        code, features, members, total, scale * sums.target, level, level * sums.before,
        sums.units**2 / sums.squares, sums.largest, total * sums.largest / sums.units,
    )  # fmt: skip


def _near(block: Block, base: Floats | None, learned: Learned | None) -> Floats:
    """Return what weights stay near to: matching's, all rows' own, sampling weights, or one."""
    if base is not None:
        return base
    if learned is not None and learned.weights is not None:
        return np.maximum(learned.weights(block, None), _LEAST_NEAR)
    return block.weights


def _units(block: Block, mean: float) -> Floats:
    return block.weights / mean


def _matching_weights(public: MatchingStudy, request: Request) -> RowWeights:
    """Match on the score that the published method matches on."""
    model = fit_propensity(public, 1.0 / public.size)
    pool = public.pool(model.coordinates if model.arms == 2 else model.coefficients)
    return pool.match_sharing_ties(request.neighbors)


def _refuse_tracking(public: MatchingStudy, request: Request) -> None:
    """Refuse what matching on all rows for all units cannot be asked for."""
    if request.among is not None or request.estimand != "ate":
        msg = "target 'track' follows matching for the ATE; other estimands need target 'balance'"
        raise ArgumentError(msg)
    if public.domain.outcome.missing == "public":
        msg = (
            "target 'track' follows matching on all rows, but some may have no outcome; "
            "use target 'balance', or method 'published' for matching on those that have one"
        )
        raise ArgumentError(msg)
