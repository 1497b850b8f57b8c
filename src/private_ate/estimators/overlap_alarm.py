"""The overlap alarm: when weights cannot make the arms alike, a release says so first.

Everything here follows from covariates and treatment, so it may be told where those are public:
at label level, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Floats, Integers
from private_ate.estimators.request import Estimand
from private_ate.study import ArmSizes, Block, MatchingStudy, Rows, RowWeights

__all__ = ["WeightedArms", "measure_weights", "warn_of_overlap"]

_LARGEST_DIFFERENCE: Final = 0.1
_FEWEST_UNITS: Final = 30
_SMALLEST_SHARE: Final = 0.1  # of the arm that its effective size should reach
_MOST_ALONE: Final = 0.05  # of an arm that may lie where the other has nobody
_NAMED: Final = 5  # covariates that a warning names
_REACH, _CELLS_PER_UNIT = 30, 10  # of log odds: scores beyond count as at the end
_NAMES: Final = {
    "att": "on the treated (estimand 'att')",
    "ato": "in the overlap population (estimand 'ato')",
}
_REMEDIES: Final[dict[Estimand, tuple[str, ...]]] = {
    "ate": ("att", "ato"),
    "att": ("ato",),
    "atc": ("att", "ato"),
    "ato": (),
}
# Whose scores the other arm has to reach, by estimand; overlap weights leave the others out.
_SPOKEN_OF: Final[dict[Estimand, tuple[int, ...]]] = {
    "ate": (0, 1),
    "att": (0,),
    "atc": (1,),
    "ato": (),
}


@dataclass(frozen=True, slots=True)
class WeightedArms:
    """What weights make of both arms, treated first.

    ``sizes`` are units, ``effective`` units of equal weight that they are worth, and ``balance``
    the standardised mean differences of every feature before and after weighting.
    """

    sizes: tuple[int, int]
    effective: tuple[float, float]
    balance: Mapping[str, tuple[float, float]]


def warn_of_overlap(
    public: Rows, coefficients: Floats, weighted: WeightedArms, estimand: Estimand, *, by: str = ""
) -> tuple[str, ...]:
    """Return the warning that heads a release, or none if the arms could be made alike.

    ``coefficients`` are those of the propensity score, the constant first. ``by`` says which
    method has the estimands that help, where the one in use does not.
    """
    uneven = _uneven(weighted)
    thin = [*_worn(weighted, estimand), *_alone(public, coefficients, weighted, estimand)]
    if not uneven and not thin:
        return ()
    remedies = [f"the effect {_NAMES[name]}" for name in _REMEDIES[estimand]]
    advice = f"Ask for {' or '.join(remedies)}{by}" if remedies else "Compare fewer or other units"
    if not thin:
        advice += "; a larger ε allows larger weights"
    head = "poor overlap of the arms" if thin else "the arms are not balanced"
    return (f"{head}: {'; '.join([*uneven, *thin])}. {_differ(weighted, uneven)}{advice}",)


def _uneven(weighted: WeightedArms) -> list[str]:
    after = {name: abs(pair[1]) for name, pair in weighted.balance.items()}
    named = [name for name in _ordered(after) if after[name] > _LARGEST_DIFFERENCE]
    if not named:
        return []
    largest = f"{after[named[0]]:.2g}"
    return [f"standardised differences of up to {largest} are left ({_listed(named)})"]


def _worn(weighted: WeightedArms, estimand: Estimand) -> list[str]:
    """Name arms of which few units carry the weight; only the ATE needs all of both arms."""
    return [
        f"{size:,} {arm} units are worth {worth:,.0f} of equal weight"
        for arm, size, worth in zip(
            ("treated", "control"), weighted.sizes, weighted.effective, strict=True
        )
        if worth < _FEWEST_UNITS or (estimand == "ate" and worth < _SMALLEST_SHARE * size)
    ]


def _alone(
    public: Rows, coefficients: Floats, weighted: WeightedArms, estimand: Estimand
) -> list[str]:
    counts = public.fold(_count_scores(coefficients), title="overlap")
    names, found = ("treated", "control"), []
    for arm in _SPOKEN_OF[estimand]:
        share = _share_beyond(counts.of[arm], counts.of[1 - arm])
        # Of two alike samples 2/(m + 1) of one lie beyond the m units of the other.
        if share > max(_MOST_ALONE, 6 / (weighted.sizes[1 - arm] + 1)):
            found.append(
                f"{100 * share:.0f} % of the {names[arm]} units have scores beyond those of "
                f"every {names[1 - arm]} unit"
            )
    return found


def _share_beyond(mine: Integers, others: Integers) -> float:
    """Return the share of units in cells below the first or above the last of the other arm."""
    occupied = np.flatnonzero(others)
    inside = int(mine[occupied[0] : occupied[-1] + 1].sum()) if occupied.size else 0
    return 1 - inside / max(int(mine.sum()), 1)


def _differ(weighted: WeightedArms, uneven: list[str]) -> str:
    """Name the covariates in which the arms differ most, where the warning has not yet."""
    before = {name: abs(pair[0]) for name, pair in weighted.balance.items()}
    named = [name for name in _ordered(before) if before[name] > _LARGEST_DIFFERENCE]
    if uneven or not named:
        return ""
    return f"The arms differ most in {_listed(named)}. "


def _ordered(sizes: Mapping[str, float]) -> list[str]:
    return sorted(sizes, key=lambda name: -sizes[name])


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class _ScoreCounts:
    """Units of the treated and the control arm by cell of the score; adds up over blocks."""

    of: tuple[Integers, Integers]

    def __add__(self, other: _ScoreCounts) -> _ScoreCounts:
        return _ScoreCounts((self.of[0] + other.of[0], self.of[1] + other.of[1]))


def _count_scores(coefficients: Floats) -> Callable[[Block], _ScoreCounts]:
    cells = 2 * _REACH * _CELLS_PER_UNIT

    def kernel(block: Block) -> _ScoreCounts:
        odds = coefficients[0] + block.covariates @ coefficients[1:]
        place = np.floor((odds + _REACH) * _CELLS_PER_UNIT)
        cell = np.clip(place, 0, cells - 1).astype(np.int64)
        treated, control = (
            np.bincount(cell[arm], minlength=cells) for arm in (block.treatment, ~block.treatment)
        )
        return _ScoreCounts((treated, control))

    return kernel


def measure_weights(
    public: MatchingStudy, weights: RowWeights, arms: ArmSizes, features: tuple[str, ...]
) -> WeightedArms:
    """Return balance and effective sizes under one weight per row."""
    sums = public.fold_with(weights, _add_moments, title="balance").values
    weight, squares = sums[:, 0], sums[:, 1]
    rows, moments = sums[:, 2], np.split(sums[:, 3:], 3, axis=1)
    means, square_means = moments[0] / rows[:, None], moments[1] / rows[:, None]
    spread = np.sqrt(np.maximum(square_means - means**2, 0.0).mean(axis=0))
    spread[spread <= 1e-12] = 1.0
    after = moments[2] / weight[:, None]
    differences = [(each[0] - each[1]) / spread for each in (means, after)]
    treated, control = weight**2 / squares
    return WeightedArms(
        (arms.treated, arms.control),
        (float(treated), float(control)),
        {
            name: (float(before), float(left))
            for name, before, left in zip(features, *differences, strict=False)
        },
    )


@dataclass(frozen=True, slots=True)
class _Moments:
    """Σw, Σw², n, Σx, Σx² and Σwx of the treated and the control arm, shape (2, 3 + 3d)."""

    values: Floats

    def __add__(self, other: _Moments) -> _Moments:
        return _Moments(self.values + other.values)


def _add_moments(block: Block, weights: Floats) -> _Moments:
    rows = []
    for arm in (block.treatment, ~block.treatment):
        weight, x = weights[arm], block.covariates[arm]
        rows.append(
            np.concatenate(
                [
                    [weight.sum(), (weight**2).sum(), weight.size],
                    x.sum(axis=0),
                    (x**2).sum(axis=0),
                    weight @ x,
                ]
            )
        )
    return _Moments(np.array(rows))
