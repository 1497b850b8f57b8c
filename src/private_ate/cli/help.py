"""Help in groups: which panel shows a flag, and no type beside a switch."""

from __future__ import annotations

from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

from private_ate.parameters import PARAMETERS

__all__ = ["GROUPS", "GroupedCommand", "PlainCommand", "PlainGroup"]

# Panels of the commands that read a study, and their parameters, in the order of the table. A
# newcomer needs the first panel alone.
GROUPS: Final = {
    panel: tuple(one.name for one in PARAMETERS if one.group == panel)
    for panel in dict.fromkeys(one.group for one in PARAMETERS if one.group)
}
_PANELS: Final = {name: panel for panel, names in GROUPS.items() for name in names}
_PLACES: Final = {name: place for place, name in enumerate(_PANELS)}


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
