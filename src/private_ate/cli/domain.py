"""`private-ate domain`: draft a domain from a file's names and types, without reading a value.

A column that is seldom a covariate is recognised by the words of its name. A word can be wrong, so
the draft leaves such a column as a comment with the reason beside it and a person decides.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from private_ate.arguments import one_of, read_covariates
from private_ate.cli import flags
from private_ate.cli.declared import ARM_FLAGS, declared_arms
from private_ate.errors import ArgumentError
from private_ate.privacy.levels import Level, has_public_covariates

if TYPE_CHECKING:
    from private_ate.domain import Treatment

_HEADER: Final = """\
# Draft of a domain, from the schema alone: no value was read.
# Fill in every ??? from the code book, never from the data: bounds that follow the data leak it.
# More than two arms:       arms = ["none", "low", "high"], reference = "none"
#   (instead of treated and control; of a dose: bins = [0, 1, 6, 100] for [0, 1), [1, 6), [6, 100])
# A number between bounds:  { low = 16, high = 60 }   (optional: missing = 38)
# Zero or one:              { binary = true }
# Labels:                   { categories = ["a", "b", "other"], other = "other" }
#   (other: the label for missing and undeclared ones; without it they are a category of their own)
# An outcome of labels:     event_label = "yes" instead of low and high: it counts as 1, others as 0
# A time to an event:       time, event, event_label and horizon instead of column, low and high
# Rows without an outcome:  missing = "public" if anybody may know who lacks one, "private" if not
#                           (both leave them out), or the number that they count as
"""
_PUBLIC: Final = """\
# At label level covariates are public: name them when you estimate and their ranges are looked up,
#   --covariates {names}
# Declare those alone of which the code book knows better: remove the # before such a line. Then
# the declared ones are the covariates, unless --covariates names others."""
# At label level covariates are public: name them when you estimate and their ranges are looked up,
#   --covariates {names}
# Declare those alone of which the code book knows better: remove the # before such a line. Then
# the declared ones are the covariates, unless --covariates names others."""
_LEFT_OUT: Final = (
    "# Left out for their names or types; remove the # before one that is a covariate."
)
_BINARY: Final = "{ binary = true }"
_NUMBER: Final = "{ low = ???, high = ??? }"
# Not valid TOML on purpose: a forgotten "???" would pass as a label.
_LABELS: Final = '{ categories = [???, "other"], other = "other" }'
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
# Words of names, and what they say about a column; the first that fits is the reason.
_TELLING: Final = {
    "the name of an id: it tells rows apart": (
        "id|ids|uid|uuid|guid|pid|mrn|ssn|caseid|personid|patientid|subjectid|studyid|recordid|"
        "userid|rowid|row|index|unnamed|barcode|email|mail|phone|telephone|surname|firstname|"
        "lastname|fullname|address|street"
    ),
    "the name of a date: turn it into a number, such as an age": (
        "date|dates|datum|datetime|timestamp|dob|birthdate|birthday|dod"
    ),
    "the name of a weight: how a row was sampled is no trait of the unit": (
        "weights|wgt|wgts|wt|pweight|pweights|fweight|aweight|iweight|sampweight|surveyweight|"
        "ipw|iptw|ipcw|finalwt|fnlwgt|(sample|sampling|survey|design|person|household|final|"
        "replicate|rep|analysis|inverse|ip|post|poststratification|calibration|nonresponse|"
        "propensity) (probability )?weight"
    ),
    "the name of a fitted value: it was computed from other columns": (
        "pscore|propensity|predicted|fitted|residual|yhat|ycf"
    ),
}
_LATER: Final = (
    "post|after|followup|follow up|fu|outcome|endpoint|event|cens|censor|censored|censoring|"
    "discharge|death|died|dead|deceased|"
    "readmission|readmitted|relapse|survival|dropout|attrition|withdrawal|change|delta|end|exit|"
    "final"
)
# What a name gains when its column is a function of another one, and units of time.
_FUNCTIONS: Final = "l|ln|log|logs|log2|log10|log1p|sq|sqr|squared|square|sqrt|std|z|scaled|k"
_TIMES: Final = {
    "time", "times", "duration", "seconds", "sec", "secs", "minutes", "mins", "hours", "hrs",
    "days", "weeks", "months", "mths", "years", "yrs",
}  # fmt: skip
_SURVIVAL: Final = ("time", "event", "event_label", "horizon")
_BEFORE: Final = "pre|before|baseline|base|bl|prior|previous|past|initial"


