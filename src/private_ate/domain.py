"""Declared knowledge about the columns: bounds, categories and treatment labels.

Nothing here is ever looked up in private data. A domain comes from a code book, is read from and
written to TOML, and says how each value becomes a number between 0 and 1.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from private_ate.errors import DomainError

__all__ = [
    "Binary",
    "Categories",
    "Domain",
    "Interval",
    "MissingOutcomes",
    "Outcome",
    "StudyLabel",
    "Treatment",
    "label_text",
    "toml_text",
]

Label = str | int | float | bool
MissingOutcomes = Literal["public", "private"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A number between two declared bounds; values outside are clipped.

    ``missing`` is what a missing value counts as; the middle of the bounds if not given.
    """

    low: float
    high: float
    missing: float | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high", "missing"):
            value = getattr(self, name)
            if value is None and name == "missing":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                msg = f"an interval's {name} is a number, not {type(value).__name__}"
                raise DomainError(msg)
            # Compared, not converted: a whole number may be too long for a float.
            if not abs(value) <= 1e150:
                msg = f"an interval's {name} is a finite number below 1e150 in size"
                raise DomainError(msg)
            object.__setattr__(self, name, float(value))
        if self.low > self.high:
            msg = f"an interval's low bound ({self.low:g}) is above its high bound ({self.high:g})"
            raise DomainError(msg)
        if self.missing is not None and not self.low <= self.missing <= self.high:
            msg = f"the value for missing entries ({self.missing:g}) lies outside the bounds"
            raise DomainError(msg)

    @property
    def width(self) -> float:
        """The range ``high − low`` (B for the outcome)."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """The midpoint of the bounds."""
        return self.low / 2 + self.high / 2

    @property
    def fill(self) -> float:
        """What a missing value counts as."""
        return self.middle if self.missing is None else self.missing

    @property
    def is_binary(self) -> bool:
        """Whether only the two ends are possible values, as declared."""
        return False


@dataclass(frozen=True, slots=True)
class Binary(Interval):
    """An outcome declared to be 0 or 1, so that risks and ratios make sense."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        # Named, because zero-argument super() does not survive slots=True.
        Interval.__post_init__(self)
        if (self.low, self.high) != (0.0, 1.0):
            msg = "a binary outcome is 0 or 1; declare an Interval for other bounds"
            raise DomainError(msg)

    @property
    def is_binary(self) -> bool:
        """Whether only the two ends are possible values, as declared."""
        return True


@dataclass(frozen=True, slots=True, init=False)
class Categories:
    """Declared labels; each becomes a column of zeros and ones.

    Missing and undeclared values count as ``other``, if one of the labels is declared to be it.
    Otherwise they are a category of their own: zero in every column.
    """

    labels: tuple[str, ...]
    other: str | None

    def __init__(self, *labels: Label, other: Label | None = None) -> None:
        texts = tuple(label_text(label) for label in labels)
        if len(texts) < 2 or len(set(texts)) != len(texts):
            msg = "categories are at least two different labels"
            raise DomainError(msg)
        catch_all = None if other is None else label_text(other)
        if catch_all is not None and catch_all not in texts:
            msg = f"the catch-all category {catch_all!r} is not among the declared labels"
            raise DomainError(msg)
        object.__setattr__(self, "labels", texts)
        object.__setattr__(self, "other", catch_all)


