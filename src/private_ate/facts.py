"""Typed views of a release's settings, whatever method wrote them.

`Facts` takes any mapping: releases of older versions and of methods that this version does not know
have defaults where a key is missing or holds something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, cast

from private_ate.codec import (
    ABSENT,
    EXACT,
    NOT_NEGATIVE,
    POSITIVE,
    Rule,
    at_least,
    decode_known,
    encode,
    entries,
    stored_as,
)
from private_ate.settings import (
    ArmCounts,
    ArmNumbers,
    ByLabel,
    HeadlineNote,
    OutcomeFacts,
    Pair,
    SamplingFacts,
    Settings,
    SubgroupsNote,
    Text,
    plain_settings,
)

__all__ = ["Facts", "PublicUse", "settings_of_outcome", "with_notes"]

_SHARE: Final = Rule("between 0 and 1", lambda number: 0 < number < 1)


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
        Sizes of the arms, and their effective sample sizes.
    balance : mapping
        Standardised mean difference of each covariate, before and after weighting.
    means : pair by arm or None
        Mean outcomes if all were treated and if none were.
    is_binary : bool
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
    outcomes : tuple of OutcomeFacts
        Several outcomes that were released together, the headline first; empty for one.
    sampling : SamplingFacts or None
        Sampling weights that are in force; None without any.
    column_labels : mapping
        What columns are called in reports, where somebody declared it.
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
    interval_rule: Literal["convolved", "in_squares"] | None = None
    path: str | None = None
    subgroups: SubgroupsNote | None = None
    outcomes: tuple[OutcomeFacts, ...] = ()
    sampling: SamplingFacts | None = field(
        default=None, metadata=stored_as("sampling_weights", "private_weights")
    )
    column_labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings | Mapping[str, Any]) -> Facts:
        """Read the settings of any release; what is missing or of another shape is the default."""
        held, known = entries(settings) or {}, decode_known(cls, settings)
        same = held.get("equals_difference_in_means") is True
        return replace(
            known,
            adjusted=False if same else known.adjusted,
            is_binary=known.is_binary or "risk_ratio" in held,
        )


@dataclass(frozen=True, slots=True)
class PublicUse:
    """What a stored release shows of the use of its columns.

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
    plain = plain_settings(settings)
    return {**plain, "notes": [*Facts.of(plain).notes, *notes]}
