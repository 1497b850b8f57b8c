"""What a check hands over: findings, each with a severity, a sentence and a remedy. Not private."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from private_ate.codec import OMITTED, encode, write_json
from private_ate.release.public_facts import ArmOverlap, Overlap
from private_ate.showing import show

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
    effective : mapping
        Kish's effective size of each arm, by its label, the reference first.
    outside : mapping
        Units of each arm whose score for some other arm lies beyond every score of that arm's own.
    balance : mapping
        Standardised mean differences of each feature before and after weighting; of several arms
        the greatest over all pairs.
    overlap : Overlap or ArmOverlap
        Propensity scores by arm, in equal bins; of several arms those of each arm.
    left_out : tuple of str
        Covariates that could not be encoded as they are.
    """

    effective: Mapping[str, float] = field(repr=False)
    outside: Mapping[str, int] = field(repr=False)
    balance: Mapping[str, tuple[float, float]] = field(repr=False)
    overlap: Overlap | ArmOverlap = field(repr=False)
    left_out: tuple[str, ...] = field(default=(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values: of two arms by role, of several by label."""
        by_arm: dict[str, Any] = {"effective": self.effective, "outside": self.outside}
        scores = self.overlap
        if isinstance(scores, ArmOverlap):
            panels = [dict(zip(scores.labels, panel, strict=True)) for panel in scores.counts]
            shown = encode(dict(zip(scores.labels, panels, strict=True)))
        else:
            shown = encode(scores)
            by_arm = {
                f"{name}_{role}": number
                for name, numbers in by_arm.items()
                for role, number in zip(
                    ("treated", "control"), reversed(numbers.values()), strict=True
                )
            }
        return {
            **encode(by_arm), "balance": encode(self.balance), "scores": shown,
            "left_out": encode(self.left_out),
        }  # fmt: skip


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
    support : Support or None
        Overlap and effective sizes; None where an arm is empty or no covariate can be used.
    proposed : str
        TOML for what is not declared, with bounds as seen in the data: to be confirmed.
    note : str
        What stands on everything that shows it: not private.
    """

    rows: int = field(repr=False)
    arms: Arms = field(repr=False)
    findings: tuple[Finding, ...] = field(repr=False)
    support: Support | None = field(repr=False)
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
            "overlap": None if self.support is None else self.support.to_dict(),
            "proposed": self.proposed,
        }

    def to_json(self) -> str:
        """Return everything as one JSON object."""
        return write_json(self.to_dict())

    def to_text(self, width: int = 80) -> str:
        """Return what a terminal shows, between two lines that say that it is not private."""
        return show(self, "text", str, width)

    def to_html(self) -> str:
        """Return a page for the curator, watermarked throughout."""
        return show(self, "page", str)


_LONGEST: Final = 32
_SHOWN: Final = 5


def amount(count: int, total: int, what: str = "rows") -> str:
    """Say how many of how many, and their share."""
    return f"{count:,} of {total:,} {what} ({share(count, total)})"


def share(count: float, total: float) -> str:
    """Return a share in per cent; never 0 for what is there, nor 100 for what is not all."""
    part = 100 * count / total if total else 0.0
    if 0 < part < 0.1:
        return "below 0.1 %"
    if 99.9 < part < 100:
        return "above 99.9 %"
    return f"{part:.3g} %" if part < 10 else f"{part:.0f} %"


def quoted(text: str) -> str:
    """Return a label of the data, short and without characters that move a cursor."""
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    plain = "".join(letter if letter.isprintable() else "·" for letter in short)
    return f'"{plain}"'


def named(column: str) -> str:
    """Return the name of a column, short and without characters that move a cursor."""
    return quoted(column)[1:-1] or "(no name)"


def listed(counts: Mapping[str, int], *, is_whole: bool = True) -> str:
    """Return labels with their counts, the most frequent first, and how many more there are."""
    names = [f"{quoted(label)} ({count:,})" for label, count in counts.items()]
    rest = len(names) - _SHOWN
    if rest <= 0:
        return ", ".join(names)
    more = f"{rest:,}" if is_whole else f"more than {rest:,}"
    return f"{', '.join(names[:_SHOWN])}, … {more} more"


def first_few(names: Iterable[str], between: str = ", ") -> str:
    """Return the first names, and how many more there are."""
    every = list(names)
    more = f", … {len(every) - _SHOWN:,} more" if len(every) > _SHOWN else ""
    return between.join(every[:_SHOWN]) + more


def number(value: float) -> str:
    """Return a number as a reader expects it: whole ones whole, others to six digits."""
    if abs(value) < 1e15 and value == int(value):
        return f"{int(value):,}"
    return f"{value:,.6g}"
