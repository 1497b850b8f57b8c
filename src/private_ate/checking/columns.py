"""What the counts of a covariate mean: findings with a severity, a sentence and a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from private_ate.arrays import Integers
from private_ate.checking.column_counts import ColumnCounts
from private_ate.checking.findings import (
    Finding,
    Severity,
    amount,
    listed,
    named,
    number,
    quoted,
    share,
)
from private_ate.data.tables import MOST_LABELS
from private_ate.domain import Categories, Interval
from private_ate.privacy.levels import Level, has_public_covariates

_CLIPPED: Final = 0.05  # share of clipped values of a covariate that weakens its adjustment
_MISSING: Final = 0.05
_UNDECLARED: Final = 0.05
_CATCH_ALL: Final = {"other", "others", "unknown", "missing", "else", "rest", "none", "na", "n/a"}
_SHAPE_WORDS: Final = {
    "comma": (
        "look like numbers with commas",
        (
            "say that decimals follow a comma if they do throughout the file, or write decimal "
            "points and no separators of thousands: 3.5 and 1234"
        ),
    ),
    "date": (
        "look like dates",
        "turn dates into numbers, such as days since the start, or leave the column out",
    ),
    "word": (
        "are words for missing",
        "leave the field empty where a value is missing",
    ),
    "unit": (
        "are numbers with a unit or a sign",
        "keep the number alone, and the unit in the column's name",
    ),
}


def judge_covariate(
    tally: ColumnCounts, level: Level | None, copies: Sequence[Finding]
) -> Iterator[Finding]:
    """Yield what there is to say about a covariate; one finding in order if nothing else.

    ``copies`` are the findings that come from comparing it with other columns.
    """
    found = [*_judge(tally, level), *copies]
    if any(finding.severity != "ok" for finding in found):
        yield from found
        return
    what = (
        f"{number(tally.low.min())} to {number(tally.high.max())}"
        if tally.holds_numbers
        else f"{tally.hashes.distinct} labels"
    )
    yield from found
    yield Finding("in order", tally.name, "ok", f"{tally.present:,} values, {what}")


def _judge(tally: ColumnCounts, level: Level | None) -> Iterator[Finding]:
    if not tally.present:
        yield Finding(
            "missing", tally.name, "bends", "every entry is missing",
            "leave the column out of the covariates", {"rows": int(tally.rows.sum())},
        )  # fmt: skip
        return
    yield from judge_type(tally)
    yield from _missing(tally, level)
    if tally.holds_numbers:
        is_public = level is not None and has_public_covariates(level)
        yield from judge_numbers(tally, _CLIPPED, takes_words=is_public)
    elif isinstance(tally.declared, Categories):
        yield from _labels(tally, tally.declared)
    elif holds_dates(tally):
        yield _unreadable(tally, "the column by its labels")
    yield from _same_everywhere(tally)
    yield from _identifier(tally)
    yield from _follows_treatment(tally)


def judge_numbers(
    tally: ColumnCounts,
    tolerated: float,
    by_labels: str = "the column by its labels",
    *,
    takes_words: bool = False,
) -> Iterator[Finding]:
    """Yield what is unreadable or clipped in a column of numbers.

    ``by_labels`` says what one declares of a column whose entries are labels, ``takes_words``
    whether words for missing, such as R's NA, are as good as empty fields.
    """
    if tally.texts:
        yield _unreadable(tally, by_labels, takes_words=takes_words)
    if isinstance(tally.declared, Interval) and tally.beyond.count:
        yield _clipped(tally, tally.declared, tolerated)


def judge_type(tally: ColumnCounts) -> Iterator[Finding]:
    """Yield a finding if the column's type alone makes the estimate refuse it."""
    if tally.is_refused_as(tally.declared):
        wanted = "numbers" if isinstance(tally.declared, Interval) else "numbers or labels"
        yield Finding(
            "type", tally.name, "bends",
            f"its type is {tally.type_name}: the estimate refuses it", f"store it as {wanted}",
            {"type": tally.type_name},
        )  # fmt: skip


