"""Write the JSON Schema of a release from the types of the settings.

Run ``python docs/make_schema.py`` after a method's settings have changed. The schema is written
twice: into the package, which ships it, and beside the page that explains it. The site takes the
tables of that page from here when it is built.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import private_ate
from private_ate.codec import LARGEST
from private_ate.release.metadata import (
    DESIGNS,
    Arm,
    Curve,
    Effect,
    OutcomeNote,
    ReleasedEstimand,
    Risks,
    Step,
    TreatmentNote,
)
from private_ate.release.release import ARM_FIELDS, FIELDS, OLD_FIELDS, SCHEMA, SURVIVAL_FIELDS
from private_ate.settings import Absent, Facts, LedgerNote, Settings

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "src" / "private_ate" / "release.schema.json"
PUBLISHED = ROOT / "docs" / "reference" / "release.schema.json"

_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_TEXT_OR_NULL: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "null"}]}
_VALUES = (TreatmentNote, OutcomeNote, Effect, Arm, Step, LedgerNote, Curve, Risks)
_DESCRIBED: dict[str, dict[str, Any]] = {
    "schema": {"const": SCHEMA, "description": "The version of this schema."},
    "warnings": _TEXTS | {"description": "What to know before the number is used."},
    "ate": {
        "$ref": "#/$defs/number",
        "description": "The headline: the released effect, or difference in means, in units of "
        "the outcome.",
    },
    "interval": {
        "$ref": "#/$defs/interval",
        "description": "Confidence interval for it, low end first; null if none was paid for.",
    },
    "estimand": {
        "enum": list(typing.get_args(ReleasedEstimand)),
        "description": "What was estimated; “difference” is a difference in means, not adjusted "
        "for covariates, which is an effect only if treatment was random.",
    },
    "adjusted": {"type": "boolean", "description": "Whether covariates were adjusted for."},
    "design": {"enum": list(DESIGNS), "description": "How treatment came about, as declared."},
    "treatment": {
        "$ref": "#/$defs/TreatmentNote",
        "description": "The treatment and its arms.",
    },
    "outcome": {
        "$ref": "#/$defs/OutcomeNote",
        "description": "The outcome, its declared bounds and its unit.",
    },
    "covariates": _TEXTS | {"description": "Columns that the method could adjust for."},
    "effects": {
        "type": "array",
        "items": {"$ref": "#/$defs/Effect"},
        "minItems": 1,
        "description": "The table of effects. Of two arms its first row is the headline; of more "
        "it has a row for every pair, those against the reference first, and the headline is the "
        "last of these.",
    },
    "arms": {
        "type": "array",
        "items": {"$ref": "#/$defs/Arm"},
        "minItems": 3,
        "description": "Three arms or more, the reference first; not there for two.",
    },
    "not_protected": _TEXTS | {"description": "What the promise does not cover."},
    "steps": {
        "type": "array",
        "items": {"$ref": "#/$defs/Step"},
        "description": "Every step that saw private values.",
    },
    "missing": {
        "type": "object",
        "description": "The rules for missing values in force, and counts where they are public.",
    },
    "dataset": _TEXT_OR_NULL | {"description": "What the curator calls the data; never a hash."},
    "dataset_version": _TEXT_OR_NULL
    | {"description": "What the curator calls this state of the data; never a hash."},
    "released_at": _TEXT_OR_NULL
    | {"description": "When the release was asked for, in UTC; null if it was seeded."},
    "noise_interval": {
        "$ref": "#/$defs/interval",
        "description": "Range of the estimate without noise, low end first; null where none is "
        "known.",
    },
    "epsilon": {
        "type": "number",
        "minimum": 1e-12,
        "maximum": 1e6,
        "description": "The budget ε, a decimal number of at most 15 significant digits.",
    },
    "delta": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "description": "The δ of the promise; 0 for pure ε.",
    },
    "level": {
        "enum": ["label", "sample"],
        "description": "Whether outcomes alone are private or whole records.",
    },
    "adjacency": {"type": "string", "description": "Which two data sets are neighbours."},
    "guarantee": {
        "type": "string",
        "description": "What is promised; a text that begins with “none” promises nothing.",
    },
    "method": {"type": "string", "description": "The method that made the release."},
    "n": {
        "type": "integer",
        "minimum": 1,
        "maximum": LARGEST,
        "description": "Number of rows; a noisy one where the neighbours differ in size.",
    },
    "settings": {
        "type": "object",
        "description": "How the number came about; the keys depend on the method and the level.",
    },
    "version": {"type": "string", "description": "The version of private-ate."},
    "quantity": {
        "enum": ["rmst", "risk"],
        "description": "Of a time to an event: what the effect is a difference of, restricted mean "
        "survival times or risks by the horizon; not there for other outcomes.",
    },
    "horizon": {
        "$ref": "#/$defs/number",
        "exclusiveMinimum": 0,
        "description": "The time up to which survival is compared.",
    },
    "bins": {
        "type": "integer",
        "minimum": 1,
        "maximum": LARGEST,
        "description": "Bins of the survival curves.",
    },
    "curves": {
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/Curve"},
        "minProperties": 1,
        "description": "The survival curve of each arm, by its label, the reference first.",
    },
    "risks": {"$ref": "#/$defs/Risks", "description": "Risks of the event by the horizon."},
}
_FIELDS = {name: _DESCRIBED[name] for name in (*ARM_FIELDS, *SURVIVAL_FIELDS)}
_OLD_FIELDS = {name: _DESCRIBED[name] for name in OLD_FIELDS}


def schema() -> dict[str, Any]:
    """Return the schema: an envelope that every release has, and settings by method and level."""
    kinds = settings_types()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://github.com/private-ate/private-ate/release.schema.json",
        "title": "A release of private-ate, schema 2",
        "description": "A treatment effect that may be shown to anybody, and what it promises.",
        "$ref": "#/$defs/envelope",
        "allOf": [_condition(kind) for kind in kinds],
        "$defs": {
            "envelope": _object(_FIELDS, list(FIELDS))
            | {"dependentRequired": dict.fromkeys(SURVIVAL_FIELDS, list(SURVIVAL_FIELDS))},
            "envelope_1": _object(_OLD_FIELDS, list(_OLD_FIELDS)),
            "number": {"type": "number", "minimum": -LARGEST, "maximum": LARGEST},
            "interval": {
                "anyOf": [_tuple([{"$ref": "#/$defs/number"}] * 2), {"type": "null"}],
            },
            **_values(),
            **{kind.__name__: _settings(kind) for kind in kinds},
        },
    }


def _values() -> dict[str, Any]:
    found = {kind.__name__: _of_dataclass(kind) for kind in _VALUES}
    found["TreatmentNote"]["properties"]["arms"]["minItems"] = 2
    arm = found["Arm"]["properties"]
    for name in ("interval", "noise_interval"):
        arm[name] = {"$ref": "#/$defs/interval", "description": arm[name]["description"]}
    arm["units"]["anyOf"][0]["minimum"] = 0
    arm["variances"]["items"] = {"$ref": "#/$defs/number", "minimum": 0}
    for noise in (arm["noise"]["anyOf"][0], arm["mean_noise"]["anyOf"][0]):
        noise["properties"]["unit"]["minimum"] = 0
        noise["properties"]["epsilon"]["exclusiveMinimum"] = 0
    return found


def settings_types() -> list[type[Settings]]:
    """Return the settings of every method in this package, by name."""
    found = set()
    for module in pkgutil.walk_packages(private_ate.__path__, "private_ate."):
        if module.name.split(".")[1] not in ("methods", "baselines"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(value) and issubclass(value, Settings) and value.methods:
                found.add(value)
    return sorted(found, key=lambda kind: kind.__name__)


def _condition(kind: type[Settings]) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "method": {"enum": list(kind.methods)},
        "level": {"enum": list(kind.levels)},
    }
    if kind.several_arms:
        asked["arms"] = {"minItems": 3}
    elif (kind.methods, kind.levels) in _of_several_arms():
        asked["arms"] = False
    needed = [name for name, shape in asked.items() if shape is not False]
    return {
        "if": {"properties": asked, "required": needed},
        "then": {"properties": {"settings": {"$ref": f"#/$defs/{kind.__name__}"}}},
    }


def _of_several_arms() -> set[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return methods and levels that have settings of their own for three arms or more."""
    return {(kind.methods, kind.levels) for kind in settings_types() if kind.several_arms}


