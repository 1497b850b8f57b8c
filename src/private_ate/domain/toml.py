"""A domain as TOML text: what a person fills in from the code book, and back."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from private_ate.domain.column_types import Binary, Categories, Interval, SamplingWeights
from private_ate.domain.outcome import Outcome, StudyLabel, Survival
from private_ate.domain.treatment import Treatment
from private_ate.errors import DomainError

__all__ = ["arm_lines", "find_unfilled", "read_tables", "toml_lines", "toml_text"]

# A line up to its comment; a sign inside quotation marks begins none.
_CODE: Final = re.compile(r"""(?:[^#"']|"(?:\\.|[^"\\])*"|'[^']*')*""")
_TABLE: Final = re.compile(r"\s*\[(?P<name>[^\[\]]+)\]\s*")
_KEY: Final = re.compile(r"""\s*(?P<key>"(?:\\.|[^"\\])*"|'[^']*'|[^\s="']+)\s*=""")


def read_tables(
    text: str,
) -> tuple[
    Treatment,
    list[Outcome],
    dict[str, Interval | Categories],
    StudyLabel,
    SamplingWeights | None,
    dict[str, str],
]:
    """Read the tables of a domain's TOML text."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as cause:  # also a number of 5000 digits
        raise _invalid(text, cause) from cause
    unfilled = find_unfilled(text, quoted=True)
    if unfilled is not None:
        raise DomainError(unfilled.sentence, column=unfilled.column)
    unknown = sorted(set(table) - {"study", "treatment", "outcome", "covariates", "weights"})
    if unknown:
        known = "study, treatment, outcome, covariates, weights"
        msg = f"the domain has an unknown table [{unknown[0]}]; known: {known}"
        raise DomainError(msg)
    outcomes = table.get("outcome")
    listed: list[Any] = outcomes if isinstance(outcomes, list) else [outcomes]
    for required, entries in (("treatment", [table.get("treatment")]), ("outcome", listed)):
        if not entries or not all(isinstance(entry, dict) for entry in entries):
            msg = f"the domain lacks the table [{required}]"
            raise DomainError(msg)
    covariates = table.get("covariates", {})
    if not isinstance(covariates, dict):
        msg = "[covariates] is a table of columns"
        raise DomainError(msg)
    return (
        _treatment_from(table["treatment"]),
        [_outcome_from(entry) for entry in listed],
        {name: _covariate_from(name, entry) for name, entry in covariates.items()},
        _study_from(table.get("study", {})),
        _weights_from(table["weights"]) if "weights" in table else None,
        _column_labels([table["treatment"], *listed], covariates),
    )


def _column_labels(named: list[dict[str, Any]], covariates: dict[str, Any]) -> dict[str, str]:
    """Return what columns are called in reports."""
    of_roles = ((entry.get("column", entry.get("time", "")), entry) for entry in named)
    entries = [*of_roles, *covariates.items()]
    return {name: entry["label"] for name, entry in entries if "label" in entry}


def _weights_from(entry: object) -> SamplingWeights:
    if not isinstance(entry, dict) or "high" not in entry:
        msg = "[weights] is a table with the column of sampling weights and high, their bound"
        raise DomainError(msg)
    _only(entry, "weights", {"column", "high"})
    return SamplingWeights(_text(entry, "weights", "column"), entry["high"])


def _invalid(text: str, cause: Exception) -> DomainError:
    """Return the error for a text that is no TOML: the first ??? if that is what is wrong."""
    unfilled = find_unfilled(text)
    if unfilled is None:
        return DomainError(f"the domain is not valid TOML: {cause}")
    if f"(at line {unfilled.line}, " in str(cause):
        return DomainError(unfilled.sentence, column=unfilled.column)
    return DomainError(f"the domain is not valid TOML: {cause}; and {unfilled.sentence}")


def _study_from(entry: object) -> StudyLabel:
    if not isinstance(entry, dict):
        msg = "[study] is a table with the data set's name and version"
        raise DomainError(msg)
    _only(entry, "study", {"dataset", "version"})
    return StudyLabel(entry.get("dataset"), entry.get("version"))


def _treatment_from(entry: dict[str, Any]) -> Treatment:
    keys = ("treated", "control", "other", "arms", "reference", "bins", "labels")
    _only(entry, "treatment", {"column", "label", *keys})
    return Treatment(
        _text(entry, "treatment", "column"), **{key: entry[key] for key in keys if key in entry}
    )


_SURVIVAL_KEYS = ("event", "event_label", "horizon", "bins", "censoring_by", "missing", "unit")


def _survival_from(entry: dict[str, Any]) -> Survival:
    _only(entry, "outcome", {"time", "label", *_SURVIVAL_KEYS})
    held = {key: entry[key] for key in _SURVIVAL_KEYS if key in entry}
    return Survival(_text(entry, "outcome", "time"), **held)


def _outcome_from(entry: dict[str, Any]) -> Outcome:
    if "time" in entry:
        return _survival_from(entry)
    keys = ("column", "label", "low", "high", "missing", "binary", "unit", "event_label")
    _only(entry, "outcome", set(keys))
    column = _text(entry, "outcome", "column")
    about = {key: entry.get(key) for key in ("unit", "event_label")}
    rule = entry.get("missing")
    number = None if isinstance(rule, str) else rule
    named: Any = rule if isinstance(rule, str) else None  # checked where it is kept
    has_ends = "low" in entry or "high" in entry
    if entry.get("binary") is True or ("event_label" in entry and not has_ends):
        return Outcome(column, Binary(missing=number), named, **about)
    if not has_ends:
        return Outcome(column, None, named, **about)
    bounds = _interval_from("outcome", {**entry, "missing": number})
    return Outcome(column, bounds, named, **about)


def _covariate_from(name: str, entry: object) -> Interval | Categories:
    if not isinstance(entry, dict):
        msg = f"covariate {name!r} is a table with low and high, with categories, or binary"
        raise DomainError(msg)
    if entry.get("binary") is True:
        _only(entry, name, {"binary", "missing", "label"})
        return Binary(missing=entry.get("missing"))
    if "categories" not in entry:
        _only(entry, name, {"low", "high", "missing", "label"})
        return _interval_from(name, entry)
    _only(entry, name, {"categories", "other", "label"})
    if not isinstance(entry["categories"], list):
        msg = f"the categories of {name!r} are a list of labels"
        raise DomainError(msg)
    return Categories(*entry["categories"], other=entry.get("other"))


def _interval_from(name: str, entry: dict[str, Any]) -> Interval:
    missing = [key for key in ("low", "high") if key not in entry]
    if missing:
        msg = f"{name!r} lacks its {missing[0]} bound; fill it in from the code book"
        raise DomainError(msg)
    return Interval(entry["low"], entry["high"], entry.get("missing"))


def _only(entry: dict[str, Any], name: str, known: set[str]) -> None:
    unknown = sorted(set(entry) - known)
    if unknown:
        msg = f"{name!r} has an unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}"
        raise DomainError(msg)


def _text(entry: dict[str, Any], table: str, key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        msg = f"[{table}] lacks its {key}"
        raise DomainError(msg)
    return value


def toml_lines(
    study: StudyLabel,
    treatment: Treatment,
    outcomes: Sequence[Outcome],
    covariates: Mapping[str, Interval | Categories],
    weights: SamplingWeights | None,
    labels: Mapping[str, str],
) -> Iterator[str]:
    """Yield the lines of all tables; what was not declared has none."""
    if study != StudyLabel():
        yield from _table("study", {"dataset": study.dataset, "version": study.version})
        yield ""
    label = labels.get(treatment.column)
    yield from _table("treatment", {"column": treatment.column, "label": label})
    yield from arm_lines(treatment)
    title = "[outcome]" if len(outcomes) > 1 else "outcome"
    for outcome in outcomes:
        yield ""
        if isinstance(outcome, Survival):
            held = {key: getattr(outcome, key) for key in _SURVIVAL_KEYS}
            label = labels.get(outcome.column)
            yield from _table(title, {"time": outcome.column, "label": label, **held})
            continue
        bounds = {} if outcome.bounds is None else _interval_entries(outcome.bounds)
        rules = {} if outcome.missing is None else {"missing": outcome.missing}
        yield from _table(
            title,
            {
                "column": outcome.column,
                "label": labels.get(outcome.column),
                **bounds,
                **rules,
                "unit": outcome.unit,
                "event_label": outcome.event_label,
            },
        )
    if weights is not None:
        yield ""
        yield from _table("weights", {"column": weights.column, "high": weights.high})
    for name, kind in covariates.items():
        yield ""
        entries = (
            _interval_entries(kind)
            if isinstance(kind, Interval)
            else {"categories": kind.labels, "other": kind.other}
        )
        named = {"label": labels.get(name), **entries}
        yield from _table(f"covariates.{toml_text(name)}", named)


def arm_lines(treatment: Treatment) -> Iterator[str]:
    """Yield the lines that declare arms, as they stand below the column of treatment."""
    if treatment.is_assumed:
        names: dict[str, object] = {}
    elif treatment.arms is None:
        names = {"treated": treatment.treated, "control": treatment.control}
    elif treatment.bins is None:
        names = {"arms": treatment.arms, "reference": treatment.control}
    else:
        names = {
            "bins": treatment.bins, "labels": treatment.arms, "reference": treatment.control,
        }  # fmt: skip
    yield from _entries({**names, "other": treatment.other})


def _interval_entries(bounds: Interval) -> dict[str, object]:
    ends: dict[str, object] = {"low": bounds.low, "high": bounds.high}
    return {**({"binary": True} if bounds.is_binary else ends), "missing": bounds.missing}


def _table(title: str, entries: Mapping[str, object]) -> Iterator[str]:
    yield f"[{title}]"
    yield from _entries(entries)


def _entries(entries: Mapping[str, object]) -> Iterator[str]:
    for key, value in entries.items():
        if isinstance(value, tuple):
            yield f"{key} = [{', '.join(toml_text(item) for item in value)}]"
        elif value is not None:
            yield f"{key} = {toml_text(value)}"


def toml_text(value: object) -> str:
    """Write one TOML value; texts as basic strings with every odd character escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    escaped = "".join(
        character
        if character.isprintable() and character not in '"\\'
        else f"\\U{ord(character):08x}"
        for character in str(value)
    )
    return f'"{escaped}"'


@dataclass(frozen=True, slots=True)
class Unfilled:
    """The first ??? of a text: its line, what it stands for, and how many there are."""

    line: int
    column: str
    what: str
    count: int

    @property
    def sentence(self) -> str:
        """Say where it is and what to do."""
        others = f" ({self.count} in all)" if self.count > 1 else ""
        return (
            f"line {self.line} of the domain still holds ???{others}: fill in {self.what} from the "
            "code book"
        )


def find_unfilled(text: str, *, quoted: bool = False) -> Unfilled | None:
    """Find the first ??? outside comments, or with ``quoted`` the first that is a whole text."""
    table, found, count = "", None, 0
    for number, line in enumerate(text.splitlines(), 1):
        match = _CODE.match(line)
        code = "" if match is None else match.group()
        header = _TABLE.fullmatch(code)
        if header is not None:
            table = header["name"].strip()
        marks = code.count('"???"') + code.count("'???'") if quoted else code.count("???")
        count += marks
        if marks and found is None:
            column, what = _asked(table, code)
            found = number, column, what
    return None if found is None else Unfilled(*found, count)


def _asked(table: str, code: str) -> tuple[str, str]:
    """Return the column that a line asks about, and what it asks."""
    key = _KEY.match(code)
    name = "" if key is None else _bare(key["key"])
    part, _, column = table.partition(".")
    if part == "covariates" and not column:
        return name, f"what is declared of covariate {name!r}"
    if part == "covariates":
        column = _bare(column.strip())
        return column, f"{name} of covariate {column!r}"
    return "", f"{name} of [{table}]" if table else name or "it"


def _bare(key: str) -> str:
    return key[1:-1] if key[:1] in ("'", '"') else key
