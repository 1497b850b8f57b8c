"""A time to an event as its records show it, and plain outcomes that look like one. Not private."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats, Integers
from private_ate.checking.column_counts import ArmPositions, count_shapes, read_entries
from private_ate.checking.findings import Finding
from private_ate.checking.phrasing import amount, listed, number, quoted, share
from private_ate.data.encoding import encode_covariates, read_times
from private_ate.data.tables import Table
from private_ate.domain import Domain, Survival
from private_ate.engines.local import LocalStudy
from private_ate.models.propensity import fit_propensity

__all__ = ["ObservedTimes", "judge_survival", "judge_time_like_outcome", "observe_times"]

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


@dataclass(slots=True)
class ObservedTimes:
    """Times, events and arms of all rows, as the estimate reads them; for the curator alone."""

    times: Floats = field(repr=False)
    ended: Bits = field(repr=False)
    arms: Integers = field(repr=False)
    covariates: Floats = field(repr=False)  # encoded, shape (d, n)
    labels: dict[str, int] = field(repr=False)  # of the event's column
    shapes: dict[str, int] = field(repr=False)  # texts in the column of times
    texts: int = 0


def observe_times(
    chunks: Iterable[Table], domain: Domain, positions: ArmPositions
) -> ObservedTimes:
    """Read times, events, arms and declared covariates of all rows."""
    outcome = domain.outcome
    if not isinstance(outcome, Survival):
        msg = "times are those of a time to an event"
        raise TypeError(msg)
    parts, labels, shapes, texts = [], dict[str, int](), dict[str, int](), 0
    for chunk in chunks:
        entries = read_entries(chunk, outcome.column)
        is_odd = chunk.kind(outcome.column) == "other"
        nothing = entries.numbers, np.zeros(chunk.rows, np.bool_)
        read = nothing if is_odd else read_times(chunk, outcome)
        if entries.texts is not None:
            odd = entries.texts.filter(entries.is_text)
            texts += len(odd)
            for shape, count in count_shapes(odd).items():
                shapes[shape] = shapes.get(shape, 0) + count
        for text in chunk.texts(outcome.event).fill_null("").to_list():
            if text in labels or len(labels) <= _FEW_LABELS:
                labels[text] = labels.get(text, 0) + 1
        parts.append((*read, positions.place(chunk), encode_covariates(chunk, domain)))
    times, ended, arms, covariates = (
        np.concatenate(column, axis=-1) for column in zip(*parts, strict=True)
    )
    return ObservedTimes(times, ended, arms, covariates, labels, shapes, texts)  # fmt: skip


def judge_survival(
    found: ObservedTimes, domain: Domain, positions: ArmPositions
) -> Iterator[Finding]:
    """Yield what there is to say about a time to an event."""
    outcome = domain.outcome
    if not isinstance(outcome, Survival):
        return
    yield from _labels(found, outcome)
    yield from _times(found, outcome)
    yield from _follow_up(found, outcome, positions)
    yield from _events(found, outcome, positions)
    yield from _uneven_censoring(found, domain, positions)


def _labels(found: ObservedTimes, outcome: Survival) -> Iterator[Finding]:
    rows, events = found.times.size, int(found.ended.sum())
    seen = {label: count for label, count in found.labels.items() if label}
    seen_text = f"seen: {listed(dict(sorted(seen.items(), key=lambda one: -one[1])))}"
    counts = {"events": events, "rows": rows}
    if events in (0, rows):
        many = "every row has" if events else "no row has"
        yield Finding(
            "event", outcome.event, "bends",
            f"{many} the event label {quoted(str(outcome.event_label))}; {seen_text}",
            "which label is an event? R's survival has 2 in lung (1 is censored), 1 in others",
            counts,
        )  # fmt: skip
    elif {"true", "false"} & {one.lower() for one in seen} and {"0", "1"} & set(seen):
        yield Finding(
            "event", outcome.event, "bends", f"words and numbers for truth are mixed; {seen_text}",
            "write events in one way", counts,
        )  # fmt: skip
    else:
        yield Finding(
            "event", outcome.event, "ok",
            f"{amount(events, rows)} ended in the event {quoted(str(outcome.event_label))}; "
            f"{seen_text}",
            "", counts,
        )  # fmt: skip


def _times(found: ObservedTimes, outcome: Survival) -> Iterator[Finding]:
    times, rows, name = found.times, found.times.size, outcome.column
    for topic, count, words in (
        ("dates", found.shapes.get("date", 0), "are dates: give days since the start of follow-up"),
        ("decimal", found.shapes.get("comma", 0), "have decimal commas: say so when reading"),
    ):
        if count:
            yield Finding(topic, name, "bends", f"{amount(count, rows, 'times')} {words}",
                          "they count as censored at 0", {"rows": count})  # fmt: skip
    missing, negative = int(np.isnan(times).sum()), int((times < 0).sum())
    if missing:
        rule = "left out, as declared" if outcome.missing else "censored at 0"
        yield Finding(
            "missing", name, "note" if outcome.missing else "bends",
            f"{amount(missing, rows, 'times')} are missing or no number; they are {rule}",
            'declare missing = "public" if anybody may know who lacks one', {"rows": missing},
        )  # fmt: skip
    if negative:
        yield Finding("negative", name, "bends", f"{amount(negative, rows, 'times')} are negative; "
                      "they count as censored at 0", "when does follow-up start?",
                      {"rows": negative})  # fmt: skip
    zeros = int((times == 0).sum())
    if zeros > _MANY_ZEROS * rows:
        yield Finding("zero", name, "bends", f"{amount(zeros, rows, 'times')} are zero",
                      "are these rows that never entered follow-up?", {"rows": zeros})  # fmt: skip
    held = times[~np.isnan(times)]
    if held.size and _YEARS[0] <= held.min() and held.max() <= _YEARS[1]:
        yield Finding("years", name, "bends", "all times look like calendar years",
                      "give the time since the start of follow-up")  # fmt: skip


def _follow_up(
    found: ObservedTimes, outcome: Survival, positions: ArmPositions
) -> Iterator[Finding]:
    """Say whether the horizon suits how long rows are observed."""
    horizon, name = outcome.horizon, outcome.column
    times = np.where(np.isnan(found.times), 0.0, found.times)
    if horizon > times.max():
        yield Finding(
            "horizon", name, "bends",
            f"the horizon {number(horizon)} is beyond the last time {number(float(times.max()))}",
            _shorter(times, found.arms, len(positions.names)),
        )  # fmt: skip
        return
    shares = [float((times[found.arms == arm] >= horizon).mean()) if (found.arms == arm).any()
              else 1.0 for arm in range(len(positions.names))]  # fmt: skip
    # Rows with an event by then are no longer observed either; those were not lost.
    kept = [
        share_left / max(share_left + _lost(found, horizon, arm), 1e-12)
        for arm, share_left in enumerate(shares)
    ]
    worst = int(np.argmin(kept))
    if kept[worst] < _LEAST_OBSERVED:
        yield Finding(
            "horizon", name, "bends",
            f"of the {positions.names[worst]} rows that had no event, {share(kept[worst], 1)} are "
            f"still observed at {number(horizon)}",
            _shorter(times, found.arms, len(positions.names)),
        )  # fmt: skip
    before = times < horizon
    if not (before & ~found.ended).any():
        yield Finding(
            "censoring", name, "note",
            "nobody is censored before the horizon: min(time, horizon) as a plain outcome spends "
            "no ε on curves", "",
        )  # fmt: skip
    last = float(times.max())
    ties = int(((times == last) & found.ended).sum())
    if ties > _TIES * times.size:
        yield Finding("ties", name, "note", f"{amount(ties, times.size)} have an event at the "
                      f"largest time {number(last)}, as an administrative end makes", "",
                      {"rows": ties})  # fmt: skip


def _lost(found: ObservedTimes, horizon: float, arm: int) -> float:
    """Return the share of an arm that was censored before the horizon."""
    rows = found.arms == arm
    return float(((found.times < horizon) & ~found.ended)[rows].mean()) if rows.any() else 0.0


def _shorter(times: Floats, arms: Integers, count: int) -> str:
    """Name the largest horizon at which a fifth of every arm is still there."""
    held = [times[arms == arm] for arm in range(count) if (arms == arm).any()]
    longest = min(float(np.quantile(one, 1 - _ENOUGH_OBSERVED)) for one in held)
    return (
        f"a fifth of every arm is observed up to {number(longest)}; choose a horizon by the "
        "protocol, and no longer than that"
    )


def _events(found: ObservedTimes, outcome: Survival, positions: ArmPositions) -> Iterator[Finding]:
    within = found.ended & (found.times <= outcome.horizon)
    for arm, name in enumerate(positions.names):
        rows = found.arms == arm
        events = int((within & rows).sum())
        if rows.any() and events < _FEW_EVENTS:
            yield Finding("few events", outcome.column, "note",
                          f"{events} events among the {name} rows by the horizon",
                          "curves and intervals are coarse", {"events": events})  # fmt: skip
        elif rows.any() and events < _RARE * rows.sum():
            yield Finding(
                "rare events", outcome.column, "note",
                f"{amount(events, int(rows.sum()))} of {name} have the event: at sample level the "
                "effect on so rare an event is drawn towards zero", "ask at label level",
                {"events": events},
            )  # fmt: skip


def _uneven_censoring(
    found: ObservedTimes, domain: Domain, positions: ArmPositions
) -> Iterator[Finding]:
    """Say which covariate censoring depends on in different ways in the arms."""
    outcome = domain.outcome
    if not isinstance(outcome, Survival) or not len(found.covariates):
        return
    lost = (found.times < outcome.horizon) & ~found.ended
    fits = []
    for arm in range(len(positions.names)):
        rows = found.arms == arm
        if min((lost & rows).sum(), (~lost & rows).sum()) < _FEW_EVENTS:
            return
        part = np.ascontiguousarray(found.covariates[:, rows])
        study = LocalStudy(domain.of_outcome(0), part, lost[rows], None)
        slopes = fit_propensity(study, 1.0 / part.shape[1]).coordinates[1:]
        fits.append(slopes * part.std(axis=1))
    apart = np.ptp(np.stack(fits), axis=0)
    worst = int(np.argmax(apart))
    if apart[worst] > _FAR_APART and outcome.censoring_by is None:
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
