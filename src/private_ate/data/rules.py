"""What becomes of missing values: one sentence per rule in force, none of which follows values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

from private_ate.domain import Outcome
from private_ate.privacy.levels import Level, has_public_covariates

__all__ = ["PAPERS_READING", "MissingRules", "neighbours_note", "outcome_rule", "rule_notes"]

PAPERS_READING: Final = (
    "a treatment that is missing or not a declared label counts as control, as in the paper"
)
_UNDECLARED: Final = (
    "a missing outcome counts as the middle of the bounds; declare what it is: "
    'missing = "public", "private" or a number'
)


@dataclass(frozen=True, slots=True)
class MissingRules:
    """The rules in force for missing values; counts only where they are public.

    Attributes
    ----------
    treatment, covariates, outcome : str
        One sentence each, from the domain, the level and the method alone.
    left_out_treatment, left_out_outcome : int or None
        Rows that were left out, where that is public.
    filled : mapping
        How many entries of each covariate were filled in, where that is public.
    """

    treatment: str
    covariates: str
    outcome: str
    left_out_treatment: int | None = None
    left_out_outcome: int | None = None
    filled: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as plain values, without counts that are not public."""
        plain: dict[str, Any] = {
            "treatment": self.treatment,
            "covariates": self.covariates,
            "outcome": self.outcome,
        }
        if self.left_out_treatment is not None:
            plain["left_out_treatment"] = self.left_out_treatment
        if self.left_out_outcome is not None:
            plain["left_out_outcome"] = self.left_out_outcome
        if self.filled:
            plain["filled"] = dict(self.filled)
        return plain


def outcome_rule(outcome: Outcome, level: Level) -> str:
    """Say in one sentence what becomes of a missing outcome; a function of declarations alone."""
    if outcome.missing is None:
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


def neighbours_note(outcome: Outcome, level: Level) -> str:
    """Say what a rule adds to the sentence on neighbours; a record may lack anything anyway."""
    match level:
        case "label":
            words = {"public": ", and who has one is public", "private": " or is missing"}
            return "" if outcome.missing is None else words[outcome.missing]
        case "sample":
            return ""
    assert_never(level)


def rule_notes(outcome: Outcome, level: Level, *, leaves_out: bool) -> tuple[str, ...]:
    """Return what every release says about missing values, whatever the data hold.

    ``leaves_out`` says whether the method leaves out rows without a declared treatment.
    """
    notes = []
    is_public = has_public_covariates(level)
    if not (is_public or leaves_out):
        notes.append(PAPERS_READING)
    # At label level a method that leaves out rows says how.
    if outcome.fills_undeclared or (outcome.missing is not None and not is_public):
        notes.append(outcome_rule(outcome, level))
    return tuple(notes)
