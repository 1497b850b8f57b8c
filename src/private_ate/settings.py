"""The settings of a release: a typed value that a method writes, a typed view that readers read.

A method hands over its own frozen dataclass, whose fields are the keys of the JSON in their order.
Readers see `Facts`, which takes any mapping: releases of older versions and of methods that this
version does not know have defaults where a key is missing or holds something else. Nothing outside
this module looks a key up by its text.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Final, Literal, cast

__all__ = [
    "ABSENT",
    "Absent",
    "ArmCounts",
    "ArmNumbers",
    "ArmsSettings",
    "ColumnSizes",
    "EqualEffects",
    "Facts",
    "HeadlineNote",
    "LedgerNote",
    "OutcomeFacts",
    "PublicUse",
    "SamplingFacts",
    "Settings",
    "SplitSizes",
    "SubgroupNote",
    "SubgroupsNote",
    "plain_settings",
    "with_ledger_note",
    "with_notes",
]

Pair = tuple[float, float]


class Absent(enum.Enum):
    """The one value of a setting that is not written at all; None is written as null."""

    ABSENT = enum.auto()


ABSENT: Final = Absent.ABSENT


class Settings:
    """What a method writes into ``release.settings``; each has a frozen dataclass of its own.

    Its fields are the keys in the order in which JSON shows them; one that may be left out has
    the default ``ABSENT``. ``methods`` and ``levels`` say whose settings they are. The published
    schema of a release is made from these types and their docstrings (``docs/make_schema.py``).
    ``several_arms`` says whether they are those of three arms or more, or of two.

    Attributes
    ----------
    confidence : float
        Coverage of the intervals.
    population : str
        Whom the effect speaks of.
    """

    __slots__ = ()
    methods: ClassVar[tuple[str, ...]] = ()
    levels: ClassVar[tuple[str, ...]] = ("label", "sample")
    several_arms: ClassVar[bool] = False

    confidence: float
    population: str

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as values that JSON knows, without those that are absent."""
        return cast("dict[str, Any]", _plain(self))


@dataclass(frozen=True, slots=True)
class ArmCounts:
    """A number of units for each arm."""

    treated: int
    control: int


@dataclass(frozen=True, slots=True)
class ArmNumbers:
    """A number for each arm."""

    treated: float
    control: float


@dataclass(frozen=True, slots=True)
class HeadlineNote:
    """The contrast that a release of several arms has as its headline.

    Attributes
    ----------
    arm : str
        The arm whose effect it is: the last declared that is not the reference.
    against : str
        The reference.
    """

    arm: str
    against: str


@dataclass(frozen=True, slots=True)
class SubgroupNote:
    """One of the finest subgroups; everything about it is public, or was released with noise.

    Attributes
    ----------
    name : str
        What the table of effects calls it.
    units : int
        How many units it holds; a noisy number at sample level.
    arms : mapping
        How many of them are in each arm, by label; those without an outcome are not counted.
        Noisy numbers at sample level.
    estimated : bool
        Whether it has effects: a subgroup that lacks units of some arm has none at label level.
    weight : float
        What its units' sampling weights add up to, by which it counts among all; only where
        sampling weights are in force.
    adjusted : bool
        At sample level: whether covariates were adjusted for there.
    """

    name: str
    units: int
    arms: Mapping[str, int]
    estimated: bool
    weight: float | Absent = ABSENT
    adjusted: bool | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class SamplingFacts:
    """Sampling weights that are in force, as a release tells of them.

    Attributes
    ----------
    column : str
        The column that holds them.
    bound : float
        The largest weight as declared.
    largest : float or None
        The largest weight of a row over the mean of all, where weights are public.
    mean : float or None
        Their released mean, where they are private.
    worth : mapping
        How many units of equal weight each arm is worth under sampling weights alone, by its
        label; all rows together, under no name, where weights are private.
    """

    column: str
    bound: float
    largest: float | None
    mean: float | None
    worth: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class EqualEffects:
    """A test whether an effect is the same in all of the finest subgroups.

    Attributes
    ----------
    arm : str
        The arm whose effect it is.
    against : str
        The arm that it is compared with.
    statistic : float
        Cochran's Q, with the known variances of the noise.
    degrees : int
        Its degrees of freedom.
    p_value : float
        The chance of a Q as large if all effects are equal, by the law of noise and sampling.
    """

    arm: str
    against: str
    statistic: float
    degrees: int
    p_value: float


