"""What a method hands over: released quantities, the table of effects, and what it says beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from private_ate.domain.outcome import Outcome
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.release.metadata import (
    Arm,
    OutcomeNote,
    Pair,
    ReleasedEstimand,
    SurvivalNote,
    around,
)
from private_ate.settings import ABSENT, Facts, OutcomeFacts, Settings

_TOGETHER: Final = (
    "effects on {0} outcomes of the same people, {2}; the headline is {1}, and settings that "
    "outcomes have of their own are its"
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """One released number: a linear form of the arms' means, such as a contrast or a mean.

    Attributes
    ----------
    value : float
        The number, in units of the outcome.
    noise : tuple of NoiseDistribution
        Its independent noises; empty where their distribution has no such form.
    variances : tuple of float
        Equally likely values of its sampling variance; empty if no interval was paid for.
    bias : float
        How much of that is a bound on the square of the bias that weights leave, of unknown sign
        and alike in all subgroups.
    arms : tuple of float
        The linear form: a weight for each arm in the order of the codes. Of two arms their
        contrast is (−1, 1); the mean of the first of three is (1, 0, 0).
    interval, noise_interval : pair of float or None
        Its intervals as the method has them, where these do not follow from the distributions.
    """

    value: float
    noise: tuple[NoiseDistribution, ...] = ()
    variances: tuple[float, ...] = ()
    bias: float = 0.0
    arms: tuple[float, ...] = (-1.0, 1.0)
    interval: Pair | None = None
    noise_interval: Pair | None = None

    @property
    def noise_variance(self) -> float:
        """The variance of its noise."""
        return sum(noise.variance for noise in self.noise)


@dataclass(frozen=True, slots=True)
class EffectRow:
    """A contrast of two arms, by their codes: a row of the table of effects.

    Attributes
    ----------
    effect : float
        The released number, in units of the outcome.
    interval : pair of float or None
        Its confidence interval; None if none was paid for.
    simultaneous : pair of float or None
        The interval that covers together with those of all other rows.
    noise_interval : pair of float or None
        Range of the effect without noise.
    arm, against : int
        The arm whose effect it is, and the one that it is compared with.
    subgroup : str or None
        Whom it speaks of; None for all units.
    """

    effect: float
    interval: Pair | None
    simultaneous: Pair | None
    noise_interval: Pair | None
    arm: int = 1
    against: int = 0
    subgroup: str | None = None

    @classmethod
    def around(
        cls, effect: float, half: float | None, factor: float | None, noise: float, width: float
    ) -> EffectRow:
        """Return a row with its intervals, which are kept within ``width`` of zero.

        ``half`` is the half-width of its own interval, None if no interval was paid for; that of
        the simultaneous one is ``factor`` times as wide.
        """
        ends = (-width, width)
        wider = None if half is None or factor is None else factor * half
        return cls(
            effect, around(effect, half, ends), around(effect, wider, ends),
            around(effect, noise, ends),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a method hands over: the table of effects and public settings.

    ``rows`` are contrasts of all units, those with the reference first, then those of subgroups;
    ``headline`` is the place of the one that a release shows first.
    Methods that keep another promise than pure ε under replace-one say so: ``delta``, their own
    ``adjacency``, a noisy ``size`` where n itself is private, ``numerics`` where the proof speaks
    of ideal numbers, and ``void`` with the reason why nothing is promised. ``adjusted`` and
    ``estimand`` say what the number is where that is not what the settings and the request say;
    ``warnings`` head the release and rest on public facts alone. ``quantities`` are the released
    numbers with the distributions of their errors, where a method knows these: of two arms their
    contrast, of more a level of each in the order of the codes. ``arms`` are those whose means
    were estimated. ``population`` is what the units that are meant count together, where they do
    not count alike. ``further`` are outcomes after the first, by their columns. ``survival`` has
    the curves of a time to an event.
    """

    rows: tuple[EffectRow, ...]
    settings: Settings | Mapping[str, Any]
    headline: int = 0
    delta: Fraction = Fraction(0)
    adjacency: str = ""
    size: int | None = None
    numerics: str = ""
    void: str = ""
    adjusted: bool | None = None
    estimand: ReleasedEstimand | None = None
    warnings: tuple[str, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    arms: tuple[Arm, ...] = ()
    population: float | None = None
    further: tuple[tuple[str, Estimate], ...] = ()
    survival: SurvivalNote | None = None

    @classmethod
    def of(cls, effect: Quantity, settings: Settings | Mapping[str, Any]) -> Estimate:
        """Return an estimate of one contrast of two arms, with the quantity's own intervals.

        Whatever else a method says is added by ``dataclasses.replace``.
        """
        row = EffectRow(effect.value, effect.interval, effect.interval, effect.noise_interval)
        return cls((row,), settings, quantities=(effect,))

    @property
    def ate(self) -> float:
        """The headline's effect."""
        return self.rows[self.headline].effect

    @property
    def interval(self) -> Pair | None:
        """The headline's interval; None if none was paid for."""
        return self.rows[self.headline].interval

    @property
    def noise_interval(self) -> Pair | None:
        """The range of the headline without noise."""
        return self.rows[self.headline].noise_interval

    @property
    def is_adjusted(self) -> bool:
        """Whether covariates were adjusted for: a method that does not say adjusts."""
        said = self.adjusted
        if said is None:
            said = Facts.of(self.settings).adjusted
        return said is not False


def outcome_note(outcome: Outcome, *, bounds_are_declared: bool) -> OutcomeNote:
    """Return what a release says of an outcome; bounds that come from the data are not stated."""
    ends = None
    if bounds_are_declared and outcome.bounds is not None:
        ends = (outcome.bounds.low, outcome.bounds.high)
    return OutcomeNote(outcome.column, ends, outcome.unit)


def merge_outcomes(
    runs: Sequence[Estimate],
    outcomes: Sequence[Outcome],
    *,
    is_joint: bool,
    bounds_are_declared: bool,
) -> Estimate:
    """Return the headline's estimate with the rows of all outcomes; all of it is post-processing.

    Every run was asked with the number of outcomes, so that its intervals at once have room for all
    of them, by Bonferroni's rule between outcomes: nothing is assumed about how outcomes hang
    together. ``is_joint`` says whether outcomes were drawn together; otherwise each had an equal
    part of ε.
    """
    columns = [one.column for one in outcomes]
    said = [Facts.of(run.settings) for run in runs]
    first, *others = runs
    held: Any = first.settings  # a frozen dataclass that has room for outcomes
    texts = held.notes if isinstance(held.notes, tuple) else ()
    how = "drawn together" if is_joint else "each with an equal part of ε"
    budgets = {
        f"{column}: {step}": epsilon
        for column, one in zip(columns, said, strict=True)
        for step, epsilon in one.budget.items()
    }
    settings = replace(
        held,
        budget=held.budget if is_joint else budgets,
        notes=(_TOGETHER.format(len(runs), columns[0], how), *texts),
        outcomes=tuple(
            _outcome_facts(run, outcome_note(outcome, bounds_are_declared=bounds_are_declared))
            for run, outcome in zip(runs, outcomes, strict=True)
        ),
    )
    return replace(
        first,
        settings=settings,
        warnings=_warnings(columns, [run.warnings for run in runs]),
        further=tuple(zip(columns[1:], others, strict=True)),
    )


def _outcome_facts(run: Estimate, note: OutcomeNote) -> OutcomeFacts:
    said = Facts.of(run.settings)
    means = {arm.label: arm.mean for arm in run.arms if arm.mean is not None}
    if said.means is not None:
        means = {"treated": said.means.treated, "control": said.means.control}
    return OutcomeFacts(
        note.column, note.bounds, note.unit, means or ABSENT,
        ABSENT if said.left_out_outcome is None else said.left_out_outcome,
        ABSENT if said.subgroups is None else said.subgroups.equal_effects,
    )  # fmt: skip


def _warnings(columns: Sequence[str], warnings: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return what all outcomes warn of once, and what some do with their names."""
    shared = [text for text in warnings[0] if all(text in texts for texts in warnings)]
    own = [
        f"{column}: {text}"
        for column, texts in zip(columns, warnings, strict=True)
        for text in texts
        if text not in shared
    ]
    return (*shared, *own)