def _unreadable(tally: ColumnCounts, by_labels: str, *, takes_words: bool = False) -> Finding:
    shape, count = max(tally.shapes.items(), key=lambda pair: pair[1], default=("", 0))
    counts = {
        "rows": tally.texts,
        "share": tally.texts / tally.present,
        "shapes": {name: times for name, times in tally.shapes.items() if times},
        "examples": dict(list(tally.text_counts.ordered().items())[:5]),
    }
    examples = listed(tally.text_counts.ordered(), is_whole=tally.text_counts.is_whole)
    effect = "are no numbers" + (" and would count as missing" if tally.declared else "")
    sentence = f"{amount(tally.texts, tally.present, 'entries')} {effect}: {examples}"
    remedy = f"correct the entries, or declare {by_labels}"
    topic = "unreadable"
    if 2 * count > tally.texts:
        words, remedy = _SHAPE_WORDS[shape]
        sentence += f"; {count:,} {words}"
        topic = {"comma": "decimal commas", "date": "dates"}.get(shape, topic)
    is_fine = takes_words and shape == "word" and count == tally.texts
    return Finding(
        topic, tally.name, "note" if is_fine else "bends", sentence, "" if is_fine else remedy,
        counts,
    )  # fmt: skip


def _clipped(tally: ColumnCounts, bounds: Interval, tolerated: float) -> Finding:
    beyond, readable = tally.beyond, tally.present - tally.texts
    widths = beyond.furthest / bounds.width if bounds.width else float("inf")
    sides = {
        f"below {number(bounds.low)}": beyond.below,
        f"above {number(bounds.high)}": beyond.above,
    }
    parts = [f"{count:,} {side}" for side, count in sides.items() if count < beyond.count and count]
    parts = parts or [side for side, count in sides.items() if count]
    sentence = (
        f"outside the bounds and clipped: {amount(beyond.count, readable, 'values')}, "
        f"{', '.join(parts)}, the furthest by {_far(beyond.furthest, widths)}"
    )
    remedy = "widen the bounds if the code book allows, or clip on purpose and say so"
    code, times = _most_common(tally)
    if times >= 3 and 2 * times > beyond.count:
        sentence += f"; {times:,} of them are {number(code)}"
        remedy = f"if {number(code)} is a code for missing, leave those fields empty; else widen"
    is_many = beyond.count >= tolerated * readable
    counts = {
        "rows": beyond.count, "share": beyond.count / readable, "below": beyond.below,
        "above": beyond.above, "furthest": _plain(beyond.furthest), "widths": _plain(widths),
    }  # fmt: skip
    return Finding("clipped", tally.name, "bends" if is_many else "note", sentence, remedy, counts)


def _far(distance: float, widths: float) -> str:
    if not np.isfinite(distance):
        return "infinitely far"
    return f"{number(distance)} ({widths:.2g} widths)"


def _plain(value: float) -> float | None:
    """Return a number as JSON knows it."""
    return value if np.isfinite(value) else None


def _most_common(tally: ColumnCounts) -> tuple[float, int]:
    """Return the most frequent value outside the bounds and how often it is there."""
    counts = tally.beyond.values.numbers
    if not counts:
        return 0.0, 0
    code = max(counts, key=lambda value: (int(counts[value].sum()), -abs(value)))
    return (code, int(counts[code].sum())) if np.isfinite(code) else (0.0, 0)


def judge_declarations(tallies: Sequence[ColumnCounts], level: Level | None) -> Iterator[Finding]:
    """Yield which covariates are not declared, and what the estimate makes of that."""
    names = [tally.name for tally in tallies if tally.declared is None]
    if not names:
        return
    shown = ", ".join(map(named, names[:5]))
    more = f", … {len(names) - 5:,} more" if len(names) > 5 else ""
    sentence = f"{len(names)} of {len(tallies)} covariates are not declared ({shown}{more}): "
    if level is None:
        severity: Severity = "note"
        sentence += "the label level looks their ranges up, the sample level refuses them"
    elif has_public_covariates(level):
        severity = "ok"
        sentence += "their ranges are looked up, as they are public at this level"
    else:
        severity = "bends"
        sentence += "the estimate refuses them at this level"
    yield Finding(
        "declaration", None, severity, sentence, "declare them; lines are proposed below",
        {"columns": names},
    )  # fmt: skip


