"""What becomes of missing and undeclared entries: the rules in force, in sentences.

The sentences follow from the domain, the level and the method alone. Counts stand beside them only
where they are public: of treatment and covariates at label level, and of outcomes where the domain
says that it is public who lacks one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, assert_never, cast

from private_ate.codec import OMITTED, encode
from private_ate.domain import Domain, Outcome, Survival, label_text
from private_ate.privacy.levels import Level, has_public_covariates

__all__ = [
    "PAPERS_READING",
    "MissingRules",
    "Reading",
    "describe_rules",
    "neighbours_note",
    "outcome_rule",
    "outcome_rules",
    "rule_notes",
]

PAPERS_READING: Final = (
    "a treatment that is missing or not a declared label counts as control, as in the paper"
)
_UNDECLARED: Final = (
    "a missing outcome counts as the middle of the bounds; declare what it is: "
    'missing = "public", "private" or a number'
)
_CENSORED: Final = "a time that is missing, negative or no number counts as censored at 0"
_AT_RANDOM: Final = (
    "the effect speaks of rows with an outcome, and assumes that missingness depends on the "
    "declared covariates and treatment alone (missing at random)"
)
_AS_THEY_ARE: Final = (
    "the effect speaks of rows with an outcome, and assumes that within an arm missingness depends "
    "on nothing that the outcome depends on: nothing was adjusted for, so missingness by "
    "covariates is not corrected"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a table is read: who may look at what, and what is asked for odd rows.

    Attributes
    ----------
    level : "label" or "sample"
        At label level covariates and treatment are public and are looked over.
    leaves_out : bool
        Whether the method gives a row without a declared treatment no part at sample level; others
        count it as control.
    leave_out_undeclared : bool
        At label level: whether such rows, and rows with text where a number was declared, are left
        out and counted rather than refused.
    declared : set of text
        The covariates that the caller declared; the range of any other was looked up.
    """

    level: Level
    leaves_out: bool = True
    leave_out_undeclared: bool = False
    declared: frozenset[str] = frozenset()

    @property
    def looks(self) -> bool:
        """Whether covariates and treatment are public, so that they may be looked over."""
        return has_public_covariates(self.level)


@dataclass(frozen=True, slots=True)
class MissingRules:
    """One sentence per rule in force; counts where they are public.

    Attributes
    ----------
    treatment, covariates, outcome : str
        What a missing or undeclared entry counts as.
    left_out_treatment, left_out_unreadable, left_out_outcome : int or None
        Rows left out for their treatment, for text in a column of numbers, for their outcome.
    filled, undeclared : mapping of text to int
        Per covariate the missing entries that were filled, and the labels that were not declared.
    weights : str
        What a sampling weight outside of its bounds counts as; empty where none are declared.
    left_out_weights : int or None
        Rows left out for their sampling weight.
    """

    treatment: str
    covariates: str
    outcome: str
    weights: str = field(default="", metadata=OMITTED)
    left_out_treatment: int | None = field(default=None, metadata=OMITTED)
    left_out_unreadable: int | None = field(default=None, metadata=OMITTED)
    left_out_outcome: int | None = field(default=None, metadata=OMITTED)
    left_out_weights: int | None = field(default=None, metadata=OMITTED)
    filled: Mapping[str, int] = field(default_factory=dict, metadata=OMITTED)
    undeclared: Mapping[str, int] = field(default_factory=dict, metadata=OMITTED)

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as plain values; what was not counted is left out."""
        return cast("dict[str, Any]", encode(self))


def describe_rules(domain: Domain, reading: Reading) -> MissingRules:
    """Return the rules of a reading, without counts."""
    looks = reading.looks
    odd = "left out" if reading.leave_out_undeclared else "refused"
    treatment = f"rows with a missing or undeclared treatment are {odd}"
    if domain.treatment.other is not None:
        other = label_text(domain.treatment.other)
        treatment = f"a missing or undeclared treatment counts as {other!r}, as declared"
    elif not looks:
        nobody = "a row with a missing or undeclared treatment takes no part"
        treatment = nobody if reading.leaves_out else PAPERS_READING
    number = "number" if looks else "or unreadable number"
    covariates = (
        f"a missing {number} counts as its declared value or the middle of its bounds; a missing "
        "or undeclared label counts as the declared other category, or as none"
    )
    if looks:
        covariates += (
            "; a column with missing entries has an indicator of them beside it; rows with text in "
            f"a column of numbers are {odd}"
        )
    weights = ""
    if domain.weights is not None:
        high = f"{domain.weights.high:g}"
        weights = (
            f"rows whose sampling weight is missing or not between 0 and {high} are {odd}"
            if looks
            else f"a sampling weight is clipped to the declared bounds, 0 to {high}; a missing "
            "one counts as 0"
        )
    return MissingRules(
        treatment,
        covariates if domain.covariates else "no covariates are used",
        outcome_rules(domain.outcomes, reading.level),
        weights=weights,
    )


def outcome_rule(outcome: Outcome, level: Level) -> str:
    """Say in one sentence what becomes of a missing outcome; a function of declarations alone."""
    if outcome.missing is None:
        if isinstance(outcome, Survival):
            return _CENSORED
        if outcome.fills_undeclared or outcome.bounds is None:
            return _UNDECLARED
        return f"a missing outcome counts as {outcome.bounds.fill:g}, as declared"
    match level:
        case "label":
            if outcome.missing == "public":
                return "rows without an outcome are left out and counted: who lacks one is public"
            return (
                "rows without an outcome are left out by a private ratio: who lacks one is private"
            )
        case "sample":
            return (
                "rows without an outcome take no part and noisy counts stand for n: whole records "
                "are private, and so is who lacks an outcome"
            )
    assert_never(level)


def outcome_rules(outcomes: Sequence[Outcome], level: Level) -> str:
    """Say what becomes of missing outcomes: in one sentence, or in one for each column."""
    if len(outcomes) == 1:
        return outcome_rule(outcomes[0], level)
    return "; ".join(f"{one.column}: {outcome_rule(one, level)}" for one in outcomes)


def neighbours_note(outcomes: Sequence[Outcome], level: Level) -> str:
    """Say what a rule adds to the sentence on neighbours; a record may lack anything anyway."""
    match level:
        case "label":
            words = {"public": ", and who has one is public", "private": " or is missing"}
            found = dict.fromkeys(one.missing for one in outcomes)
            return "".join(words[rule] for rule in found if rule is not None)
        case "sample":
            return ""
    assert_never(level)


def rule_notes(
    outcomes: Sequence[Outcome], level: Level, *, leaves_out: bool, is_adjusted: bool
) -> tuple[str, ...]:
    """Return what every release says about missing values, whatever the data hold.

    ``leaves_out`` says whether the method leaves out rows without a declared treatment,
    ``is_adjusted`` whether covariates were adjusted for.
    """
    notes = [one.event_note for one in outcomes if one.event_note]
    is_public = has_public_covariates(level)
    if not (is_public or leaves_out):
        notes.append(PAPERS_READING)
    # At label level a method that leaves out rows says how.
    for outcome in outcomes:
        if outcome.fills_undeclared or (outcome.missing is not None and not is_public):
            named = f"{outcome.column}: " if len(outcomes) > 1 else ""
            notes.append(named + outcome_rule(outcome, level))
    if not is_public and any(outcome.missing is not None for outcome in outcomes):
        notes.append(_AT_RANDOM if is_adjusted else _AS_THEY_ARE)
    return tuple(notes)
