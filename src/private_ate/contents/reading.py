"""Releases as JSON: the fields of both schemas, what each may hold, how they are read.

Schema 1 is what version 0.1 wrote: twelve fields. Schema 2 also says what the release is about.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final, cast, get_args

from private_ate.contents.about import (
    Effect,
    OutcomeNote,
    Pair,
    ReleasedEstimand,
    Step,
    TreatmentNote,
    released_estimand,
)
from private_ate.contents.arms import Arm, LawName, NoiseLaw
from private_ate.errors import ArgumentError
from private_ate.privacy.budget import Level, parse_epsilon
from private_ate.settings import Facts

__all__ = [
    "ARM_FIELDS",
    "DESIGNS",
    "FIELDS",
    "OLD_FIELDS",
    "SCHEMA",
    "plain_field",
    "read_fields",
]

SCHEMA: Final = 2
DESIGNS: Final = ("unknown", "observational", "randomized")
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
# Methods of 0.1 that did not say so in their settings (docs/explanation/published-sample-level.md).
_NEVER_ADJUSTED: Final = (("difference_in_means", "sample"), ("published", "sample"))
Check = Callable[[object], bool]


def read_fields(text: str) -> dict[str, Any]:
    """Return the fields of a release in JSON of either schema; anything else is refused."""
    try:
        plain = json.loads(text, parse_float=_finite, parse_constant=_finite)
    except (ValueError, TypeError, RecursionError) as cause:
        msg = "this is not a release in JSON"
        raise ArgumentError(msg) from cause
    if not isinstance(plain, dict) or set(plain) not in map(set, (FIELDS, ARM_FIELDS, OLD_FIELDS)):
        msg = (
            f"a release in JSON has exactly the fields {', '.join(FIELDS)}, one of several arms "
            f"also arms; one of schema 1 has {', '.join(OLD_FIELDS)}"
        )
        raise ArgumentError(msg)
    wrong = [name for name, value in plain.items() if not _SHAPES[name](value)]
    if wrong:
        msg = f"the release's {wrong[0]} is not what a release holds"
        raise ArgumentError(msg)
    plain["epsilon"] = parse_epsilon(plain["epsilon"])
    for name in ("interval", "noise_interval"):
        plain[name] = _pair(plain[name])
    return _with_values(plain) if "schema" in plain else _with_defaults(plain)


def plain_field(value: object) -> object:
    """Return a field of a release as values that JSON knows."""
    if isinstance(value, Arm | Effect | OutcomeNote | Step | TreatmentNote):
        return {name: plain_field(held) for name, held in asdict(value).items()}
    if isinstance(value, Mapping):
        return dict(value)
    return [plain_field(one) for one in value] if isinstance(value, tuple) else value


def _with_values(plain: dict[str, Any]) -> dict[str, Any]:
    """Turn the plain lists and objects of schema 2 into values."""
    treatment, outcome = plain["treatment"], plain["outcome"]
    pairs = ("interval", "simultaneous", "noise_interval")
    return plain | {
        "treatment": TreatmentNote(**treatment | {"arms": tuple(treatment["arms"])}),
        "outcome": OutcomeNote(**outcome | {"bounds": _pair(outcome["bounds"])}),
        "effects": tuple(
            Effect(**row | {name: _pair(row[name]) for name in pairs}) for row in plain["effects"]
        ),
        "steps": tuple(
            Step(**step | {name: _listed(step[name]) for name in ("sensitivity", "scale")})
            for step in plain["steps"]
        ),
        "arms": tuple(_arm(arm) for arm in plain.get("arms", ())),
        **{name: tuple(plain[name]) for name in ("warnings", "covariates", "not_protected")},
    }


def _arm(plain: dict[str, Any]) -> Arm:
    shared = plain["mean_noise"]
    return Arm(
        **plain
        | {name: _pair(plain[name]) for name in ("interval", "noise_interval")}
        | {
            "noise": NoiseLaw(**plain["noise"]),
            "mean_noise": None if shared is None else NoiseLaw(**shared),
            "variances": tuple(plain["variances"]),
        }
    )


def _with_defaults(plain: dict[str, Any]) -> dict[str, Any]:
    """Say of a release of schema 1 what follows from it; it does not know columns or steps."""
    facts = Facts.of(plain["settings"])
    adjusted = facts.adjusted
    if adjusted is None:
        adjusted = (plain["method"], plain["level"]) not in _NEVER_ADJUSTED
    design = facts.design if facts.design in DESIGNS else "unknown"
    estimand = released_estimand(facts.estimand, design, adjusted=adjusted)
    return plain | {
        "schema": 1, "estimand": estimand, "adjusted": adjusted, "design": design,
    }  # fmt: skip


def _pair(ends: list[float] | None) -> Pair | None:
    return None if ends is None else (ends[0], ends[1])


def _listed(numbers: list[Any] | None) -> tuple[Any, ...] | None:
    return None if numbers is None else tuple(numbers)


def _finite(text: str) -> float:
    """Read a number; infinities and NaN, which a release never holds, are refused."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # False for NaN too


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_whole(value: object) -> bool:
    return type(value) is int and _is_number(value)


