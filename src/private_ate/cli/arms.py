"""What flags declare of arms and of a time to an event; both win over the domain file.

Arms are two labels, a list of labels, or the edges of a dose's bins. A label that holds a comma
cannot be written on the command line; the file can.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    from private_ate.domain import Domain, Survival, Treatment

_NAMES: Final = ("event", "event_label", "horizon", "bins", "censoring_by")


@dataclass(frozen=True, slots=True)
class ArmFlags:
    """What flags say of arms; None where a flag was not given."""

    treated: str | None = None
    control: str | None = None
    arms: str | None = None
    reference: str | None = None
    bins: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ArmFlags:
        """Return what a command's flags say of arms."""
        names = ("treated", "control", "arms", "reference", "treatment_bins")
        return cls(*(given[name] for name in names))

    def declare(self, base: Treatment) -> Treatment:
        """Return a treatment with what flags say of it in place of what a file says.

        ``--arms`` and ``--treatment-bins`` declare all arms anew; ``--reference`` alone names
        another reference among those of the file; ``--treated`` and ``--control`` compare two
        labels, each the file's own if not given. The arm for other labels stays the file's.
        """
        pair = self.treated is not None or self.control is not None
        if pair + (self.arms is not None) + (self.bins is not None) > 1:
            msg = (
                "arms are declared by --treated and --control, by --arms, or by --treatment-bins; "
                "keep one of them (a domain file can name bins: labels = [...])"
            )
            raise ArgumentError(msg)
        if pair:
            return self._pair(base)
        if self.arms is not None:
            return _treatment(base, arms=_labels(self.arms), reference=self.reference)
        if self.bins is not None:
            return _treatment(base, bins=_edges(self.bins), reference=_place(self.reference))
        return base if self.reference is None else self._turned(base)

    def _pair(self, base: Treatment) -> Treatment:
        if self.reference is not None:
            msg = "of two labels --control is the reference; leave out --reference"
            raise ArgumentError(msg)
        if base.bins is not None:
            msg = (
                "--treated and --control name labels, and the domain declares bins of a dose; "
                "declare two bins by --treatment-bins LOW EDGE HIGH"
            )
            raise ArgumentError(msg)
        if base.is_assumed:
            return _treatment(base, treated=self.treated, control=self.control)
        return _treatment(
            base,
            treated=base.treated if self.treated is None else self.treated,
            control=base.control if self.control is None else self.control,
        )

    def _turned(self, base: Treatment) -> Treatment:
        """Return the arms of a file with another reference."""
        if base.bins is not None:
            place = None if self.reference in base.labels else _place(self.reference)
            named = self.reference if place is None else place
            return _treatment(base, bins=base.bins, labels=base.labels, reference=named)
        turned = _treatment(base, arms=base.labels, reference=self.reference)
        return base if turned.coded == base.coded else turned  # labels stay as they were typed


def _treatment(base: Treatment, **declared: Any) -> Treatment:  # noqa: ANN401  # keywords
    from private_ate.domain import Treatment  # keeps --help fast

    return Treatment(base.column, other=base.other, **declared)


def _labels(text: str) -> tuple[str, ...]:
    labels = tuple(label.strip() for label in text.split(","))
    if "" in labels:
        msg = (
            'write --arms "none,low,high": labels between commas, none of them empty; a label '
            "that holds a comma needs --domain FILE with arms = [...]"
        )
        raise ArgumentError(msg)
    return labels


def _edges(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(edge) for edge in text.strip().rstrip(",").split(","))
    except ValueError as cause:
        msg = f"write --treatment-bins 0 1 6 100: edges that rise, not {text[:60]!r}"
        raise ArgumentError(msg) from cause


def _place(reference: str | None) -> str | int | None:
    """Return a bin's name, or its place if a whole number is given."""
    if reference is not None and re.fullmatch(r"\d{1,9}", reference.strip()):
        return int(reference)
    return reference


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
