"""Flags that several commands share, so that they read and mean the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from private_ate.errors import PrivateAteError
from private_ate.estimators.registry import known_estimands

__all__ = [
    "Among",
    "Arms",
    "Bounds",
    "By",
    "Categories",
    "Confidence",
    "Control",
    "Covariates",
    "DecimalSign",
    "DomainFile",
    "EncodingName",
    "EstimandName",
    "EventLabel",
    "Head",
    "HeaderRow",
    "IsBinary",
    "LevelName",
    "Means",
    "MissingOutcomes",
    "Neighbors",
    "OutcomeBounds",
    "OutcomeColumn",
    "OutcomeDeviation",
    "Overall",
    "Person",
    "Probability",
    "Quiet",
    "Reference",
    "RowsPerPerson",
    "Separator",
    "Settings",
    "SheetName",
    "ShownContrasts",
    "SkippedRows",
    "TargetName",
    "Treated",
    "TreatmentBins",
    "TreatmentColumn",
    "WeightsColumn",
    "with_flag",
]

# What the command line calls the parameters that errors name; a column stands for {}.
_FLAGS: Final = {
    "treatment": "--treatment T",
    "outcome": "--outcome Y",
    "covariates": "--covariates A,B",
    "bounds": "--bounds {0}=LO:HI or --categories '{0}=a|b|c', or --domain FILE",
    "outcome bounds": "--outcome-bounds LO HI, --binary-outcome, --event-label LABEL "
    "(of several outcomes: --bounds {0}=LO:HI or {0}=binary), or --domain FILE",
    "method": "--method NAME",
    "estimand": "--estimand NAME",
    "among": "--among LABEL",
    "arms": "--arms A,B,C or --treatment-bins LOW EDGE … HIGH, or --domain FILE",
    "labels": "--treated LABEL --control LABEL (or --arms A,B,C), or --domain FILE",
    "reference": "--reference LABEL",
    "by": "--by COLUMN,COLUMN<NUMBER",
    "overall": "--overall",
    "rows_per_person": "--rows-per-person N",
    "person": "--person COLUMN",
    "design": "--design randomized",
    "probability": "--probability P or COLUMN",
    "target": "--target NAME",
    "shares": "--set shares=…",
    "model": "--set model=…",
    "epsilon": "--epsilon E",
    "delta": "--set delta=…",
    "limits": "--set limits=…",
    "leave out undeclared": "--leave-out-undeclared",
    "event label": "--event-label LABEL",
    "missing outcomes": "--missing-outcomes public, private or NUMBER",
    "confidence": "--confidence C",
    "half-width": "--half-width W",
    "arm shares": "--arm-shares P,Q,R",
    "mean weight": "--mean-weight M",
    "rows": "--rows N",
    "sep": "--sep ';' (or tab, bar, colon)",
    "decimal": "--decimal , with the --sep of the file",
    "encoding": "--encoding cp1252 (or utf-8, utf-16)",
    "header row": "--header-row N",
    "sheet": "--sheet NAME",
    "dataset": "--dataset NAME",
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


def with_flag(error: PrivateAteError) -> str:
    """Return an error's text and, where a parameter would help, the flag that gives it."""
    flag = _FLAGS.get(error.parameter, "").format(error.column)
    return f"{error}; here: {flag}" if flag else str(error)