@dataclass(frozen=True, slots=True)
class SubgroupsNote:
    """How effects in subgroups came about.

    Attributes
    ----------
    by : list of str
        Columns and cuts that make the subgroups.
    overall : str
        Where effects for all units come from: "rolled up" from the subgroups, or "paid for" with
        half of ε, and at label level reconciled with them.
    cells : list of objects
        The finest subgroups.
    simultaneous_factor : float
        How much wider than its own interval the one is that covers together with those of all
        other rows; absent without intervals.
    equal_effects : list of objects
        Tests of equal effects, one for each arm against the reference; absent without intervals.
    """

    by: tuple[str, ...]
    overall: Literal["rolled up", "paid for"]
    cells: tuple[SubgroupNote, ...]
    simultaneous_factor: float | Absent = ABSENT
    equal_effects: tuple[EqualEffects, ...] | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class OutcomeFacts:
    """One of several outcomes that were released together.

    Attributes
    ----------
    column : str
        The outcome's column.
    bounds : pair of float or None
        The declared bounds, low end first; null where they were looked up in the data.
    unit : str or None
        The unit in which it is measured, where somebody declared one.
    means : mapping
        Its mean in each arm if all were given that arm, where means were released.
    left_out : int
        Rows without it that were left out, where who lacks it is public.
    """

    column: str
    bounds: Pair | None
    unit: str | None
    means: Mapping[str, float] | Absent = ABSENT
    left_out: int | Absent = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsSettings(Settings):
    """What every method says of three arms or more; numbers by arm are mappings from its label.

    ``estimators.contrasts.estimate_from_arms`` fills these fields in: a method leaves them out.

    Attributes
    ----------
    headline : object
        The contrast that is the release's headline.
    among : str
        The arm whose units are meant; absent for all units.
    simultaneous_factor : mapping
        How much wider than its own interval the one is that covers together with others: with
        those of all pairs of arms, or with those against the reference.
    interval_rule : str
        How noise and sampling were put together: "convolved" for the law of their sum,
        "in_squares" for the root of both squared half-widths; absent without intervals.
    binary_outcome : bool
        True where the outcome is declared as binary, so that means are risks; absent otherwise.
    doses : mapping
        The ends of each arm's bin, in declared order, where arms are bins of a dose; absent
        otherwise.
    """

    several_arms: ClassVar[bool] = True

    headline: HeadlineNote | Absent = ABSENT
    among: str | Absent = ABSENT
    simultaneous_factor: Mapping[str, float] | Absent = ABSENT
    interval_rule: Literal["convolved", "in_squares"] | Absent = ABSENT
    binary_outcome: bool | Absent = ABSENT
    doses: Mapping[str, tuple[float, float]] | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class SplitSizes:
    """How many rows trained the models and how many the effect was estimated on."""

    training: int
    evaluation: int


@dataclass(frozen=True, slots=True)
class ColumnSizes:
    """How many columns were synthesised, and how many values each can take."""

    count: int
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LedgerNote:
    """Where a release was charged.

    Attributes
    ----------
    dataset : str
        The data set in the ledger.
    request : str
        The request's id; the same id returns the stored release.
    head : str
        Hash of the ledger's history up to this charge.
    left : float
        ε that is left of the data set's budget.
    """

    dataset: str
    request: str
    head: str
    left: float

    @classmethod
    def of(cls, settings: object) -> LedgerNote | None:
        """Read the note of a release's settings; None if the release was charged to no ledger."""
        held = settings.get("ledger") if isinstance(settings, Mapping) else None
        if not isinstance(held, Mapping):
            return None
        dataset, request, head = (_text(held.get(name)) for name in ("dataset", "request", "head"))
        left = _number(held.get("left"))
        if dataset is None or request is None or head is None or left is None:
            return None
        return cls(dataset, request, head, left)


def plain_settings(settings: Settings | Mapping[str, Any]) -> dict[str, Any]:
    """Return what a method handed over as a plain mapping."""
    return settings.to_dict() if isinstance(settings, Settings) else dict(settings)


def with_ledger_note(settings: Mapping[str, Any], note: LedgerNote) -> dict[str, Any]:
    """Return the settings of a release that was charged to a ledger."""
    return {**settings, "ledger": _plain(note)}