def _missing(tally: ColumnCounts, level: Level | None) -> Iterator[Finding]:
    rows, missing = int(tally.rows.sum()), int(tally.missing.sum())
    if not missing:
        return
    is_public = level is not None and has_public_covariates(level)
    is_problem = not is_public and missing >= _MISSING * rows
    kind = tally.declared
    filled = f" and count as {number(kind.fill)}" if isinstance(kind, Interval) else ""
    if isinstance(kind, Categories) and kind.other is not None:
        filled = f" and count as {quoted(kind.other)}"
    yield Finding(
        "missing", tally.name, "bends" if is_problem else "note",
        f"{amount(missing, rows, 'entries')} are missing{filled}",
        "fill them in from another source, declare what they count as, or leave the column out",
        {"rows": missing, "share": missing / rows, **tally.positions.counts(tally.missing)},
    )  # fmt: skip


def _labels(tally: ColumnCounts, kind: Categories) -> Iterator[Finding]:
    if not tally.undeclared:
        return
    labels = tally.undeclared_labels
    unseen = [label for label in kind.labels if label not in tally.seen_labels]
    is_kept_apart = kind.other is None
    is_catch_all = kind.other in unseen or str(kind.other).lower() in _CATCH_ALL
    is_problem = (
        tally.undeclared >= _UNDECLARED * tally.present if is_kept_apart else not is_catch_all
    )
    is_problem |= 2 * tally.undeclared > tally.present
    becomes = "as one category of its own" if kind.other is None else f"as {quoted(kind.other)}"
    sentence = (
        f"{amount(tally.undeclared, tally.present, 'entries')} have a label that is not declared "
        f"and count {becomes}: {listed(labels.ordered(), is_whole=labels.is_whole)}"
    )
    remedy = "declare the labels (spelling and case count)"
    if not is_catch_all:
        remedy += ", or name a label of its own as other"
    forgotten = [quoted(label) for label in unseen if label != kind.other]
    if forgotten:
        remedy += f"; declared but never seen: {', '.join(forgotten[:5])}"
    counts = {
        "rows": tally.undeclared, "share": tally.undeclared / tally.present,
        "labels": dict(list(labels.ordered().items())[:20]), "unseen": unseen,
    }  # fmt: skip
    yield Finding(
        "undeclared labels", tally.name, "bends" if is_problem else "note", sentence, remedy, counts
    )


def _same_everywhere(tally: ColumnCounts) -> Iterator[Finding]:
    if tally.hashes.distinct == 1:
        (value,) = tally.values.ordered()
        yield Finding(
            "constant", tally.name, "note",
            f"every entry is {quoted(value)}: the column has no information and costs as "
            "any other",
            "leave it out of the covariates", {"value": value},
        )  # fmt: skip


def _identifier(tally: ColumnCounts) -> Iterator[Finding]:
    if holds_dates(tally):
        return
    if not is_identifier(tally):
        too_many = tally.declared is None and not tally.holds_numbers
        if too_many and tally.hashes.distinct > MOST_LABELS:
            yield Finding(
                "id", tally.name, "bends",
                f"it has about {tally.hashes.distinct:,} different labels; the estimate refuses "
                "more than 200 that are not declared",
                "leave it out, or declare the labels that matter and an other for the rest",
                {"distinct": tally.hashes.distinct},
            )  # fmt: skip
        return
    is_refused = tally.declared is None and bool(tally.texts)
    yield Finding(
        "id", tally.name, "bends" if is_refused else "note",
        f"{_how_many(tally)} different, as those of an id are",
        "leave it out of the covariates; if it names persons, check their rows by it",
        {"distinct": tally.hashes.distinct},
    )  # fmt: skip


def _how_many(tally: ColumnCounts) -> str:
    if tally.hashes.distinct == tally.present:
        return "all entries are"
    return f"about {share(min(tally.hashes.distinct, tally.present), tally.present)} of entries are"


def _follows_treatment(tally: ColumnCounts) -> Iterator[Finding]:
    how = reveals_arm(tally)
    if how is not None:
        yield Finding(
            "follows treatment", tally.name, "bends",
            f"{how}: it may be a consequence of treatment, or another name for it",
            "leave out what was decided or measured after treatment", {},
        )  # fmt: skip


