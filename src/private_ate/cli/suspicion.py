"""Columns that are seldom covariates, told by their names and types alone; no value is read.

A name is cut into words; a word can be wrong, so a draft leaves such a column as a comment with the
reason beside it and a person decides.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["reason_against"]

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
_BEFORE: Final = "pre|before|baseline|base|bl|prior|previous|past|initial"


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