def _one_of(*words: object) -> Check:
    return lambda value: isinstance(value, str) and value in words


def _or_null(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check, *, least: int = 0) -> Check:
    return lambda value: (
        isinstance(value, list) and len(value) >= least and all(check(one) for one in value)
    )


def _object_of(checks: Mapping[str, Check]) -> Check:
    return lambda value: (
        isinstance(value, dict)
        and value.keys() == checks.keys()
        and all(check(value[name]) for name, check in checks.items())
    )


def _is_interval(value: object) -> bool:
    return _list_of(_is_number)(value) and len(cast("list[float]", value)) == 2


_INTERVAL: Final = _or_null(_is_interval)
_ESTIMAND: Final = _one_of(*get_args(ReleasedEstimand))
_EFFECT: Final = _object_of(
    {
        "outcome": _is_text,
        "subgroup": _or_null(_is_text),
        "arm": _is_text,
        "against": _is_text,
        "estimand": _ESTIMAND,
        "estimate": _is_number,
        "interval": _INTERVAL,
        "simultaneous": _INTERVAL,
        "noise_interval": _INTERVAL,
    }
)
_STEP: Final = _object_of(
    {
        "name": _is_text,
        "mechanism": _is_text,
        "metric": _is_text,
        "epsilon": _is_number,
        "delta": _is_number,
        "rho": _is_number,
        "part": _is_text,
        "sensitivity": _or_null(_list_of(_is_whole)),
        "scale": _or_null(_list_of(_is_number)),
    }
)
_LAW: Final = _object_of(
    {
        "name": _one_of(*get_args(LawName)),
        "unit": lambda value: _is_number(value) and cast("float", value) >= 0,
        "epsilon": lambda value: _is_number(value) and cast("float", value) > 0,
    }
)
_ARM: Final = _object_of(
    {
        "label": _is_text,
        "units": _or_null(lambda value: type(value) is int and value >= 0),
        "mean": _or_null(_is_number),
        "interval": _INTERVAL,
        "noise_interval": _INTERVAL,
        "noise": _LAW,
        "mean_noise": _or_null(_LAW),
        "variances": _list_of(lambda value: _is_number(value) and cast("float", value) >= 0),
        "weighted": lambda value: isinstance(value, bool),
    }
)
_SHAPES: Final[dict[str, Check]] = {
    "schema": lambda value: type(value) is int and value == SCHEMA,
    "warnings": _list_of(_is_text),
    "ate": _is_number,
    "interval": _INTERVAL,
    "noise_interval": _INTERVAL,
    "estimand": _ESTIMAND,
    "adjusted": lambda value: isinstance(value, bool),
    "design": _one_of(*DESIGNS),
    "treatment": _object_of(
        {"column": _is_text, "arms": _list_of(_is_text, least=2), "reference": _is_text}
    ),
    "outcome": _object_of({"column": _is_text, "bounds": _INTERVAL, "unit": _or_null(_is_text)}),
    "covariates": _list_of(_is_text),
    "effects": _list_of(_EFFECT, least=1),
    "arms": _list_of(_ARM, least=3),
    "epsilon": _is_number,
    "delta": lambda value: _is_number(value) and 0 <= cast("float", value) < 1,
    "level": _one_of(*get_args(Level)),
    "adjacency": _is_text,
    "guarantee": _is_text,
    "not_protected": _list_of(_is_text),
    "steps": _list_of(_STEP),
    "method": _is_text,
    "n": lambda value: type(value) is int and value > 0,
    "missing": lambda value: isinstance(value, dict),
    "dataset": _or_null(_is_text),
    "dataset_version": _or_null(_is_text),
    "released_at": _or_null(_is_text),
    "settings": lambda value: isinstance(value, dict),
    "version": _is_text,
}