@dataclass(frozen=True, slots=True)
class Treatment:
    """The treatment column and its two labels.

    A row with a missing or undeclared label counts as the arm that ``other`` names, one of the two.
    Without it such a row is refused or left out at label level and takes no part at sample level;
    methods that follow the paper count it as control there.
    """

    column: str
    treated: Label = 1
    control: Label = 0
    other: Label | None = None

    def __post_init__(self) -> None:
        if not self.column:
            msg = "the treatment column is named by a non-empty text"
            raise DomainError(msg)
        if label_text(self.treated) == label_text(self.control):
            msg = f"treated and control have the same label {label_text(self.treated)!r}"
            raise DomainError(msg)
        labels = (label_text(self.treated), label_text(self.control))
        if self.other is not None and label_text(self.other) not in labels:
            msg = (
                f"the arm for other labels, {label_text(self.other)!r}, is neither "
                f"{labels[0]!r} nor {labels[1]!r}"
            )
            raise DomainError(msg)

    @property
    def treats_others(self) -> bool:
        """Whether a row with any label but the control's counts as treated."""
        return self.other is not None and label_text(self.other) == label_text(self.treated)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome column and its declared bounds, None until a level needs them.

    ``missing`` says what becomes of rows without an outcome: "public" if anybody may know who
    lacks one, "private" if not; either way they are left out. With None a missing outcome counts
    as the number that the bounds declare for it, or as their middle.
    ``unit`` is what it is measured in, for people who read a release.
    """

    column: str
    bounds: Interval | None = None
    missing: MissingOutcomes | None = None
    unit: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _require_name("unit of the outcome", self.unit)
        if self.missing is None:
            return
        if self.missing not in get_args(MissingOutcomes):
            msg = (
                'missing outcomes are "public" or "private"; a number that they count as belongs '
                "to the bounds: Interval(lo, hi, missing=number)"
            )
            raise DomainError(msg, parameter="missing outcomes", column=self.column)
        if self.bounds is not None and self.bounds.missing is not None:
            msg = f"outcome {self.column!r} has two rules for missing values; keep one of them"
            raise DomainError(msg, parameter="missing outcomes", column=self.column)

    @property
    def fills_undeclared(self) -> bool:
        """Whether a missing outcome counts as the middle of the bounds for want of a rule."""
        return self.missing is None and (self.bounds is None or self.bounds.missing is None)

    def with_missing(self, rule: MissingOutcomes | float) -> Outcome:
        """Return the outcome under another rule: "public", "private" or a number."""
        if isinstance(rule, str):
            kept = None if self.bounds is None else replace(self.bounds, missing=None)
            return replace(self, bounds=kept, missing=rule)
        if self.bounds is None:
            msg = f"outcome {self.column!r} needs bounds before a number for missing values"
            raise DomainError(msg, parameter="outcome bounds", column=self.column)
        return replace(self, bounds=replace(self.bounds, missing=rule), missing=None)


@dataclass(frozen=True, slots=True)
class StudyLabel:
    """What the curator calls the data and this state of them; goes into releases as it is."""

    dataset: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        _require_name("data set", self.dataset)
        _require_name("data set's version", self.version)


@dataclass(frozen=True, slots=True)
class Domain:
    """What is known about every column before the data are read.

    ``indicators`` names covariates whose missing entries have a feature of their own; see
    :meth:`with_indicators`.

    Examples
    --------
    >>> domain = Domain(
    ...     treatment="treat",
    ...     outcome=("re78", Interval(0, 60308)),
    ...     covariates={"age": Interval(16, 60), "race": Categories("black", "hispanic", "other")},
    ... )
    >>> domain.features
    ('age', 'race=black', 'race=hispanic', 'race=other')
    """

    treatment: Treatment
    outcome: Outcome
    covariates: Mapping[str, Interval | Categories] = field(default_factory=dict)
    study: StudyLabel = field(default_factory=StudyLabel)
    indicators: tuple[str, ...] = field(default=(), init=False)

    def __init__(
        self,
        treatment: str | Treatment,
        outcome: str | tuple[str, Interval] | Outcome,
        covariates: Mapping[str, Interval | Categories] | None = None,
        *,
        study: StudyLabel | None = None,
    ) -> None:
        object.__setattr__(
            self, "treatment", Treatment(treatment) if isinstance(treatment, str) else treatment
        )
        object.__setattr__(self, "outcome", _as_outcome(outcome))
        object.__setattr__(self, "covariates", dict(covariates or {}))
        object.__setattr__(self, "indicators", ())
        object.__setattr__(self, "study", study or StudyLabel())
        self._check()

    def _check(self) -> None:
        if not isinstance(self.treatment, Treatment):
            msg = "the treatment is a column name or Treatment(column, treated=…, control=…)"
            raise DomainError(msg)
        names = [self.treatment.column, self.outcome.column, *self.covariates]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            msg = f"column {repeated[0]!r} is declared twice"
            raise DomainError(msg)
        for name, kind in self.covariates.items():
            if not isinstance(kind, Interval | Categories):
                msg = f"covariate {name!r} is declared by an Interval or by Categories"
                raise DomainError(msg)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the encoded columns: one per interval, one per category, one per indicator."""
        plain = [
            feature for name, kind in self.covariates.items() for feature in _features(name, kind)
        ]
        for name in self.indicators:
            feature = f"{name} (missing)"
            while feature in plain:  # somebody's column has that very name
                feature += " (missing)"
            plain.append(feature)
        return tuple(plain)

    def with_indicators(self, names: Collection[str]) -> Domain:
        """Return the domain with a further feature for each named covariate: whether it is missing.

        For public covariates only. Which of them have missing entries is looked up and never
        declared, so it is no part of a domain's TOML.
        """
        domain = copy(self)
        kept = tuple(name for name in self.covariates if name in names)
        object.__setattr__(domain, "indicators", kept)
        return domain

    @property
    def bounds(self) -> Interval:
        """The outcome's bounds; an error that says how to declare them when they were not."""
        if self.outcome.bounds is None:
            msg = (
                f"outcome {self.outcome.column!r} has no declared bounds; "
                "declare Interval(lo, hi) in the domain"
            )
            raise DomainError(msg, parameter="outcome bounds", column=self.outcome.column)
        return self.outcome.bounds

    @classmethod
    def read(cls, path: str | Path) -> Domain:
        """Read a domain from a TOML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as cause:
            msg = f"the domain file {str(path)!r} cannot be read; is the path right?"
            raise DomainError(msg) from cause
        return cls.from_toml(text)

    @classmethod
    def from_toml(cls, text: str) -> Domain:
        """Build a domain from TOML text, as written by :meth:`to_toml`."""
        try:
            table = tomllib.loads(text)
        except (ValueError, RecursionError) as cause:  # also a number of 5000 digits
            msg = f"the domain is not valid TOML: {cause}"
            if "???" in text:
                msg += "; fill in every ??? from the code book"
            raise DomainError(msg) from cause
        unknown = sorted(set(table) - {"study", "treatment", "outcome", "covariates"})
        if unknown:
            known = "study, treatment, outcome, covariates"
            msg = f"the domain has an unknown table [{unknown[0]}]; known: {known}"
            raise DomainError(msg)
        for required in ("treatment", "outcome"):
            if not isinstance(table.get(required), dict):
                msg = f"the domain lacks the table [{required}]"
                raise DomainError(msg)
        covariates = table.get("covariates", {})
        if not isinstance(covariates, dict):
            msg = "[covariates] is a table of columns"
            raise DomainError(msg)
        return cls(
            treatment=_treatment_from(table["treatment"]),
            outcome=_outcome_from(table["outcome"]),
            covariates={name: _covariate_from(name, entry) for name, entry in covariates.items()},
            study=_study_from(table.get("study", {})),
        )

    def write(self, path: str | Path) -> None:
        """Write the domain to a TOML file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def to_toml(self) -> str:
        """Return the domain as TOML text that :meth:`from_toml` reads back."""
        return "\n".join(_toml_lines(self)) + "\n"


