"""What the method decides from public numbers and the noisy share of treated rows alone.

Small blocks lose rows to the model inside, few blocks lose ranks to the noise: the block size
minimises the product of both losses. ``epsilon`` is always the budget per row, ε divided by the
rows that a person may have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

from private_ate.arguments import one_of, settle, truth_value, whole_number
from private_ate.estimators.blocks.bends import Bends, bends_to_choose_from, rich_columns
from private_ate.estimators.request import Design, Estimand

__all__ = [
    "BlocksOptions",
    "BlocksPlan",
    "Model",
    "Scope",
    "count_share",
    "plan_blocks",
    "worth_trying",
]

Model = Literal["linear", "overlap", "doubly_robust"]

SUM_SHARE: Final = Fraction(1, 50)
SQUARE_SHARE: Final = Fraction(3, 100)  # the interval's two steps
SPREAD_SHARE: Final = Fraction(7, 100)
_RANKS: Final = 25  # blocks times ε below which tails of the centre become heavy
_INFORMATION: Final = 100  # n·ε·p(1 − p) below which nothing can pay for adjustment
_FEW_ROWS: Final = 1000  # below this, sampling error is as large as the bias one usually fears
_MANY_ROWS: Final = 20_000  # from here on three partitions do; more only cost time
_MOST_ROWS: Final = 200_000  # from here on one does
_LARGER_RANKS: Final = 60  # blocks times ε from which a larger model inside costs little noise
_FEWER_RANKS: Final = 45  # the same where bias that stays is worse than some noise
_MOST_COLUMNS: Final = 120  # of the rich basis: beyond this its cost in time is out of proportion
_CHOOSING_ROWS: Final = 500  # of a block, with which it finds almost all bends that matter
_FEWEST_CHOOSING_ROWS: Final = 20  # below this, chance decides which bends a block chooses
_MANY_BENDS: Final = 600  # to choose from, beyond which three partitions have to do
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
    model : str or None
        The model inside a block: "linear", "overlap" or "doubly_robust". None: by the size that
        blocks can have.
    bends : str or None
        What a model sees of the covariates beside themselves: "squares", the squares, products,
        hinges and jumps that each block has "chosen" from its own rows, or "all" squares,
        products and hinges. None: by the size that blocks can have.
    """

    adjust: bool | None = None
    partitions: int | None = None
    model: Model | None = None
    bends: Bends | None = None

    def __post_init__(self) -> None:
        if self.adjust is not None:
            truth_value("adjust", self.adjust)
        if self.partitions is not None:
            settle(self, partitions=whole_number("partitions", self.partitions, 1, 100))
        if self.model is not None:
            one_of("model", self.model, get_args(Model))
        if self.bends is not None:
            one_of("bends", self.bends, get_args(Bends))


