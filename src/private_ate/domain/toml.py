"""A domain as TOML text: what a person fills in from the code book, and back."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from private_ate.domain.column_types import Binary, Categories, Interval, SamplingWeights, Treatment
from private_ate.domain.outcome import Outcome, StudyLabel, Survival
from private_ate.errors import DomainError

__all__ = ["arm_lines", "read_tables", "toml_text", "write_tables"]

# A line up to its comment; a sign inside quotation marks begins none.
_CODE: Final = re.compile(r"""(?:[^#"']|"(?:\\.|[^"\\])*"|'[^']*')*""")
_TABLE: Final = re.compile(r"\s*\[(?P<name>[^\[\]]+)\]\s*")
_KEY: Final = re.compile(r"""\s*(?P<key>"(?:\\.|[^"\\])*"|'[^']*'|[^\s="']+)\s*=""")


# The tables, and what is said where one is of another form.
_TABLES: Final = {
    "study": "[study] is a table with the data set's name and version",
    "treatment": "",
    "outcome": "",
    "covariates": "[covariates] is a table of columns",
    "weights": "[weights] is a table with the column of sampling weights and high, their bound",
}
_ARM_KEYS: Final = ("treated", "control", "other", "arms", "reference", "bins", "labels")
_OUTCOME_KEYS: Final = (
    "column", "label", "low", "high", "missing", "binary", "unit", "event_label",
)  # fmt: skip
_SURVIVAL_KEYS: Final = (
    "event", "event_label", "horizon", "bins", "censoring_by", "missing", "unit",
)  # fmt: skip


def read_tables(text: str) -> dict[str, Any]:
    """Read the tables of a domain's TOML text: the arguments of `Domain`."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as cause:  # also a number of 5000 digits
        raise _invalid(text, cause) from cause
    unfilled = find_unfilled(text, quoted=True)
    if unfilled is not None:
        raise DomainError(unfilled.sentence, column=unfilled.column)
    unknown = sorted(set(table) - set(_TABLES))
    if unknown:
        msg = f"the domain has an unknown table [{unknown[0]}]; known: {', '.join(_TABLES)}"
        raise DomainError(msg)
    outcomes = table.get("outcome")
    listed: list[Any] = outcomes if isinstance(outcomes, list) else [outcomes]
    for required, entries in (("treatment", [table.get("treatment")]), ("outcome", listed)):
        if not entries or not all(isinstance(entry, dict) for entry in entries):
            msg = f"the domain lacks the table [{required}]"
            raise DomainError(msg)
    covariates = table.get("covariates", {})
    if not isinstance(covariates, dict):
        raise DomainError(_TABLES["covariates"])
    study, weights = table.get("study", {}), table.get("weights")
    if not isinstance(study, dict):
        raise DomainError(_TABLES["study"])
    if "weights" in table and (not isinstance(weights, dict) or "high" not in weights):
        raise DomainError(_TABLES["weights"])
    arms = _only(table["treatment"], "treatment", ("column", "label", *_ARM_KEYS))
    declared = {name: _covariate_from(name, entry) for name, entry in covariates.items()}
    # What columns are called in reports.
    named = [(entry.get("column", entry.get("time")), entry) for entry in (arms, *listed)]
    labels = {name: entry["label"] for name, entry in (*named, *covariates.items())
              if "label" in entry}  # fmt: skip
    sampled = None
    if weights is not None:
        _only(weights, "weights", ("column", "high"))
        sampled = SamplingWeights(_text(weights, "weights", "column"), weights["high"])
    return {
        "treatment": Treatment(_text(arms, "treatment", "column"), **_chosen(arms, _ARM_KEYS)),
        "outcome": [_outcome_from(entry) for entry in listed],
        "covariates": declared,
        "study": StudyLabel(**_only(study, "study", ("dataset", "version"))),
        "weights": sampled,
        "column_labels": labels,
    }


def _invalid(text: str, cause: Exception) -> DomainError:
    """Return the error for a text that is no TOML: the first ??? if that is what is wrong."""
    unfilled = find_unfilled(text)
    if unfilled is None:
        return DomainError(f"the domain is not valid TOML: {cause}")
    if f"(at line {unfilled.line}, " in str(cause):
        return DomainError(unfilled.sentence, column=unfilled.column)
    return DomainError(f"the domain is not valid TOML: {cause}; and {unfilled.sentence}")


def _outcome_from(entry: dict[str, Any]) -> Outcome:
    if "time" in entry:
        _only(entry, "outcome", ("time", "label", *_SURVIVAL_KEYS))
        return Survival(_text(entry, "outcome", "time"), **_chosen(entry, _SURVIVAL_KEYS))
    _only(entry, "outcome", _OUTCOME_KEYS)
    column = _text(entry, "outcome", "column")
    rule = entry.get("missing")
    number, named = (None, rule) if isinstance(rule, str) else (rule, None)
    bounds: Interval | None = None
    has_ends = "low" in entry or "high" in entry
    if entry.get("binary") is True or ("event_label" in entry and not has_ends):
        bounds = Binary(missing=number)
    elif has_ends:
        bounds = _interval_from("outcome", {**entry, "missing": number})
    about: Any = {"missing": named, **_chosen(entry, ("unit", "event_label"))}
    return Outcome(column, bounds, **about)


def _covariate_from(name: str, entry: object) -> Interval | Categories:
    if not isinstance(entry, dict):
        msg = f"covariate {name!r} is a table with low and high, with categories, or binary"
        raise DomainError(msg)
    if entry.get("binary") is True:
        _only(entry, name, ("binary", "missing", "label"))
        return Binary(missing=entry.get("missing"))
    if "categories" not in entry:
        _only(entry, name, ("low", "high", "missing", "label"))
        return _interval_from(name, entry)
    _only(entry, name, ("categories", "other", "label"))
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


def _chosen(entry: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: entry[key] for key in keys if key in entry}


def _only(entry: dict[str, Any], name: str, known: Sequence[str]) -> dict[str, Any]:
    unknown = sorted(set(entry) - set(known))
    if unknown:
        msg = f"{name!r} has an unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}"
        raise DomainError(msg)
    return entry


def _text(entry: dict[str, Any], table: str, key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        msg = f"[{table}] lacks its {key}"
        raise DomainError(msg)
    return value


def write_tables(
    study: StudyLabel,
    treatment: Treatment,
    outcomes: Sequence[Outcome],
    covariates: Mapping[str, Interval | Categories],
    weights: SamplingWeights | None,
    labels: Mapping[str, str],
) -> str:
    """Return all tables as TOML text that `read_tables` reads; what was not declared has none."""
    tables: list[tuple[str, dict[str, object]]] = []
    if study != StudyLabel():
        tables.append(("study", {"dataset": study.dataset, "version": study.version}))
    head = {"column": treatment.column, "label": labels.get(treatment.column)}
    tables.append(("treatment", {**head, **_arm_entries(treatment)}))
    title = "[outcome]" if len(outcomes) > 1 else "outcome"
    for outcome in outcomes:
        if isinstance(outcome, Survival):
            head = {"time": outcome.column, "label": labels.get(outcome.column)}
            held = {key: getattr(outcome, key) for key in _SURVIVAL_KEYS}
        else:
            head = {"column": outcome.column, "label": labels.get(outcome.column)}
            held = {} if outcome.bounds is None else _kind_entries(outcome.bounds)
            held["missing"] = held.get("missing") if outcome.missing is None else outcome.missing
            held |= {"unit": outcome.unit, "event_label": outcome.event_label}
        tables.append((title, {**head, **held}))
    if weights is not None:
        tables.append(("weights", {"column": weights.column, "high": weights.high}))
    for name, kind in covariates.items():
        entries = {"label": labels.get(name), **_kind_entries(kind)}
        tables.append((f"covariates.{toml_text(name)}", entries))
    texts = ("\n".join((f"[{title}]", *_lines(entries))) for title, entries in tables)
    return "\n\n".join(texts) + "\n"


def arm_lines(treatment: Treatment) -> Iterator[str]:
    """Yield the lines that declare arms, as they stand below the column of treatment."""
    return _lines(_arm_entries(treatment))


def _arm_entries(treatment: Treatment) -> dict[str, object]:
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
    return {**names, "other": treatment.other}


def _kind_entries(kind: Interval | Categories) -> dict[str, object]:
    if isinstance(kind, Categories):
        return {"categories": kind.labels, "other": kind.other}
    ends = {"binary": True} if kind.is_binary else {"low": kind.low, "high": kind.high}
    return {**ends, "missing": kind.missing}


def _lines(entries: Mapping[str, object]) -> Iterator[str]:
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
