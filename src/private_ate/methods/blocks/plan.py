"""What the method decides from public numbers and released counts alone.

Large blocks learn more, many blocks leave more ranks to the noise. ``epsilon`` is always the
budget per row, ε divided by the rows that a person may have. Why the constants are what they are:
docs/explanation/blocks.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from private_ate.arguments import settle, truth_value, whole_number
from private_ate.methods.probability import Probability
from private_ate.models.forest import ForestSize
from private_ate.parameters import Design, Estimand

MOST_PARTITIONS: Final = 8
_RANKS: Final = 45  # blocks times ε of one coordinate at which noise is as large as sampling
_RANKS_EACH: Final = 25  # and of each of several, as boxes have volume, beside 5
_FEWEST: Final = 0.533  # of the ranks, below which tails of the noise are heavy
_LONG_BLOCK: Final = 400  # rows that learn rules; from here rows go half to blocks, half to ranks
_FEWEST_BLOCKS: Final = 14
_MANY_ROWS: Final = 20_000  # from here on one partition does; more only cost time
_MOST_BLOCKS: Final = 2000  # of all partitions together, for the same reason
_THRIFTY_ROWS: Final = 50_000  # from here on many blocks share the work, and each does less
_VERY_MANY_ROWS: Final = 200_000  # from here on there are no more blocks, but longer ones
_MOST_RANKS: Final = 4  # times the ranks: twice as many blocks lower the error by 5 %
_FORESTS: Final = (  # from how many rows on blocks have forests of which size
    (_VERY_MANY_ROWS, ForestSize(trees=8, judges=4, rows=600, leaves=64)),
    (_THRIFTY_ROWS, ForestSize(trees=12, judges=6, rows=600, leaves=64)),
    (0, ForestSize(trees=40, judges=40)),
)
_NO_FOREST: Final = ForestSize(trees=0, judges=0)
_SEEN: Final = 500  # rows by which blocks of such studies choose terms and place bins
_CONTENDERS: Final = 32  # terms that such blocks look at more than once
_FOREST_ROWS: Final = 60  # of a block that grows forests
_TERM_ROWS: Final = 20  # of a block that chooses terms, and two for each covariate
_ROWS_PER_TERM: Final = 25
_MOST_TERMS: Final = 12
_FLAG_ROWS: Final = 40
_FLAG_RANKS: Final = 0.88  # of the ranks, from which flags cost little noise
_VOTE_ARM_ROWS: Final = 5  # of the rarer arm in a block that votes
_SLOPE_ARM_ROWS: Final = 20  # of the rarer arm in a block whose effects always vary
_TRIAL_INFORMATION: Final = 800  # n·ε from which regression pays in a trial
_INTERVAL_SHARE: Final = Fraction(1, 20)
_TRIAL_COUNT: Final = Fraction(1, 5)  # of what counting arms takes


@dataclass(frozen=True, slots=True)
class BlocksOptions:
    """Parameters of the method.

    Attributes
    ----------
    adjust : bool or None
        None for the public rule; False never adjusts, True whenever there is a covariate.
    partitions : int or None
        How often the rows are cut into blocks (r); more cost time, no budget. None: by n.
    """

    adjust: bool | None = None
    partitions: int | None = None

    def __post_init__(self) -> None:
        if self.adjust is not None:
            truth_value("adjust", self.adjust)
        if self.partitions is not None:
            settle(self, partitions=whole_number("partitions", self.partitions, 1, 100))


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of a run, in public numbers."""

    size: int  # rows (n)
    dimension: int  # encoded covariates (d)
    epsilon: float  # the budget per row
    arms: int = 2
    subgroups: int = 1  # each contrast of a subgroup and outcome is a coordinate
    outcomes: int = 1
    estimand: Estimand = "ate"
    among: int = -1  # the code of the arm whose effect is meant; -1 for all units
    design: Design = "unknown"
    probability: Probability | None = None  # the known one of a trial
    binary: bool = False  # whether all outcomes are declared to be

    @property
    def coordinates(self) -> int:
        """How many centres are released."""
        return (self.arms - 1) * self.subgroups * self.outcomes

    @property
    def counting(self) -> Fraction:
        """The share of ε that counts the arms; the probability of a trial needs no count."""
        if self.probability is not None:
            return Fraction(0)
        # Noise of at most a sixtieth of the rows.
        share = min(max(60 / (self.size * self.epsilon), 0.03), 0.12)
        return Fraction(share).limit_denominator(10**6)

    def freedom(self, rows: float) -> float:
        """Return the degrees of freedom that a model leaves to a block of so many rows."""
        return max(rows - 1.1 * self.dimension, rows / 4)


class Inside(NamedTuple):
    """What is public about the model inside a block."""

    arms: int  # how many there are (K)
    among: int  # the arm whose units the effect is about; -1 for all units
    terms: int  # how many non-linear ones a block may choose
    forest: ForestSize  # no trees for no forests
    treatment_forest: bool  # not where treatment is known to be random
    vote: bool  # whether blocks vote about overlap
    slopes: int  # of effects along covariates: 0 never, 1 if they predict better, 2 always
    binary: bool  # whether the outcome is declared to be
    seen: int = 2000  # the most rows by which a block chooses terms and places edges of bins
    contenders: int = 10_000  # the most terms that are looked at more than once


@dataclass(frozen=True, slots=True)
class BlocksPlan:
    """How the rows are cut, and what blocks do."""

    blocks: int  # of a partition (m)
    partitions: int  # r
    rows: float  # that take part in a block, of the smallest subgroup (b)
    adjusts: bool  # whether blocks pay; otherwise the arms are compared as they are
    asks_flags: bool  # whether it is asked if models matter
    spread: float  # the largest of block effects that is thought possible (s₀)
    inside: Inside
    candidate_bits: int  # the logarithm of the number of candidates for a centre

    @property
    def size(self) -> int:
        """All blocks of all partitions (N)."""
        return self.blocks * self.partitions

    def trim(self, epsilon: Fraction) -> int:
        """Return how many block effects are left out at either end; ε per row of the release."""
        return min(math.floor(24 * self.partitions / epsilon), self.size)


