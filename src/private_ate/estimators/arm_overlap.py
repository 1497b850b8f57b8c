"""The overlap alarm for several arms: when weights cannot make an arm stand for all, say so first.

Everything here follows from covariates and treatment, so it may be told where those are public:
at label level, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Integers
from private_ate.estimators.arm_balance import ArmBalance
from private_ate.models.multinomial import MultinomialModel, log_odds
from private_ate.study import Block, Rows

__all__ = ["note_few_units", "warn_of_arms"]

_LARGEST_DIFFERENCE: Final = 0.1
_FEWEST_UNITS: Final = 30
_SMALLEST_SHARE: Final = 0.1  # of the arm that its effective size should reach
_MOST_ALONE: Final = 0.05  # of whom an arm stands for that may lie where it has nobody
_NAMED: Final = 5  # covariates that a warning names
_REACH, _CELLS_PER_UNIT = 30, 10  # of log odds: scores beyond count as at the end
_CELLS: Final = 2 * _REACH * _CELLS_PER_UNIT
_TOO_NOISY: Final = 0.1  # of the outcome's range, by which noise may move an arm's mean


def warn_of_arms(
    public: Rows, model: MultinomialModel, balance: ArmBalance, *, among: int | None = None
) -> tuple[str, ...]:
    """Return the warning that heads a release, or none if every arm could be made alike.

    ``among`` is the arm whose units are meant; None for all units.
    """
    uneven = _uneven(balance)
    thin = [*_worn(balance, among), *_alone(public, model, balance, among)]
    if not uneven and not thin:
        return ()
    head = "poor overlap of the arms" if thin else "the arms are not balanced"
    advice = "Compare effects among the units of one arm (among=…), or fewer arms"
    if not thin:
        advice += "; a larger ε allows larger weights"
    return (f"{head}: {'; '.join([*uneven, *thin])}. {advice}",)


def note_few_units(
    balance: ArmBalance, reaches: tuple[float, ...], width: float
) -> tuple[str, ...]:
    """Name arms whose noise, within ``reaches`` 19 times of 20, hides a tenth of the range."""
    return tuple(
        f"arm {label!r} has {size:,} {'unit' if size == 1 else 'units'}: noise alone moves its "
        f"mean by up to {reach / width:.0%} of the outcome's range"
        for label, size, reach in zip(balance.labels, balance.sizes, reaches, strict=True)
        if reach > _TOO_NOISY * width
    )


def _uneven(balance: ArmBalance) -> list[str]:
    after = {name: pair[1] for name, pair in balance.greatest.items()}
    named = sorted(after, key=lambda name: -after[name])
    named = [name for name in named if after[name] > _LARGEST_DIFFERENCE]
    if not named:
        return []
    more = len(named) - _NAMED
    listed = ", ".join(named[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    largest = f"{after[named[0]]:.2g}"
    return [f"standardised differences of up to {largest} between arms are left ({listed})"]


def _worn(balance: ArmBalance, among: int | None) -> list[str]:
    """Name arms of which few units carry the weight."""
    return [
        f"{size:,} units of arm {label!r} are worth {worth:,.0f} of equal weight"
        for label, size, worth in zip(balance.labels, balance.sizes, balance.effective, strict=True)
        if worth < _FEWEST_UNITS or (among is None and worth < _SMALLEST_SHARE * size)
    ]


def _alone(
    public: Rows, model: MultinomialModel, balance: ArmBalance, among: int | None
) -> list[str]:
    """Name arms that have nobody where many of those are whom they stand for."""
    counts = public.fold(_count_scores(model, among), title="overlap")
    whom = "units outside it" if among is None else f"units of arm {balance.labels[among]!r}"
    found = []
    for arm, label in enumerate(balance.labels):
        share = _share_beyond(counts.others[arm], counts.members[arm])
        # Of two alike samples 2/(m + 1) of one lie beyond the m units of the other.
        if arm != among and share > max(_MOST_ALONE, 6 / (balance.sizes[arm] + 1)):
            found.append(
                f"{100 * share:.0f} % of the {whom} have scores for arm {label!r} beyond those "
                "of every unit in it"
            )
    return found


def _share_beyond(whom: Integers, members: Integers) -> float:
    """Return the share of units in cells below the first or above the last of an arm's members."""
    occupied = np.flatnonzero(members)
    inside = int(whom[occupied[0] : occupied[-1] + 1].sum()) if occupied.size else 0
    return 1 - inside / max(int(whom.sum()), 1)


@dataclass(frozen=True, slots=True)
class _ScoreCounts:
    """By cell of each arm's score: its members, and those whom it stands for; shape (K, cells)."""

    members: Integers
    others: Integers

    def __add__(self, other: _ScoreCounts) -> _ScoreCounts:
        return _ScoreCounts(self.members + other.members, self.others + other.others)


def _count_scores(model: MultinomialModel, among: int | None) -> Callable[[Block], _ScoreCounts]:
    def kernel(block: Block) -> _ScoreCounts:
        linear = model.predictors(block.covariates)
        counts = np.zeros((2, model.arms, _CELLS), dtype=np.int64)
        for arm in range(model.arms):
            place = np.floor((log_odds(linear, arm) + _REACH) * _CELLS_PER_UNIT)
            cell = np.clip(place, 0, _CELLS - 1).astype(np.int64)
            inside = block.arm == arm
            whom = ~inside if among is None else block.arm == among
            counts[0, arm] = np.bincount(cell[inside], minlength=_CELLS)
            counts[1, arm] = np.bincount(cell[whom], minlength=_CELLS)
        return _ScoreCounts(counts[0], counts[1])

    return kernel
