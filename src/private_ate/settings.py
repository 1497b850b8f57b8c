"""The settings of a release, as the methods write them.

A method hands over its own frozen dataclass, whose fields are the keys of the JSON in their order.
Readers see `private_ate.facts.Facts`; nothing outside that module looks a key up by its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, cast

from private_ate.codec import (
    ABSENT,
    NOT_NEGATIVE,
    POSITIVE,
    Absent,
    at_least,
    decode_known,
    encode,
)

__all__ = [
    "ABSENT",
    "Absent",
    "ArmCounts",
    "ArmNumbers",
    "ArmsSettings",
    "ColumnSizes",
    "EqualEffects",
    "HeadlineNote",
    "LedgerNote",
    "OutcomeFacts",
    "OutcomeNote",
    "SamplingFacts",
    "Settings",
    "SplitSizes",
    "SubgroupNote",
    "SubgroupsNote",
    "by_arm",
    "plain_settings",
    "with_declared",
    "with_ledger_note",
]

Pair = tuple[float, float]


Text = Annotated[str, at_least(1)]
ByLabel = Annotated[Mapping[str, float], at_least(3)]  # two arms are treated and control instead


class Settings:
    """What a method writes into ``release.settings``; each has a frozen dataclass of its own.

    Its fields are the keys in the order in which JSON shows them; one that may be left out has
    the default ``ABSENT``. ``methods`` and ``levels`` say whose settings they are. The published
    schema of a release is made from these types and their docstrings (``docs/make_schema.py``).
    ``several_arms`` says whether they are those of three arms or more, or of two.

    Keys that mean the same wherever they occur are described here, once for all methods that have
    them; a method describes its own keys, or one of these in other words.

    Attributes
    ----------
    budget : mapping
        ε of each step that saw private values.
    confidence : float
        Coverage of the intervals.
    design : str
        How treatment came about, as declared.
    estimand : str
        Whose average effect was asked for.
    interval_covers : str
        What the interval covers, and what not; only where one was paid for.
    left_out_outcome : int
        Rows without an outcome that were left out, where who lacks one is public.
    noise_interval_covers : str
        What the noise interval covers, and what not.
    notes : list of str
        Warnings.
    outcomes : list of objects
        Several outcomes that were released together, the headline first; absent for one.
    population : str
        Whom the effect speaks of.
    private_weights : object
        Which sampling weights are in force, and what was released of them; only where any are.
    rows_per_person : int
        How many rows one person may have.
    """

    __slots__ = ()
    methods: ClassVar[tuple[str, ...]] = ()
    levels: ClassVar[tuple[str, ...]] = ("label", "sample")
    several_arms: ClassVar[bool] = False

    confidence: float
    population: str

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as values that JSON knows, without those that are absent."""
        return cast("dict[str, Any]", encode(self))


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
class OutcomeNote:
    """The outcome of a release.

    Attributes
    ----------
    column : str
        The outcome's column.
    bounds : pair of float or None
        The declared bounds, low end first; null where they were looked up in the data.
    unit : str or None
        The unit in which it is measured, where somebody declared one.
    """

    column: str
    bounds: Pair | None
    unit: str | None


@dataclass(frozen=True, slots=True)
class OutcomeFacts(OutcomeNote):
    """One of several outcomes that were released together.

    Attributes
    ----------
    means : mapping
        Its mean in each arm if all were given that arm, where means were released.
    left_out : int
        Rows without it that were left out, where who lacks it is public.
    equal_effects : list of objects
        Tests of equal effects in subgroups, one for each arm against the reference.
    """

    means: Mapping[str, float] | Absent = ABSENT
    left_out: Annotated[int, NOT_NEGATIVE] | Absent = ABSENT
    equal_effects: tuple[EqualEffects, ...] | Absent = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsSettings(Settings):
    """What every method says of three arms or more; numbers by arm are mappings from its label.

    ``methods.effect_tables.estimate_of_quantities`` fills these fields in, and a method leaves them
    out.

    Attributes
    ----------
    population : str
        Whom the effects speak of.
    noise_interval_covers : str
        What the noise intervals cover, and what not.
    headline : object
        The contrast that is the release's headline.
    among : str
        The arm whose units are meant; absent for all units.
    simultaneous_factor : mapping
        How much wider than its own interval the one is that covers together with others: with
        those of all pairs of arms, or with those against the reference.
    interval_rule : str
        How noise and sampling were put together: "convolved" for the distribution of their sum,
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
        return decode_known(_Charged, settings).ledger


@dataclass(frozen=True, slots=True)
class _Charged:
    """What settings say of a ledger."""

    ledger: LedgerNote | None = None


def plain_settings(settings: Settings | Mapping[str, Any]) -> dict[str, Any]:
    """Return what a method handed over as a plain mapping."""
    return cast("dict[str, Any]", encode(settings))


def with_ledger_note(settings: Mapping[str, Any], note: LedgerNote) -> dict[str, Any]:
    """Return the settings of a release that was charged to a ledger."""
    return {**settings, "ledger": encode(note)}


def with_declared(
    settings: Settings | Mapping[str, Any], *, binary: bool, labels: Mapping[str, str]
) -> Settings | Mapping[str, Any]:
    """Return what a method handed over with what was declared for readers of the release.

    Whether the headline's outcome is binary, and labels of columns; without either nothing is said.
    """
    declared = {
        **({"binary_outcome": True} if binary else {}),
        **({"column_labels": dict(labels)} if labels else {}),
    }
    return {**plain_settings(settings), **declared} if declared else settings
