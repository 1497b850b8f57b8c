"""Centre and spread of many blocks of rows, for several coordinates, by one exact draw.

Every block hands over, for each coordinate, an effect, the deviation that it says of itself, the
difference to a plain model and a bit; and one bit about overlap for all coordinates. A candidate
is a centre, a spread and a flag for each coordinate, and one answer about overlap. Its *level* is
the largest of several counts of blocks, each of which moves by at most one when a block changes:
the score of an exponential mechanism. Sets of candidates of at most some level are boxes, so the
draw needs no list of all combinations. Everything is integer arithmetic. Proofs:
docs/proofs/blocks.md.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Final

import numpy as np
from scipy.special import ndtr

from private_ate.arrays import Bits, Integers
from private_ate.errors import NumericRangeError
from private_ate.privacy.entropy import Entropy
from private_ate.privacy.rejection_samplers import draw_level
from private_ate.privacy.samplers import uniform_below
from private_ate.privacy.trimmed_mean import CentreRule

__all__ = ["ENTRIES", "JointCentres", "JointRule", "draw_centres", "nearest_centres"]

ENTRIES: Final = 4  # of a block for a coordinate: effect, deviation, difference, bit
_KNOTS: Final = (-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
# Shares of blocks that may differ from a normal distribution, and may say a deviation that is off
# by a factor of two, before a candidate's level rises: skewed block effects need as much.
_FIT_SPARE: Final = 0.10
_DEVIATION_SPARE: Final = 0.2
_DIFFERENCE: Final = 0.8  # spreads by which a plain model's effect is another effect


@dataclass(frozen=True, slots=True)
class JointCentres:
    """What was drawn: for each coordinate a centre, the place of a spread, a flag; and a vote.

    A flag or vote that was not asked for is False.
    """

    centres: tuple[int, ...]
    spreads: tuple[int, ...]
    flags: tuple[bool, ...]
    vote: bool


@dataclass(frozen=True)
class JointRule:
    """What is public about a joint release.

    Attributes
    ----------
    centre : CentreRule
        Candidates for every centre, their bound, and the trim of the rank level.
    spreads : tuple of int
        Candidates for every spread, in steps, descending.
    coordinates : int
        How many centres there are.
    asks_flags, asks_vote : bool
        Whether flags of coordinates, and the vote about overlap, are among what is drawn.
    """

    centre: CentreRule
    spreads: tuple[int, ...]
    coordinates: int
    asks_flags: bool
    asks_vote: bool

    def __post_init__(self) -> None:
        if not self.spreads or min(self.spreads) < 1 or self.coordinates < 1:
            msg = "a joint release needs coordinates and positive spreads"
            raise NumericRangeError(msg)

    def fingerprint(self) -> str:
        """Return a text that no other rule has."""
        spreads = hashlib.sha256(repr(self.spreads).encode()).hexdigest()
        flags = f"{self.asks_flags:d}{self.asks_vote:d}"
        return f"{self.centre.fingerprint()}/{spreads}/{self.coordinates}/{flags}"

    @property
    def width(self) -> int:
        """How many integers a block hands over."""
        return ENTRIES * self.coordinates + 1

    def boxes(self, blocks: Integers) -> list[Options]:
        """Return the candidates of all coordinates, the vote last, with their levels."""
        if blocks.ndim != 2 or blocks.shape[1] != self.width:
            msg = "every block hands over the same integers for each coordinate, and a vote"
            raise NumericRangeError(msg)
        parts = blocks[:, :-1].reshape(len(blocks), self.coordinates, ENTRIES)
        options = [Options.of(self, parts[:, place]) for place in range(self.coordinates)]
        if self.asks_vote:
            options.append(Options.of_vote(int(np.count_nonzero(blocks[:, -1])), len(blocks)))
        return options


@dataclass(frozen=True)
class Options:
    """The candidates of one coordinate in rows (spread, flag), each with its levels.

    ``rows`` hold the place of a spread, that of a flag, and what lifts the levels; the levels of
    centres by their ranks are ``ranks``. A vote has two rows of one candidate.
    """

    rule: JointRule | None
    effects: Integers  # ascending
    ranks: Integers
    rows: tuple[tuple[int, int, int], ...]
    blocks: int

    @classmethod
    def of(cls, rule: JointRule, entries: Integers) -> Options:
        """Return the candidates of one coordinate; ``entries`` has shape (N, 4)."""
        bound, blocks = rule.centre.bound, len(entries)
        effects = np.sort(np.clip(entries[:, 0], -bound, bound))
        deviation, difference, bit = entries[:, 1], entries[:, 2], entries[:, 3] != 0
        rows = []
        for place, spread in enumerate(rule.spreads):
            base = _apart(deviation, spread, blocks)
            lifts = _flag_levels(difference, bit, spread, blocks) if rule.asks_flags else (0,)
            rows += [(place, flag, max(base, lift)) for flag, lift in enumerate(lifts)]
        return cls(rule, effects, rule.centre.levels(effects), tuple(rows), blocks)

    @classmethod
    def of_vote(cls, votes: int, blocks: int) -> Options:
        """Return the two answers about overlap: that it is there, and that it is not."""
        none, alone = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
        rows = tuple((0, answer, level) for answer, level in enumerate(_sides(votes, blocks)))
        return cls(None, none, alone, rows, blocks)

    @cached_property
    def counts(self) -> Integers:
        """How many candidates of each row have each level, shape (rows, N + 1)."""
        found = []
        held, count = -1, np.zeros(0, dtype=np.int64)
        for spread, _, lift in self.rows:
            if spread != held:
                held, levels = spread, self.centre_levels(spread)
                count = np.bincount(levels, minlength=self.blocks + 1)
            lifted = count.copy()
            lifted[lift] = count[: lift + 1].sum()
            lifted[:lift] = 0
            found.append(lifted)
        return np.array(found)

    def centre_levels(self, spread: int) -> Integers:
        """Return the levels of all centres with one spread, before it lifts them."""
        if self.rule is None:
            return self.ranks
        size = self.rule.spreads[spread]
        candidates = self.rule.centre.candidates
        worst = np.zeros(candidates.size, dtype=np.int64)
        for knot in _KNOTS:
            # Effects are few and candidates many and in order: each effect is looked up.
            first = np.searchsorted(candidates, self.effects - round(knot * size), side="left")
            passed = np.bincount(first, minlength=candidates.size + 1)[:-1].cumsum()
            passed -= math.floor(self.blocks * float(ndtr(knot)))
            np.maximum(worst, np.abs(passed, out=passed), out=worst)
        worst -= math.ceil(_FIT_SPARE * self.blocks)
        return np.maximum(worst, self.ranks, out=worst)

    def levels(self, row: int) -> Integers:
        """Return the levels of all candidates of a row."""
        spread, _, lift = self.rows[row]
        return np.maximum(self.centre_levels(spread), lift)

    def draw(self, lowest: int, highest: int, entropy: Entropy) -> tuple[int, int, int]:
        """Draw a candidate uniformly among those of levels from lowest to highest.

        Returns the place of its spread, of its flag, and of its centre.
        """
        inside = self.counts[:, lowest : highest + 1].sum(axis=1)
        place = uniform_below(int(inside.sum()), entropy)
        row = int(np.searchsorted(inside.cumsum(), place, side="right"))
        levels = self.levels(row)
        found = np.flatnonzero((levels >= lowest) & (levels <= highest))
        spread, flag, _ = self.rows[row]
        return spread, flag, int(found[place - int(inside[:row].sum())])


def draw_centres(
    rule: JointRule, blocks: Integers, rate: Fraction, entropy: Entropy
) -> JointCentres:
    """Draw a candidate with probability ∝ ``exp(−rate·level)``, exactly.

    The level is drawn by how many candidates have it: a box less the one inside. Then the first
    coordinate that is new at this level, by the number of candidates for which it is the first:
    earlier ones are below the level, later ones at most at it.
    """
    options = rule.boxes(blocks)
    within = [one.counts.sum(axis=0).cumsum().tolist() for one in options]
    boxes = [math.prod(sizes) for sizes in zip(*within, strict=True)]
    shells = [box - inner for box, inner in zip(boxes, [0, *boxes], strict=False)]
    level = draw_level(shells, rate, entropy)
    ends = list(accumulate(_first_new(within, level)))
    drawn = []
    new = bisect_right(ends, uniform_below(ends[-1], entropy))
    for place, one in enumerate(options):
        lowest, highest = (level if place == new else 0), (level - 1 if place < new else level)
        drawn.append(one.draw(lowest, highest, entropy))
    return _centres(rule, drawn)


def nearest_centres(rule: JointRule, blocks: Integers) -> JointCentres:
    """Return the candidate in the middle of those of least level; not private."""
    drawn = []
    for one in rule.boxes(blocks):
        level = int(np.flatnonzero(one.counts.sum(axis=0))[0])
        row = int(np.argmax(one.counts[:, level]))
        found = np.flatnonzero(one.levels(row) == level)
        spread, flag, _ = one.rows[row]
        drawn.append((spread, flag, int(found[found.size // 2])))
    return _centres(rule, drawn)


def _centres(rule: JointRule, drawn: Sequence[tuple[int, int, int]]) -> JointCentres:
    held = drawn[: rule.coordinates]
    return JointCentres(
        tuple(int(rule.centre.candidates[centre]) for _, _, centre in held),
        tuple(spread for spread, _, _ in held),
        tuple(bool(flag) for _, flag, _ in held),
        rule.asks_vote and bool(drawn[-1][1]),
    )


def _first_new(within: Sequence[Sequence[int]], level: int) -> list[int]:
    """Return for each coordinate how many candidates of a level have it as the first new one."""
    now = [sizes[level] for sizes in within]
    before = [sizes[level - 1] if level else 0 for sizes in within]
    return [
        math.prod(before[:place]) * (now[place] - before[place]) * math.prod(now[place + 1 :])
        for place in range(len(within))
    ]


def _apart(deviations: Integers, spread: int, blocks: int) -> int:
    """Return the level of a spread by the deviations that blocks say of themselves.

    More than half of them may not differ by √2, and no more than a fifth by 2, on one side.
    """

    def outside(factor: float) -> int:
        above = np.count_nonzero(deviations > round(spread * factor))
        below = np.count_nonzero(deviations < round(spread / factor))
        return int(max(above, below))

    return max(
        outside(math.sqrt(2)) - blocks // 2,
        outside(2.0) - math.ceil(_DEVIATION_SPARE * blocks),
        0,
    )


def _flag_levels(difference: Integers, bit: Bits, spread: int, blocks: int) -> tuple[int, int]:
    """Return the levels of "a plain model gives the same effect" and of its opposite."""
    reach = round(_DIFFERENCE * spread)
    above = np.count_nonzero((difference > reach) | bit)
    below = np.count_nonzero((difference < -reach) | bit)
    return _sides(int(max(above, below)), blocks)


def _sides(votes: int, blocks: int) -> tuple[int, int]:
    """Return how many blocks must change for a majority to say no, and to say yes."""
    half = blocks // 2
    return max(votes - half, 0), max(half - votes, 0)
