"""One table of parameters: names, meanings, defaults, and which interfaces have it.

An interface is a function (`estimate_ate`, `plan_ate`, `check_data`), a command, the scikit-learn
and DoWhy classes, the service's question or the function of R. Commands are made from the table,
and `Request` checks by it; tests/meta/test_parameters.py holds the others equal to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from private_ate.arguments import (
    one_of,
    parse_memory,
    read_confidence,
    read_covariates,
    read_deviations,
    read_list,
    read_names,
    read_probability,
    read_shares,
    read_subgroups,
    real_number,
    truth_value,
    whole_number,
)
from private_ate.privacy.levels import Level

__all__ = [
    "PARAMETERS",
    "Bounds",
    "Design",
    "Estimand",
    "Parameter",
    "SurvivalQuantity",
    "Target",
    "checked",
    "keywords_of",
    "parameter_of",
    "parameters_of",
    "shared",
]  # fmt: skip

Estimand = Literal["ate", "att", "atc", "ato"]
Target = Literal["balance", "track"]
Design = Literal["unknown", "observational", "randomized"]
Bounds = Literal["declared", "from-data"]
SurvivalQuantity = Literal["rmst", "risk"]
Check = Callable[[str, object], object]

REQUIRED: Final = ...
SAME: Final = object()  # a flag's default is that of the functions
# Interfaces that many parameters share.
_ALL: Final = "estimate_ate plan_ate check_data estimate plan check"
_ASKED: Final = "estimate_ate plan_ate estimate plan service ask r"
_COLUMNS: Final = "estimate plan check"
_FILES: Final = "estimate plan check domain"
_CHARGED: Final = "estimate_ate estimate sklearn dowhy r"
_DECLARED: Final = ("treatment", "outcome", "domain", "weights")
_BEGIN, _QUESTION, _DATA = "To begin with", "What is asked", "Data"
_BUDGET, _OUTPUT, _EXPERT = "Privacy and budget", "Output", "For experts"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    Attributes
    ----------
    name : str
        Its name in every interface that has it.
    interfaces : str
        Those interfaces, separated by spaces.
    help : str
        One sentence, as ``--help`` and the page of reference have it.
    group : str
        The panel of ``--help``.
    default : object
        In functions and classes; REQUIRED if there is none.
    kind : type
        What the command line reads.
    metavar : str
        What stands for the value there.
    flag : str
        Its spellings, if they do not follow from the name.
    flag_default : object
        The default there, if it is written in another way.
    read : callable or None
        Makes the functions' value of what the command line read.
    check : callable or None
        Refuses what is no value, as ``check(name, value)``, and returns what is kept.
    choices : tuple of str
        Words that a shell completes.
    defaults : mapping
        Defaults of single interfaces.
    """

    name: str
    interfaces: str
    help: str = ""
    group: str = ""
    default: object = None
    kind: Any = str | None
    metavar: str | None = None
    flag: str = ""
    flag_default: object = SAME
    read: Callable[[Any], object] | None = None
    check: Check | None = None
    choices: tuple[str, ...] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)

    @property
    def spellings(self) -> list[str]:
        """How the command line writes it."""
        return (self.flag or f"--{self.name.replace('_', '-')}").split()

    def default_at(self, interface: str) -> object:
        """Return the default of an interface."""
        return self.defaults.get(interface, self.default)


def _choice(words: tuple[str, ...]) -> Check:
    def check(name: str, value: object) -> object:
        one_of(name, value, words)
        return value

    return check


def _whole(low: int, high: int) -> Check:
    return lambda name, value: whole_number(name, value, low, high)


def _coverage(name: str, value: object) -> object:
    if value is None:
        return None
    return real_number(f"{name} (None for no interval)", value, 0.5, 0.9999)


def _seed(name: str, value: object) -> object:
    return None if value is None else whole_number(f"a {name}", value, 0)


