"""Lines of TOML for what is not declared, read off the data and marked so."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

from private_ate.checking.findings import Arms
from private_ate.checking.likeness import gives_arm_away, holds_dates, is_identifier
from private_ate.checking.reading import SHAPES
from private_ate.checking.roles import missing_rule
from private_ate.checking.tally import ColumnTally
from private_ate.data.tables import MOST_LABELS
from private_ate.domain import Categories, Domain, Interval, label_text, toml_text

__all__ = ["propose_declaration", "propose_lines"]

_NOT: Final = {"no", "n", "control", "placebo", "untreated", "none", "standard", "usual care"}
_WIDTH: Final = 76
_MARK: Final = "  # from the data: confirm with the code book"


def propose_declaration(tally: ColumnTally) -> Interval | Categories | None:
    """Return what the data suggest for a column, None for one that is better left out."""
    is_useless = not tally.present or tally.alike.distinct < 2
    if is_useless or holds_dates(tally) or gives_arm_away(tally) is not None:
        return None
    if tally.holds_numbers:
        low, high = float(tally.low.min()), float(tally.high.max())
        known = low < high and abs(low) < 1e150 and abs(high) < 1e150
        return Interval(low, high) if known and not is_identifier(tally) else None
    labels = tally.values.ordered()
    if is_identifier(tally) or not tally.values.is_whole or not 2 <= len(labels) <= MOST_LABELS:
        return None
    return Categories(*sorted(labels))


def propose_lines(
    domain: Domain, arms: Arms, outcome: ColumnTally, covariates: Sequence[ColumnTally]
) -> str:
    """Return TOML for every declaration that is missing, or an empty text."""
    parts = [
        [*_treatment(domain, arms)],
        [*_outcome(domain, outcome)],
        *([*_covariate(tally)] for tally in covariates if tally.declared is None),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _treatment(domain: Domain, arms: Arms) -> Iterator[str]:
    has_commas = any(re.fullmatch(SHAPES["comma"], label) for label in arms.undeclared)
    if arms.treated or arms.control or len(arms.undeclared) != 2 or has_commas:
        return
    control, treated = sorted(arms.undeclared, key=lambda label: (label.lower() not in _NOT, label))
    yield "[treatment]"
    yield f"column = {toml_text(domain.treatment.column)}"
    yield f"treated = {toml_text(label_text(treated))}{_MARK}"
    yield f"control = {toml_text(label_text(control))}{_MARK}"


def _outcome(domain: Domain, tally: ColumnTally) -> Iterator[str]:
    bounds = domain.outcome.bounds
    is_silent = bool(tally.missing.any()) and not missing_rule(domain.outcome)[0]
    if bounds is not None and not is_silent:
        return
    yield "[outcome]"
    yield f"column = {toml_text(domain.outcome.column)}"
    if bounds is None:
        seen = propose_declaration(tally)
        if isinstance(seen, Interval):
            yield from _ends(seen)
        else:
            yield "low = ???"
            yield "high = ???"
    if is_silent:
        yield 'missing = ???  # "public", "private" or a number: some outcomes are missing'


def _covariate(tally: ColumnTally) -> Iterator[str]:
    seen = propose_declaration(tally)
    if seen is None:
        yield f"# {toml_text(tally.name)}: better left out, see its findings"
        return
    yield f"[covariates.{toml_text(tally.name)}]"
    if isinstance(seen, Interval):
        yield from _ends(seen)
        return
    labels = [toml_text(label) for label in seen.labels]
    one_line = f"categories = [{', '.join(labels)}]{_MARK}"
    if len(one_line) <= _WIDTH:
        yield one_line
        return
    yield f"categories = [{_MARK}"
    yield from (f"  {label}," for label in labels)
    yield "]"


def _ends(bounds: Interval) -> Iterator[str]:
    """Yield bounds that are rounded outwards: the smallest and largest value are somebody's."""
    step = 10.0 ** math.floor(math.log10(bounds.width))
    ends = {
        "low": math.floor(bounds.low / step) * step,
        "high": math.ceil(bounds.high / step) * step,
    }
    for name, value in ends.items():
        written = int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.12g}")
        yield f"{name} = {toml_text(written)}{_MARK}"
