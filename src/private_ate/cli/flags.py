"""Flags of commands: made from the table of parameters, grouped in help, named in errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from private_ate.errors import PrivateAteError
from private_ate.methods.registry import METHODS
from private_ate.parameters import (
    PARAMETERS,
    REQUIRED,
    SAME,
    Parameter,
    parameter_of,
    parameters_of,
)

_COMMANDS: Final = frozenset({"estimate", "plan"})
# What the command line calls the parameters that errors name: as the table of parameters has it,
# unless more is to be said; a column stands for {}.
_FLAGS: Final = {
    name: " ".join(filter(None, (one.spellings[0], one.metavar)))
    for one in PARAMETERS
    if not _COMMANDS.isdisjoint(one.interfaces.split())
    for name in (one.name, one.name.replace("_", " "), one.name.replace("_", "-"))
} | {
    "covariates": "--covariates A,B",
    "bounds": "--bounds {0}=LO:HI or --categories '{0}=a|b|c', or --domain FILE",
    "outcome bounds": "--outcome-bounds LO HI, --binary-outcome, --event-label LABEL "
    "(of several outcomes: --bounds {0}=LO:HI or {0}=binary), or --domain FILE",
    "method": "--method NAME",
    "estimand": "--estimand NAME",
    "arms": "--arms A,B,C or --treatment-bins LOW EDGE … HIGH, or --domain FILE",
    "labels": "--treated LABEL --control LABEL (or --arms A,B,C), or --domain FILE",
    "rows_per_person": "--rows-per-person N",
    "design": "--design randomized",
    "probability": "--probability P or COLUMN",
    "target": "--target NAME",
    "shares": "--set shares=…",
    "model": "--set model=…",
    "delta": "--set delta=…",
    "limits": "--set limits=…",
    "event": "--time COLUMN --event COLUMN",
    "missing outcomes": "--missing-outcomes public, private or NUMBER",
    "confidence": "--confidence C",
    "mean weight": "--mean-weight M",
    "rows": "--rows N",
    "sep": "--sep ';' (or tab, bar, colon)",
    "decimal": "--decimal , with the --sep of the file",
    "encoding": "--encoding cp1252 (or utf-8, utf-16)",
    "analyst": "--analyst NAME",
    "uncapped": "private-ate ledger bind --others-allowed",
    "ledger": "private-ate ledger create",
    "public": "private-ate ledger bind --public A,B",
    # What is asked of a release that is there: no command does.
    "arm": "",
    "against": "",
    "weights": "",
    "sampling weights": "--weights {0} --bounds {0}=0:W, or --domain FILE",
}
_BINS: Final = "--treatment-bins"
_NUMBER: Final = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_NUMBERS: Final = re.compile(rf"{_NUMBER}(\s*,\s*{_NUMBER})*\s*,?")
# Panels of the commands that read a study, and their parameters, in the order of the table. A
# newcomer needs the first panel alone.
GROUPS: Final = {
    panel: tuple(one.name for one in PARAMETERS if one.group == panel)
    for panel in dict.fromkeys(one.group for one in PARAMETERS if one.group)
}
_PANELS: Final = {name: panel for panel, names in GROUPS.items() for name in names}
_PLACES: Final = {name: place for place, name in enumerate(_PANELS)}


def with_flag(error: PrivateAteError) -> str:
    """Return an error's text and, where a parameter would help, the flag that gives it."""
    flag = _FLAGS.get(error.parameter, "").format(error.column)
    return f"{error}; here: {flag}" if flag else str(error)


def option(one: Parameter) -> Any:  # noqa: ANN401  # typer's own
    """Return a parameter of the table as typer declares an option."""
    words = ["auto", *METHODS] if one.name == "method" else list(one.choices)
    return typer.Option(
        *one.spellings,
        help=one.help.format(methods=", ".join(METHODS)),
        metavar=one.metavar,
        autocompletion=(lambda: words) if words else None,
    )


READING: Final = ("sep", "decimal", "encoding", "header_row", "skip_rows", "sheet")


def takes_flags(
    command: str, only: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command its flags from the table of parameters; what it declares itself stays.

    The command takes them as keywords, under the names of the table; ``only`` leaves out others.
    `READING` says how a file is read, as `described_file` does.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())
        listed = [one for one in own if one.kind is not inspect.Parameter.VAR_KEYWORD]
        named = {one.name for one in listed}
        listed += [
            _keyword(one, command)
            for one in parameters_of(command)
            if one.name not in named and (not only or one.name in only)
        ]
        listed.sort(key=lambda one: one.default is not inspect.Parameter.empty)
        function.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]  # read by typer
        function.__annotations__ = {one.name: one.annotation for one in listed}
        return function

    return decorate


def _keyword(one: Parameter, command: str) -> inspect.Parameter:
    default = one.default_at(command) if one.flag_default is SAME else one.flag_default
    return inspect.Parameter(
        one.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=inspect.Parameter.empty if default is REQUIRED else default,
        annotation=Annotated[one.kind, option(one)],
    )


# Flags of commands that make no estimate.
DataFile = Annotated[
    Path, typer.Argument(help="CSV, Parquet, Stata, SPSS, Excel or R file.", metavar="DATA")
]
Head = Annotated[str | None, option(parameter_of("estimate", "ledger_head"))]
Quiet = Annotated[bool, option(parameter_of("estimate", "quiet"))]


class _PlainSwitches:
    """Shows no type beside a switch, which takes no value; mixed into typer's own classes."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401  # typer's own
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the class beside it
        for each in found:
            if getattr(each, "is_flag", False) and each.metavar is None:
                each.metavar = ""
        return found


class PlainCommand(_PlainSwitches, TyperCommand):
    """A command whose help shows no type beside a switch."""


class PlainGroup(_PlainSwitches, TyperGroup):
    """A group of commands whose own switches show no type."""


class GroupedCommand(PlainCommand):
    """A command whose flags are shown in panels, the flags of a newcomer first."""

    def __init__(self, *args: Any, **known: Any) -> None:  # noqa: ANN401  # typer's own
        super().__init__(*args, **known)
        self.params.sort(key=_place)  # the page of reference follows it

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401  # typer's own
        """Return all parameters, --help among them, each with its panel."""
        found = sorted(super().get_params(ctx), key=_place)
        for each in found:
            if each.param_type_name == "option":
                each.rich_help_panel = _PANELS.get(each.name)
        return found


def _place(parameter: Any) -> int:  # noqa: ANN401  # typer's own
    """Return where help shows a parameter; what belongs to no panel comes first."""
    return _PLACES.get(parameter.name, -1)


class BinsCommand(GroupedCommand):
    """A command whose flag ``--treatment-bins`` takes as many numbers as follow it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # click's own
        """Join the numbers after the flag into one value, and read all arguments as usual."""
        return super().parse_args(ctx, list(_joined(args)))


def _joined(arguments: list[str]) -> Iterator[str]:
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":  # from here on no word is a flag
            yield from (word, *rest)
            return
        if word != _BINS:
            yield word
            continue
        edges = []
        while rest and _NUMBERS.fullmatch(rest[0].strip()):
            edges.append(rest.pop(0).strip().rstrip(","))
        # Joined by a sign, so that an edge below zero is not read as a flag.
        yield f"{_BINS}={','.join(edges)}" if edges else word
