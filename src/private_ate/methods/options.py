"""Options of a method from texts, from values of a JSON object, and with a guessed deviation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final, TypeVar, cast, get_args

from private_ate.arguments import one_of, shown
from private_ate.domain import Domain
from private_ate.errors import ArgumentError
from private_ate.methods.registry import Method, method_named
from private_ate.privacy.levels import Level
from private_ate.request import Request

__all__ = ["options_from_texts", "options_from_values", "with_deviations", "with_outcome_sd"]

Options = TypeVar("Options")
_LONGEST: Final = 400  # characters of a text, entries of a list


def options_from_texts(method: str, level: str, texts: Mapping[str, str]) -> object:
    """Build a method's options from texts, as the command line gives them."""
    return _options(method, level, {name: _read(text) for name, text in texts.items()})


def options_from_values(method: str, level: str, values: object) -> object:
    """Build a method's options from plain values, as JSON gives them; lists are one deep."""
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        msg = f"options are names with values, not {shown(values)}"
        raise ArgumentError(msg)
    return _options(method, level, {name: _plain(name, value) for name, value in values.items()})


def with_deviations(
    request: Request,
    outcome_sd: float | Mapping[str, float] | None,
    domain: Domain | None,
    method: Method,
) -> Request:
    """Return the request with guessed deviations: of one outcome a number, of several by column."""
    if outcome_sd is None:
        return request
    chosen = method.options() if request.options is None else request.options
    if not isinstance(outcome_sd, Mapping):
        return replace(request, options=with_outcome_sd(chosen, outcome_sd))
    if domain is None or not domain.further:
        column = "" if domain is None else domain.outcome.column
        if list(outcome_sd) != [column]:
            msg = "of one outcome the standard deviation is a number, not a mapping from columns"
            raise ArgumentError(msg, parameter="outcome")
        return replace(request, options=with_outcome_sd(chosen, outcome_sd[column]))
    return replace(request, spreads=tuple(outcome_sd.items()))


def with_outcome_sd(options: Options, outcome_sd: float | None) -> Options:
    """Return a method's options with the guessed spread of the outcome among them."""
    if outcome_sd is None:
        return options
    if "outcome_sd" not in {field.name for field in fields(cast("Any", options))}:
        msg = (
            "the guessed standard deviation of the outcome is of no use to this method: "
            f"{type(options).__name__} has no outcome_sd; leave it out"
        )
        raise ArgumentError(msg)
    known = cast("Any", options).outcome_sd
    if known is not None and known != outcome_sd:
        msg = f"the outcome's standard deviation is given twice: {known:g} and {outcome_sd:g}"
        raise ArgumentError(msg)
    return cast("Options", replace(cast("Any", options), outcome_sd=outcome_sd))


def _options(method: str, level: str, values: Mapping[str, object]) -> object:
    one_of("level", level, get_args(Level))
    chosen = method_named(method, cast("Level", level))
    known = [item.name for item in fields(chosen.options)]
    unknown = next((name for name in values if name not in known), None)
    if unknown is not None:
        msg = f"method {chosen.name!r} has no option {shown(unknown)}; it has {', '.join(known)}"
        raise ArgumentError(msg)
    return chosen.options(**values)


def _plain(name: str, value: object) -> object:
    """Return a plain value, or a list of such as a tuple; refuse anything else."""
    if isinstance(value, list | tuple) and len(value) <= _LONGEST:
        return tuple(_single(name, entry) for entry in value)
    return _single(name, value)


def _single(name: str, value: object) -> object:
    short = not isinstance(value, str) or len(value) <= _LONGEST
    if not isinstance(value, str | bool | int | float | None) or not short:
        msg = f"option {shown(name)} is a number, a text, true, false or null, or a list of them"
        raise ArgumentError(msg)
    return value


def _read(text: str) -> object:
    """Read an option: none, true, false, a number, a list with commas, or a text."""
    word = text.strip()
    plain: dict[str, object] = {"none": None, "true": True, "false": False}
    if word.lower() in plain:
        return plain[word.lower()]
    if "," in word:
        return tuple(part.strip() for part in word.split(","))
    for read in (int, float):
        try:
            return read(word)
        except ValueError:
            continue
    return word
