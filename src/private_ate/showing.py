"""Values that leave show themselves by functions that stand above them and load when asked."""

from __future__ import annotations

from importlib import import_module
from typing import Final, TypeVar

__all__ = ["show"]

Shown = TypeVar("Shown")

# By the name of a value's class and a form: the function, relative to `private_ate`. A value knows
# this table and nothing of what shows it, so that imports go one way.
_FUNCTIONS: Final = {
    ("Release", "text"): "report.text:summarize",
    ("Release", "page"): "report.html:release_page",
    ("Release", "card"): "report.html:release_card",
    ("Release", "frame"): "report.to_polars:effects_frame",
    ("Release", "markdown"): "report.tables:markdown_table",
    ("Release", "latex"): "report.tables:latex_table",
    ("Release", "csv"): "report.tables:csv_table",
    ("Release", "word"): "report.tables:word_table",
    ("Diagnostics", "page"): "report.curator:curator_page",
    ("Diagnostics", "card"): "report.curator:diagnostics_card",
    ("ArmDiagnostics", "page"): "report.curator:curator_page",
    ("ArmDiagnostics", "card"): "report.curator:diagnostics_card",
    ("Combined", "text"): "report.combined:combined_text",
    ("Combined", "page"): "report.combined:combined_page",
    ("Combined", "card"): "report.combined:combined_card",
    ("Combined", "frame"): "report.to_polars:combined_frame",
    ("Plan", "text"): "report.plans:plan_text",
    ("Plan", "card"): "report.plans:plan_card",
    ("DataCheck", "text"): "checking.rendering:check_text",
    ("DataCheck", "page"): "checking.rendering:check_page",
}


def show(
    value: object, form: str, kind: type[Shown], /, *arguments: object, **options: object
) -> Shown:
    """Return a value in one of its forms, which is of type ``kind``; load what writes it."""
    module, _, name = _FUNCTIONS[type(value).__name__, form].partition(":")
    function = getattr(import_module(f"private_ate.{module}"), name)
    shown = function(value, *arguments, **options)
    if not isinstance(shown, kind):
        msg = f"{name} returns {type(shown).__name__}, not {kind.__name__}"
        raise TypeError(msg)
    return shown
