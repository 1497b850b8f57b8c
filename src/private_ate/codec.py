"""Frozen dataclasses to JSON and back, by the type hints of their fields.

A field that may be left out of the JSON has the default ``ABSENT``, or ``OMITTED`` in its metadata;
``stored_as`` declares other keys than its name, the first of which is written; a :class:`Rule` in
``Annotated`` says what a value must be beyond its type. Numbers are finite in both directions.
"""

from __future__ import annotations

import enum
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from fractions import Fraction
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    NoReturn,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from private_ate.errors import ArgumentError

__all__ = [
    "ABSENT",
    "DECIMAL",
    "EXACT",
    "LARGEST",
    "NOT_NEGATIVE",
    "OMITTED",
    "POSITIVE",
    "Absent",
    "Rule",
    "at_least",
    "decode",
    "decode_known",
    "encode",
    "entries",
    "read_json",
    "stored_as",
    "write_json",
]

Value = TypeVar("Value")


class Absent(enum.Enum):
    """The one value of a field that is not written at all; None is written as null."""

    ABSENT = enum.auto()


ABSENT: Final = Absent.ABSENT
# Controls of C0 and C1, ends of lines and paragraphs, halves of characters, and what changes the
# direction of a text (Unicode's Bidi_Control).
_UNSHOWN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
LARGEST: Final = 1e150  # as for the bounds of a domain: a larger number has no finite square
_DIGITS: Final = 150
# Metadata of a field that is not written where it is its default.
OMITTED: Final = {"omitted": True}
DECIMAL: Final = "decimal"  # in Annotated: a number is read as its shortest decimal text
EXACT: Final = "exact"  # in Annotated: entries of another shape are never left out of this value


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value must be beyond its type, and the words for it."""

    words: str
    holds: Callable[[Any], bool]


POSITIVE: Final = Rule("above zero", lambda number: number > 0)
NOT_NEGATIVE: Final = Rule("zero or above", lambda number: number >= 0)


def at_least(count: int) -> Rule:
    """Return the rule for a list or an object of that many entries or more."""
    return Rule(f"of {count} entries or more", lambda entries: len(entries) >= count)


def stored_as(*keys: str) -> dict[str, Any]:
    """Return the metadata of a field whose key in JSON is the first of these, or was another."""
    return {"keys": keys}


def encode(value: object) -> Any:  # noqa: ANN401  # whatever JSON knows
    """Return a value as plain ones that JSON knows; fractions become their nearest numbers."""
    if is_dataclass(value):
        return {
            _keys(item)[0]: encode(held)
            for item in fields(value)
            if item.init and _is_written(item, held := getattr(value, item.name))
        }
    if isinstance(value, Mapping):
        return {name: encode(held) for name, held in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return [encode(held) for held in (sorted(value) if isinstance(value, frozenset) else value)]
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, str | bool | int | float | NoneType):
        return value
    return cast("Any", value).item()  # a scalar of numpy


def _is_written(item: Field[Any], held: object) -> bool:
    if "omitted" not in item.metadata:
        return held is not ABSENT
    usual = item.default if item.default_factory is MISSING else item.default_factory()
    return held != usual


def entries(plain: object) -> Mapping[str, Any] | None:
    """Return the entries of an object, plain or a dataclass, by key; None for anything else."""
    if is_dataclass(plain) and not isinstance(plain, type):
        named = ((_keys(item)[0], getattr(plain, item.name)) for item in fields(plain))
        return {key: value for key, value in named if value is not ABSENT}
    if isinstance(plain, Mapping) and all(isinstance(key, str) for key in plain):
        return plain
    return None


def write_json(value: object) -> str:
    """Return plain values as indented JSON; a number that is not finite is an error."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def read_json(text: str, what: str) -> object:
    """Parse JSON; infinities, NaN, numbers beyond any domain and what is no JSON are refused.

    Whoever saved it chose its texts, and they are shown in terminals and tables: characters that
    move the cursor, end a line or turn the direction of reading are replaced.
    """
    try:
        return _shown(
            json.loads(
                text,
                parse_float=_finite,
                parse_int=_whole,
                parse_constant=_finite,
                object_pairs_hook=_object,
            )
        )
    except (ValueError, TypeError, RecursionError) as cause:
        msg = f"this is not {what} in JSON"
        raise ArgumentError(msg) from cause


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; with a key that it has twice, readers would not agree on what it says."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _shown(plain: Any) -> Any:  # noqa: ANN401  # whatever JSON knows
    if isinstance(plain, str):
        return plain if plain.isprintable() else _UNSHOWN.sub("\ufffd", plain)
    if isinstance(plain, list):
        return [_shown(held) for held in plain]
    if isinstance(plain, dict):
        return {_shown(name): _shown(held) for name, held in plain.items()}
    return plain


def decode(kind: type[Value], plain: object, what: str, form: str = "JSON") -> Value:
    """Return plain values as a dataclass; an error names the key that does not fit ``what``."""
    try:
        return cast("Value", _STRICT.read(kind, plain, "it"))
    except _Mismatch as found:
        msg = f"this is not {what} in {form}: {found}"
        raise ArgumentError(msg) from None


def decode_known(kind: type[Value], plain: object) -> Value:
    """Return what a dataclass knows of plain or typed values, and its defaults for the rest.

    Keys that it does not know and entries of another shape are left out, so that values of other
    versions and methods can be read. Every field of ``kind`` has a default.
    """
    return cast("Value", _Reader(strict=False).fields(kind, entries(plain) or {}, "it"))


