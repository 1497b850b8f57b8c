"""What a method is asked for: the validated request."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, Final, TypeVar

from private_ate.arguments import check_analyst, check_name, real_number, settle
from private_ate.domain.column_types import Treatment, label_text
from private_ate.errors import ArgumentError
from private_ate.parameters import (
    Bounds,
    Design,
    Estimand,
    SurvivalQuantity,
    Target,
    checked,
    parameters_of,
)
from private_ate.privacy.budget import parse_epsilon
from private_ate.privacy.levels import Level, has_public_covariates

__all__ = ["Request", "among_arm", "options_for"]

Options = TypeVar("Options")


_OF_LEDGERS: Final = ("request_id", "analyst", "ledger_head", "approval")
# What a plan's hash says of a field: always, unless at its usual value (it came later, and requests
# of older ledgers keep their hash), or nothing, as another entry of the plan does or none.
_LATER: Final = {"hashed": "unless usual"}
_NOT_HASHED: Final = {"hashed": "never"}


@dataclass(frozen=True, slots=True)
class Request:
    """Public parameters of one estimate, checked here for every interface.

    ε may be given as its text; it is kept as the exact fraction. ``among`` is the label of the arm
    whose units are meant, where more than two are declared; None means all units. ``probability``
    is that of treatment in a trial: a number, or the column that holds everybody's. ``by`` names
    columns and cuts that define subgroups; ``overall`` pays half of ε for all units.
    ``spreads`` are guessed standard deviations of several outcomes, by column; ``outcomes`` is
    how many are estimated together, so that intervals at once have room for all of them.
    ``leave_out_undeclared`` and ``bounds`` say how rows are read. ``quantity`` is what is compared
    of a time to an event: restricted mean survival times, or risks by the horizon. What follows
    it says which columns, who computes and who is charged; methods have no use for it.
    """

    level: Level
    epsilon: Fraction
    neighbors: int = 5
    estimand: Estimand = "ate"
    target: Target = "balance"
    confidence: float | None = 0.95
    rows_per_person: int = 1
    options: object | None = None
    design: Design = field(default="unknown", metadata=_LATER)
    among: str | None = field(default=None, metadata=_LATER)
    probability: float | str | None = field(default=None, metadata=_LATER)
    by: tuple[str, ...] = field(default=(), metadata=_LATER)
    overall: bool = field(default=False, metadata=_LATER)
    spreads: tuple[tuple[str, float], ...] = field(default=(), metadata=_LATER)
    outcomes: int = field(default=1, metadata=_NOT_HASHED)
    leave_out_undeclared: bool = field(default=False, metadata=_NOT_HASHED)
    bounds: Bounds = field(default="declared", metadata=_NOT_HASHED)
    quantity: SurvivalQuantity = field(default="rmst", metadata=_LATER)
    method: str = field(default="auto", metadata=_NOT_HASHED)
    covariates: object = field(default=None, metadata=_NOT_HASHED)
    person: str | None = field(default=None, metadata=_NOT_HASHED)
    engine: str = field(default="auto", metadata=_NOT_HASHED)
    master: str | None = field(default=None, metadata=_NOT_HASHED)
    memory_limit: int = field(default=1 << 30, metadata=_NOT_HASHED)
    seed: int | None = field(default=None, metadata=_NOT_HASHED)
    ledger: object | None = field(default=None, metadata=_NOT_HASHED, repr=False)
    dataset: str | None = field(default=None, metadata=_NOT_HASHED)
    dataset_version: str | None = field(default=None, metadata=_NOT_HASHED)
    request_id: str | None = field(default=None, metadata=_NOT_HASHED)
    analyst: str | None = field(default=None, metadata=_NOT_HASHED)
    ledger_head: str | None = field(default=None, metadata=_NOT_HASHED)
    approval: object | None = field(default=None, metadata=_NOT_HASHED)

    def __post_init__(self) -> None:
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        settle(self, **checked(given), epsilon=parse_epsilon(self.epsilon))
        self._check_probability()
        if self.overall and not self.by:
            msg = "overall pays for all units beside subgroups; name these too: by=['…']"
            raise ArgumentError(msg, parameter="by")
        self._check_left_out()
        if self.ledger is None and any(getattr(self, name) is not None for name in _OF_LEDGERS):
            msg = (
                "request_id, analyst, ledger_head and approval belong to a ledger; give ledger= too"
            )
            raise ArgumentError(msg)
        for role, name in (
            ("data set", self.dataset),
            ("data set's version", self.dataset_version),
            ("request id", self.request_id),
        ):
            if name is not None:
                check_name(role, name)
        if self.analyst is not None:
            check_analyst(self.analyst)
        spreads = tuple(
            (name, real_number(f"the standard deviation of {name!r}", value, 1e-150, 1e150))
            for name, value in self.spreads
        )
        settle(self, spreads=spreads)

    def _check_left_out(self) -> None:
        """Refuse to leave out rows where that would depend on private entries."""
        if self.leave_out_undeclared and not has_public_covariates(self.level):
            msg = (
                "leave_out_undeclared belongs to label level, where treatment and covariates are "
                "public; at sample level nothing may depend on which rows those are"
            )
            raise ArgumentError(msg)

    def _check_probability(self) -> None:
        """Refuse a known probability of treatment outside of a trial, or that is none."""
        if self.probability is None:
            return
        if self.design != "randomized":
            msg = "a known probability of treatment belongs to a trial: design='randomized'"
            raise ArgumentError(msg, parameter="design")
        if self.estimand != "ate" or self.among is not None:
            msg = "in a trial all estimands are one; leave out the estimand, or the probability"
            raise ArgumentError(msg, parameter="estimand")
        if not isinstance(self.probability, str):
            chance = real_number("the probability of treatment", self.probability, 0.001, 0.999)
            settle(self, probability=chance)

    def hashed(self, arms: int) -> dict[str, Any]:
        """Return the fields that are part of a plan's hash, the options as plain values."""
        options: Any = self.options
        of_two_arms = getattr(options, "of_two_arms", None)
        if arms == 2 and of_two_arms is not None:
            options = of_two_arms()
        elif is_dataclass(options) and not isinstance(options, type):
            options = asdict(options)
        held = {item.name: (item, getattr(self, item.name)) for item in fields(self)}
        said = {
            name: value
            for name, (item, value) in held.items()
            if "hashed" not in item.metadata or (item.metadata == _LATER and value != item.default)
        }
        return said | {"options": options}

    def arguments(self, function: str) -> dict[str, Any]:
        """Return what a function of the library is asked with: `estimate_ate` or `plan_ate`."""
        held = {item.name for item in fields(self)}
        return {
            one.name: getattr(self, one.name) for one in parameters_of(function) if one.name in held
        }

    @property
    def coverage(self) -> float:
        """The coverage of free intervals: as asked, 95 % if no interval is paid for."""
        return 0.95 if self.confidence is None else self.confidence

    @property
    def coverage_at_once(self) -> float:
        """The coverage that one outcome's intervals need for those of all to cover at once."""
        return self.coverage if self.outcomes == 1 else 1 - (1 - self.coverage) / self.outcomes


def among_arm(request: Request, treatment: Treatment | None, among: object) -> Request:
    """Return the request for the units of one arm; of two arms that is the ATT or the ATC."""
    if among is None:
        return request
    labels = () if treatment is None else treatment.labels
    text = label_text(among) if isinstance(among, str | int | float) else ""
    if text not in labels:
        known = f": {', '.join(map(repr, labels))}" if labels else ", declared by a Treatment"
        msg = f"among names one of the arms{known}"
        raise ArgumentError(msg, parameter="among")
    if request.estimand != "ate":
        msg = f"among and the estimand {request.estimand.upper()} say twice who is meant; keep one"
        raise ArgumentError(msg, parameter="among")
    if len(labels) > 2:
        return replace(request, among=text)
    return replace(request, estimand="atc" if text == labels[0] else "att")


def options_for(request: Request, kind: type[Options], method: str) -> Options:
    """Return the options of a request, the method's own defaults if it has none."""
    if request.options is None:
        return kind()
    if not isinstance(request.options, kind):
        asked = type(request.options).__name__
        msg = f"method {method!r} takes {kind.__name__} as options, not {asked}"
        raise ArgumentError(msg)
    return request.options
