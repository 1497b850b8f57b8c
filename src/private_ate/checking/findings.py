"""What a check hands over: findings, each with a severity, a sentence and a remedy. Not private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from private_ate.codec import OMITTED, encode, stored_as, write_json
from private_ate.release.public_facts import ArmOverlap, Overlap
from private_ate.showing import show

__all__ = ["NOTE", "Arms", "ArmsSupport", "DataCheck", "Finding", "Severity", "Support"]

Severity = Literal["ok", "note", "bends"]
NOTE: Final = "not private, do not share"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a look at the records found; its repr shows nothing of it.

    Attributes
    ----------
    topic : str
        What it is about, such as "missing", "clipped" or "overlap".
    column : str or None
        The column, None for what concerns whole rows.
    severity : "ok", "note" or "bends"
        "bends" marks a problem: the estimate would be biased, or would not be made.
    sentence, remedy : str
        What was found, and what to do about it; the remedy is empty where nothing is to be done.
    counts : mapping
        The numbers behind the sentence.
    note : str
        What stands on everything that shows it: not private.
    """

    topic: str = field(repr=False)
    column: str | None = field(repr=False)
    severity: Severity = field(repr=False)
    sentence: str = field(repr=False)
    remedy: str = field(default="", repr=False)
    counts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    note: str = field(default=NOTE, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class Arms:
    """How many rows carry which label of treatment; its repr shows no count.

    ``counts`` holds the rows of each declared arm, ``undeclared`` those of each label that is none
    of them; of very many labels it holds the first ones of the table. Of several arms ``treated``
    is the one of the headline and ``control`` the reference. ``beyond`` counts doses that lie
    beyond the outer edges of declared bins.
    """

    treated: int = field(repr=False)
    control: int = field(repr=False)
    missing: int = field(repr=False)
    undeclared: Mapping[str, int] = field(repr=False)
    neither: int = field(repr=False)
    counts: Mapping[str, int] = field(repr=False)
    beyond: int = field(default=0, repr=False)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self.counts.values()) + self.neither

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values: of two arms by role, of several by label."""
        pair = {"treated": self.treated, "control": self.control}
        return {
            **(pair if len(self.counts) == 2 else {"counts": dict(self.counts)}),
            "missing": self.missing,
            "undeclared": dict(self.undeclared),
        }


@dataclass(frozen=True, slots=True)
class Support:
    """How well the arms overlap under inverse propensity weights; its repr shows no value.

    Attributes
    ----------
    effective_treated, effective_control : float
        Kish's effective sizes of the arms.
    outside_treated, outside_control : int
        Units whose score lies beyond every score of the other arm.
    balance : mapping
        Standardised mean differences of each feature before and after weighting.
    overlap : Overlap
        Propensity scores by arm, in equal bins.
    left_out : tuple of str
        Covariates that could not be encoded as they are.
    """

    effective_treated: float = field(repr=False)
    effective_control: float = field(repr=False)
    outside_treated: int = field(repr=False)
    outside_control: int = field(repr=False)
    balance: Mapping[str, tuple[float, float]] = field(repr=False)
    overlap: Overlap = field(repr=False, metadata=stored_as("scores"))
    left_out: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class ArmsSupport:
    """How well several arms overlap under inverse propensity weights; its repr shows no value.

    Attributes
    ----------
    effective : mapping
        Kish's effective size of each arm, by its label.
    outside : mapping
        Units of each arm whose score for some other arm lies beyond every score of that arm's own.
    balance : mapping
        For each feature the greatest standardised mean difference over all pairs of arms, before
        and after weighting.
    overlap : ArmOverlap
        The score of each arm among the units of each, in equal bins.
    left_out : tuple of str
        Covariates that could not be encoded as they are.
    """

    effective: Mapping[str, float] = field(repr=False)
    outside: Mapping[str, int] = field(repr=False)
    balance: Mapping[str, tuple[float, float]] = field(repr=False)
    overlap: ArmOverlap = field(repr=False, metadata=stored_as("scores"))
    left_out: tuple[str, ...] = field(default=(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values, scores by the arm whose they are and by arm."""
        labels = self.overlap.labels
        scores = [dict(zip(labels, panel, strict=True)) for panel in self.overlap.counts]
        plain: dict[str, Any] = encode(self)
        return plain | {"scores": encode(dict(zip(labels, scores, strict=True)))}


@dataclass(frozen=True, slots=True)
class DataCheck:
    """What the records say about a declaration, before any estimate. Not private.

    Made only by ``check_data``; never part of a release, never charged to a ledger. Its repr shows
    no value: ask for :meth:`to_text`, :meth:`to_json` or :meth:`to_html`.

    Attributes
    ----------
    rows : int
        The number of rows.
    arms : Arms
        Rows by their label of treatment.
    findings : tuple of Finding
        What was found: treatment, outcome, covariates in their order, then whole rows.
    support : Support, ArmsSupport or None
        Overlap and effective sizes; None where an arm is empty or no covariate can be used.
    proposed : str
        TOML for what is not declared, with bounds as seen in the data: to be confirmed.
    note : str
        What stands on everything that shows it: not private.
    """

    rows: int = field(repr=False)
    arms: Arms = field(repr=False)
    findings: tuple[Finding, ...] = field(repr=False)
    support: Support | ArmsSupport | None = field(repr=False)
    proposed: str = field(repr=False)
    note: str = NOTE

    @property
    def bends(self) -> tuple[Finding, ...]:
        """The problems: findings that would bias the estimate, or stop it."""
        return tuple(finding for finding in self.findings if finding.severity == "bends")

    def about(self, column: str | None) -> tuple[Finding, ...]:
        """Return the findings of one column, or of whole rows."""
        return tuple(finding for finding in self.findings if finding.column == column)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, marked as not private."""
        return {
            "private": False,
            "note": self.note,
            "rows": self.rows,
            "bends": len(self.bends),
            "arms": self.arms.to_dict(),
            "findings": encode(self.findings),
            "overlap": self._overlap(),
            "proposed": self.proposed,
        }

    def _overlap(self) -> dict[str, Any] | None:
        held = self.support
        plain: dict[str, Any] | None = (
            held.to_dict() if isinstance(held, ArmsSupport) else encode(held)
        )
        return plain

    def to_json(self) -> str:
        """Return everything as one JSON object."""
        return write_json(self.to_dict())

    def to_text(self, width: int = 80) -> str:
        """Return what a terminal shows, between two lines that say that it is not private."""
        return show(self, "text", str, width)

    def to_html(self) -> str:
        """Return a page for the curator, watermarked throughout."""
        return show(self, "page", str)
