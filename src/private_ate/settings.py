"""The settings of a release: what methods write, and what readers see of any release.

A method hands over its own frozen dataclass, whose fields are the keys of the JSON in their order.
Readers see :class:`Facts`, which takes any mapping: releases of older versions and of methods that
this version does not know have defaults where a key is missing or holds something else. Nothing
outside this module looks a key up by its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final, Literal, cast

from private_ate.codec import (
    ABSENT,
    EXACT,
    NOT_NEGATIVE,
    POSITIVE,
    Absent,
    Rule,
    at_least,
    decode_known,
    encode,
    entries,
    stored_as,
)

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
    "IntervalRule",
    "LedgerNote",
    "OutcomeFacts",
    "SamplingFacts",
    "Settings",
    "SplitSizes",
    "SubgroupNote",
    "SubgroupsNote",
    "by_arm",
    "public_use",
    "settings_of_outcome",
    "with_notes",
]

Pair = tuple[float, float]


Text = Annotated[str, at_least(1)]
ByLabel = Annotated[Mapping[str, float], at_least(3)]  # two arms are treated and control instead
IntervalRule = Literal["convolved", "in_squares"]  # how noise and sampling are put together


class Settings:
    """What a method writes into ``release.settings``; each has a frozen dataclass of its own.

    Its fields are the keys in the order in which JSON shows them; one that may be left out has
    the default ``ABSENT``. ``methods`` and ``levels`` say whose settings they are. The published
    schema of a release is made from these types and their docstrings (``docs/make_schema.py``).
    ``several_arms`` says whether they are those of three arms or more, or of two.

    A method describes its own keys; those that many methods have are described by :class:`Facts`.
    """

    __slots__ = ()
    methods: ClassVar[tuple[str, ...]] = ()
    levels: ClassVar[tuple[str, ...]] = ("label", "sample")
    several_arms: ClassVar[bool] = False

    confidence: float
    population: str


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


def by_arm(pair: Callable[[Any, Any], object], values: Sequence[Any], labels: Sequence[str]) -> Any:  # noqa: ANN401  # the pair's class, or a mapping from labels
    """Return values in the order of codes as releases hold them: a pair for two, else by label."""
    if len(labels) == 2:
        control, treated = values
        return pair(treated, control)
    return dict(zip(labels, values, strict=True))


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
    units: Annotated[int, NOT_NEGATIVE]
    arms: Mapping[str, int]
    estimated: bool
    weight: float | Absent = ABSENT
    adjusted: bool | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class SamplingFacts:
    """Sampling weights that are in force, as a release reports them.

    Attributes
    ----------
    column : str
        The column that holds them.
    bound : float
        The largest weight as declared.
    worth : mapping or float
        The effective sample size of each arm under sampling weights alone, by its
        label; all rows together where weights are private.
    largest : float or None
        The largest weight of a row over the mean of all, where weights are public.
    mean : float or None
        Their released mean, where they are private.
    """

    column: str
    bound: float
    worth: Mapping[str, float] | float
    largest: float | None = None
    mean: float | None = None


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
        The chance of a Q as large if all effects are equal, by the distributions of noise and of
        sampling.
    """

    arm: str
    against: str
    statistic: float
    degrees: Annotated[int, POSITIVE]
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
        half of ε; at label level the subgroups add up to it.
    cells : list of objects
        The finest subgroups.
    simultaneous_factor : float
        How much wider than its own interval the one is that covers together with those of all
        other rows; absent without intervals.
    equal_effects : list of objects
        Tests of equal effects, one for each arm against the reference; absent without intervals.
    """

    by: Annotated[tuple[str, ...], at_least(1)]
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
    equal_effects : list of objects
        Tests of equal effects in subgroups, one for each arm against the reference.
    """

    column: str
    bounds: Pair | None
    unit: str | None
    means: Mapping[str, float] | Absent = ABSENT
    left_out: Annotated[int, NOT_NEGATIVE] | Absent = ABSENT
    equal_effects: tuple[EqualEffects, ...] | Absent = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsSettings(Settings):
    """What every method says of three arms or more; numbers by arm are mappings from its label.

    ``methods.effect_tables.estimate_of_quantities`` fills these fields in, and a method leaves them
    out.
    """

    several_arms: ClassVar[bool] = True

    headline: HeadlineNote | Absent = ABSENT
    among: str | Absent = ABSENT
    simultaneous_factor: Mapping[str, float] | Absent = ABSENT
    interval_rule: IntervalRule | Absent = ABSENT
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


_SHARE: Final = Rule("between 0 and 1", lambda number: 0 < number < 1)