@flags.takes_flags("domain")
def domain(
    data: flags.DataFile,
    out: Annotated[Path, typer.Option(help="Where to write the draft.", metavar="FILE")],
    treatment: Annotated[str | None, typer.Option(help="Treatment column.")] = None,
    outcome: Annotated[str | None, typer.Option(help="Outcome column.")] = None,
    covariates: Annotated[
        str | None,
        typer.Option(
            help="Covariates: a,b,c or the word all; default: those whose names do not speak "
            "against it.",
            metavar="NAMES",
        ),
    ] = None,
    level: Annotated[
        str,
        typer.Option(
            help="What will be private: label leaves covariates to be looked up.", metavar="LEVEL"
        ),
    ] = "sample",
    **given: Any,  # noqa: ANN401  # flags of the table of parameters
) -> None:
    """Draft a domain file from column names and types; a person fills in the bounds."""
    from private_ate.data.files import described_file, read_schema, write_whole  # as above

    one_of("level", level, ("label", "sample"))
    arms = _declared_arms(treatment, given)
    if out.exists() and not given["force"]:
        msg = f"the file {str(out)!r} exists; add --force to overwrite it"
        raise ArgumentError(msg)
    reading = {name: given[name] for name in flags.READING}
    schema = read_schema(described_file(data, **reading))
    named = read_covariates(covariates)
    _require_time(given, outcome)
    asked = [("treatment", treatment), ("outcome", outcome)]
    asked += [(name, given[name]) for name in ("time", "event")]
    asked += [("covariate", name) for name in named or () if named != "all"]
    _require_columns(schema, asked)
    measured = outcome or given["time"]
    taken = (treatment, measured, given["event"])
    left_out: dict[str, str] = {}
    if named is None:  # of covariates that nobody asked for, names and types decide
        for name, kind in schema.items():
            reason = None if name in taken else reason_against(name, kind, measured)
            if reason is not None:
                left_out[name] = reason
    chosen = schema if named is None or named == "all" else named
    kept = {name: schema[name] for name in chosen if name not in taken and name not in left_out}
    # Names as a flag takes them: none that could end the line or the list.
    nameable = ",".join(name for name in kept if name.isprintable() and not set(name) & set(",\"'"))
    is_public = has_public_covariates(cast("Level", level))
    head = [
        *_treatment_lines(treatment, arms),
        *("", "[outcome]", *_outcome_lines(outcome, schema, given), "missing = ???"),
        *("", "[covariates]", *([_PUBLIC.format(names=f'"{nameable}"')] if is_public else [])),
    ]
    lines = [f"{'# ' * is_public}{_declaration(name, kind)}" for name, kind in kept.items()]
    tail = ["", _LEFT_OUT] if left_out else []
    tail += [f"# {_declaration(name, schema[name])}  # {why}" for name, why in left_out.items()]
    write_whole(out, "\n".join([*head, *lines, *tail]) + "\n")
    if left_out:
        typer.echo(
            f"left out {len(left_out)} of {len(schema)} columns for their names or types; "
            "the reasons are at the end of the draft"
        )
    if any(reason.startswith("the name of an id") for reason in left_out.values()):
        typer.echo(
            "if a person can have several rows, check by the id with --person COLUMN and say "
            "--rows-per-person N when you estimate, or at label level --person COLUMN"
        )
    is_named = treatment is not None and measured is not None
    if not is_named:
        typer.echo("name --treatment and --outcome too, and the draft asks for less")
    check = ["private-ate", "check", str(data), "--domain", str(out)]
    for name, value in reading.items():
        check += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    check += ["--level", level, *(["--covariates", nameable] if is_named and is_public else [])]
    typer.echo(f"wrote {out}; fill in every ??? from the code book, then:\n  {shlex.join(check)}")


def _require_columns(
    schema: Mapping[str, str | None], asked: Sequence[tuple[str, str | None]]
) -> None:
    """Refuse columns that are not there, and a first line of values."""
    from private_ate.data.tables import require_column  # keeps --help fast

    for role, name in asked:
        if name is not None:
            require_column(tuple(schema), name, role, [other for _, other in asked if other])
    numbers = sum(map(_is_number, schema)) if None in schema.values() else 0
    if numbers:
        msg = (
            f"{numbers} of the {len(schema)} names in the first line are numbers; a line of "
            "values is not drafted: give the file a header line, or write the domain by hand"
        )
        raise ArgumentError(msg)


def _require_time(given: Mapping[str, Any], outcome: str | None) -> None:
    """Refuse words of survival beside an outcome, or without a column of times."""
    if given["time"] is not None and outcome is not None:
        msg = "a time to an event is declared by --time and --event; leave out --outcome"
        raise ArgumentError(msg)
    if given["time"] is None and any(given[name] is not None for name in _SURVIVAL):
        msg = "--event, --event-label and --horizon belong to a time to an event: name --time"
        raise ArgumentError(msg)