def _settings(kind: type[Settings]) -> dict[str, Any]:
    found = _of_dataclass(kind)
    found["properties"]["ledger"] = {
        "$ref": "#/$defs/LedgerNote",
        "description": "Where the release was charged; only with a ledger.",
    }
    found["properties"].setdefault(
        "binary_outcome",
        {
            "type": "boolean",
            "description": "True where the outcome is declared as binary; absent otherwise.",
        },
    )
    found["properties"]["column_labels"] = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "What columns are called in reports; absent without labels.",
    }
    return found


def _of_dataclass(kind: type) -> dict[str, Any]:
    hints, texts = typing.get_type_hints(kind), descriptions(kind)
    properties, required = {}, []
    for item in fields(kind):
        options = _options(hints[item.name])
        if Absent not in options:
            required.append(item.name)
        described = {"description": texts[item.name]} if item.name in texts else {}
        kept = [one for one in options if one not in (Absent, Fraction)]  # ε is written as a number
        properties[item.name] = _any_of(kept) | described
    return _object(properties, required)


def _options(hint: object) -> list[Any]:
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return list(typing.get_args(hint)) if is_union else [hint]


def _any_of(options: list[Any]) -> dict[str, Any]:
    found = [_of_type(option) for option in options]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _of_type(hint: Any) -> dict[str, Any]:  # noqa: ANN401, PLR0911  # an answer per kind of type
    if hint is float:
        return {"$ref": "#/$defs/number"}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if is_dataclass(hint):
        return _of_dataclass(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _any_of(_options(arguments[1]))}
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _any_of(_options(arguments[0]))}
    if origin is tuple:
        return _tuple([_any_of(_options(one)) for one in arguments])
    msg = f"a release cannot hold {hint}"
    raise TypeError(msg)


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _tuple(items: list[dict[str, Any]]) -> dict[str, Any]:
    size = len(items)
    return {
        "type": "array",
        "prefixItems": items,
        "items": False,
        "minItems": size,
        "maxItems": size,
    }