Separator = Annotated[
    str | None,
    typer.Option(
        "--sep", help="What separates the fields of a CSV file: ; | : or tab.", metavar="SIGN"
    ),
]
Head = Annotated[
    str | None,
    typer.Option(
        "--head",
        help="A hash that a release carries; a ledger without that entry is refused.",
        metavar="HASH",
    ),
]
DecimalSign = Annotated[
    str | None,
    typer.Option("--decimal", help="What decimals of a CSV file follow: . or ,", metavar="SIGN"),
]
EncodingName = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        help="Encoding of a CSV file: utf-8, cp1252 or utf-16; default: by its byte order mark, "
        "else utf-8.",
        metavar="NAME",
    ),
]
HeaderRow = Annotated[
    int | None,
    typer.Option(help="Line of a CSV file, or row of a sheet, that is the header.", metavar="N"),
]
SkippedRows = Annotated[
    int | None,
    typer.Option("--skip-rows", help="Lines or rows before the header.", metavar="N"),
]
SheetName = Annotated[
    str | None,
    typer.Option(
        "--sheet",
        help="Sheet of an Excel file by name or number; default: the first.",
        metavar="NAME",
    ),
]
LevelName = Annotated[
    str,
    typer.Option(
        help="What is private: label (outcomes) or sample (all).",
        metavar="LEVEL",
        autocompletion=lambda: ["label", "sample"],
    ),
]
TreatmentColumn = Annotated[str | None, typer.Option(help="Treatment column.", metavar="T")]
WeightsColumn = Annotated[
    str | None,
    typer.Option(help="Sampling weights; their bound: --bounds COLUMN=0:W.", metavar="COLUMN"),
]
OutcomeColumn = Annotated[
    list[str] | None,
    typer.Option(
        help="Outcome column; repeat it for several, the headline first.",
        metavar="Y",
        callback=lambda names: list(dict.fromkeys(names)) if names else names,
    ),
]
Covariates = Annotated[
    str | None,
    typer.Option(help="Covariates: a,b,c or the word all; default: the domain's.", metavar="NAMES"),
]
DomainFile = Annotated[
    Path | None, typer.Option(help="TOML file with declared bounds.", metavar="FILE")
]
OutcomeBounds = Annotated[
    tuple[float, float] | None,
    typer.Option(help="Declared bounds of the outcome.", metavar="LO HI"),
]
OutcomeDeviation = Annotated[
    list[str] | None,
    typer.Option(
        "--outcome-sd",
        help="Standard deviation of the outcome within an arm; of several: Y=SD for each.",
        metavar="SD",
    ),
]
IsBinary = Annotated[
    bool, typer.Option("--binary-outcome", help="Declare the outcome to be 0 or 1.")
]
EventLabel = Annotated[
    str | None,
    typer.Option(
        help="Label that counts as 1 of an outcome of labels, such as yes; any other as 0.",
        metavar="LABEL",
    ),
]
MissingOutcomes = Annotated[
    str | None,
    typer.Option(
        help="Rows without an outcome: public, private (left out), or what they count as.",
        metavar="RULE",
    ),
]
Bounds = Annotated[
    list[str] | None,
    typer.Option(help="Declared bounds, or COL=binary.", metavar="COL=LO:HI"),
]
Categories = Annotated[list[str] | None, typer.Option(help="Declared labels.", metavar="COL=a|b|c")]
Treated = Annotated[str | None, typer.Option(help="Label of treated units.", metavar="LABEL")]
Control = Annotated[str | None, typer.Option(help="Label of control units.", metavar="LABEL")]
Arms = Annotated[
    str | None,
    typer.Option(help="Labels of all arms, in place of treated and control.", metavar="A,B,C"),
]
Reference = Annotated[
    str | None,
    typer.Option(help="The arm that others are compared with; default: the first.",
                 metavar="LABEL"),
]  # fmt: skip
TreatmentBins = Annotated[
    str | None,
    typer.Option(help="Edges of a dose's bins, such as 0 1 6 100.", metavar="LOW EDGE … HIGH"),
]
TargetName = Annotated[str, typer.Option(help="balance or track (label level).")]
Neighbors = Annotated[int, typer.Option(help="Neighbours a unit is matched to.")]
EstimandName = Annotated[str, typer.Option(help=f"{', '.join(known_estimands())}.")]
Among = Annotated[
    str | None,
    typer.Option(help="Effects among the units of this arm; default: all.", metavar="LABEL"),
]
By = Annotated[
    str | None,
    typer.Option(
        help="Effects in subgroups, such as sex,age<65.",
        metavar="COLUMN,COLUMN<NUMBER",
    ),
]
Overall = Annotated[
    bool, typer.Option("--overall", help="With --by: half of ε for the effect of all units.")
]
ShownContrasts = Annotated[
    str,
    typer.Option(
        "--contrasts",
        help="Of several arms: show all pairs, or those with the reference alone.",
        metavar="all|reference",
    ),
]
Probability = Annotated[
    str | None,
    typer.Option(
        help="Of a trial: the probability of treatment, or the column that holds it.",
        metavar="P|COLUMN",
    ),
]
DesignName = Annotated[str, typer.Option(help="unknown, observational or randomized.")]
Confidence = Annotated[str, typer.Option(help="Coverage of intervals, or none to save their ε.")]
Person = Annotated[
    str | None,
    typer.Option(
        "--person", help="Public column of ids; counts the rows of a person.", metavar="COLUMN"
    ),
]
RowsPerPerson = Annotated[int, typer.Option(help="Rows one person may have.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no warnings on standard error.")
]
Means = Annotated[
    bool,
    typer.Option(
        "--means",
        help="Release both arms' means: of a binary outcome risk and odds ratios follow.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="A method's own option; an unknown one lists them.", metavar="OPTION=VALUE"
    ),
]
