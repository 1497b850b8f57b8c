"""What the counts of an outcome mean: numbers, labels that count as 1 and as 0, times to an event.

Not private. Plain outcomes that look like a time to an event are noted as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats, Integers
from private_ate.checking.column_counts import (
    ArmPositions,
    ColumnCounts,
    Entries,
    ValueCounts,
    count_shapes,
    read_entries,
)
from private_ate.checking.columns import judge_numbers, judge_type
from private_ate.checking.findings import Finding, Severity, amount, listed, number, quoted, share
from private_ate.data.encoding import encode_covariates, read_outcome, read_times
from private_ate.data.tables import Table
from private_ate.domain import Domain, Interval, Outcome, Survival, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.models.propensity import fit_propensity

_CLIPPED_OUTCOMES: Final = 0.01
_WIDE_BOUNDS: Final = 4  # times the span of outcomes from which bounds are called wide
_FEW_ARMS: Final = 5  # that a sentence lists
_MANY_ZEROS: Final = 0.01
_YEARS: Final = (1900, 2100)
_LEAST_OBSERVED: Final = 0.1  # of an arm at the horizon: the floor of the censoring curve
_ENOUGH_OBSERVED: Final = 0.2
_FEW_EVENTS: Final = 20
_RARE: Final = 0.1
_TIES: Final = 0.05
_FAR_APART: Final = 0.3  # standardised coefficients of censoring in two arms
_FEW_LABELS: Final = 12
_TIME_NAME: Final = re.compile(
    r"(?i)(^|[^a-z])(time|days?|months?|weeks?|years?|futime|os|pfs|dfs|follow\w*|surv\w*)([^a-z]|$)"
)
_EVENT_NAME: Final = re.compile(
    r"(?i)(^|[^a-z])(status|event|cens\w*|dead|death|died|relapse|arrest)([^a-z]|$)"
)


def judge_outcome(
    tally: ColumnCounts, domain: Domain, events: EventCounts | None
) -> Iterator[Finding]:
    """Yield what there is to say about the outcome; ``events`` are how its labels are read."""
    found = list(_outcome(tally, domain))
    yield from found
    if events is not None:
        yield from events.judge()
    if not found:
        yield Finding(
            "in order", tally.name, "ok",
            f"{tally.present:,} values, {number(tally.low.min())} to {number(tally.high.max())}",
        )  # fmt: skip


def _outcome(tally: ColumnCounts, domain: Domain) -> Iterator[Finding]:
    if not tally.present:
        yield Finding("missing", tally.name, "bends", "every outcome is missing", "find them")
        return
    bounds = domain.outcome.bounds
    if bounds is None:
        yield Finding(
            "declaration", tally.name, "bends",
            "it has no declared bounds: the estimate refuses to run without",
            "declare them from the code book; lines are proposed below",
        )  # fmt: skip
    if not (domain.outcome.reads_labels and tally.kind == "label"):
        yield from judge_type(tally)
    yield from _missing_outcomes(tally, domain.outcome)
    yield from judge_numbers(
        tally, _CLIPPED_OUTCOMES, "the label that counts as 1 as the event label (event_label)",
        takes_words=missing_rule(domain.outcome)[0],
    )  # fmt: skip
    if tally.beyond.between:
        yield Finding(
            "not binary", tally.name, "bends",
            f"it is declared as 0 or 1, and {amount(tally.beyond.between, tally.present, 'values')}"
            " lie between", "declare bounds instead", {"rows": tally.beyond.between},
        )  # fmt: skip
    yield from _wide_bounds(tally, bounds)
    if tally.hashes.distinct == 1:
        yield Finding(
            "constant", tally.name, "bends", "every outcome is the same", "is it the right column?"
        )


def _wide_bounds(tally: ColumnCounts, bounds: Interval | None) -> Iterator[Finding]:
    """Say that outcomes lie in a small part of their bounds; what they are stays unsaid."""
    if bounds is None or bounds.is_binary or tally.hashes.distinct == 1:
        return
    span = float(tally.high.max() - tally.low.min())
    if not 0 < span * _WIDE_BOUNDS <= bounds.width:
        return
    yield Finding(
        "wide bounds", tally.name, "note",
        f"the declared bounds are {_WIDE_BOUNDS} times as wide as what the outcomes span, or more: "
        "noise follows the bounds, and at sample level intervals do too",
        "ask the code book for narrower ones, never the file; at label level outcome_sd helps",
    )  # fmt: skip


def missing_rule(outcome: Outcome) -> tuple[bool, str]:
    """Return whether it is declared what a missing outcome counts as, and what it counts as."""
    if outcome.missing is not None:
        return True, "they are left out, as declared"
    bounds = outcome.bounds
    if bounds is None:
        return False, "what they count as is not declared"
    if bounds.missing is None:
        return False, f"nothing is declared, so they count as {number(bounds.fill)}"
    return True, f"they count as {number(bounds.fill)}, as declared"


def _missing_outcomes(tally: ColumnCounts, outcome: Outcome) -> Iterator[Finding]:
    missing, rows = tally.missing, tally.rows
    if not missing.any():
        return
    declared, rule = missing_rule(outcome)
    summary = amount(int(missing.sum()), int(rows.sum()), "outcomes") + " are missing"
    yield Finding(
        "missing", tally.name, "note" if declared else "bends",
        f"{', '.join([summary, *_missing_by_arm(tally)])}; {rule}",
        _missing_remedy(outcome, declared=declared),
        {"rows": int(missing.sum()), **tally.positions.counts(missing), "declared": declared},
    )  # fmt: skip


def _missing_remedy(outcome: Outcome, *, declared: bool) -> str:
    """Say how missing outcomes could be declared; of those that are left out, nothing is to do."""
    if outcome.missing is not None:
        return ""
    left_out = 'declare missing = "public" or "private", which leaves them out'
    return left_out if declared else f"{left_out}, or the number that a missing outcome stands for"


def _missing_by_arm(tally: ColumnCounts) -> list[str]:
    """Say how many outcomes each arm lacks; of many arms, those that lack most."""
    counted = [
        (int(gone), int(units), name)
        for gone, units, name in zip(
            tally.missing[:-1], tally.rows[:-1], tally.positions.names, strict=True
        )
        if units
    ]
    if len(counted) > _FEW_ARMS:
        worst = sorted(counted, key=lambda one: one[0] / one[1], reverse=True)
        counted = [one for one in worst if one[0]][:_FEW_ARMS]
    return [f"{gone:,} of {units:,} {name} ({share(gone, units)})" for gone, units, name in counted]


@dataclass(slots=True)
class EventCounts:
    """How often each entry of an outcome counts as 1, and as 0; ``places`` are arms and no arm."""

    outcome: Outcome
    places: int
    ones: ValueCounts = field(init=False)
    zeros: ValueCounts = field(init=False)
    holds_texts: bool = False

    def __post_init__(self) -> None:
        self.ones, self.zeros = ValueCounts(places=self.places), ValueCounts(places=self.places)

    def read(self, table: Table, entries: Entries, arms: Integers) -> Entries:
        """Count some rows; return their entries as the estimate reads them."""
        if table.kind(self.outcome.column) == "other":
            return entries
        numbers = read_outcome(table, self.outcome)
        self.holds_texts |= bool((entries.is_text & ~np.isnan(numbers)).any())
        self.ones.add(entries, numbers == 1, arms)
        self.zeros.add(entries, numbers == 0, arms)
        # Without an event label a text that says neither 0 nor 1 stays a text that is no number.
        return Entries(numbers, entries.texts if self.outcome.event_label is None else None)

    def judge(self) -> Iterator[Finding]:
        """Yield what would be read, where labels are."""
        label = self.outcome.event_label
        ones, zeros = self.ones.ordered(), self.zeros.ordered()
        if label is not None and not ones:
            yield Finding(
                "event", self.outcome.column, "bends",
                f"no entry is the event label {quoted(str(label))}; seen: {listed(zeros)}",
                "declare the label as the data spell it (case counts)", {"zeros": zeros},
            )  # fmt: skip
        elif label is not None or self.holds_texts:
            many = len(zeros) > 1
            yield Finding(
                "event", self.outcome.column, "note" if many else "ok",
                f"1: {listed(ones) or 'no entry'}; 0: {listed(zeros) or 'no entry'}",
                "is every one of the labels that count as 0 no event?" if many else "",
                {"ones": ones, "zeros": zeros},
            )  # fmt: skip


@dataclass(slots=True)
class _Observed:
    """Times, events and arms of all rows, as the estimate reads them; for the curator alone."""

    times: Floats = field(repr=False)
    ended: Bits = field(repr=False)
    arms: Integers = field(repr=False)
    covariates: Floats = field(repr=False)  # encoded, shape (d, n)
    labels: Counter[str] = field(repr=False)  # of the event's column
    shapes: Counter[str] = field(repr=False)  # texts in the column of times


def judge_survival(
    chunks: Iterable[Table], domain: Domain, positions: ArmPositions
) -> Iterator[Finding]:
    """Yield what there is to say about a time to an event."""
    outcome = domain.outcome
    if not isinstance(outcome, Survival):
        return
    found = _observe(chunks, domain, outcome, positions)
    yield from _event_labels(found, outcome)
    yield from _times(found, outcome)
    yield from _follow_up(found, outcome, positions.names)
    yield from _events(found, outcome, positions.names)
    if outcome.censoring_by is None and len(found.covariates):
        yield from _uneven_censoring(found, domain, outcome, len(positions.names))


def _observe(
    chunks: Iterable[Table], domain: Domain, outcome: Survival, positions: ArmPositions
) -> _Observed:
    """Read times, events, arms and declared covariates of all rows."""
    parts, labels, shapes = [], Counter[str](), Counter[str]()
    for chunk in chunks:
        entries = read_entries(chunk, outcome.column)
        read = entries.numbers, np.zeros(chunk.rows, np.bool_)
        if chunk.kind(outcome.column) != "other":
            read = read_times(chunk, outcome)
        if entries.texts is not None:
            shapes.update(count_shapes(entries.texts.filter(entries.is_text)))
        for text in chunk.texts(outcome.event).fill_null("").to_list():
            if text in labels or len(labels) <= _FEW_LABELS:
                labels[text] += 1
        parts.append((*read, positions.place(chunk), encode_covariates(chunk, domain)))
    times, ended, arms, covariates = (
        np.concatenate(column, axis=-1) for column in zip(*parts, strict=True)
    )
    return _Observed(times, ended, arms, covariates, labels, shapes)


def _event_labels(found: _Observed, outcome: Survival) -> Iterator[Finding]:
    rows, events = found.times.size, int(found.ended.sum())
    label, seen = quoted(str(outcome.event_label)), found.labels.copy()
    del seen[""]
    severity: Severity = "bends"
    if events in (0, rows):
        sentence = f"{'every row has' if events else 'no row has'} the event label {label}"
        remedy = "which label is an event? R's survival has 2 in lung (1 is censored), 1 in others"
    elif {"true", "false"} & {one.lower() for one in seen} and {"0", "1"} & set(seen):
        sentence, remedy = "words and numbers for truth are mixed", "write events in one way"
    else:
        severity, remedy = "ok", ""
        sentence = f"{amount(events, rows)} ended in the event {label}"
    yield Finding(
        "event", outcome.event, severity, f"{sentence}; seen: {listed(dict(seen.most_common()))}",
        remedy, {"events": events, "rows": rows},
    )  # fmt: skip


def _times(found: _Observed, outcome: Survival) -> Iterator[Finding]:
    """Yield which times are none, or none that can be."""
    times, rows, name = found.times, found.times.size, outcome.column
    zeros = int((times == 0).sum())
    rule = "left out, as declared" if outcome.missing else "censored at 0"
    judged: tuple[tuple[str, int, Severity, str, str], ...] = (
        ("dates", found.shapes["date"], "bends",
         "are dates: give days since the start of follow-up", "they count as censored at 0"),
        ("decimal", found.shapes["comma"], "bends",
         "have decimal commas: say so when reading", "they count as censored at 0"),
        ("missing", int(np.isnan(times).sum()), "note" if outcome.missing else "bends",
         f"are missing or no number; they are {rule}",
         'declare missing = "public" if anybody may know who lacks one'),
        ("negative", int((times < 0).sum()), "bends",
         "are negative; they count as censored at 0", "when does follow-up start?"),
        ("zero", zeros if zeros > _MANY_ZEROS * rows else 0, "bends",
         "are zero", "are these rows that never entered follow-up?"),
    )  # fmt: skip
    for topic, count, severity, what, remedy in judged:
        if count:
            sentence = f"{amount(count, rows, 'times')} {what}"
            yield Finding(topic, name, severity, sentence, remedy, {"rows": count})
    held = times[~np.isnan(times)]
    if held.size and _YEARS[0] <= held.min() and held.max() <= _YEARS[1]:
        yield Finding("years", name, "bends", "all times look like calendar years",
                      "give the time since the start of follow-up")  # fmt: skip


def _follow_up(found: _Observed, outcome: Survival, names: Sequence[str]) -> Iterator[Finding]:
    """Say whether the horizon suits how long rows are observed."""
    horizon, column = outcome.horizon, outcome.column
    times = np.where(np.isnan(found.times), 0.0, found.times)
    last, before = float(times.max()), times < horizon
    members = [found.arms == arm for arm in range(len(names))]
    if horizon > last:
        yield Finding(
            "horizon", column, "bends",
            f"the horizon {number(horizon)} is beyond the last time {number(last)}",
            _shorter(times, members),
        )  # fmt: skip
        return
    # Rows with an event by then are no longer observed either; those were not lost.
    lost = (found.times < horizon) & ~found.ended
    kept = []
    for rows in members:
        left, gone = (float(of[rows].mean()) if rows.any() else 1.0 for of in (~before, lost))
        kept.append(left / max(left + gone * rows.any(), 1e-12))
    worst = int(np.argmin(kept))
    if kept[worst] < _LEAST_OBSERVED:
        yield Finding(
            "horizon", column, "bends",
            f"of the {names[worst]} rows that had no event, {share(kept[worst], 1)} are still "
            f"observed at {number(horizon)}",
            _shorter(times, members),
        )  # fmt: skip
    if not (before & ~found.ended).any():
        yield Finding(
            "censoring", column, "note",
            "nobody is censored before the horizon: min(time, horizon) as a plain outcome spends "
            "no ε on curves",
        )  # fmt: skip
    ties = int(((times == last) & found.ended).sum())
    if ties > _TIES * times.size:
        sentence = f"{amount(ties, times.size)} have an event at the largest time {number(last)}"
        yield Finding("ties", column, "note", f"{sentence}, as an administrative end makes", "",
                      {"rows": ties})  # fmt: skip


def _shorter(times: Floats, members: Sequence[Bits]) -> str:
    """Name the largest horizon at which a fifth of every arm is still there."""
    held = [times[rows] for rows in members if rows.any()]
    longest = min(float(np.quantile(one, 1 - _ENOUGH_OBSERVED)) for one in held)
    return (
        f"a fifth of every arm is observed up to {number(longest)}; choose a horizon by the "
        "protocol, and no longer than that"
    )


def _events(found: _Observed, outcome: Survival, names: Sequence[str]) -> Iterator[Finding]:
    within = found.ended & (found.times <= outcome.horizon)
    for arm, name in enumerate(names):
        rows = found.arms == arm
        events, size = int((within & rows).sum()), int(rows.sum())
        if size and events < _FEW_EVENTS:
            yield Finding("few events", outcome.column, "note",
                          f"{events} events among the {name} rows by the horizon",
                          "curves and intervals are coarse", {"events": events})  # fmt: skip
        elif events < _RARE * size:
            yield Finding(
                "rare events", outcome.column, "note",
                f"{amount(events, size)} of {name} have the event: at sample level the "
                "effect on so rare an event is drawn towards zero", "ask at label level",
                {"events": events},
            )  # fmt: skip


def _uneven_censoring(
    found: _Observed, domain: Domain, outcome: Survival, arms: int
) -> Iterator[Finding]:
    """Say which covariate censoring depends on in different ways in the arms."""
    lost = (found.times < outcome.horizon) & ~found.ended
    # Who was lost takes the place of the treatment.
    losses = replace(domain.of_outcome(0), treatment=Treatment(domain.treatment.column))
    fits = []
    for arm in range(arms):
        rows = found.arms == arm
        if min((lost & rows).sum(), (~lost & rows).sum()) < _FEW_EVENTS:
            return
        part = np.ascontiguousarray(found.covariates[:, rows])
        study = LocalStudy(losses, part, lost[rows], None)
        slopes = fit_propensity(study, 1.0 / part.shape[1]).coordinates[1:]
        fits.append(slopes * part.std(axis=1))
    apart = np.ptp(np.stack(fits), axis=0)
    worst = int(np.argmax(apart))
    if apart[worst] > _FAR_APART:
        yield Finding(
            "censoring", domain.features[worst], "note",
            f"censoring depends on it differently in the arms (standardised log odds "
            f"{apart[worst]:.1f} apart), which biases the effect on survival",
            "declare censoring_by; a choice that is made after this look rests on the records",
            {"apart": float(apart[worst])},
        )  # fmt: skip


def judge_time_like_outcome(
    chunks: Iterable[Table], domain: Domain, every: Sequence[str], low: float
) -> Iterator[Finding]:
    """Say that a plain outcome looks like a censored time beside a column of events.

    ``low`` is the least value of the outcome.
    """
    outcome = domain.outcome
    is_plain = not isinstance(outcome, Survival) and not outcome.reads_labels
    others = [name for name in every if name not in domain.columns and _EVENT_NAME.search(name)]
    if not (is_plain and others and low >= 0 and _TIME_NAME.search(outcome.column)):
        return
    seen: dict[str, set[str]] = {name: set() for name in others}
    for chunk in chunks:
        for name, labels in seen.items():
            labels.update(text for text in chunk.texts(name).unique().to_list() if text)
    for name, labels in seen.items():
        if len(labels) == 2:
            yield Finding(
                "censored time", outcome.column, "bends",
                f"{outcome.column!r} looks like a follow-up time and {name!r} like its event; a "
                "difference of means of censored times is no effect: in our tests it was off by "
                "14 to 61 %",
                "declare time and event, with a horizon",
            )  # fmt: skip
            return
