"""The outcome as declared: a number, or a time to an event with censoring; and the data's name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from private_ate.arguments import real_number, whole_number
from private_ate.arrays import Bits, Floats, Integers
from private_ate.domain.column_types import Binary, Interval, Label, label_text, require_name
from private_ate.errors import DomainError

__all__ = [
    "HORIZON_STEPS",
    "MOST_BINS",
    "MissingOutcomes",
    "Outcome",
    "StudyLabel",
    "Survival",
    "bins_of",
    "happened",
    "steps_of",
]

MissingOutcomes = Literal["public", "private"]
HORIZON_STEPS: Final = 1 << 28  # steps of the clock up to the horizon; with the event 30 bits
MOST_BINS: Final = 100


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
class Survival(Outcome):
    """A time to an event that may be censored: a column of times and one of what ended them.

    ``column`` holds follow-up times from 0 on and ``event`` what ended them: ``event_label`` is the
    event, any other entry means that the row was censored then. ``horizon`` is the time τ up to
    which survival is compared; it comes from the protocol and never from the data. A time that is
    negative, missing or no number counts as censored at 0, unless ``missing`` is "public": then
    rows without a time or without an event entry are left out.

    Attributes
    ----------
    column : str
        The column of times.
    event : str
        The column that says whether a time ended in an event.
    bounds : Interval or None
        From 0 to the horizon; left out.
    missing : str or None
        "public" leaves out rows without a time or an event entry; otherwise they count as
        censored at 0.
    horizon : float
        The time up to which survival is compared.
    bins : int or None
        Bins of the released curves; None for a number that suits n, ε and the largest weight.
    censoring_by : str or None
        At label level: a declared covariate of labels, or a cut such as "age<65", whose strata
        have censoring curves of their own.

    Examples
    --------
    >>> Survival("days", "status", event_label=1, horizon=1826).columns
    ('days', 'status')
    """

    event: str = ""
    bounds: Interval | None = field(default=None, kw_only=True)
    missing: MissingOutcomes | None = field(default=None, kw_only=True)
    horizon: float = field(default=0.0, kw_only=True)
    bins: int | None = field(default=None, kw_only=True)
    censoring_by: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not self.event or self.event == self.column:
            msg = f"time {self.column!r} needs the column of its event: Survival(time, event, …)"
            raise DomainError(msg, parameter="event", column=self.column)
        if self.event_label is None:
            msg = f"say which label of {self.event!r} is an event: event_label=…"
            raise DomainError(msg, parameter="event label", column=self.event)
        if isinstance(self.horizon, bool) or not isinstance(self.horizon, int | float):
            msg = f"the horizon of {self.column!r} is a number in its units"
            raise DomainError(msg, parameter="horizon", column=self.column)
        if not 0 < self.horizon <= 1e150:
            msg = f"the horizon of {self.column!r} is a time above 0, from the protocol"
            raise DomainError(msg, parameter="horizon", column=self.column)
        require_name("column of censoring strata", self.censoring_by)
        if self.bins is not None:
            object.__setattr__(self, "bins", whole_number("bins", self.bins, 1, MOST_BINS))
        horizon = real_number("horizon", self.horizon, 0.0, 1e150)
        object.__setattr__(self, "horizon", horizon)
        own = Interval(0, horizon)
        if self.bounds not in (None, own):
            msg = f"the times of {self.column!r} run from 0 to the horizon; leave out bounds"
            raise DomainError(msg, parameter="horizon", column=self.column)
        if self.missing == "private":  # censored at 0, as without a rule
            object.__setattr__(self, "missing", None)
        # The label is checked as that of a binary outcome is; the bounds are those of times.
        object.__setattr__(self, "bounds", None)
        Outcome.__post_init__(self)
        object.__setattr__(self, "bounds", own)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of times and of events, both private."""
        return self.column, self.event

    @property
    def event_note(self) -> str:
        """What a release says of the event's label."""
        return f"{self.event}: {self.event_label!r} is an event, any other entry is censored"

    @property
    def question(self) -> dict[str, object]:
        """What makes another question of the same columns, beside the request."""
        names = ("event", "event_label", "horizon", "bins", "censoring_by")
        return {name: getattr(self, name) for name in names}

    @property
    def reads_labels(self) -> bool:
        """Whether entries of the column of times may be labels: they are numbers."""
        return False

    @property
    def fills_undeclared(self) -> bool:
        """Whether a missing outcome counts as the middle of the bounds: never a time."""
        return False

    def with_missing(self, rule: MissingOutcomes | float) -> Survival:
        """Return the outcome under another rule for missing times."""
        if not isinstance(rule, str):
            msg = "a missing time is censored at 0 (private) or left out (public); no number"
            raise DomainError(msg, parameter="missing outcomes", column=self.column)
        return replace(self, missing=rule)

    def encode(self, times: Floats, ended: Bits) -> npt.NDArray[np.int32]:
        """Return times and events as one code each; no value can fail.

        The code is twice the step of the clock, plus one for an event. A row that is observed
        beyond the horizon, or at it without an event, has the last step and no event.
        """
        readable = times >= 0  # False for NaN
        time = np.where(readable, times, 0.0)
        within = time <= self.horizon
        share = np.minimum(time, self.horizon) / self.horizon
        steps = np.floor(share * HORIZON_STEPS).astype(np.int32)
        steps[readable & ~within] = HORIZON_STEPS
        return 2 * steps + (ended & readable & within).astype(np.int32)


def steps_of(codes: npt.NDArray[np.int32]) -> Integers:
    """Return the step of the clock, from 0 to 2²⁸ at the horizon."""
    return (codes >> 1).astype(np.int64)


def happened(codes: npt.NDArray[np.int32]) -> Bits:
    """Say whether a time ended in an event by the horizon."""
    return (codes & 1).astype(np.bool_)


def bins_of(steps: Integers, bins: int) -> Integers:
    """Return the bin of each step; the horizon itself is in the last."""
    return np.minimum(steps * bins // HORIZON_STEPS, bins - 1)


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