def label_text(label: object) -> str:
    """Return the text under which a label is compared: 1, 1.0, True and "1" are one label."""
    if isinstance(label, bool):
        return "1" if label else "0"
    if isinstance(label, int) and abs(label) < 1 << 64:
        return str(label)
    if isinstance(label, float) and math.isfinite(label):
        return str(int(label)) if label.is_integer() else repr(float(label))
    if not isinstance(label, str) or not label.strip():
        msg = "a label is a non-empty text, a finite number or a truth value"
        raise DomainError(msg)
    return label.strip()


def _as_outcome(outcome: str | tuple[str, Interval] | Outcome) -> Outcome:
    if isinstance(outcome, Outcome):
        return outcome
    if isinstance(outcome, str):
        return Outcome(outcome)
    match outcome:
        case (str() as column, Interval() as bounds):
            return Outcome(column, bounds)
    msg = 'the outcome is a column name or a pair such as ("re78", Interval(0, 60308))'
    raise DomainError(msg)


def _features(name: str, kind: Interval | Categories) -> tuple[str, ...]:
    if isinstance(kind, Interval):
        return (name,)
    return tuple(f"{name}={label}" for label in kind.labels)


def _require_name(what: str, text: object) -> None:
    """Refuse a text that would not fit on a line of a release."""
    if text is None:
        return
    if not isinstance(text, str) or not 0 < len(text) <= 200 or not text.isprintable():
        msg = f"the {what} is named by a printable text of 1 to 200 characters"
        raise DomainError(msg)