def with_notes(
    settings: Settings | Mapping[str, Any], notes: tuple[str, ...]
) -> Settings | Mapping[str, Any]:
    """Return what a method handed over with more notes, after its own and in their place."""
    if not notes:
        return settings
    if isinstance(settings, Settings) and hasattr(settings, "notes"):
        method: Any = settings  # a frozen dataclass, as every class of settings is
        return cast("Settings", replace(method, notes=(*_texts(settings.notes), *notes)))
    plain = plain_settings(settings)
    return {**plain, "notes": [*_texts(plain.get("notes")), *notes]}


def _plain(value: object) -> object:
    if is_dataclass(value):
        held = {item.name: getattr(value, item.name) for item in fields(value)}
        return {name: _plain(item) for name, item in held.items() if item is not ABSENT}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class Facts:
    """What readers may want to know of a release's settings, whatever method wrote them.

    Attributes
    ----------
    estimand, target : str
        What was estimated.
    adjusted : bool or None
        Whether covariates were adjusted for, where the method decides that.
    design : str
        How treatment came about, where somebody declared it.
    neighbors : int or None
        Neighbours that a unit was matched with; None where the method did not match.
    limit : float or None
        About how often a unit is used at most (K), where overlap limits whom the effect is about.
    weight_cap, weight_caps : float or None, mapping
        The largest weight that was allowed; of three arms or more by label.
    clipped_to : pair of float or None
        The range that a part of ε bought, where outcomes beyond it were clipped.
    confidence : float
        Coverage of the intervals.
    rows_per_person : int
        How many rows one person may have.
    population, interval_covers, noise_interval_covers : str or None
        Sentences that the release says about itself.
    left_out_outcome : int or None
        Rows left out because they have no outcome, where that is public.
    notes : tuple of str
        Warnings.
    budget : mapping
        ε of each step that saw private values.
    arms, effective_arms : pair by arm or None
        Sizes of the arms, and how many units of equal weight they are worth.
    balance : mapping
        Standardised mean difference of each covariate, before and after weighting.
    means : pair by arm or None
        Mean outcomes if all were treated and if none were.
    has_risks : bool
        Whether the means are risks of a declared binary outcome, so that ratios make sense.
    risk_ratio, odds_ratio : float or None
        The ratios, where they exist.
    several_arms, several_effective : mapping
        Of three arms or more: their sizes and effective sizes by label, where they are public.
    several_shares : mapping
        Of three arms or more: the share of all units in each, where that was released.
    doses : mapping
        The ends of each arm's bin, where arms are bins of a dose.
    arm_balance : mapping
        Of three arms or more: the standardised mean of each covariate in each arm, before and
        after weighting; a pair's difference is that of its arms.
    headline : HeadlineNote or None
        Of three arms or more: the contrast that is the headline.
    among : str or None
        Of three arms or more: the arm whose units are meant; None for all units.
    simultaneous_factor : mapping
        How much wider simultaneous intervals are, for all pairs and against the reference.
    interval_rule : str or None
        How noise and sampling were put together for intervals of several arms.
    path : str or None
        How much a method of several arms adjusted, where released sizes decide that.
    subgroups : SubgroupsNote or None
        How effects in subgroups came about; None without subgroups.
    sampling : SamplingFacts or None
        Sampling weights that are in force; None without any.
    outcomes : tuple of OutcomeFacts
        Several outcomes that were released together, the headline first; empty for one.
    """

    estimand: str = "ate"
    target: str = "balance"
    adjusted: bool | None = None
    design: str = "unknown"
    neighbors: int | None = None
    limit: float | None = None
    weight_cap: float | None = None
    weight_caps: Mapping[str, float] = field(default_factory=dict)
    clipped_to: Pair | None = None
    confidence: float = 0.95
    rows_per_person: int = 1
    population: str | None = None
    interval_covers: str | None = None
    noise_interval_covers: str | None = None
    left_out_outcome: int | None = None
    notes: tuple[str, ...] = ()
    budget: Mapping[str, float] = field(default_factory=dict)
    arms: ArmCounts | None = None
    effective_arms: ArmNumbers | None = None
    balance: Mapping[str, Pair] = field(default_factory=dict)
    means: ArmNumbers | None = None
    has_risks: bool = False
    risk_ratio: float | None = None
    odds_ratio: float | None = None
    several_arms: Mapping[str, int] = field(default_factory=dict)
    several_effective: Mapping[str, float] = field(default_factory=dict)
    several_shares: Mapping[str, float] = field(default_factory=dict)
    doses: Mapping[str, Pair] = field(default_factory=dict)
    arm_balance: Mapping[str, Mapping[str, Pair]] = field(default_factory=dict)
    headline: HeadlineNote | None = None
    among: str | None = None
    simultaneous_factor: Mapping[str, float] = field(default_factory=dict)
    interval_rule: Literal["convolved", "in_squares"] | None = None
    path: str | None = None
    subgroups: SubgroupsNote | None = None
    sampling: SamplingFacts | None = None
    outcomes: tuple[OutcomeFacts, ...] = ()

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Facts:
        """Read the settings of any release; what is missing or of another shape is the default."""
        return cls(
            estimand=_text(settings.get("estimand")) or "ate",
            target=_text(settings.get("target")) or "balance",
            adjusted=_adjusted(settings),
            design=_text(settings.get("design")) or "unknown",
            neighbors=_count(settings.get("neighbors")),
            limit=_number(settings.get("matching_limit_K")),
            weight_cap=_number(settings.get("weight_cap")),
            weight_caps=_by_label(settings.get("weight_cap")),
            clipped_to=_pairs({"range": settings.get("clipped_to")}).get("range"),
            confidence=_share(settings.get("confidence"), 0.95),
            rows_per_person=_count(settings.get("rows_per_person")) or 1,
            population=_text(settings.get("population")),
            interval_covers=_text(settings.get("interval_covers")),
            noise_interval_covers=_text(settings.get("noise_interval_covers")),
            left_out_outcome=_rows(settings.get("left_out_outcome")),
            notes=_texts(settings.get("notes")),
            budget=_numbers(settings.get("budget")),
            arms=_arm_counts(settings.get("arms")),
            effective_arms=_arm_numbers(settings.get("effective_arms")),
            balance=_pairs(settings.get("balance")),
            means=_arm_numbers(settings.get("means")),
            has_risks="risk_ratio" in settings or settings.get("binary_outcome") is True,
            risk_ratio=_number(settings.get("risk_ratio")),
            odds_ratio=_number(settings.get("odds_ratio")),
            several_arms=_counts(settings.get("arms")),
            several_effective=_by_label(settings.get("effective_arms")),
            several_shares=_by_label(settings.get("arm_shares")),
            doses=_pairs(settings.get("doses")),
            arm_balance=_pairs_by_arm(settings.get("arm_balance")),
            headline=_headline(settings.get("headline")),
            among=_text(settings.get("among")),
            simultaneous_factor=_numbers(settings.get("simultaneous_factor")),
            interval_rule=_rule(settings.get("interval_rule")),
            path=_text(settings.get("path")),
            subgroups=_subgroups(settings.get("subgroups")),
            sampling=_sampling(settings.get("sampling_weights")),
            outcomes=tuple(filter(None, map(_outcome, _objects(settings.get("outcomes"))))),
        )


