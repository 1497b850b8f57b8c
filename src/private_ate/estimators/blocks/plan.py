"""What the method decides from public numbers and the noisy share of treated rows alone.

Small blocks lose rows to the model inside, few blocks lose ranks to the noise: the block size
minimises the product of both losses. ``epsilon`` is always the budget per row, ε divided by the
rows that a person may have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from private_ate.errors import ArgumentError
from private_ate.estimators.request import Design

__all__ = ["BlocksOptions", "BlocksPlan", "count_share", "plan_blocks", "worth_trying"]

SUM_SHARE: Final = Fraction(1, 50)
SQUARE_SHARE: Final = Fraction(3, 100)  # the interval's two steps
SPREAD_SHARE: Final = Fraction(7, 100)
_RANKS: Final = 25  # blocks times ε below which tails of the centre become heavy
_INFORMATION: Final = 100  # n·ε·p(1 − p) below which nothing can pay for adjustment
_FEW_ROWS: Final = 1000  # below this, sampling error is as large as the bias one usually fears
_MANY_ROWS: Final = 20_000  # from here on three partitions do; more only cost time
_FINE_ROWS: Final = 50_000  # from here on the peak needs a finer grid of candidates


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
        if self.adjust not in (None, True, False):
            msg = "adjust is true, false, or none for the public rule"
            raise ArgumentError(msg)
        if self.partitions is not None and not 1 <= self.partitions <= 100:
            msg = "partitions are a whole number from 1 to 100, or none for the public rule"
            raise ArgumentError(msg)


@dataclass(frozen=True, slots=True)
class BlocksPlan:
    """How the rows are cut and the budget is split.

    Attributes
    ----------
    blocks, rows, partitions : int
        Blocks (m), rows of a block (b) and partitions (r).
    centre, effect : Fraction
        Shares of ε for the unadjusted starting point and for the effect.
    enough : bool
        Whether adjusting can pay.
    candidate_bits, value_bits : int
        Logarithms of the number of candidates and of the steps across the outcome's range.
    """

    blocks: int
    rows: int
    partitions: int
    centre: Fraction
    effect: Fraction
    enough: bool
    candidate_bits: int
    value_bits: int

    def trim(self, epsilon: Fraction) -> int:
        """Return how many block effects are left out at either end; ε per row in all."""
        return math.ceil(24 * self.partitions / (self.effect * epsilon))


def count_share(size: int, epsilon: float) -> Fraction:
    """Return the share of ε that counts the treated rows."""
    return _rounded(_clip(60 / (size * epsilon), 0.03, 0.12))


def plan_blocks(
    size: int,
    dimension: int,
    epsilon: float,
    *,
    share: float = 0.5,
    with_interval: bool = True,
    options: BlocksOptions | None = None,
) -> BlocksPlan:
    """Cut rows into blocks for a share of treated rows; public numbers only."""
    options = options or BlocksOptions()
    spread = share * (1 - share)
    centre = _rounded(_clip(25 / (spread * size * epsilon), 0.05, 0.35))
    interval = SQUARE_SHARE + SPREAD_SHARE if with_interval else Fraction(0)
    effect = 1 - count_share(size, epsilon) - SUM_SHARE - centre - interval
    used = float(effect) * epsilon
    lost = 0.55 * (dimension + 6)
    best = lost + math.sqrt(lost**2 + lost * size * used**2 / 200)
    rows = math.ceil(max(best, 3 / min(share, 1 - share), dimension + 4))
    blocks = max(size // rows, 2)
    pays = blocks * used >= _RANKS and size * epsilon * spread >= _INFORMATION
    fine = size >= _FINE_ROWS
    return BlocksPlan(
        blocks=blocks,
        rows=rows,
        partitions=options.partitions or (10 if size <= _MANY_ROWS else 3),
        centre=centre,
        effect=effect,
        enough=dimension > 0 and (pays if options.adjust is None else options.adjust),
        candidate_bits=20 if fine else 14,
        value_bits=30 if fine else 20,
    )


def worth_trying(size: int, plan: BlocksPlan, design: Design, options: BlocksOptions) -> bool:
    """Say whether anything beyond the unadjusted comparison is tried at all; public numbers."""
    if design == "randomized" or not plan.enough:
        return False
    return options.adjust is True or design == "observational" or size >= _FEW_ROWS


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def _rounded(share: float) -> Fraction:
    """Round a share up to a thousandth."""
    return Fraction(math.ceil(share * 1000 - 1e-9), 1000)