def _declared_arms(column: str | None, given: Mapping[str, Any]) -> Treatment | None:
    """Return the arms that flags declare; None if none does, as no label is a default here."""
    from private_ate.domain import Treatment  # keeps --help fast

    if all(given[name] is None for name in ARM_FLAGS):
        return None
    if (given["treated"] is None) != (given["control"] is None):
        msg = "give both labels, --treated and --control, or neither; the draft asks for them then"
        raise ArgumentError(msg)
    return declared_arms(given, Treatment(column or "treatment"))


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _treatment_lines(column: str | None, arms: Treatment | None) -> Iterator[str]:
    from private_ate.domain import arm_lines  # keeps --help fast

    yield from (_HEADER, "[treatment]", f"column = {_text_or_gap(column)}")
    yield from ("treated = ???", "control = ???") if arms is None else arm_lines(arms)


def _outcome_lines(
    column: str | None, schema: Mapping[str, str | None], given: Mapping[str, Any]
) -> Iterator[str]:
    if given["time"] is not None:
        for name in _SURVIVAL:
            gap = given[name]
            yield f"{name} = {f'{gap:.15g}' if isinstance(gap, float) else _text_or_gap(gap)}"
        return
    yield f"column = {_text_or_gap(column)}"
    is_binary = column is not None and schema.get(column) == "binary"
    yield from ("binary = true",) if is_binary else ("low = ???", "high = ???")


def _declaration(name: str, kind: str | None) -> str:
    """Return the line of one covariate; a file without types leaves two ways."""
    if kind == "binary":
        return f"{_key(name)} = {_BINARY}"
    if kind == "number":
        return f"{_key(name)} = {_NUMBER}"
    if kind is not None:
        return f"{_key(name)} = {_LABELS}"
    return f"{_key(name)} = {_NUMBER}  # or {_LABELS}"


def _key(name: str) -> str:
    from private_ate.domain import toml_text  # keeps --help fast

    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def _text_or_gap(column: str | None) -> str:
    from private_ate.domain import toml_text  # keeps --help fast

    return "???" if column is None else toml_text(column)


def reason_against(name: str, kind: str | None, outcome: str | None) -> str | None:
    """Return why a column is likely no covariate, or None; from its name and type alone.

    Examples
    --------
    >>> reason_against("patient_id", None, None)
    'the name of an id: it tells rows apart'
    >>> reason_against("weight", "number", None) is None  # of a body
    True
    """
    if kind == "other":
        return "its type is neither numbers nor labels: turn a date into a number, such as an age"
    if not name.strip() or name.startswith("_duplicated_"):
        return "it has no name: likely the row numbers of a program that wrote the file"
    words = " ".join(_WORDS.findall(name)).lower()
    for reason, telling in _TELLING.items():
        if _holds(words, telling):
            return reason
    if _holds(words, _BEFORE):
        return None
    if _holds(words, _LATER):
        return "the name of something measured after the treatment"
    return _repeats_outcome(name, outcome) if outcome else None


def _repeats_outcome(name: str, outcome: str) -> str | None:
    """Return what a name has in common with the outcome's, None if nothing that speaks."""
    if _is_other_form(name, outcome):
        return "the name of another form of the outcome: it would tell the outcome"
    if _extends(name, outcome):
        return "named after the outcome: was it measured before the treatment?"
    return None


def _holds(words: str, telling: str) -> bool:
    """Say whether one of the telling words stands among others, or all of them make it up."""
    return any(
        re.search(rf"(?:^| )(?:{telling})(?: |$)", one) for one in (words, words.replace(" ", ""))
    )


def _is_other_form(name: str, outcome: str) -> bool:
    """Say whether two names differ by a function's name, or both name a time, such as in days."""
    one, other = name.lower(), outcome.lower()
    for longer, shorter in ((one, other), (other, one)):
        stem, function = re.escape(shorter), rf"(?:{_FUNCTIONS})"
        if re.fullmatch(rf"{function}[_. ]?{stem}|{stem}[_. ]?{function}", longer):
            return True
    words, others = (set(_WORDS.findall(text)) for text in (one, other))
    return words != others and words - _TIMES == others - _TIMES


def _extends(name: str, outcome: str) -> bool:
    """Say whether a name is the outcome's with something other than a letter after it."""
    rest = name.removeprefix(outcome)
    return len(rest) < len(name) and rest[:1] != "" and not rest[0].isalpha()
