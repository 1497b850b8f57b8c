"""The outcome as declared, and what the curator calls the data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from private_ate.domain.column_types import Binary, Interval, Label, label_text, require_name
from private_ate.errors import DomainError

__all__ = ["MissingOutcomes", "Outcome", "StudyLabel"]

MissingOutcomes = Literal["public", "private"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome column and its declared bounds, None until a level needs them.

    ``missing`` says what becomes of rows without an outcome: "public" if anybody may know who
    lacks one, "private" if not; either way they are left out. With None a missing outcome counts
    as the number that the bounds declare for it, or as their middle.
    ``unit`` is what it is measured in, for readers of a release.
    ``event_label`` makes a binary outcome of labels: an entry that is this label counts as 1, any
    other as 0, and a missing one stays missing.

    Attributes
    ----------
    column : str
        The outcome's column.
    bounds : Interval or None
        Its declared bounds.
    missing : "public", "private" or None
        What becomes of rows without an outcome.
    unit : str or None
        What it is measured in.
    event_label : str or None
        The label that counts as 1.

    Examples
    --------
    >>> Outcome("status", event_label="dead").bounds
    Binary(low=0.0, high=1.0, missing=None)
    """

    column: str
    bounds: Interval | None = None
    missing: MissingOutcomes | None = None
    unit: str | None = field(default=None, kw_only=True)
    event_label: Label | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        require_name("unit of the outcome", self.unit)
        if self.event_label is not None:
            if self.bounds is not None and not self.bounds.is_binary:
                msg = (
                    f"outcome {self.column!r} has an event label, so it is 0 or 1; leave out its "
                    "bounds"
                )
                raise DomainError(msg, parameter="event label", column=self.column)
            object.__setattr__(self, "event_label", label_text(self.event_label))
            object.__setattr__(self, "bounds", self.bounds or Binary())
        if self.missing is None:
            return
        if self.missing not in get_args(MissingOutcomes):
            msg = (
                'missing outcomes are "public" or "private"; a number that they count as belongs '
                "to the bounds: Interval(lo, hi, missing=number)"
            )
            raise DomainError(msg, parameter="missing outcomes", column=self.column)
        if self.bounds is not None and self.bounds.missing is not None:
            msg = f"outcome {self.column!r} has two rules for missing values; keep one of them"
            raise DomainError(msg, parameter="missing outcomes", column=self.column)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that hold the outcome."""
        return (self.column,)

    @property
    def event_note(self) -> str:
        """What a release says of the event's label; empty without one."""
        if self.event_label is None:
            return ""
        return f"{self.column}: {self.event_label!r} counts as 1, any other entry as 0"

    @property
    def reads_labels(self) -> bool:
        """Whether entries may be labels: one that is the event, or words for 0 and 1."""
        return self.bounds is not None and self.bounds.is_binary

    @property
    def fills_undeclared(self) -> bool:
        """Whether a missing outcome counts as the middle of the bounds for want of a rule."""
        return self.missing is None and (self.bounds is None or self.bounds.missing is None)

    @property
    def declared_bounds(self) -> Interval:
        """The bounds; an error that says how to declare them when they were not."""
        if self.bounds is None:
            msg = (
                f"outcome {self.column!r} has no declared bounds; "
                "declare Interval(lo, hi) in the domain, or the event label of an outcome of labels"
            )
            raise DomainError(msg, parameter="outcome bounds", column=self.column)
        return self.bounds

    def with_missing(self, rule: MissingOutcomes | float) -> Outcome:
        """Return the outcome under another rule: "public", "private" or a number."""
        if isinstance(rule, str):
            kept = None if self.bounds is None else replace(self.bounds, missing=None)
            return replace(self, bounds=kept, missing=rule)
        if self.bounds is None:
            msg = f"outcome {self.column!r} needs bounds before a number for missing values"
            raise DomainError(msg, parameter="outcome bounds", column=self.column)
        return replace(self, bounds=replace(self.bounds, missing=rule), missing=None)


@dataclass(frozen=True, slots=True)
class StudyLabel:
    """What the curator calls the data and this state of them; goes into releases as it is.

    Attributes
    ----------
    dataset : str or None
        The data set's name.
    version : str or None
        What this state of it is called.
    """

    dataset: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        require_name("data set", self.dataset)
        require_name("data set's version", self.version)
