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
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Floats, Indices, scatter
from private_ate.errors import ArgumentError
from private_ate.methods.calibrated.features import FeatureMap, learn_features
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.public_arms import FoundArms, count_arms
from private_ate.models.propensity import fit_propensity
from private_ate.request import Request
from private_ate.study import Added, Block, MatchingStudy, RowWeights, Summable

__all__ = [
    "ArmProblem", "Design", "Learned", "Sums", "arm_meant", "fold_with_base", "members_of", "pose",
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


def _join(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate([one, other])


@dataclass(frozen=True, slots=True)
class SampleRows(Added):
    """Public rows gathered from all blocks, in the order of rows."""

    covariates: Floats = field(repr=False, metadata={"add": _join})
    arm: Indices = field(repr=False, metadata={"add": _join})
    carries: Bits = field(repr=False, metadata={"add": _join})
    # What weights stay near to, without the arm's level.
    near: Floats = field(repr=False, metadata={"add": _join})
    # For how many rows of mean sampling weight one counts.
    units: Floats = field(repr=False, metadata={"add": _join})


@dataclass(frozen=True, slots=True)
class ArmSums(Added):
    """Sums over one arm's rows, but of q over all rows; s is a sampling weight over the mean."""

    whom: float  # Σ q over all rows, or over the arm's where matching is followed
    target: Floats  # Σ q f over the same rows
    near: float  # Σ u over the members
    before: Floats  # Σ u f over them
    units: float  # Σ s over them
    squares: float  # Σ s² over them
    largest: float = field(metadata={"add": max})  # of s
    moments: Floats  # Σ s x and Σ s x² over all rows of the arm, shape (2, d)
    mass: float  # Σ s over them


@dataclass(frozen=True, slots=True)
class ArmProblem:
    """The public inputs of one arm."""

    code: int
    features: FeatureMap = field(repr=False)  # what is balanced, p of them
    members: int  # rows that carry weight
    total: float  # what the weights add up to: n
    target: Floats = field(repr=False)  # what weighted sums of the features should be
    sums: ArmSums = field(repr=False)

    @property
    def level(self) -> float:
        """By which what weights stay near to is multiplied, so that it adds up to n."""
        return self.total / self.sums.near

    @property
    def equal_weight(self) -> float:
        """The weight of every unit in a plain mean."""
        return self.total / self.members

    @property
    def effective(self) -> float:
        """The effective sample size under sampling weights alone."""
        return self.sums.units**2 / self.sums.squares

    @property
    def heaviest(self) -> float:
        """The weight of the unit of largest sampling weight if nothing else is weighed."""
        return self.total * self.sums.largest / self.sums.units

    @property
    def missed(self) -> float:
        """What non-linear terms moved, at a full share: ``‖F'u − g‖²/b`` over these terms."""
        if self.features.share == 0:
            return 0.0
        moved = (self.level * self.sums.before - self.target)[self.features.linear :]
        return float(moved @ moved) / self.features.share


@dataclass(frozen=True, slots=True)
class Design:
    """The weight problems of all arms, by their codes, and the rows to solve them on."""

    arms: tuple[ArmProblem, ...]
    rows: int  # n
    found: FoundArms
    sample: SampleRows = field(repr=False)  # all rows, or some that stand for them
    base: RowWeights | None = field(repr=False)  # of matching that is followed; else None
    learned: Learned | None = field(repr=False)

    @property
    def is_complete(self) -> bool:
        """Whether the sample holds all rows."""
        return self.sample.arm.size == self.rows

    @property
    def questions(self) -> tuple[FeatureMap, ...]:
        """The features of every arm."""
        return tuple(arm.features for arm in self.arms)

    @property
    def population(self) -> float:
        """What the units of the target count together: n, those of an arm, or their overlap."""
        return self.arms[0].sums.whom

    def near(self, block: Block, base: Floats | None) -> Floats:
        """Return what the weights of a block's rows stay near to, without the arms' levels."""
        return _near(block, base, self.learned)

    def units(self, block: Block) -> Floats:
        """Return for how many rows of mean sampling weight each row of a block counts."""
        return block.weights / (self.found.weight / self.rows)


@dataclass(frozen=True, slots=True)
class Sums(Generic[S]):
    """Several sums over rows, such as one for each arm in the order of the codes."""

    of: tuple[S, ...]

    def __add__(self, other: Sums[S]) -> Sums[S]:
        return Sums(tuple(one + more for one, more in zip(self.of, other.of, strict=True)))


def arm_meant(public: MatchingStudy, request: Request) -> int | None:
    """Return the code of the arm whose units are meant, None if all are or those of the overlap."""
    labels = public.domain.treatment.coded
    among = None if request.among is None else labels.index(request.among)
    return {"att": 1, "atc": 0}.get(request.estimand, among)


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
            _near(block, weights, learned)[kept], (block.weights / mean)[kept],
        )  # fmt: skip

    sample = fold_with_base(public, base, gather)
    questions = _ask(sample, request, len(found.everyone.counts)) if learned is None else (
        learned.questions
    )  # fmt: skip
    sums = fold_with_base(
        public, base, _target_kernel(questions, request, public, learned, mean)
    ).of
    total = float(public.size)
    # Matching's weights are followed as they are; their sums are the target.
    arms = tuple(
        ArmProblem(
            code, features, members, total,
            (1.0 if base is not None else total / one.whom) * one.target, one,
        )
        for code, (features, members, one) in enumerate(
            zip(questions, found.members.counts, sums, strict=True)
        )
    )  # fmt: skip
    return Design(arms, public.size, found, sample, base, learned)


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


def _target_kernel(
    questions: tuple[FeatureMap, ...],
    request: Request,
    public: MatchingStudy,
    learned: Learned | None,
    mean: float,
) -> Callable[[Block, Floats | None], Sums[ArmSums]]:
    among = arm_meant(public, request)

    def kernel(block: Block, base: Floats | None) -> Sums[ArmSums]:
        carries, near = members_of(block), _near(block, base, learned)
        units, squares = block.weights / mean, block.covariates**2
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
            whom, rows = (counted, everyone) if base is None else (base[inside], inside)
            if base is not None or id(features) not in targets:  # two arms share features
                targets[id(features)] = features.add_up(block.covariates, rows, whom)
            of_arm, of_members = np.where(block.arm == code, units, 0.0), units[held]
            found.append(
                ArmSums(
                    float(whom.sum()), targets[id(features)], float(near[held].sum()),
                    features.add_up(block.covariates, held, near[held]),
                    float(of_members.sum()), float(of_members @ of_members),
                    float(of_members.max(initial=0.0)),
                    np.stack([of_arm @ block.covariates, of_arm @ squares]), float(of_arm.sum()),
                )
            )  # fmt: skip
        return Sums(tuple(found))

    return kernel


def _near(block: Block, base: Floats | None, learned: Learned | None) -> Floats:
    """Return what weights stay near to: matching's, all rows' own, sampling weights, or one."""
    if base is not None:
        return base
    if learned is not None and learned.weights is not None:
        return np.maximum(learned.weights(block, None), _LEAST_NEAR)
    return block.weights


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