def plan_blocks(
    ask: Ask, options: BlocksOptions, *, members: float | None = None, rarer: float | None = None
) -> BlocksPlan:
    """Plan the blocks by public numbers, and by released ones once these are known.

    ``members`` is the effective sample size of the smallest subgroup, ``rarer`` the
    smallest share of an arm in any subgroup; without them subgroups and arms are thought equal.
    """
    members = ask.size / ask.subgroups if members is None else members
    rarer = min(max(1 / ask.arms if rarer is None else rarer, 0.005), 0.5)
    left = ask.epsilon * float(1 - ask.counting)
    ranks = _RANKS if ask.coordinates == 1 else _RANKS_EACH * ask.coordinates + 5
    each = min(2 * ask.arms, 6)  # rows of the rarer arm
    needed = max(0.8 * (ask.dimension * (ask.arms - 1) / 2 ** (ask.arms > 2) + 6), each / rarer)
    rows = members * left / ranks
    if rows > _LONG_BLOCK:
        rows = math.sqrt(_LONG_BLOCK * rows)
    rows = max(rows, min(needed, members * left / (_FEWEST * 1.04 * ranks)), 1.0)
    blocks = max(math.floor(members / rows), _FEWEST_BLOCKS)
    if ask.size >= _VERY_MANY_ROWS:
        blocks = min(blocks, math.ceil(_MOST_RANKS * ranks / left))
    blocks = max(min(blocks, ask.size // 4), 1)
    rows = members / blocks
    enough = blocks * left >= _FEWEST * ranks and rows >= max(
        (ask.dimension + 6) / 2, 0.7 * each / rarer
    )
    flags = blocks * left >= _FLAG_RANKS * ranks and rows >= _FLAG_ROWS
    partitions = MOST_PARTITIONS if rows < 75 else 4 if ask.size <= _MANY_ROWS else 1
    return BlocksPlan(
        blocks,
        options.partitions or max(min(partitions, _MOST_BLOCKS // blocks), 1),
        rows,
        _adjusts(ask, options, enough=enough),
        flags,
        0.5 / math.sqrt(rarer * (1 - rarer) * ask.freedom(rows)),
        _inside(ask, rows, rarer, flags=flags),
        14 if ask.size < _THRIFTY_ROWS else 16,
    )


def _adjusts(ask: Ask, options: BlocksOptions, *, enough: bool) -> bool:
    """Say whether blocks are cut: where they pay, or where somebody insists."""
    if ask.dimension == 0 or options.adjust is False:
        return False
    if ask.probability is not None:
        # Of probabilities that differ between rows the regression would be another average.
        pays = ask.size * ask.epsilon >= _TRIAL_INFORMATION
        return enough and pays and ask.probability.constant is not None
    return options.adjust is True or (enough and ask.design != "randomized")


def _inside(ask: Ask, rows: float, rarer: float, *, flags: bool) -> Inside:
    """Return the model inside a block of so many rows."""
    terms, slopes = 0, 1
    if rows >= max(_TERM_ROWS, 2 * ask.dimension):
        terms = min(max(round(rows / _ROWS_PER_TERM), 2), _MOST_TERMS) + 4 * (ask.arms - 2)
    among = {"att": 1, "atc": 0}.get(ask.estimand, ask.among)
    if ask.estimand == "ato":
        slopes = 0
    elif among >= 0 or (
        rows * rarer >= _SLOPE_ARM_ROWS + 10 * (ask.arms > 2)
        and 4 * rows * rarer * (1 - rarer) >= 3 * ask.dimension
    ):
        slopes = 2
    forest = _NO_FOREST
    if rows >= _FOREST_ROWS:
        forest = next(size for least, size in _FORESTS if ask.size >= least)
    random = ask.probability is not None
    is_thrifty = ask.size >= _THRIFTY_ROWS
    return Inside(
        arms=ask.arms,
        among=among,
        terms=terms,
        forest=forest,
        treatment_forest=not random,
        vote=flags and forest.trees > 0 and not random and slopes > 0 and ask.arms == 2
        and ask.subgroups == 1 and rows * rarer >= _VOTE_ARM_ROWS,
        slopes=slopes,
        binary=ask.binary,
        seen=_SEEN if is_thrifty else 2000,
        contenders=_CONTENDERS if is_thrifty else 10_000,
    )  # fmt: skip


class PlainShares(NamedTuple):
    """Shares of ε without adjustment."""

    counts: Fraction
    means: Fraction
    interval: Fraction

    @property
    def effect(self) -> Fraction:
        """What is left to the effect."""
        return 1 - self.counts - self.means - self.interval


def plain_shares(ask: Ask, *, with_interval: bool, counting: Fraction | None = None) -> PlainShares:
    """Return the shares without adjustment: counts and means need less as n·ε grows.

    ``counting`` is what counts have cost already. In a trial one number is counted, of all rows
    that take part.
    """
    root = (max(ask.size // ask.subgroups, 4) * ask.epsilon) ** (-1 / 3)
    if counting is None:
        counting = Fraction(min(max(1.1 * root, 0.015), 0.15)).limit_denominator(10**6)
        counting *= _TRIAL_COUNT if ask.probability is not None else 1
    means = Fraction(min(max(0.75 * root, 0.01), 0.10)).limit_denominator(10**6)
    return PlainShares(counting, means, _INTERVAL_SHARE if with_interval else Fraction(0))
