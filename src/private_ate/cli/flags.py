"""Flags that several commands share, so that they read and mean the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Bounds",
    "Categories",
    "Confidence",
    "Control",
    "Covariates",
    "DomainFile",
    "EstimandName",
    "IsBinary",
    "LevelName",
    "Neighbors",
    "OutcomeBounds",
    "OutcomeColumn",
    "RowsPerPerson",
    "Settings",
    "TargetName",
    "Treated",
    "TreatmentColumn",
]

LevelName = Annotated[
    str,
    typer.Option(help="What is private: label (outcomes) or sample (all).", metavar="LEVEL"),
]
TreatmentColumn = Annotated[str | None, typer.Option(help="Treatment column.", metavar="T")]
OutcomeColumn = Annotated[str | None, typer.Option(help="Outcome column.", metavar="Y")]
Covariates = Annotated[
    str | None, typer.Option(help="Covariates, separated by commas; default: all others.")
]
DomainFile = Annotated[
    Path | None, typer.Option(help="TOML file with declared bounds.", metavar="FILE")
]
OutcomeBounds = Annotated[
    tuple[float, float] | None,
    typer.Option(help="Declared bounds of the outcome.", metavar="LO HI"),
]
IsBinary = Annotated[
    bool, typer.Option("--binary-outcome", help="Declare the outcome to be 0 or 1.")
]
Bounds = Annotated[list[str] | None, typer.Option(help="Declared bounds.", metavar="COL=LO:HI")]
Categories = Annotated[list[str] | None, typer.Option(help="Declared labels.", metavar="COL=a|b|c")]
Treated = Annotated[str | None, typer.Option(help="Label of treated units.")]
Control = Annotated[str | None, typer.Option(help="Label of control units.")]
TargetName = Annotated[str, typer.Option(help="balance or track (label level).")]
Neighbors = Annotated[int, typer.Option(help="Neighbours a unit is matched to.")]
EstimandName = Annotated[str, typer.Option(help="ate, att, atc or ato.")]
Confidence = Annotated[str, typer.Option(help="Coverage of intervals, or none to save their ε.")]
RowsPerPerson = Annotated[int, typer.Option(help="Rows one person may have.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A method's own option.", metavar="OPTION=VALUE"),
]