PARAMETERS: Final = (
    Parameter("treatment", _ALL, "Treatment column.", _BEGIN, metavar="T"),
    Parameter("treated", f"{_FILES} r", "Label of treated units.", _BEGIN, metavar="LABEL"),
    Parameter("control", f"{_FILES} r", "Label of control units.", _BEGIN, metavar="LABEL"),
    Parameter("outcome", _ALL, "Outcome column; repeat it for several, the headline first.",
              _BEGIN, kind=list[str] | None, metavar="Y"),
    Parameter("outcome_bounds", f"{_COLUMNS} sklearn r", "Declared bounds of the outcome.", _BEGIN,
              kind=tuple[float, float] | None, metavar="LO HI"),
    Parameter("covariates", f"{_ALL} service ask",
              "Covariates: a,b,c or the word all; default: the domain's.", _BEGIN,
              metavar="NAMES", read=read_covariates),
    Parameter("domain", f"{_ALL} dowhy r", "TOML file with declared bounds.", _BEGIN,
              kind=Path | None, metavar="FILE", defaults={"dowhy": REQUIRED}),
    Parameter("level", f"{_ALL} sklearn dowhy r",
              "What is private: label (outcomes) or sample (all).", _BEGIN, REQUIRED, str, "LEVEL",
              check=_choice(get_args(Level)), choices=get_args(Level),
              defaults={"check_data": None, "check": None, "sklearn": "sample"}),
    Parameter("epsilon", "estimate_ate estimate sklearn dowhy service ask r",
              "Privacy budget, e.g. 1.0.", _BEGIN, REQUIRED, str, "E",
              defaults={"sklearn": "1.0"}),
    Parameter("epsilons", "plan_ate plan", "Budgets to compare, separated by commas.", _QUESTION,
              ("0.1", "0.2", "0.5", "1", "2", "4", "8"), str,
              flag_default="0.1,0.2,0.5,1,2,4,8", read=read_names),
    Parameter("half_width", "plan_ate plan ask", "Find what reaches this half-width.", _QUESTION,
              kind=float | None, metavar="W"),
    Parameter("solve", "plan_ate plan", "Find epsilon or rows; without --rows and DATA: rows.",
              _QUESTION, metavar="WHAT"),
    Parameter("estimand", f"{_ASKED} dowhy", f"{', '.join(get_args(Estimand))}.", _QUESTION, "ate",
              str, check=_choice(get_args(Estimand))),
    Parameter("among", f"{_ASKED} sklearn dowhy",
              "Effects among the units of this arm; default: all.", _QUESTION, metavar="LABEL"),
    Parameter("arms", f"{_FILES} sklearn r", "Labels of all arms, in place of treated and control.",
              _QUESTION, metavar="A,B,C"),
    Parameter("reference", f"{_FILES} sklearn r",
              "The arm that others are compared with; default: the first.", _QUESTION,
              metavar="LABEL"),
    Parameter("treatment_bins", f"{_FILES} r", "Edges of a dose's bins, such as 0 1 6 100.",
              _QUESTION, metavar="LOW EDGE … HIGH"),
    Parameter("by", f"{_ASKED} check_data check sklearn dowhy",
              "Effects in subgroups, such as sex,age<65.", _QUESTION, (),
              metavar="COLUMN,COLUMN<NUMBER", flag_default=None,
              read=read_list, check=read_subgroups, defaults={"sklearn": None, "r": None}),
    Parameter("overall", f"{_ASKED} sklearn dowhy",
              "With --by: half of ε for the effect of all units.", _QUESTION, False, bool,
              check=truth_value),
    Parameter("design", f"{_ASKED} sklearn dowhy", "unknown, observational or randomized.",
              _QUESTION, "unknown", str, check=_choice(get_args(Design)), defaults={"r": None}),
    Parameter("probability", _ASKED,
              "Of a trial: the probability of treatment, or the column that holds it.", _QUESTION,
              metavar="P|COLUMN", read=read_probability),
    Parameter("confidence", f"{_ASKED} sklearn dowhy",
              "Coverage of intervals, or none to save their ε.", _QUESTION, 0.95, str,
              flag_default="0.95", read=read_confidence, check=_coverage),
    Parameter("means", "estimate plan r",
              "Release both arms' means: of a binary outcome risk and odds ratios follow.",
              _QUESTION, False, bool),
    Parameter("quantity", "estimate_ate plan_ate estimate plan r",
              "Of survival: rmst (mean time up to the horizon) or risk (by the horizon).",
              _QUESTION, "rmst", str, check=_choice(get_args(SurvivalQuantity)),
              defaults={"r": None}),
    Parameter("method", "estimate_ate estimate sklearn dowhy service ask r", "auto, {methods}.",
              _QUESTION, "auto", str, "METHOD"),
    Parameter("binary_outcome", f"{_COLUMNS} r", "Declare the outcome to be 0 or 1.", _DATA, False,
              bool, defaults={"r": None}),
    Parameter("event_label", "estimate plan check domain r",
              "Label that counts as 1 of an outcome of labels, such as yes; any other as 0. Of "
              "survival: the label of an event.",
              _DATA, metavar="LABEL"),
    Parameter("time", f"{_COLUMNS} domain",
              "Column of follow-up times, in place of --outcome.", _DATA,
              metavar="COLUMN"),
    Parameter("event", f"{_COLUMNS} domain",
              "Column that says whether a time ended in an event.", _DATA,
              metavar="COLUMN"),
    Parameter("horizon", f"{_COLUMNS} domain r",
              "Time up to which survival is compared, from the protocol.", _DATA,
              kind=float | None, metavar="TIME"),
    Parameter("bins", f"{_COLUMNS} r", "Bins of survival curves; default: by n and ε.", _DATA,
              kind=int | None, metavar="J"),
    Parameter("censoring_by", f"{_COLUMNS} r",
              "Label level: strata with censoring curves of their own, such as centre or age<65.",
              _DATA, metavar="COLUMN"),
    Parameter("missing_outcomes", "estimate check r",
              "Rows without an outcome: public, private (left out), or what they count as.", _DATA,
              metavar="RULE"),
    Parameter("bounds", f"{_COLUMNS} r", "Declared bounds, or COL=binary.", _DATA,
              kind=list[str] | None, metavar="COL=LO:HI"),
    Parameter("categories", f"{_COLUMNS} r", "Declared labels.", _DATA, kind=list[str] | None,
              metavar="COL=a|b|c"),
    Parameter("weights", "estimate_ate plan_ate estimate plan r",
              "Sampling weights; their bound: --bounds COLUMN=0:W.", _DATA, metavar="COLUMN"),
    Parameter("person", f"{_ALL} dowhy r", "Public column of ids; counts the rows of a person.",
              _DATA, metavar="COLUMN"),
    Parameter("rows_per_person", f"{_ALL} sklearn dowhy r", "Rows one person may have.", _DATA, 1,
              int, check=_whole(1, 10**6)),
    Parameter("leave_out_undeclared",
              "estimate_ate check_data estimate check sklearn dowhy service r",
              "Label level: leave out rows with undeclared treatment or unreadable numbers.", _DATA,
              False, bool, check=truth_value),
    Parameter("sep", _FILES, "What separates the fields of a CSV file: ; | : or tab.", _DATA,
              metavar="SIGN"),
    Parameter("decimal", _FILES, "What decimals of a CSV file follow: . or ,", _DATA,
              metavar="SIGN"),
    Parameter("encoding", _FILES,
              "Encoding of a CSV file: utf-8, cp1252 or utf-16; default: by its byte order mark, "
              "else utf-8.", _DATA, metavar="NAME"),
    Parameter("header_row", _FILES, "Line of a CSV file, or row of a sheet, that is the header.",
              _DATA, kind=int | None, metavar="N"),
    Parameter("skip_rows", _FILES, "Lines or rows before the header.", _DATA, kind=int | None,
              metavar="N"),
    Parameter("sheet", _FILES, "Sheet of an Excel file by name or number; default: the first.",
              _DATA, metavar="NAME"),
    Parameter("rows", "plan", "Without DATA: number of rows.", _DATA, kind=int | None),
    Parameter("dimension", "plan", "Without DATA: number of encoded covariates.", _DATA,
              kind=int | None),
    Parameter("treated_share", "plan_ate plan",
              "Guessed share of treated units, if treatment is not read.", _DATA, 0.5, float),
    Parameter("arm_shares", "plan_ate plan", "Guessed shares of several arms, if not read.", _DATA,
              metavar="P,Q,R", read=read_shares),
    Parameter("overlap", "plan_ate plan", "Guessed overlap of the arms, if not read: good or poor.",
              _DATA, "good", str),
    Parameter("mean_weight", "plan_ate plan",
              "Guessed mean sampling weight at sample level; default: half its bound.", _DATA,
              kind=float | None),
    Parameter("explained", "plan_ate plan",
              "Guessed share of the outcome's variance that covariates explain.", _DATA,
              kind=float | None),
    Parameter("risk", "plan_ate plan", "Of survival: guessed risk of the event by the horizon.",
              _DATA, 0.4, float),
    Parameter("censored", "plan_ate plan",
              "Of survival: guessed share that is censored before the horizon.", _DATA, 0.3, float),
    Parameter("ledger", _CHARGED, "Budget ledger: file or postgresql:// URL.", _BUDGET,
              metavar="LEDGER"),
    Parameter("ledger_head", "estimate_ate estimate r",
              "A hash that a release carries; a ledger without that entry is refused.", _BUDGET,
              metavar="HASH", flag="--head"),
    Parameter("dataset", f"{_CHARGED} service",
              "The data set's name in the release and the ledger.", _BUDGET, metavar="NAME",
              defaults={"service": REQUIRED}),
    Parameter("dataset_version", _CHARGED, "What this state of the data is called.", _BUDGET,
              metavar="NAME"),
    Parameter("analyst", "estimate_ate estimate r", "Who asks, for caps in the ledger.", _BUDGET),
    Parameter("request_id", "estimate_ate estimate r",
              "Repeats with this id return the stored release.", _BUDGET),
    Parameter("bounds_from_data", "estimate", "Look bounds up in the data: NO guarantee.", _BUDGET,
              False, bool),
    Parameter("out", "estimate domain r", "Also write the release as JSON to a file.", _OUTPUT,
              kind=Path | None),
    Parameter("report", "estimate r", "Write a page that may be shared.", _OUTPUT,
              kind=Path | None, metavar="OUT.html"),
    Parameter("json", f"{_COLUMNS} ask", "Print one JSON object.", _OUTPUT, False, bool),
    Parameter("html", "check", "Curator only: also write a page.", _OUTPUT, kind=Path | None,
              metavar="OUT.html"),
    Parameter("plot", "plan", "Draw expected error against ε (.svg or .png).", _OUTPUT,
              kind=Path | None),
    Parameter("contrasts", "estimate report",
              "Of several arms: show all pairs, or those with the reference alone.", _OUTPUT, "all",
              str, "all|reference"),
    Parameter("diagnostics", "estimate r", "Curator only, NOT private: write a page.", _OUTPUT,
              kind=Path | None, metavar="OUT.html"),
    Parameter("force", "domain", "Overwrite the file.", _OUTPUT, False, bool),
    Parameter("quiet", f"{_COLUMNS}", "No progress and no warnings on standard error.", _OUTPUT,
              False, bool, flag="--quiet -q"),
    Parameter("help", "", group=_OUTPUT),
    Parameter("outcome_sd", _ASKED,
              "Standard deviation of the outcome within an arm; of several: Y=SD for each.",
              _EXPERT, kind=list[str] | None, metavar="SD", read=read_deviations),
    Parameter("target", "estimate_ate plan_ate estimate plan service r",
              "balance or track (label level).", _EXPERT, "balance", str,
              check=_choice(get_args(Target)), defaults={"r": None}),
    Parameter("neighbors", "estimate_ate plan_ate estimate plan service r",
              "Neighbours a unit is matched to.", _EXPERT, 5, int, check=_whole(1, 1000),
              defaults={"r": None}),
    Parameter("settings", "estimate plan", "A method's own option; an unknown one lists them.",
              _EXPERT, kind=list[str] | None, metavar="OPTION=VALUE", flag="--set"),
    Parameter("engine", "estimate_ate estimate", "auto, local or spark.", _EXPERT, "auto", str,
              check=_choice(("auto", "local", "spark"))),
    Parameter("master", "estimate_ate estimate", "Spark cluster, e.g. spark://host:7077.", _EXPERT,
              metavar="URL"),
    Parameter("memory_limit", "estimate_ate check_data estimate check",
              "Memory above which a file is streamed.", _EXPERT, 1 << 30, str, "SIZE",
              flag_default="1GB", check=lambda _, value: parse_memory(value)),
    Parameter("seed", "estimate_ate estimate sklearn r",
              "For experiments: the release guarantees nothing.", _EXPERT, kind=int | None,
              check=_seed),
    # What no command has: objects, and what single interfaces ask beside.
    Parameter("data", "estimate_ate plan_ate check_data r", default=REQUIRED),
    Parameter("options", "estimate_ate plan_ate dowhy service r", defaults={"service": {}}),
    Parameter("progress", "estimate_ate plan_ate check_data"),
    Parameter("approval", "estimate_ate"),
    Parameter("bounds", "estimate_ate", default="declared", check=_choice(get_args(Bounds))),
    Parameter("dummy", "service ask", "Ask made-up people; costs nothing.", default=False,
              kind=bool, check=truth_value),
    Parameter("purpose", "service ask", "What the answer is for; curators read it.", default="",
              kind=str, metavar="TEXT"),
    Parameter("covariate_bounds", "sklearn"),
    Parameter("treatment_column", "sklearn"),
    Parameter("bins", "sklearn"),
    Parameter("formula", "r", default=REQUIRED),
    Parameter("flags", "r"),
)  # fmt: skip


def parameters_of(interface: str) -> list[Parameter]:
    """Return the parameters of an interface, in the order of the table."""
    return [one for one in PARAMETERS if interface in one.interfaces.split()]


def parameter_of(interface: str, name: str) -> Parameter:
    """Return one parameter of an interface by its name."""
    return next(one for one in parameters_of(interface) if one.name == name)


def checked(values: Mapping[str, object]) -> dict[str, object]:
    """Return what is kept of values of an estimate that have a check; refuse what is no value."""
    checks = {one.name: one.check for one in parameters_of("estimate_ate") if one.check is not None}
    return {name: checks[name](name, value) for name, value in values.items() if name in checks}


def shared(interface: str, function: str) -> list[Parameter]:
    """Return the parameters that an interface hands on to a function as they are.

    Columns and bounds are not among them: an interface makes a domain of those.
    """
    return [
        one for one in parameters_of(interface)
        if function in one.interfaces.split() and one.name not in _DECLARED
    ]  # fmt: skip


def keywords_of(command: str, function: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function from what a command read."""
    return {
        one.name: given[one.name] if one.read is None else one.read(given[one.name])
        for one in shared(command, function)
    }
