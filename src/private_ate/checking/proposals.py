"""Lines of TOML for what is not declared, read off the data and marked so."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from private_ate.checking.arms import has_commas
from private_ate.checking.column_counts import ColumnCounts
from private_ate.checking.columns import holds_dates, is_identifier, reveals_arm
from private_ate.checking.findings import Arms
from private_ate.checking.outcome import missing_rule
from private_ate.data.parse_values import parse_number
from private_ate.data.tables import MOST_LABELS
from private_ate.domain import Binary, Categories, Domain, Interval, label_text, toml_text
from private_ate.domain.column_types import MOST_ARMS

__all__ = ["propose_declaration", "propose_lines"]

_NOT: Final = {"no", "n", "control", "placebo", "untreated", "none", "standard", "usual care"}
_RARE: Final = 0.01  # share of rows below which a label is rather a slip than an arm
_WIDTH: Final = 76
_MANY_LABELS: Final = 10  # of an outcome that is rather text than an event
_MARK: Final = "  # from the data: confirm with the code book"


def propose_declaration(tally: ColumnCounts) -> Interval | Categories | None:
    """Return what the data suggest for a column, None for one that is better left out."""
    is_useless = not tally.present or tally.hashes.distinct < 2
    if is_useless or holds_dates(tally) or reveals_arm(tally) is not None:
        return None
    if tally.holds_numbers:
        low, high = float(tally.low.min()), float(tally.high.max())
        if (low, high, tally.hashes.distinct) == (0.0, 1.0, 2):
            return Binary()
        known = low < high and abs(low) < 1e150 and abs(high) < 1e150
        return Interval(low, high) if known and not is_identifier(tally) else None
    labels = tally.values.ordered()
    if is_identifier(tally) or not tally.values.is_whole or not 2 <= len(labels) <= MOST_LABELS:
        return None
    return Categories(*sorted(labels))


def propose_lines(
    domain: Domain,
    arms: Arms,
    outcomes: Sequence[ColumnCounts],
    covariates: Sequence[ColumnCounts],
    *,
    leaves_out: bool,
    left_out: Collection[str] = (),
) -> str:
    """Return TOML for every declaration that is missing, or an empty text.

    Arms are not proposed for rows that are left out on purpose or counted elsewhere as declared,
    nor covariates that are to be ``left_out``: they determine the outcome, or name persons.
    """
    settled = leaves_out or domain.treatment.other is not None or domain.treatment.bins is not None
    parts = [
        [] if settled else [*_treatment(domain, arms)],
        *([*_outcome(domain, place, tally)] for place, tally in enumerate(outcomes)),
        *(
            [*_covariate(tally, is_useful=tally.name not in left_out)]
            for tally in covariates
            if tally.declared is None
        ),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _treatment(domain: Domain, arms: Arms) -> Iterator[str]:
    """Yield the arms that the labels suggest: those seen, and those that many rows have."""
    if not arms.undeclared or has_commas(arms):
        return
    seen = [label for label in domain.treatment.labels if arms.counts[label]]
    fresh = [
        label for label, count in arms.undeclared.items() if count >= _RARE * arms.rows or not seen
    ]
    labels = [*seen, *sorted(fresh, key=_in_order)]
    head = ["[treatment]", f"column = {toml_text(domain.treatment.column)}"]
    if not fresh or len(labels) < 2:
        return
    if len(labels) > MOST_ARMS:
        if all(parse_number(label) is not None for label in fresh):
            yield from head
            yield f"bins = ???  # edges of a dose; at least {len(labels)} different ones were seen"
        return
    first = _reference(domain, seen, labels)
    yield from head
    if len(labels) == 2:
        (other,) = (label for label in labels if label != first)
        yield f"treated = {toml_text(label_text(other))}{_MARK}"
        yield f"control = {toml_text(label_text(first))}{_MARK}"
        return
    yield from _list("arms", labels)
    yield f"reference = {toml_text(first)}{_MARK}"


def _reference(domain: Domain, seen: Sequence[str], labels: Sequence[str]) -> str:
    """Return the declared reference if it is seen, else a label that others are compared with."""
    declared = label_text(domain.treatment.control)
    if declared in seen:
        return declared
    headline = label_text(domain.treatment.treated)
    others = [label for label in labels if label != headline or headline not in seen]
    return min(others, key=lambda label: label.lower() not in _NOT)


def _in_order(label: str) -> tuple[bool, float, str]:
    """Order labels that are numbers by size, before all others."""
    value = parse_number(label)
    return value is None, 0.0 if value is None else value, label


def _outcome(domain: Domain, place: int, tally: ColumnCounts) -> Iterator[str]:
    outcome = domain.outcomes[place]
    bounds = outcome.bounds
    is_silent = bool(tally.missing.any()) and not missing_rule(outcome)[0]
    if bounds is not None and not is_silent:
        return
    yield "[[outcome]]" if domain.further else "[outcome]"
    yield f"column = {toml_text(outcome.column)}"
    if bounds is None:
        seen = propose_declaration(tally)
        if isinstance(seen, Interval):
            yield from _ends(seen)
        elif isinstance(seen, Categories) and len(seen.labels) < _MANY_LABELS:
            labels = ", ".join(map(toml_text, seen.labels))
            yield f"event_label = ???  # the label that counts as 1, of {labels}"
        else:
            yield "low = ???"
            yield "high = ???"
    if is_silent:
        yield 'missing = ???  # "public", "private" or a number: some outcomes are missing'


def _covariate(tally: ColumnCounts, *, is_useful: bool) -> Iterator[str]:
    seen = propose_declaration(tally) if is_useful else None
    if seen is None:
        yield f"# {toml_text(tally.name)}: better left out, see its findings"
        return
    yield f"[covariates.{toml_text(tally.name)}]"
    if isinstance(seen, Interval):
        yield from _ends(seen)
        return
    yield from _list("categories", seen.labels)


def _list(key: str, labels: Sequence[str]) -> Iterator[str]:
    """Yield a list of labels, one to a line if they are too many for one."""
    texts = [toml_text(label) for label in labels]
    one_line = f"{key} = [{', '.join(texts)}]{_MARK}"
    if len(one_line) <= _WIDTH:
        yield one_line
        return
    yield f"{key} = [{_MARK}"
    yield from (f"  {text}," for text in texts)
    yield "]"


def _ends(bounds: Interval) -> Iterator[str]:
    """Yield bounds that are rounded outwards: the smallest and largest value are somebody's."""
    if bounds.is_binary:
        yield f"binary = true{_MARK}"
        return
    step = 10.0 ** math.floor(math.log10(bounds.width))
    ends = {
        "low": math.floor(bounds.low / step) * step,
        "high": math.ceil(bounds.high / step) * step,
    }
    for name, value in ends.items():
        written = int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.12g}")
        yield f"{name} = {toml_text(written)}{_MARK}"