_UNIQUE: Final = 0.9  # share of different values from which on a column may be an id
_FEW_ROWS: Final = 20
_REVEALED: Final = 0.99  # share of rows whose arm a column reveals
_NAMED_ID: Final = re.compile(
    r"(?i)(^|[^a-z])(id|uid|uuid|key|ssn|mrn|nr|no|number|index|row)([^a-z]|$)"
)
_NAMED_PERSON: Final = re.compile(
    r"(?i)(^|[^a-z])(id|uid|uuid|pid|ssn|mrn|person|patient|subject|participant)([^a-z]|$)|"
    r"(person|patient|subject|case|user|study|record|participant)_?id$|[a-z]ID$|^nr$"
)


def holds_dates(tally: ColumnCounts) -> bool:
    """Whether most entries look like dates."""
    return 2 * tally.shapes["date"] > tally.present


def is_named_id(name: str) -> bool:
    """Whether a column is named as ids of persons are."""
    return _NAMED_PERSON.search(name) is not None


def is_identifier(tally: ColumnCounts) -> bool:
    """Whether nearly every row has a value of its own, and it looks like an id.

    Measurements are unique too, so numbers are ids only if they are whole and rise from row to
    row, fill their range, or are named as ids are.
    """
    present, distinct = tally.present, tally.hashes.distinct
    if present < _FEW_ROWS or distinct < _UNIQUE * present:
        return False
    if not tally.texts:
        width = tally.high.max() - tally.low.min()
        is_dense = width < 1.5 * present
        is_named = _NAMED_ID.search(tally.name) is not None
        return tally.is_whole and (tally.rises or is_dense or is_named)
    return 2 * tally.texts > present and 2 * (tally.shapes["comma"] + tally.shapes["unit"]) < (
        tally.texts
    )


def reveals_arm(tally: ColumnCounts) -> str | None:
    """Say how a column reveals the arm, None if it does not."""
    arms = np.flatnonzero(tally.rows[:-1] >= 2)
    if arms.size < 2:
        return None
    gone = tally.missing[arms] / tally.rows[arms]
    if set(gone) == {0.0, 1.0}:
        rest = "exactly one arm" if arms.size == 2 else "every row of some arms and no other row"
        return f"it is missing in {rest}"
    arms = arms[tally.rows[arms] - tally.missing[arms] >= 2]
    is_bare = tally.present < _FEW_ROWS or arms.size < 2
    if is_bare or tally.hashes.distinct < 2:
        return None
    if tally.values.is_whole and tally.hashes.distinct <= tally.present / 4:
        return _values_reveal_arm(tally, arms)
    return None if tally.texts else _lies_apart(tally, arms)


def _values_reveal_arm(tally: ColumnCounts, arms: Integers) -> str | None:
    """Say how well values determine the arm: all arms, or one of several against the others."""
    counts = np.array([count[arms] for count in tally.values.by_arm().values()])
    how = _how_well_values_reveal_arm(counts)
    if how is not None or arms.size == 2:
        return how
    in_all = counts.sum(axis=1)
    for place, own in zip(arms, counts.T, strict=True):
        how = _how_well_values_reveal_arm(np.stack([own, in_all - own], axis=1))
        if how is not None:
            return f"for {tally.positions.names[place]} against the other arms, {how}"
    return None


def _lies_apart(tally: ColumnCounts, arms: Integers) -> str | None:
    """Say whether one arm's values lie beyond those of every other."""
    for arm in arms:
        others = arms[arms != arm]
        if tally.low[arm] > tally.high[others].max():
            rest = "the other" if arms.size == 2 else "the others"
            return f"all its values in one arm lie above all those in {rest}"
        if arms.size > 2 and tally.high[arm] < tally.low[others].min():
            return "all its values in one arm lie below all those in the others"
    return None


def _how_well_values_reveal_arm(counts: Integers) -> str | None:
    """Say how well values determine the arm, from counts of shape (values, arms)."""
    if ((counts > 0).sum(axis=1) <= 1).all():
        return "its value determines the arm of every row"
    revealed = counts.max(axis=1).sum() / counts.sum()
    usual = counts.sum(axis=0).max() / counts.sum()
    is_close = revealed >= _REVEALED and 1 - revealed < 0.1 * (1 - usual)
    return f"its value determines the arm of {share(revealed, 1)} of the rows" if is_close else None