def _study_from(entry: object) -> StudyLabel:
    if not isinstance(entry, dict):
        msg = "[study] is a table with the data set's name and version"
        raise DomainError(msg)
    _only(entry, "study", {"dataset", "version"})
    return StudyLabel(entry.get("dataset"), entry.get("version"))


def _treatment_from(entry: dict[str, Any]) -> Treatment:
    _only(entry, "treatment", {"column", "treated", "control", "other"})
    return Treatment(
        _text(entry, "treatment", "column"), entry.get("treated", 1), entry.get("control", 0),
        entry.get("other"),
    )  # fmt: skip


def _outcome_from(entry: dict[str, Any]) -> Outcome:
    _only(entry, "outcome", {"column", "low", "high", "missing", "binary", "unit"})
    column, unit = _text(entry, "outcome", "column"), entry.get("unit")
    rule = entry.get("missing")
    number = None if isinstance(rule, str) else rule
    named: Any = rule if isinstance(rule, str) else None  # checked where it is kept
    if entry.get("binary") is True:
        return Outcome(column, Binary(missing=number), named, unit=unit)
    if "low" not in entry and "high" not in entry:
        return Outcome(column, None, named, unit=unit)
    bounds = _interval_from("outcome", {**entry, "missing": number})
    return Outcome(column, bounds, named, unit=unit)


def _covariate_from(name: str, entry: object) -> Interval | Categories:
    if not isinstance(entry, dict):
        msg = f"covariate {name!r} is a table with low and high, or with categories"
        raise DomainError(msg)
    if "categories" not in entry:
        _only(entry, name, {"low", "high", "missing"})
        return _interval_from(name, entry)
    _only(entry, name, {"categories", "other"})
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


def _toml_lines(domain: Domain) -> Iterator[str]:
    """Yield the lines of all tables; what was not declared has none."""
    study, treatment, outcome = domain.study, domain.treatment, domain.outcome
    if study != StudyLabel():
        yield from _table("study", {"dataset": study.dataset, "version": study.version})
        yield ""
    labels = {"treated": treatment.treated, "control": treatment.control}
    yield from _table("treatment", {"column": treatment.column, **labels, "other": treatment.other})
    yield ""
    bounds = {} if outcome.bounds is None else _interval_entries(outcome.bounds)
    rules = {} if outcome.missing is None else {"missing": outcome.missing}
    yield from _table(
        "outcome", {"column": outcome.column, **bounds, **rules, "unit": outcome.unit}
    )
    for name, kind in domain.covariates.items():
        yield ""
        entries = (
            _interval_entries(kind)
            if isinstance(kind, Interval)
            else {"categories": kind.labels, "other": kind.other}
        )
        yield from _table(f"covariates.{toml_text(name)}", entries)


def _interval_entries(bounds: Interval) -> dict[str, object]:
    ends: dict[str, object] = {"low": bounds.low, "high": bounds.high}
    return {**({"binary": True} if bounds.is_binary else ends), "missing": bounds.missing}


def _table(title: str, entries: Mapping[str, object]) -> Iterator[str]:
    yield f"[{title}]"
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
