"""What is public of the arms where covariates and treatment are: sizes, balance, overlap.

The warning that heads a release when weights cannot make the arms alike follows from these columns
alone, so it may be said at label level, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from private_ate.arrays import Floats, Integers
from private_ate.errors import SchemaError
from private_ate.models.propensity import PropensityModel, log_odds
from private_ate.parameters import Estimand
from private_ate.release.metadata import Pair
from private_ate.study import Added, ArmSizes, Block, MatchingStudy, Rows, RowWeights, Study

__all__ = [
    "ArmBalance", "FoundArms", "count_arms", "found_arms", "greatest_over_pairs", "measure_arms",
    "note_few_units", "warn_of_overlap",
]  # fmt: skip

_LARGEST_DIFFERENCE: Final = 0.1
_FEWEST_UNITS: Final = 30
_SMALLEST_SHARE: Final = 0.1  # of the arm that its effective size should reach
_MOST_ALONE: Final = 0.05  # of whom an arm stands for that may lie where it has nobody
_MOST_SCARCE: Final = 0.05  # of the units that are meant, where next to none of an arm are
_NAMED: Final = 5  # covariates that a warning names
_REACH, _BINS_PER_UNIT = 30, 10  # of log odds: scores beyond count as at the end
_BINS: Final = 2 * _REACH * _BINS_PER_UNIT
_TOO_NOISY: Final = 0.1  # of the outcome's range, by which noise may move an arm's mean
_NAMES: Final = {
    "att": "on the treated (estimand 'att')",
    "atc": "on the controls (estimand 'atc')",
    "ato": "in the overlap population (estimand 'ato')",
}
_REMEDIES: Final[dict[Estimand, tuple[str, ...]]] = {
    "ate": ("att", "ato"),
    "att": ("ato",),
    "atc": ("att", "ato"),
    "ato": (),
}
_OF_PAIR: Final = ("control", "treated")  # two arms are named so, whatever their labels are


@dataclass(frozen=True, slots=True)
class FoundArms(Added):
    """How many rows each arm holds, and how many of those are not known to lack an outcome.

    ``members`` are those of the latter that have a sampling weight above zero; ``weight`` is what
    the weights of all rows add up to, as shares of their bound.
    """

    everyone: ArmSizes
    observed: ArmSizes
    members: ArmSizes
    weight: float


def count_arms(public: Study) -> FoundArms:
    """Count the arms of public rows; refuse one without units, outcomes or sampling weights."""
    found = public.fold(found_arms, title="arms")
    counted = (found.everyone.counts, found.observed.counts, found.members.counts)
    sizes = zip(*counted, strict=True)
    labels = public.domain.treatment.coded
    for code, (everyone, observed, members) in enumerate(sizes):
        unit = f"unit of arm {labels[code]!r}"
        lacking = (
            f"no unit is in arm {labels[code]!r}: remove it from the declared arms or check the "
            "label"
        )
        if len(labels) == 2:
            name = ("control", "treated")[code]
            unit = f"{name} unit"
            lacking = f"no unit is {name}: check the treatment column and its two labels"
        if everyone == 0:
            raise SchemaError(lacking)
        if observed == 0:
            msg = f"no {unit} has an outcome: check the outcome column"
            raise SchemaError(msg)
        if members == 0 and public.domain.weights is not None:
            msg = (
                f"no {unit} with an outcome has a sampling weight above 0: check the column "
                f"{public.domain.weights.column!r}"
            )
            raise SchemaError(msg)
    return found


def found_arms(block: Block) -> FoundArms:
    """Return the counts of a block; a kernel."""
    members = block.observed & (block.weights > 0)
    return FoundArms(
        ArmSizes.count(block.arm, block.arms),
        ArmSizes.count(block.arm[block.observed], block.arms),
        ArmSizes.count(block.arm[members], block.arms),
        float(block.weights.sum()),
    )


@dataclass(frozen=True, slots=True)
class ArmBalance:
    """Standardised covariate means of every arm less those of all units, before and after weights.

    Attributes
    ----------
    features : tuple of str
        Names of the covariates.
    labels : tuple of str
        Labels of the arms, in the order of their codes.
    sizes : tuple of int
        Units that carry weight.
    effective : tuple of float
        The effective sample size of each arm.
    before, after : arrays, shape (K, d)
        The means without and with weights.
    """

    features: tuple[str, ...]
    labels: tuple[str, ...]
    sizes: tuple[int, ...]
    effective: tuple[float, ...]
    before: Floats = field(repr=False)
    after: Floats = field(repr=False)

    @property
    def greatest(self) -> dict[str, Pair]:
        """The greatest difference of each covariate over all pairs of arms, before and after."""
        return greatest_over_pairs(self.by_arm)

    @property
    def by_arm(self) -> dict[str, dict[str, Pair]]:
        """The means of each covariate in each arm, before and after."""
        return {
            label: dict(zip(self.features, zip(before, after, strict=True), strict=True))
            for label, before, after in zip(
                self.labels, self.before.tolist(), self.after.tolist(), strict=True
            )
        }


def greatest_over_pairs(arm_balance: Mapping[str, Mapping[str, Pair]]) -> dict[str, Pair]:
    """Return each covariate's greatest difference over all pairs of arms, before and after.

    ``arm_balance`` holds standardised means by arm and covariate.
    """
    by_arm = list(arm_balance.values())
    found = {}
    for name in by_arm[0]:
        before, after = ([means[name][side] for means in by_arm] for side in (0, 1))
        found[name] = (max(before) - min(before), max(after) - min(after))
    return found


def measure_arms(public: MatchingStudy, weights: RowWeights) -> ArmBalance:
    """Return balance and effective sizes under one weight per row; no arm is empty."""
    sums = public.fold_with(weights, _add_moments, title="balance")
    weight, squares, rows = sums[:, 0], sums[:, 1], sums[:, 2]
    first, second, weighted = np.split(sums[:, 3:], 3, axis=1)
    means = first / rows[:, None]
    spread = np.sqrt(np.maximum(second / rows[:, None] - means**2, 0.0).mean(axis=0))
    spread[spread <= 1e-12] = 1.0
    everybody = first.sum(axis=0) / rows.sum()
    return ArmBalance(
        features=public.domain.features,
        labels=public.domain.treatment.coded,
        sizes=tuple(map(int, rows)),
        effective=tuple((weight**2 / squares).tolist()),
        before=(means - everybody) / spread,
        after=(weighted / weight[:, None] - everybody) / spread,
    )


def _add_moments(block: Block, weights: Floats) -> Floats:
    """Return Σw, Σw², n, Σx, Σx² and Σwx of each arm, shape (K, 3 + 3d)."""
    rows = []
    for arm in range(block.arms):
        inside = block.arm == arm
        weight, x = weights[inside], block.covariates[inside]
        sums = [[weight.sum(), (weight**2).sum(), weight.size], x.sum(axis=0), (x**2).sum(axis=0)]
        rows.append(np.concatenate([*sums, weight @ x]))
    return np.array(rows)


def warn_of_overlap(
    public: Rows,
    model: PropensityModel,
    balance: ArmBalance,
    estimand: Estimand = "ate",
    *,
    among: int | None = None,
    by: str = "",
    scarce: Sequence[float] = (),
) -> tuple[str, ...]:
    """Return the warning that heads a release, or none if the arms could be made alike.

    ``among`` is the arm whose units are meant; None for all units, or those of the estimand.
    ``by`` says which method has the estimands that help, where the one in use does not.
    ``scarce`` are the shares of those meant that lie where an arm has next to no unit.
    """
    if estimand in ("att", "atc"):
        among = 1 if estimand == "att" else 0
    is_pair = len(balance.labels) == 2
    uneven = _uneven(balance)
    thin = _few(balance, among, estimand)
    if estimand != "ato":  # whose weights leave out units without a counterpart
        thin += _alone(public, model, balance, among)
    lacking = [arm for arm, share in enumerate(scarce) if share > _MOST_SCARCE]
    thin += [_name_scarce(balance, arm, scarce[arm], among, estimand) for arm in lacking]
    if not uneven and not thin:
        return ()
    head = "poor overlap of the arms" if thin else "the arms are not balanced"
    advice = "Compare effects among the units of one arm (among=…), or fewer arms"
    if is_pair:
        names = _REMEDIES[estimand]
        if lacking:  # one arm is missing where only units of the other are
            names = (("atc", "att")[lacking[0]],) if len(lacking) == 1 else ()
        remedies = [f"the effect {_NAMES[name]}" for name in names]
        advice = "Compare fewer or other units"
        if remedies:
            advice = f"Ask for {' or '.join(remedies)}{by}"
    if not thin:
        advice += "; a larger ε allows larger weights"
    most = _differ_most(balance) if is_pair and not uneven else ""
    return (f"{head}: {'; '.join([*uneven, *thin])}. {most}{advice}",)


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
    """Name covariates in which weights leave two arms apart."""
    after = {name: pair[1] for name, pair in balance.greatest.items()}
    named = _different(after)
    if not named:
        return []
    between = "" if len(balance.labels) == 2 else " between arms"
    largest = f"{after[named[0]]:.2g}"
    return [f"standardised differences of up to {largest}{between} are left ({_listed(named)})"]


def _differ_most(balance: ArmBalance) -> str:
    """Name the covariates in which the arms differ most before weighting."""
    named = _different({name: pair[0] for name, pair in balance.greatest.items()})
    return f"The arms differ most in {_listed(named)}. " if named else ""


def _different(differences: Mapping[str, float]) -> list[str]:
    """Return the covariates whose difference is large, the largest first."""
    named = sorted(differences, key=lambda name: -differences[name])
    return [name for name in named if differences[name] > _LARGEST_DIFFERENCE]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _few(balance: ArmBalance, among: int | None, estimand: Estimand) -> list[str]:
    """Name arms of which few units carry the weight; only all units need all of every arm."""
    is_all = among is None and estimand == "ate"
    codes = range(len(balance.labels))
    return [
        f"{balance.sizes[arm]:,} {_units_of(balance, arm)} are worth "
        f"{balance.effective[arm]:,.0f} of equal weight"
        for arm in (reversed(codes) if len(codes) == 2 else codes)  # treated units come first
        if balance.effective[arm] < _FEWEST_UNITS
        or (is_all and balance.effective[arm] < _SMALLEST_SHARE * balance.sizes[arm])
    ]


def _name_scarce(
    balance: ArmBalance, arm: int, share: float, among: int | None, estimand: Estimand
) -> str:
    """Say of how many units the counterparts in an arm are all but missing."""
    whom = "units" if among is None else _units_of(balance, among)
    if estimand == "ato":
        whom = "overlap population"
    is_or_are = "is" if estimand == "ato" else "are"
    return (
        f"{100 * share:.0f} % of the {whom} {is_or_are} where {_units_of(balance, arm)} are ten "
        "times rarer than overall"
    )


def _units_of(balance: ArmBalance, arm: int) -> str:
    if len(balance.labels) == 2:
        return f"{_OF_PAIR[arm]} units"
    return f"units of arm {balance.labels[arm]!r}"


def _alone(
    public: Rows, model: PropensityModel, balance: ArmBalance, among: int | None
) -> list[str]:
    """Name arms that have nobody where many of those are whom they stand for."""
    members, others = public.fold(_count_scores(model, among), title="overlap")
    is_pair = len(balance.labels) == 2
    found = []
    for arm, label in enumerate(balance.labels):
        share = _share_beyond(others[arm], members[arm])
        # Of two alike samples 2/(m + 1) of one lie beyond the m units of the other.
        if arm == among or share <= max(_MOST_ALONE, 6 / (balance.sizes[arm] + 1)):
            continue
        if is_pair:
            whom, score, whose = _units_of(balance, 1 - arm), "", f"every {_OF_PAIR[arm]} unit"
        else:
            whom = "units outside it" if among is None else _units_of(balance, among)
            score, whose = f" for arm {label!r}", "every unit in it"
        found.append(
            f"{100 * share:.0f} % of the {whom} have scores{score} beyond those of {whose}"
        )
    return found


def _share_beyond(whom: Integers, members: Integers) -> float:
    """Return the share of units in bins below the first or above the last of an arm's members."""
    occupied = np.flatnonzero(members)
    inside = int(whom[occupied[0] : occupied[-1] + 1].sum()) if occupied.size else 0
    return 1 - inside / max(int(whom.sum()), 1)


def _count_scores(model: PropensityModel, among: int | None) -> Callable[[Block], Integers]:
    """Return a kernel that counts units by bin of each arm's score, shape (2, K, bins).

    First the arm's members, then those whom it stands for.
    """

    def kernel(block: Block) -> Integers:
        linear = model.predictors(block.covariates)
        counts = np.zeros((2, model.arms, _BINS), dtype=np.int64)
        for arm in range(model.arms):
            place = np.floor((log_odds(linear, arm) + _REACH) * _BINS_PER_UNIT)
            score_bin = np.clip(place, 0, _BINS - 1).astype(np.int64)
            inside = block.arm == arm
            whom = ~inside if among is None else block.arm == among
            counts[0, arm] = np.bincount(score_bin[inside], minlength=_BINS)
            counts[1, arm] = np.bincount(score_bin[whom], minlength=_BINS)
        return counts

    return kernel