@dataclass(frozen=True, slots=True)
class Facts:
    """What readers may want to know of a release's settings, whatever method wrote them.

    Attributes
    ----------
    estimand : str
        Whose average effect was asked for.
    target : str
        What the weights aim at.
    adjusted : bool or None
        Whether covariates were adjusted for, where the method decides that.
    design : str
        How treatment came about, as declared.
    neighbors : int or None
        Neighbours that a unit was matched with; null where the method did not match.
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
    population : str or None
        Whom the effect speaks of.
    interval_covers : str or None
        What the interval covers, and what not; only where one was paid for.
    noise_interval_covers : str or None
        What the noise interval covers, and what not.
    left_out_outcome : int or None
        Rows without an outcome that were left out, where who lacks one is public.
    notes : list of str
        Warnings.
    budget : mapping
        ε of each step that saw private values.
    arms, effective_arms : pair by arm or None
        Sizes of the arms, and their effective sample sizes.
    balance : mapping
        Standardised mean difference of each covariate, before and after weighting.
    means : pair by arm or None
        Mean outcomes if all were treated and if none were.
    is_binary : bool
        True where the outcome is declared as binary, so that means are risks; absent otherwise.
    risk_ratio, odds_ratio : float or None
        The ratios, where they exist.
    several_arms, several_effective : mapping
        Of three arms or more: their sizes and effective sizes by label, where they are public.
    several_shares : mapping
        Of three arms or more: the share of all units in each, where that was released.
    doses : mapping
        The ends of each arm's bin, in declared order, where arms are bins of a dose; absent
        otherwise.
    arm_balance : mapping
        Of three arms or more: the standardised mean of each covariate in each arm, before and
        after weighting; a pair's difference is that of its arms.
    headline : object
        Of three arms or more: the contrast that is the release's headline.
    among : str
        The arm whose units are meant; absent for all units.
    simultaneous_factor : mapping
        How much wider than its own interval the one is that covers together with others: with
        those of all pairs of arms, or with those against the reference.
    interval_rule : str
        How noise and sampling were put together: "convolved" for the distribution of their sum,
        "in_squares" for the root of both squared half-widths; absent without intervals.
    path : str or None
        How much a method of several arms adjusted, where released sizes decide that.
    subgroups : object
        How effects in subgroups came about; only where they were asked for.
    outcomes : list of objects
        Several outcomes that were released together, the headline first; absent for one.
    sampling : object
        Which sampling weights are in force, and what was released of them; only where any are.
    column_labels : mapping
        What columns are called in reports, where somebody declared it.
    ledger : object
        Where the release was charged; only with a ledger.
    """

    estimand: Text = "ate"
    target: Text = "balance"
    adjusted: bool | None = None
    design: Text = "unknown"
    neighbors: Annotated[int, POSITIVE] | None = None
    limit: float | None = field(default=None, metadata=stored_as("matching_limit_K"))
    weight_cap: float | None = None
    weight_caps: ByLabel = field(default_factory=dict, metadata=stored_as("weight_cap"))
    clipped_to: Pair | None = None
    confidence: Annotated[float, _SHARE] = 0.95
    rows_per_person: Annotated[int, POSITIVE] = 1
    population: str | None = None
    interval_covers: str | None = None
    noise_interval_covers: str | None = None
    left_out_outcome: Annotated[int, NOT_NEGATIVE] | None = None
    notes: tuple[str, ...] = ()
    budget: Mapping[str, float] = field(default_factory=dict)
    arms: Annotated[ArmCounts, EXACT] | None = None
    effective_arms: Annotated[ArmNumbers, EXACT] | None = None
    balance: Mapping[str, Pair] = field(default_factory=dict)
    means: Annotated[ArmNumbers, EXACT] | None = None
    is_binary: bool = field(default=False, metadata=stored_as("binary_outcome"))
    risk_ratio: float | None = None
    odds_ratio: float | None = None
    several_arms: Annotated[Mapping[str, int], EXACT, at_least(3)] = field(
        default_factory=dict, metadata=stored_as("arms")
    )
    several_effective: ByLabel = field(default_factory=dict, metadata=stored_as("effective_arms"))
    several_shares: ByLabel = field(default_factory=dict, metadata=stored_as("arm_shares"))
    doses: Mapping[str, Pair] = field(default_factory=dict)
    arm_balance: Mapping[str, Mapping[str, Pair]] = field(default_factory=dict)
    headline: HeadlineNote | None = None
    among: str | None = None
    simultaneous_factor: Mapping[str, float] = field(default_factory=dict)
    interval_rule: IntervalRule | None = None
    path: str | None = None
    subgroups: SubgroupsNote | None = None
    outcomes: tuple[OutcomeFacts, ...] = ()
    sampling: SamplingFacts | None = field(
        default=None, metadata=stored_as("sampling_weights", "private_weights")
    )
    column_labels: Mapping[str, str] = field(default_factory=dict)
    ledger: LedgerNote | None = None

    @classmethod
    def of(cls, settings: object) -> Facts:
        """Read the settings of any release; what is missing or of another shape is the default."""
        held, known = entries(settings) or {}, decode_known(cls, settings)
        same = held.get("equals_difference_in_means") is True
        return replace(
            known,
            adjusted=False if same else known.adjusted,
            is_binary=known.is_binary or "risk_ratio" in held,
        )


def public_use(settings: object) -> tuple[int, tuple[str, ...]] | None:
    """Return the rows of one person and the names in the balance table, which are public.

    Strictly: None if these are not the settings of a release.
    """
    if not isinstance(settings, Mapping):
        return None
    rows = settings.get("rows_per_person", 1)
    balance = settings.get("balance") or {}
    if type(rows) is not int or not isinstance(balance, Mapping):
        return None
    return rows, tuple(balance)


def settings_of_outcome(settings: Mapping[str, Any], column: str) -> dict[str, Any]:
    """Return the settings with the tests of equal effects of one of several outcomes."""
    own = next((one for one in Facts.of(settings).outcomes if one.column == column), None)
    held = settings.get("subgroups")
    if own is None or not isinstance(held, Mapping):
        return dict(settings)
    tests = [] if own.equal_effects is ABSENT else encode(own.equal_effects)
    return {**settings, "subgroups": {**held, "equal_effects": tests}}


def with_notes(
    settings: Settings | Mapping[str, Any], notes: tuple[str, ...]
) -> Settings | Mapping[str, Any]:
    """Return what a method handed over with more notes, after its own and in their place."""
    if not notes:
        return settings
    if isinstance(settings, Settings) and hasattr(settings, "notes"):
        method: Any = settings  # a frozen dataclass, as every class of settings is
        return cast("Settings", replace(method, notes=(*Facts.of(settings).notes, *notes)))
    plain = cast("dict[str, Any]", encode(settings))
    return {**plain, "notes": [*Facts.of(plain).notes, *notes]}