class _Mismatch(Exception):  # noqa: N818  # never leaves this module
    """A part of the plain values does not have the type of its field."""

    def __init__(self, place: str, words: str) -> None:
        super().__init__(f"{place} {words}")


class _Part(NamedTuple):
    """A field of a dataclass as JSON holds it."""

    name: str
    keys: tuple[str, ...]
    kind: Any
    is_required: bool


@cache
def _parts(kind: Any) -> tuple[_Part, ...]:  # noqa: ANN401  # a dataclass
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        _Part(
            item.name,
            _keys(item),
            hints[item.name],
            item.default is MISSING and item.default_factory is MISSING,
        )
        for item in fields(kind)
        if item.init
    )


def _keys(item: Field[Any]) -> tuple[str, ...]:
    return cast("tuple[str, ...]", item.metadata.get("keys", (item.name,)))


_WORDS: Final[dict[type, str]] = {
    str: "is not a text",
    bool: "is not true or false",
    int: "is not a whole number",
}


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads plain values by types; one that is not strict leaves out what does not fit."""

    strict: bool

    def read(self, kind: Any, plain: object, place: str) -> Any:  # noqa: ANN401, PLR0911  # an answer per kind of type
        """Return a value of a type; ``place`` says where it stands."""
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._annotated(arguments, plain, place)
        if origin in (Union, UnionType):
            return self._union(arguments, plain, place)
        if origin is Literal:
            fits = any(type(plain) is type(word) and plain == word for word in arguments)
            return plain if fits else _refuse(place, f"is not {' or '.join(map(str, arguments))}")
        if origin is tuple:
            return tuple(self._items(arguments, plain, place))
        if origin is frozenset:
            return frozenset(self._items((arguments[0], ...), plain, place))
        if origin is Mapping:
            return dict(self._entries(arguments[1], plain, place))
        if is_dataclass(kind):
            return (
                plain if isinstance(plain, cast("type", kind)) else self.fields(kind, plain, place)
            )
        if kind in (float, Fraction):
            number = plain if _is_number(plain) else _refuse(place, "is not a number")
            return Fraction(str(number)) if kind is Fraction else number
        fits = kind is Any or (type(plain) is kind and (kind is not int or _is_number(plain)))
        return plain if fits else _refuse(place, _WORDS[kind])

    def fields(self, kind: Any, plain: object, place: str) -> object:  # noqa: ANN401  # a dataclass
        """Return a dataclass from the entries of an object."""
        held = entries(plain)
        if held is None:
            return _refuse(place, "is not an object")
        found: dict[str, Any] = {}
        for part in _parts(kind):
            where = part.keys[0] if place == "it" else f"{place}.{part.keys[0]}"
            given = [key for key in part.keys if key in held]
            if part.is_required and not given:
                _refuse(where, "is missing")
            for key in given:
                try:
                    found[part.name] = self.read(part.kind, held[key], where)
                    break
                except _Mismatch:
                    if self.strict or part.is_required:
                        raise
        known = {key for part in _parts(kind) for key in part.keys}
        unknown = next((key for key in held if key not in known), None)
        if self.strict and unknown is not None:
            _refuse(place, f"has no key {_short(unknown)}")
        return kind(**found)

    def _annotated(self, arguments: tuple[Any, ...], plain: object, place: str) -> object:
        kind, *marks = arguments
        if DECIMAL in marks and _is_number(plain):
            plain = str(plain)
        value = (_STRICT if EXACT in marks else self).read(kind, plain, place)
        for mark in marks:
            if isinstance(mark, Rule) and not mark.holds(value):
                _refuse(place, f"is not {mark.words}")
        return value

    def _union(self, kinds: tuple[Any, ...], plain: object, place: str) -> object:
        """Return the value as the first of the types that it fits; the last says why none does."""
        if plain is None and NoneType in kinds:
            return None
        wanted = [kind for kind in kinds if kind not in (NoneType, Absent, Fraction)] or [Fraction]
        for kind in wanted[:-1]:
            try:
                return self.read(kind, plain, place)
            except _Mismatch:
                continue
        return self.read(wanted[-1], plain, place)

    def _items(self, kinds: tuple[Any, ...], plain: object, place: str) -> Iterator[object]:
        if not isinstance(plain, list | tuple):
            _refuse(place, "is not a list")
        is_open = kinds[-1] is Ellipsis
        if not is_open and len(plain) != len(kinds):
            _refuse(place, f"is not a list of {len(kinds)}")
        for number, one in enumerate(plain):
            try:
                yield self.read(kinds[0] if is_open else kinds[number], one, f"{place}[{number}]")
            except _Mismatch:
                if self.strict or not is_open:
                    raise

    def _entries(self, kind: object, plain: object, place: str) -> Iterator[tuple[str, object]]:
        held = entries(plain)
        if held is None:
            _refuse(place, "is not an object")
        for name, one in held.items():
            try:
                yield name, self.read(kind, one, f"{place}.{_short(name)}")
            except _Mismatch:
                if self.strict:
                    raise


_STRICT: Final = _Reader(strict=True)


def _refuse(place: str, words: str) -> NoReturn:
    raise _Mismatch(place, words)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # False for NaN too


def _finite(text: str) -> float:
    number = float(text)
    if not abs(number) <= LARGEST:
        raise ValueError(text)
    return number


def _whole(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError(text)
    return int(text)


def _short(name: str) -> str:
    """Return a key as an error shows it: it may come from anybody's file."""
    return repr(name[:40])
