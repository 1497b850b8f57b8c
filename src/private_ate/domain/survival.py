"""A time to an event with censoring, as declared: two columns, the event's label, the horizon."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.arguments import real_number, whole_number
from private_ate.arrays import Bits, Floats, Integers
from private_ate.domain.column_types import Interval, require_name
from private_ate.domain.outcome import MissingOutcomes, Outcome
from private_ate.errors import DomainError

__all__ = ["HORIZON_STEPS", "MOST_BINS", "Survival", "bins_of", "happened", "steps_of"]

HORIZON_STEPS: Final = 1 << 28  # steps of the clock up to the horizon; with the event 30 bits
MOST_BINS: Final = 100


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