def descriptions(kind: type) -> dict[str, str]:
    """Return the sentence for each field, from the docstrings of the class, its bases and `Facts`."""
    texts = _shared_texts() if issubclass(kind, Settings) else {}
    for one in reversed(kind.__mro__):
        texts |= documented(one)
    return {item.name: texts[item.name] for item in fields(kind) if item.name in texts}


def _shared_texts() -> dict[str, str]:
    """Return the sentence for each key of settings that many methods have."""
    texts = documented(Facts)
    return {
        key: texts[item.name]
        for item in reversed(fields(Facts))
        for key in item.metadata.get("keys", (item.name,))
    }


def documented(kind: type) -> dict[str, str]:
    """Return the sentence that the docstring of one class says of each attribute."""
    texts: dict[str, str] = {}
    _, _, listed = (inspect.cleandoc(kind.__doc__ or "")).partition("Attributes\n----------\n")
    entries = re.findall(r"^(\S.*?) : .*\n((?: +.*\n?)+)", listed, re.MULTILINE)
    for names, text in entries:
        texts |= {name.strip(): " ".join(text.split()) for name in names.split(",")}
    return texts


def tables() -> str:
    """Return the generated part of the page: the envelope, then the settings of each method."""
    whole = schema()
    parts = ["## Fields\n", *_table(whole["$defs"]["envelope"]), ""]
    for kind in settings_types():
        names = ", ".join(f"`{name}`" for name in kind.methods)
        where = " and ".join(kind.levels)
        arms = ", three arms or more" if kind.several_arms else ""
        parts += [f"## Settings of {names}, {where} level{arms}\n"]
        parts += [*_table(whole["$defs"][kind.__name__]), ""]
    titles = {
        "TreatmentNote": "Treatment",
        "OutcomeNote": "Outcome",
        "Effect": "A row of the effects",
        "Arm": "An arm of several",
        "Step": "A step",
        "LedgerNote": "Note of a ledger",
        "Curve": "A survival curve",
        "Risks": "Risks by the horizon",
    }
    for kind, title in titles.items():
        parts += [f"## {title}\n", *_table(whole["$defs"][kind]), ""]
    parts.pop()
    return "\n".join(parts) + "\n"


def _table(described: dict[str, Any]) -> list[str]:
    head = ["| key | holds | always there | what it says |", "|---|---|---|---|"]
    return head + [
        f"| `{name}` | {_shape(value)} | {'yes' if name in described['required'] else 'no'} "
        f"| {value['description']} |"
        for name, value in described["properties"].items()
    ]


def _shape(value: dict[str, Any]) -> str:  # noqa: PLR0911  # an answer per shape
    """Say in a few words what a value looks like."""
    match value:
        case {"$ref": reference}:
            named = {"number": "number", "interval": "two numbers or null"}
            return named.get(reference.rpartition("/")[2], "object")
        case {"const": value}:
            return f"`{value}`"
        case {"enum": words}:
            return " or ".join(f"`{word}`" for word in words)
        case {"anyOf": options}:
            return " or ".join(map(_shape, options))
        case {"type": "array", "prefixItems": items}:
            return "[" + ", ".join(map(_shape, items)) + "]"
        case {"type": "array", "items": items}:
            return f"list of {_shape(items)}"
        case {"type": "object", "properties": properties}:
            return (
                "{"
                + ", ".join(f"`{name}`: {_shape(properties[name])}" for name in properties)
                + "}"
            )
        case {"type": "object", "additionalProperties": items}:
            return f"object of {_shape(items)}"
        case {"type": name}:
            return str(name)
    raise ValueError(value)


def schema_text() -> str:
    """Return the schema as its file holds it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for path in (SHIPPED, PUBLISHED):
        path.write_text(schema_text(), "utf-8")
