"""A time to an event from flags: columns, the event's label, the horizon; flags win over a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    from private_ate.domain import Domain, Survival

__all__ = ["flagged_survival", "with_survival"]

_NAMES: Final = ("event", "event_label", "horizon", "bins", "censoring_by")


def flagged_survival(given: Mapping[str, Any]) -> Survival | None:
    """Return the time to an event that flags declare alone; None if they name no time."""
    from private_ate.domain import Survival  # keeps --help fast

    if given.get("time") is None:
        return None
    if given["outcome"]:
        msg = "a time to an event is declared by --time and --event; leave out --outcome"
        raise ArgumentError(msg)
    for name in ("outcome_bounds", "binary_outcome"):
        if given.get(name):
            msg = f"times run from 0 to the horizon; leave out --{name.replace('_', '-')}"
            raise ArgumentError(msg)
    return Survival(given["time"], **_named(given))


def with_survival(domain: Domain, given: Mapping[str, Any]) -> Domain:
    """Return a domain with what flags say of its time to an event."""
    from private_ate.domain import Survival  # keeps --help fast

    declared = flagged_survival(given)
    named = _named(given)
    base = domain.outcome
    if declared is None:
        if not isinstance(base, Survival):
            unused = next((name for name in named if name != "event_label"), None)
            if unused is not None:
                msg = f"--{unused.replace('_', '-')} belongs to a time to an event: name --time too"
                raise ArgumentError(msg)
            return domain
        declared = replace(base, **named)
    elif isinstance(base, Survival) and base.column == declared.column:
        declared = replace(declared, unit=base.unit, missing=base.missing)
    return replace(domain, outcome=declared, further=())


def _named(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in _NAMES if given.get(name) is not None}
