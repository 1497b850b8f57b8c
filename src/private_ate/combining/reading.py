"""Frozen values back from JSON, checked against the types of their fields."""

from __future__ import annotations

import json
import sys
from dataclasses import fields, is_dataclass
from fractions import Fraction
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from private_ate.errors import ArgumentError
from private_ate.privacy.budget import parse_epsilon

__all__ = ["read_value"]

Value = TypeVar("Value")


def read_value(kind: type[Value], text: str, name: str) -> Value:
    """Read a frozen dataclass from one JSON object; anything else is refused by its ``name``."""
    try:
        plain = json.loads(text)
    except (ValueError, TypeError, RecursionError) as cause:
        msg = f"this is not {name} in JSON"
        raise ArgumentError(msg) from cause
    try:
        return cast("Value", _read(kind, plain, "it"))
    except _WrongShapeError as cause:
        msg = f"this is not {name} in JSON: {cause}"
        raise ArgumentError(msg) from None


class _WrongShapeError(Exception):
    """A part of the text does not have the type of its field."""


def _read(kind: Any, plain: object, place: str) -> object:  # noqa: ANN401  # a type or a union
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        wanted = next(one for one in arguments if one is not NoneType)
        return None if plain is None else _read(wanted, plain, place)
    if origin is Literal:
        return _require(plain, place, any(_same(plain, one) for one in arguments))
    if origin is tuple:
        return _read_tuple(arguments, plain, place)
    if is_dataclass(kind):
        return _read_fields(kind, plain, place)
    if kind in (Fraction, float):
        number = cast("float", _require(plain, place, _is_number(plain)))
        return parse_epsilon(number) if kind is Fraction else float(number)
    return _require(plain, place, type(plain) is kind)


def _read_tuple(arguments: tuple[Any, ...], plain: object, place: str) -> tuple[object, ...]:
    listed = _require(plain, place, isinstance(plain, list))
    held = cast("list[object]", listed)
    if arguments[-1] is not Ellipsis:
        _require(plain, place, len(held) == len(arguments))
    return tuple(_read(arguments[0], one, place) for one in held)


def _read_fields(kind: Any, plain: object, place: str) -> object:  # noqa: ANN401  # a dataclass
    names = [item.name for item in fields(kind)]
    _require(plain, place, isinstance(plain, dict) and plain.keys() == set(names))
    held, hints = cast("dict[str, object]", plain), get_type_hints(kind)
    return kind(**{name: _read(hints[name], held[name], name) for name in names})


def _require(plain: object, place: str, claim: object) -> object:
    if not claim:
        msg = f"{place} does not hold what it should"
        raise _WrongShapeError(msg)
    return plain


def _same(plain: object, word: object) -> bool:
    return type(plain) is type(word) and plain == word


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # False for NaN too
