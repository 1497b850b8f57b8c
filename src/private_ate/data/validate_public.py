"""What public columns hold that was not declared: found, counted, refused or left out.

At label level covariates and treatment are public, so errors may quote what is wrong with them. No
function here reads an outcome: neither what is refused nor what is counted depends on one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import numpy as np

from private_ate.arrays import Bits
from private_ate.data.missing_rules import MissingRules, Reading, describe_rules
from private_ate.data.parse_values import has_decimal_comma
from private_ate.data.tables import Table
from private_ate.domain import Domain, Interval, Treatment
from private_ate.errors import SchemaError, UndeclaredError

__all__ = ["Entries", "PublicCounts", "PublicRows", "look_over", "settle_public"]

_NOWHERE: Final = 1 << 62
_MOST_QUOTED: Final = 10  # labels of a treatment; more of them are names or ids
_MOST_COLUMNS: Final = 5  # columns that one error speaks of


@dataclass(frozen=True, slots=True)
class Entries:
    """How many entries there are of a kind, and the first row that holds one; adds up."""

    count: int = 0
    first: int = _NOWHERE

    def __add__(self, other: Entries) -> Entries:
        return Entries(self.count + other.count, min(self.first, other.first))

    @classmethod
    def at(cls, rows: Bits, first: int) -> Entries:
        """Count the marked rows of a run that begins at row ``first``."""
        count = int(np.count_nonzero(rows))
        return cls(count, first + int(rows.argmax())) if count else cls()


@dataclass(frozen=True, slots=True)
class PublicCounts:
    """What was found in the public columns of some rows; adds up over runs of rows.

    Attributes
    ----------
    rows : int
        All rows that were looked at.
    missing_arms, undeclared_arms : Entries
        Rows without a treatment, and with a label of treatment that is not declared.
    labels : mapping of text to int
        The undeclared labels of treatment and how often each occurs; at most eleven.
    unreadable : mapping of text to Entries
        Per column of numbers, texts that are no numbers.
    commas : mapping of text to int
        How many of those would be numbers with a decimal point for their comma.
    missing, undeclared : mapping of text to int
        Per covariate, missing entries and undeclared labels, of the rows that are kept.
    kept, left_out_arms : int
        Rows with nothing to refuse; rows left out for their treatment.
    unweighted : Entries
        Rows whose sampling weight is missing, negative or above its declared bound.
    left_out_weights : int
        Those of them that have a declared treatment.
    """

    rows: int = 0
    missing_arms: Entries = Entries()
    undeclared_arms: Entries = Entries()
    labels: Mapping[str, int] = field(default_factory=dict)
    unreadable: Mapping[str, Entries] = field(default_factory=dict)
    commas: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    undeclared: Mapping[str, int] = field(default_factory=dict)
    kept: int = 0
    left_out_arms: int = 0
    unweighted: Entries = Entries()
    left_out_weights: int = 0

    def __add__(self, other: PublicCounts) -> PublicCounts:
        names = [one.name for one in fields(self)]
        total = {name: _added(getattr(self, name), getattr(other, name)) for name in names}
        labels = sorted(total["labels"].items())[: _MOST_QUOTED + 1]
        return PublicCounts(**{**total, "labels": dict(labels)})

    def after(self, rows: int) -> PublicCounts:
        """Return the counts of the same rows with others before them."""
        names = ("missing_arms", "undeclared_arms", "unreadable", "unweighted")
        return replace(self, **{name: _moved(getattr(self, name), rows) for name in names})


@dataclass(frozen=True, slots=True)
class PublicRows:
    """A run of rows after a look: what was found, which rows are kept, where entries are missing.

    ``kept`` is None if all are; ``missing`` marks kept rows, per covariate with missing entries.
    """

    counts: PublicCounts
    kept: Bits | None = field(repr=False)
    missing: Mapping[str, Bits] = field(repr=False)


def look_over(
    table: Table,
    domain: Domain,
    reading: Reading,
    *,
    takes_part: Bits,
    gaps: Mapping[str, Bits],
    first: int = 0,
    unweighted: Bits | None = None,
) -> PublicRows:
    """Look at the entries that are not what was declared.

    ``takes_part`` marks rows with a declared arm, ``gaps`` the entries of each covariate that are
    no number or no declared label; ``first`` is the number of rows before these. ``unweighted``
    marks rows whose sampling weight is none between 0 and its bound.
    """
    arms = ~takes_part
    absent, labels = arms, list[str]()
    if arms.any():
        absent = arms & table.missing(domain.treatment.column)
        labels = table.labels(domain.treatment.column, arms & ~absent)
    missing, unreadable, undeclared = _sort_gaps(table, domain, reading, gaps)
    unfit = np.zeros_like(arms) if unweighted is None else unweighted
    odd = np.logical_or.reduce([arms, unfit, *unreadable.values()])
    kept = ~odd if odd.any() else None
    counts = PublicCounts(
        table.rows,
        Entries.at(absent, first),
        Entries.at(arms & ~absent, first),
        dict(Counter(labels).most_common(_MOST_QUOTED + 1)),
        {name: Entries.at(rows, first) for name, rows in unreadable.items()},
        {
            name: sum(map(has_decimal_comma, table.labels(name, rows)))
            for name, rows in unreadable.items()
        },
        _counted(missing, kept),
        _counted(undeclared, kept),
        table.rows - int(np.count_nonzero(odd)),
        int(np.count_nonzero(arms)),
        Entries.at(unfit, first),
        int(np.count_nonzero(unfit & ~arms)),
    )
    left = missing if kept is None else {name: rows[kept] for name, rows in missing.items()}
    return PublicRows(counts, kept, {name: rows for name, rows in left.items() if rows.any()})


def _sort_gaps(
    table: Table, domain: Domain, reading: Reading, gaps: Mapping[str, Bits]
) -> tuple[dict[str, Bits], dict[str, Bits], dict[str, Bits]]:
    """Return where entries are missing, no numbers, and no declared labels, per covariate."""
    missing: dict[str, Bits] = {}
    unreadable: dict[str, Bits] = {}
    undeclared: dict[str, Bits] = {}
    for name, kind in domain.covariates.items():
        if name not in gaps:
            continue
        missing[name] = gaps[name] & table.missing(name)
        strange = gaps[name] & ~missing[name]
        if not isinstance(kind, Interval):
            undeclared[name] = strange
        # A range that was looked up is that of the numbers: a text beside it was seen already.
        elif name in reading.declared and strange.any():
            unreadable[name] = strange
    return missing, unreadable, undeclared


def settle_public(
    domain: Domain,
    reading: Reading | None,
    count: Callable[[], PublicCounts],
    *,
    by_lines: bool,
) -> tuple[Domain, MissingRules | None]:
    """Refuse what the reading does not allow; return the domain with indicators, and the rules.

    ``count`` returns what was found; it is called where public columns are looked over alone.
    ``by_lines`` says that rows are lines of one file, which has a header.
    """
    if reading is None:
        return domain, None
    if not reading.looks:
        return domain, describe_rules(domain, reading)
    counts = count()
    if not reading.leave_out_undeclared:
        _refuse(domain, counts, by_lines=by_lines)
    if counts.rows and not counts.kept:
        msg = "no row is left: none has a declared treatment and readable numbers"
        if counts.unweighted.count:
            msg += ", and a sampling weight within its bounds"
        raise SchemaError(msg)
    rules = replace(
        describe_rules(domain, reading),
        left_out_treatment=counts.left_out_arms,
        left_out_unreadable=(
            counts.rows - counts.kept - counts.left_out_arms - counts.left_out_weights
        ),
        left_out_weights=None if domain.weights is None else counts.left_out_weights,
        filled={name: counts.missing[name] for name in domain.covariates if name in counts.missing},
        undeclared={
            name: counts.undeclared[name] for name in domain.covariates if name in counts.undeclared
        },
    )
    return domain.with_indicators(counts.missing), rules


def _refuse(domain: Domain, counts: PublicCounts, *, by_lines: bool) -> None:
    found = list(_problems(domain, counts))
    if not found:
        return
    before = "line" if by_lines else "row"
    problems = [
        f"{what} in {entries.count} of {counts.rows} rows{more}, first in {before} "
        f"{entries.first + 1 + by_lines}"
        for _, what, entries, more in found
    ]
    numbers = sum(kind == "numbers" for kind, *_ in found)
    if numbers > _MOST_COLUMNS:
        rest = numbers - _MOST_COLUMNS
        problems[-rest:] = [f"{rest} more columns hold such text"]
    named = "write doses as numbers" if domain.treatment.bins else "declare the labels"
    remedies = {
        "arms": f"{named}, or with Treatment(other=…) the arm that others are in",
        "weights": "declare the largest weight that the design allows, and 0 for no weight",
        "numbers": "write numbers with a decimal point, and nothing where one is missing",
    }
    header = " (line 1 is the header)" if by_lines else ""
    wanted = "; ".join(remedies[kind] for kind in dict.fromkeys(kind for kind, *_ in found))
    msg = (
        f"{'; '.join(problems)}{header}. To go on: {wanted}; or leave such rows out, "
        "counted in the release, with leave_out_undeclared=True"
    )
    raise UndeclaredError(msg, parameter="leave out undeclared")


def _problems(domain: Domain, counts: PublicCounts) -> Iterator[tuple[str, str, Entries, str]]:
    """Yield what is refused: its kind, what is wrong, the rows, and more about them."""
    arms = f"the treatment {domain.treatment.column!r} is"
    if counts.missing_arms.count:
        yield "arms", f"{arms} missing", counts.missing_arms, ""
    if counts.undeclared_arms.count:
        quoted = ""
        if 0 < len(counts.labels) <= _MOST_QUOTED:
            each = (f"{label[:40]!r} in {number}" for label, number in counts.labels.items())
            quoted = f" ({', '.join(each)})"
        yield "arms", f"{arms} {_unlike(domain.treatment)}", counts.undeclared_arms, quoted
    if domain.weights is not None and counts.unweighted.count:
        column, high = domain.weights.column, domain.weights.high
        what = f"the sampling weight {column!r} is missing or not between 0 and {high:g}"
        yield "weights", what, counts.unweighted, ""
    for name, found in counts.unreadable.items():
        commas = counts.commas.get(name, 0)
        hint = f", {commas} of them with a decimal comma" if commas else ""
        what = f"column {name!r} is declared as numbers but holds other text"
        yield "numbers", what, found, hint


def _unlike(treatment: Treatment) -> str:
    """Say what an undeclared label is not."""
    if treatment.bins is not None:
        return "no number"
    quoted = [repr(label) for label in treatment.labels]
    if len(quoted) == 2:
        return f"neither {quoted[1]} nor {quoted[0]}"
    return f"none of {', '.join(quoted)}"


def _counted(marks: Mapping[str, Bits], kept: Bits | None) -> dict[str, int]:
    """Count the marks of kept rows, columns without any left out."""
    counts = {
        name: int(np.count_nonzero(rows if kept is None else rows & kept))
        for name, rows in marks.items()
    }
    return {name: count for name, count in counts.items() if count}


def _moved(found: Any, rows: int) -> Any:  # noqa: ANN401  # as below
    """Return entries, or a mapping of them, with so many rows before."""
    if isinstance(found, Mapping):
        return {name: _moved(one, rows) for name, one in found.items()}
    return replace(found, first=found.first + rows) if found.count else found


def _added(one: Any, other: Any) -> Any:  # noqa: ANN401  # numbers, entries, or mappings of them
    if not isinstance(one, Mapping):
        return one + other
    common = {name: _added(one[name], other[name]) for name in one.keys() & other.keys()}
    return {**one, **other, **common}