@dataclass(frozen=True, slots=True)
class Scope:
    """Which rows a run speaks of, in public numbers: all n of them, or those of a private cell.

    ``cells`` is the number of private cells into which the rows are divided; None if this is a
    run on all rows. How many rows a cell holds is private, so an equal share is what is expected.
    """

    rows: int
    cells: int | None = None

    @property
    def in_cell(self) -> bool:
        """Whether only the rows of a private cell take part."""
        return self.cells is not None

    @property
    def expected(self) -> int:
        """How many rows budgets are planned for."""
        return self.rows if self.cells is None else max(self.rows // self.cells, 4)


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
    model, bends : str
        The model inside a block, and which bends of the covariates it sees.
    candidate_bits, value_bits : int
        Logarithms of the number of candidates and of the steps across the outcome's range.
    """

    blocks: int
    rows: int
    partitions: int
    centre: Fraction
    effect: Fraction
    enough: bool
    model: Model
    bends: Bends
    candidate_bits: int
    value_bits: int

    def trim(self, epsilon: Fraction) -> int:
        """Return how many block effects are left out at either end; ε per row in all."""
        return math.ceil(24 * self.partitions / (self.effect * epsilon))


def count_share(size: int, epsilon: float) -> Fraction:
    """Return the share of ε that counts the treated rows."""
    return _rounded(_clip(60 / (size * epsilon), 0.03, 0.12))


def plan_blocks(  # noqa: PLR0913  # public numbers, each by its name
    size: int,
    dimension: int,
    epsilon: float,
    *,
    share: float = 0.5,
    members: float | None = None,
    mass: float | None = None,
    rows: int | None = None,
    estimand: Estimand = "ate",
    with_interval: bool = True,
    options: BlocksOptions | None = None,
) -> BlocksPlan:
    """Cut rows into blocks for a share of treated rows; public numbers only.

    ``members`` is the noisy number of rows that take part, where that is counted; with sampling
    weights how many rows of equal weight they are worth, and ``mass`` what the weights add up to
    as shares of their bound: the noise of sums is that of so many rows. ``rows`` is n, where
    ``size`` rows are expected and there may be more.
    """
    options = options or BlocksOptions()
    present = size if members is None else min(max(int(members), 1), rows or size)
    spread = share * (1 - share)
    sums = size if mass is None else max(mass, 1.0)
    centre = _rounded(_clip(25 / (spread * sums * epsilon), 0.05, 0.35))
    interval = SQUARE_SHARE + SPREAD_SHARE if with_interval else Fraction(0)
    effect = 1 - count_share(size, epsilon) - SUM_SHARE - centre - interval
    used = float(effect) * epsilon
    inside = _choose_model(present, dimension, used, share, estimand, options)
    blocks = max(present // inside.rows, 2)
    told = present if mass is None else min(present, sums)
    pays = blocks * used >= _RANKS and told * epsilon * spread >= _INFORMATION
    many = max(size, present)
    fine = many >= _FINE_ROWS
    return BlocksPlan(
        blocks=blocks,
        rows=inside.rows,
        partitions=options.partitions or _partitions(many, dimension, inside.bends),
        centre=centre,
        effect=effect,
        enough=dimension > 0 and (pays if options.adjust is None else options.adjust),
        model=inside.model,
        bends=inside.bends,
        candidate_bits=20 if fine else 14,
        value_bits=30 if fine else 20,
    )


@dataclass(frozen=True, slots=True)
class _Inside:
    """A model inside a block and the rows it needs."""

    model: Model
    bends: Bends
    rows: int


def _choose_model(
    size: int,
    dimension: int,
    epsilon: float,
    share: float,
    estimand: Estimand,
    options: BlocksOptions,
) -> _Inside:
    """Take the largest model whose blocks leave enough ranks to the noise; the linear one else.

    ``epsilon`` is what the centre may spend. The best size of a block weighs the rows that the
    linear model loses against the ranks that the noise takes.
    """
    scarce = min(share, 1 - share)
    # The arm whose fit is carried over to the others; overlap carries none over.
    fitted = {"ate": scarce, "att": 1 - share, "atc": share, "ato": 0.5}[estimand]
    larger: Model = "overlap" if estimand == "ato" else "doubly_robust"
    factor = 5 if estimand == "ato" else 10
    # Blocks grow with n, so that what a model of some size leaves does not stay.
    growing = size * min(epsilon, epsilon**2) / 100
    modelled = max(factor * dimension, 2.5 * dimension / fitted)
    lost = 0.55 * (dimension + 6)
    best = lost + math.sqrt(lost**2 + lost * size * epsilon**2 / 200)
    needed = max(modelled, (factor + 2) / scarce, growing, best)
    # Three rows of the smaller arm; the rarer it is the more, as far as ranks are to spare.
    arm = max(3 / scarce, min(25 * (1 / scarce - 2), size * epsilon / _LARGER_RANKS))
    least = math.ceil(max(best, arm, dimension + 4, min(growing / 2, modelled)))
    plain = math.ceil(needed)
    if options.bends == "squares" or (options.bends is None and options.model == "linear"):
        return _squared(size, epsilon, plain, least, larger, options)
    rich = _rich_rows(size, rich_columns(dimension), epsilon, scarce, plain)
    if options.bends == "all":
        rich = max(plain, math.ceil(1.25 * rich_columns(dimension) / scarce))
    if rich is not None and options.bends != "chosen":
        return _Inside(options.model or larger, "all", rich)
    # Bias that stays is worse than noise, so blocks are as large as the ranks allow.
    allowed = size // math.ceil(_FEWER_RANKS / epsilon)
    fewest = least if options.model in (None, "linear") else plain
    rows = max(min(max(plain, _CHOOSING_ROWS), allowed), fewest)
    if rows < _FEWEST_CHOOSING_ROWS and options.bends is None:
        return _squared(size, epsilon, plain, least, larger, options)
    return _Inside(options.model or (larger if rows >= plain else "linear"), "chosen", rows)


def _squared(  # sizes that were worked out before
    size: int, epsilon: float, plain: int, least: int, larger: Model, options: BlocksOptions
) -> _Inside:
    """Take no more than squares: a larger model if ranks are left for it, the linear one else."""
    if options.model == "linear":
        return _Inside("linear", "squares", least)
    if options.model is not None or size // plain * epsilon >= _LARGER_RANKS:
        return _Inside(options.model or larger, "squares", plain)
    return _Inside("linear", "squares", least)


def _rich_rows(size: int, columns: int, epsilon: float, scarce: float, fewest: int) -> int | None:
    """Return the rows with which a block can hold products and hinges; None if it cannot.

    From many rows on, bias that stays is worse than noise: fewer rows a column and ranks will do.
    """
    if columns > _MOST_COLUMNS:
        return None
    ways = [(1.25, _LARGER_RANKS)] + [(0.9, _FEWER_RANKS)] * (size >= _MANY_ROWS)
    for factor, ranks in ways:
        rows = max(fewest, math.ceil(factor * columns / scarce))
        if size // rows * epsilon >= ranks:
            return rows
    return None


def _partitions(size: int, dimension: int, bends: Bends) -> int:
    """Return how often to cut the rows: more partitions even out the luck of one."""
    slow = bends == "all" or (bends == "chosen" and bends_to_choose_from(dimension) > _MANY_BENDS)
    if size <= _MANY_ROWS and not slow:
        return 10
    return 3 if size < _MOST_ROWS else 1


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
