"""What flags declare: arms, outcomes, a time to an event, bounds; they win over the domain file.

Arms are two labels, a list of labels, or the edges of a dose's bins. A label that holds a comma
cannot be written on the command line; the file can.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from private_ate.arguments import real_number
from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    from private_ate.domain import Categories, Domain, Interval, Outcome, Treatment

ARM_FLAGS: Final = ("treated", "control", "arms", "reference", "treatment_bins")
_SURVIVAL: Final = ("event", "event_label", "horizon", "bins", "censoring_by")


def declared_domain(given: Mapping[str, Any]) -> Domain:
    """Build the domain from a file, from flags, or from both (flags win)."""
    from private_ate.data.inputs import resolve_domain  # keeps --help fast
    from private_ate.domain import Domain
    from private_ate.domain.column_types import as_weights

    path, outcome = given["domain"], given["outcome"]
    names = list(dict.fromkeys(outcome)) if outcome else given.get("time")
    file = None if path is None else with_survival(Domain.read(path), given)
    base = with_survival(resolve_domain(file, given["treatment"], names), given)
    if base.further and any(
        given.get(name) not in (None, False)
        for name in ("binary_outcome", "event_label", "outcome_bounds")
    ):
        msg = (
            "of several outcomes each has bounds of its own: write --bounds COL=LO:HI or "
            "--bounds COL=binary for each, or use --domain FILE (also for event labels)"
        )
        raise ArgumentError(msg)
    flagged = dict(_parse_bounds(text) for text in given.get("bounds") or [])
    bounded = set(flagged)
    outcomes = []
    for one in base.outcomes:
        limits = flagged.pop(one.column, one.bounds) if base.further else one.bounds
        outcomes.append(_declared_outcome(one, limits, given))
    covariates = {**base.covariates, **flagged}
    covariates.update(_parse_categories(text) for text in given.get("categories") or [])
    weights, declared = given.get("weights"), base.weights
    if weights in covariates and weights in bounded:
        # A bound that a flag gives to the column of weights is theirs.
        declared = as_weights((weights, covariates.pop(weights)))
    known = replace(
        base, treatment=declared_arms(given, base.treatment), outcome=outcomes[0],
        further=tuple(outcomes[1:]), covariates=covariates, weights=declared,
    )  # fmt: skip
    return resolve_domain(known, None, None, weights)


def _declared_outcome(one: Outcome, limits: Interval | None, given: Mapping[str, Any]) -> Outcome:
    """Return an outcome with what flags say of it; of a time to an event they have said all."""
    from private_ate.domain import Binary, Interval, Survival  # keeps --help fast

    label, missing = given.get("event_label"), given.get("missing_outcomes")
    if not isinstance(one, Survival):
        filled = None if one.bounds is None or missing is not None else one.bounds.missing
        if given["binary_outcome"] or label is not None:
            limits = Binary(missing=filled)
        elif given["outcome_bounds"] is not None:
            low, high = given["outcome_bounds"]
            limits = Interval(low, high, filled)
        one = replace(one, bounds=limits, event_label=label or one.event_label)
    return one if missing is None else one.with_missing(_parse_missing(missing))


def declared_arms(given: Mapping[str, Any], base: Treatment) -> Treatment:
    """Return a treatment with what flags say of it in place of what a file says.

    ``--arms`` and ``--treatment-bins`` declare all arms anew; ``--reference`` alone names
    another reference among those of the file; ``--treated`` and ``--control`` compare two
    labels, each the file's own if not given. The arm for other labels stays the file's.
    """
    treated, control, arms, reference, bins = (given[name] for name in ARM_FLAGS)
    is_pair = treated is not None or control is not None
    if is_pair + (arms is not None) + (bins is not None) > 1:
        msg = (
            "arms are declared by --treated and --control, by --arms, or by --treatment-bins; "
            "keep one of them (a domain file can name bins: labels = [...])"
        )
        raise ArgumentError(msg)
    if is_pair:
        return _pair(base, treated, control, reference)
    if arms is not None:
        return _treatment(base, arms=_labels(arms), reference=reference)
    if bins is not None:
        return _treatment(base, bins=_edges(bins), reference=_place(reference))
    if reference is None:
        return base
    if base.bins is not None:
        named = reference if reference in base.labels else _place(reference)
        return _treatment(base, bins=base.bins, labels=base.labels, reference=named)
    turned = _treatment(base, arms=base.labels, reference=reference)
    return base if turned.coded == base.coded else turned  # labels stay as they were typed


def _pair(
    base: Treatment, treated: str | None, control: str | None, reference: str | None
) -> Treatment:
    if reference is not None:
        msg = "of two labels --control is the reference; leave out --reference"
        raise ArgumentError(msg)
    if base.bins is not None:
        msg = (
            "--treated and --control name labels, and the domain declares bins of a dose; "
            "declare two bins by --treatment-bins LOW EDGE HIGH"
        )
        raise ArgumentError(msg)
    if base.is_assumed:
        return _treatment(base, treated=treated, control=control)
    return _treatment(
        base,
        treated=base.treated if treated is None else treated,
        control=base.control if control is None else control,
    )


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


def with_survival(domain: Domain, given: Mapping[str, Any]) -> Domain:
    """Return a domain with what flags say of its time to an event."""
    from private_ate.domain import Survival  # keeps --help fast

    named = {name: given[name] for name in _SURVIVAL if given.get(name) is not None}
    base, time = domain.outcome, given.get("time")
    if time is None:
        if isinstance(base, Survival):
            return replace(domain, outcome=replace(base, **named), further=())
        unused = next((name for name in named if name != "event_label"), None)
        if unused is not None:
            msg = f"--{unused.replace('_', '-')} belongs to a time to an event: name --time too"
            raise ArgumentError(msg)
        return domain
    if given["outcome"]:
        msg = "a time to an event is declared by --time and --event; leave out --outcome"
        raise ArgumentError(msg)
    for name in ("outcome_bounds", "binary_outcome"):
        if given.get(name):
            msg = f"times run from 0 to the horizon; leave out --{name.replace('_', '-')}"
            raise ArgumentError(msg)
    declared = Survival(time, **named)
    if isinstance(base, Survival) and base.column == time:
        declared = replace(declared, unit=base.unit, missing=base.missing)
    return replace(domain, outcome=declared, further=())


def _parse_missing(text: str) -> Literal["public", "private"] | float:
    word = text.strip().lower()
    rules: dict[str, Literal["public", "private"]] = {"public": "public", "private": "private"}
    if word in rules:
        return rules[word]
    return real_number("missing outcomes (public, private or a number)", text, -1e150, 1e150)


def _parse_bounds(text: str) -> tuple[str, Interval]:
    from private_ate.domain import Binary, Interval  # keeps --help fast

    name, _, rest = text.rpartition("=")
    if name and rest.strip().lower() == "binary":
        return name, Binary()
    low, _, high = rest.partition(":")
    try:
        ends = float(low), float(high)
    except ValueError:
        name = ""
    if not name:
        msg = f"write --bounds COL=LO:HI, for example --bounds age=16:60, not {text[:60]!r}"
        raise ArgumentError(msg)
    return name, Interval(*ends)


def _parse_categories(text: str) -> tuple[str, Categories]:
    from private_ate.domain import Categories  # keeps --help fast

    name, _, rest = text.partition("=")
    if not name or "|" not in rest:
        msg = f"write --categories 'COL=a|b|c', not {text[:60]!r}"
        raise ArgumentError(msg)
    return name, Categories(*rest.split("|"))
