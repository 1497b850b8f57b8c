"""Releases as JSON: the keys of both schemas, and what one of version 0.1 leaves unsaid.

Schema 1 is what version 0.1 wrote: twelve keys. Schema 2 also says what the release is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from private_ate.codec import entries, read_json
from private_ate.errors import ArgumentError
from private_ate.facts import Facts
from private_ate.release.metadata import DESIGNS, Arm, Effect, released_estimand

SCHEMA: Final = 2
OLD_FIELDS: Final = (
    "ate", "interval", "noise_interval", "epsilon", "delta", "level", "adjacency",
    "guarantee", "method", "n", "settings", "version",
)  # fmt: skip
FIELDS: Final = (
    "schema", "warnings", "ate", "interval", "noise_interval", "estimand", "adjusted", "design",
    "treatment", "outcome", "covariates", "effects", "epsilon", "delta", "level", "adjacency",
    "guarantee", "not_protected", "steps", "method", "n", "missing", "dataset", "dataset_version",
    "released_at", "settings", "version",
)  # fmt: skip
# A release of three arms or more has one field more; others do not know it.
ARM_FIELDS: Final = (*FIELDS[:12], "arms", *FIELDS[12:])
# A release of a time to an event has these too, after all others.
SURVIVAL_FIELDS: Final = ("quantity", "horizon", "bins", "curves", "risks")
# Methods of 0.1 that did not say so in their settings (docs/explanation/published-sample-level.md).
_NEVER_ADJUSTED: Final = (("difference_in_means", "sample"), ("published", "sample"))


def read_plain(text: str) -> dict[str, Any]:
    """Return the plain values of a release of either schema, with all that schema 1 implies."""
    plain = dict(entries(read_json(text, "a release")) or {})
    others = set(plain) - set(SURVIVAL_FIELDS)
    is_partial = set(plain) != others and not all(map(plain.get, SURVIVAL_FIELDS))
    if is_partial or others not in map(set, (FIELDS, ARM_FIELDS, OLD_FIELDS)):
        msg = (
            f"a release in JSON has exactly the fields {', '.join(FIELDS)}, one of several arms "
            f"also arms, one of a time to an event also {', '.join(SURVIVAL_FIELDS)}; one of "
            f"schema 1 has {', '.join(OLD_FIELDS)}"
        )
        raise ArgumentError(msg)
    if "schema" not in plain:
        return plain | _implied(plain)
    unsaid = next((name for name in ("treatment", "outcome", "effects") if not plain[name]), None)
    if plain["schema"] != SCHEMA or unsaid is not None:
        msg = f"this is not a release in JSON: {unsaid or 'schema'} is not what schema 2 holds"
        raise ArgumentError(msg)
    return plain


def refuse_contradictions(
    effects: Sequence[Effect], arms: Sequence[Arm], confidence: float
) -> None:
    """Refuse a release whose parts do not fit each other, as those of an edited one may not."""
    overall = [row for row in effects if row.subgroup is None]
    outcomes = {row.outcome for row in effects}
    compared = {row.arm for row in effects} | {row.against for row in effects}
    labels = [arm.label for arm in arms]
    wrong = None
    if len(outcomes) > 1 and outcomes != {row.outcome for row in overall}:
        wrong = "an outcome has no effect for all units"
    elif len({bool(arm.variances) for arm in arms}) > 1:
        wrong = "some arms have variances and some have none"
    elif arms and not compared <= {*labels}:
        wrong = "an effect is of an arm that is not listed"
    elif arms and all(
        row.against != labels[0] for row in overall if row.outcome == effects[0].outcome
    ):
        wrong = "no effect is against the reference"
    elif not 1e-6 <= confidence <= 1 - 1e-9:  # no normal quantile that is neither 0 nor infinite
        wrong = "no interval has such a confidence"
    if wrong is not None:
        msg = f"this is not a release in JSON: {wrong}"
        raise ArgumentError(msg)


def _implied(plain: dict[str, Any]) -> dict[str, Any]:
    """Say of a release of schema 1 what follows from it; it does not know columns or steps."""
    facts = Facts.of(entries(plain["settings"]) or {})
    adjusted = facts.adjusted
    if adjusted is None:
        adjusted = (plain["method"], plain["level"]) not in _NEVER_ADJUSTED
    design = facts.design if facts.design in DESIGNS else "unknown"
    estimand = released_estimand(facts.estimand, design, adjusted=adjusted)
    return {"schema": 1, "estimand": estimand, "adjusted": adjusted, "design": design}