@dataclass(frozen=True, slots=True)
class PublicUse:
    """What a stored release tells about the use of its columns.

    Attributes
    ----------
    rows_per_person : int
        How many rows one person may have.
    balanced : tuple of str
        Names in the balance table, all of them public.
    """

    rows_per_person: int
    balanced: tuple[str, ...]

    @classmethod
    def of(cls, settings: object) -> PublicUse | None:
        """Read strictly: None if the settings are not those of a release."""
        if not isinstance(settings, Mapping):
            return None
        rows = settings.get("rows_per_person", 1)
        balance = settings.get("balance") or {}
        if type(rows) is not int or not isinstance(balance, Mapping):
            return None
        return cls(rows, tuple(balance))


def _adjusted(settings: Mapping[str, Any]) -> bool | None:
    if settings.get("equals_difference_in_means") is True:
        return False
    return _truth(settings.get("adjusted"))


def _truth(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: object) -> tuple[str, ...]:
    held = value if isinstance(value, list | tuple) else ()
    return tuple(item for item in held if isinstance(item, str))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= sys.float_info.max else None


def _rows(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _count(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None


def _share(value: object, usual: float) -> float:
    share = _number(value)
    return share if share is not None and 0 < share < 1 else usual


def _numbers(value: object) -> dict[str, float]:
    held = value if isinstance(value, Mapping) else {}
    return {name: item for name, item in held.items() if _number(item) is not None}


def _arm_counts(value: object) -> ArmCounts | None:
    arms = _arm_numbers(value)
    if arms is None or type(arms.treated) is not int or type(arms.control) is not int:
        return None
    return ArmCounts(arms.treated, arms.control)


def _arm_numbers(value: object) -> ArmNumbers | None:
    held = _numbers(value)
    return ArmNumbers(**held) if held.keys() == {"treated", "control"} else None


def _by_label(value: object) -> dict[str, float]:
    """Return numbers of three arms or more; two are read as treated and control."""
    held = _numbers(value)
    return held if len(held) > 2 else {}


def _counts(value: object) -> dict[str, int]:
    held = _by_label(value)
    counts = {label: count for label, count in held.items() if isinstance(count, int)}
    return counts if counts.keys() == held.keys() else {}


def _pairs_by_arm(value: object) -> dict[str, dict[str, Pair]]:
    held = value if isinstance(value, Mapping) else {}
    return {label: _pairs(pairs) for label, pairs in held.items()}


def _headline(value: object) -> HeadlineNote | None:
    held = value if isinstance(value, Mapping) else {}
    arm, against = _text(held.get("arm")), _text(held.get("against"))
    return None if arm is None or against is None else HeadlineNote(arm, against)


def _subgroups(value: object) -> SubgroupsNote | None:
    """Read how subgroups came about; entries of another shape are left out."""
    held = value if isinstance(value, Mapping) else {}
    by = _texts(held.get("by"))
    factor = _number(held.get("simultaneous_factor"))
    tests = tuple(filter(None, map(_equal_effects, _objects(held.get("equal_effects")))))
    if not by:
        return None
    return SubgroupsNote(
        by,
        "paid for" if held.get("overall") == "paid for" else "rolled up",
        tuple(filter(None, map(_subgroup, _objects(held.get("cells"))))),
        ABSENT if factor is None else factor,
        tests or ABSENT,
    )


def _objects(value: object) -> list[Mapping[str, Any]]:
    held = value if isinstance(value, list | tuple) else ()
    return [one for one in held if isinstance(one, Mapping)]


def _subgroup(held: Mapping[str, Any]) -> SubgroupNote | None:
    name, units = _text(held.get("name")), _rows(held.get("units"))
    if name is None or units is None:
        return None
    arms = {label: int(size) for label, size in _numbers(held.get("arms")).items()}
    weight, adjusted = _number(held.get("weight")), _truth(held.get("adjusted"))
    return SubgroupNote(
        name,
        units,
        arms,
        held.get("estimated") is True,
        ABSENT if weight is None else weight,
        ABSENT if adjusted is None else adjusted,
    )


def _outcome(held: Mapping[str, Any]) -> OutcomeFacts | None:
    column, bounds = _text(held.get("column")), held.get("bounds")
    if column is None:
        return None
    means, left_out = _numbers(held.get("means")), _rows(held.get("left_out"))
    return OutcomeFacts(
        column,
        cast("Pair", tuple(bounds)) if isinstance(bounds, list) and _is_pair(bounds) else None,
        _text(held.get("unit")),
        means or ABSENT,
        ABSENT if left_out is None else left_out,
    )


def _sampling(value: object) -> SamplingFacts | None:
    """Read which sampling weights are in force; their worth is a number, or one for each arm."""
    held = value if isinstance(value, Mapping) else {}
    column, bound = _text(held.get("column")), _number(held.get("bound"))
    if column is None or bound is None:
        return None
    alone = _number(held.get("worth"))
    worth = _numbers(held.get("worth")) if alone is None else {"": alone}
    return SamplingFacts(
        column, bound, _number(held.get("largest")), _number(held.get("mean")), worth
    )


def _equal_effects(held: Mapping[str, Any]) -> EqualEffects | None:
    arm, against = _text(held.get("arm")), _text(held.get("against"))
    statistic, chance = _number(held.get("statistic")), _number(held.get("p_value"))
    degrees = _count(held.get("degrees"))
    if arm is None or against is None or statistic is None or chance is None or degrees is None:
        return None
    return EqualEffects(arm, against, statistic, degrees, chance)


def _rule(value: object) -> Literal["convolved", "in_squares"] | None:
    return value if value in ("convolved", "in_squares") else None


def _pairs(value: object) -> dict[str, Pair]:
    held = value if isinstance(value, Mapping) else {}
    return {name: cast("Pair", tuple(pair)) for name, pair in held.items() if _is_pair(pair)}


def _is_pair(value: object) -> bool:
    if not isinstance(value, list | tuple):
        return False
    return len(value) == 2 and all(_number(end) is not None for end in value)
