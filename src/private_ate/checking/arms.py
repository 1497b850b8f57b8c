"""What the counts of treatment mean: how large the arms are, who is in none, who can be compared.

Two arms are called treated and control, several by their labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from private_ate.checking.findings import Arms, ArmsSupport, Finding, Severity, Support
from private_ate.checking.reading import SHAPES
from private_ate.checking.slots import ArmSlots
from private_ate.checking.words import amount, listed, named, number, quoted
from private_ate.domain import Treatment, label_text
from private_ate.domain.treatment import MOST_ARMS

__all__ = ["has_commas", "judge_arms", "judge_support"]

_FEW_UNITS: Final = 30
_FEW_ARMS: Final = 5  # that a sentence lists
_SPELLING: Final = "write decimal points, not commas"
_TENTH: Final = 0.1
_IMBALANCE: Final = 0.1
_LARGE_IMBALANCE: Final = 0.25  # beyond what chance leaves in two hundred rows


def judge_arms(arms: Arms, treatment: Treatment, *, leaves_out: bool) -> Iterator[Finding]:
    """Yield how large the arms are, and which rows belong to none of them."""
    empty = [label for label, count in arms.counts.items() if not count]
    small = [label for label, count in arms.counts.items() if count < _FEW_UNITS]
    if empty:
        found = listed(arms.undeclared)
        yield Finding(
            "arms", treatment.column, "bends",
            f"no row has {_unseen(treatment, empty)}" + (f"; found: {found}" if found else ""),
            _remedy_for_empty(arms, treatment), arms.to_dict(),
        )  # fmt: skip
    else:
        remedy = "so small an arm makes wide intervals" if small else ""
        if small and treatment.size > 2:
            remedy += f": merge {_some(map(quoted, small))} with another arm, or leave it out"
        yield Finding(
            "arms", treatment.column, "note" if small else "ok", _sizes(arms, treatment), remedy,
            arms.to_dict(),
        )  # fmt: skip
    if len(empty) < len(arms.counts) or arms.missing:
        yield from _of_no_arm(arms, treatment, leaves_out=leaves_out)
    if arms.beyond and treatment.bins is not None:
        low, high = treatment.bins[0], treatment.bins[-1]
        yield Finding(
            "beyond the bins", treatment.column, "note",
            f"{amount(arms.beyond, arms.rows)} have a dose below {number(low)} or above "
            f"{number(high)} and count in the nearest bin",
            "widen the outer edges if such doses belong there; correct them if they cannot be",
            {"rows": arms.beyond, "share": arms.beyond / arms.rows},
        )  # fmt: skip


def _sizes(arms: Arms, treatment: Treatment) -> str:
    if treatment.size == 2:
        names = zip(("treated", "control"), ArmSlots(treatment).labels, strict=True)
        return ", ".join(f"{arms.counts[label]:,} {arm} ({quoted(label)})" for arm, label in names)
    reference = label_text(treatment.control)
    return ", ".join(
        f"{count:,} {quoted(label)}" + (" (reference)" if label == reference else "")
        for label, count in arms.counts.items()
    )


def _unseen(treatment: Treatment, empty: list[str]) -> str:
    if treatment.bins is not None:
        return f"a dose in {_some(map(quoted, empty), ' or ')}"
    if treatment.size > 2:
        return f"the arm {_some(map(quoted, empty), ' or ')}"
    roles = dict(zip(ArmSlots(treatment).labels, ("treated", "control"), strict=True))
    return " or ".join(f"the {roles[label]} label {quoted(label)}" for label in empty)


def _remedy_for_empty(arms: Arms, treatment: Treatment) -> str:
    if has_commas(arms):
        return _SPELLING
    if treatment.bins is not None:
        return "merge the bin with the next one"
    if treatment.size == 2:
        return "declare the labels as the data spell them"
    return "remove it from the declared arms, or declare the label as the data spell it"


def has_commas(arms: Arms) -> bool:
    """Whether some labels look like numbers with decimal commas."""
    return any(re.fullmatch(SHAPES["comma"], label) for label in arms.undeclared)


def _of_no_arm(arms: Arms, treatment: Treatment, *, leaves_out: bool) -> Iterator[Finding]:
    none = "belong to neither arm" if treatment.size == 2 else "belong to no declared arm"
    fate = "take no part" if leaves_out else none
    if treatment.other is not None:
        fate = f"count as {quoted(label_text(treatment.other))}, as declared"
    severity: Severity = "note" if leaves_out or treatment.other is not None else "bends"
    if arms.missing:
        yield Finding(
            "missing", treatment.column, severity,
            f"{amount(arms.missing, arms.rows)} have no treatment and {fate}",
            "find out, or leave such rows out on purpose",
            {"rows": arms.missing, "share": arms.missing / arms.rows},
        )  # fmt: skip
    strange = arms.neither - arms.missing
    if strange:
        unread = treatment.bins is not None
        what = "a dose that is no number" if unread else "a treatment that is not declared"
        yield Finding(
            "unreadable" if unread else "undeclared labels", treatment.column, severity,
            f"{amount(strange, arms.rows)} have {what} and {fate}: {listed(arms.undeclared)}",
            _remedy_for_strange(arms, treatment, leaves_out=leaves_out),
            {"rows": strange, "share": strange / arms.rows, "labels": dict(arms.undeclared)},
        )  # fmt: skip


def _remedy_for_strange(arms: Arms, treatment: Treatment, *, leaves_out: bool) -> str:
    if has_commas(arms):
        return _SPELLING
    if leaves_out or treatment.other is not None:
        return "declare the labels that are arms of their own, or correct them"
    if treatment.bins is not None:
        return "write numbers alone, name the arm of such rows as other, or leave them out"
    if treatment.size + len(arms.undeclared) <= MOST_ARMS:
        return (
            "correct the labels, or declare all arms that are to be compared: arms = [...], see "
            "the lines below; or leave rows of other arms out on purpose"
        )
    return f"correct the labels; a dose of more than {MOST_ARMS} values is declared by bins = [...]"


@dataclass(frozen=True, slots=True)
class _Weighed:
    """One arm under inverse propensity weights."""

    units: str  # what sentences call its units
    count: int
    effective: float
    outside: int

    @property
    def is_thin(self) -> bool:
        """Whether few units carry most of the weight, or nobody is comparable."""
        return (
            self.effective < min(_FEW_UNITS, self.count / 2)
            or self.effective < _TENTH * self.count
            or self.outside > self.count / 2
        )


def _weighed(support: Support | ArmsSupport, arms: Arms) -> list[_Weighed]:
    if isinstance(support, Support):
        return [
            _Weighed("treated units", arms.treated, support.effective_treated,
                     support.outside_treated),
            _Weighed("control units", arms.control, support.effective_control,
                     support.outside_control),
        ]  # fmt: skip
    found = [
        _Weighed(f"units of {quoted(label)}", arms.counts[label], effective, support.outside[label])
        for label, effective in support.effective.items()
    ]
    return sorted(found, key=lambda arm: arm.effective / arm.count)


def judge_support(support: Support | ArmsSupport | None, arms: Arms) -> Iterator[Finding]:
    """Yield how well the arms overlap, and whom the comparison rests on; of many the worst."""
    if support is None:
        fewest = min(arms.counts.values())
        why = {0: "an arm is empty", 1: "an arm has one row"}.get(
            fewest, "no covariate can be used"
        )
        yield Finding(
            "overlap", None, "note", f"not looked at, as {why}",
            "settle the other findings, then check again",
        )  # fmt: skip
        return
    weighed = _weighed(support, arms)
    told = ", ".join(
        f"{arm.count:,} {arm.units} weigh as much as {arm.effective:,.0f}"
        for arm in weighed[:_FEW_ARMS]
    )
    outside = [
        amount(arm.outside, arm.count, arm.units.removesuffix(" units"))
        for arm in weighed
        if arm.outside > _TENTH * arm.count
    ]
    name, (before, after) = max(
        support.balance.items(), key=lambda item: abs(item[1][1]), default=("", (0.0, 0.0))
    )
    is_off = abs(after) > _IMBALANCE
    bends = any(arm.is_thin for arm in weighed) or (bool(outside) and abs(after) > _LARGE_IMBALANCE)
    several = isinstance(support, ArmsSupport)
    sentence = f"the arms hardly overlap: {told}" if bends else told
    if outside:
        beyond = "some other arm" if several else "the other arm"
        sentence += f"; beyond every score of {beyond}: {_some(outside)}"
    if is_off:
        pair = " between two arms" if several else ""
        sentence += (
            f"; {name} differs by {abs(before):.2g} standard deviations{pair}, {abs(after):.2g} "
            "after weighting"
        )
    if support.left_out:
        sentence += f"; without {', '.join(map(named, support.left_out[:5]))}"
    severity: Severity = "bends" if bends else "note" if outside or is_off else "ok"
    remedy = "" if severity == "ok" else _remedy_for_overlap(several=several)
    yield Finding(
        "overlap", None, severity, sentence, remedy,
        {**_effective(support), "largest_imbalance": abs(after)},
    )  # fmt: skip


def _unweighed(arms: Arms) -> Finding:
    reasons = {0: "an arm is empty", 1: "an arm has one row"}
    why = reasons.get(min(arms.counts.values()), "no covariate can be used")
    remedy = "settle the other findings, then check again"
    return Finding("overlap", None, "note", f"not looked at, as {why}", remedy)


def _remedy_for_overlap(*, several: bool) -> str:
    if several:
        return (
            "ask for effects among the units of one arm (among), leave out or merge the arms that "
            "nobody else could have been in, or keep rows that could have been in any arm"
        )
    return (
        "ask for the effect on the treated (att) or on those who overlap (ato), or keep rows "
        "that could have been in either arm"
    )


def _effective(support: Support | ArmsSupport) -> dict[str, object]:
    if isinstance(support, ArmsSupport):
        return {"effective": dict(support.effective)}
    return {
        "effective_treated": support.effective_treated,
        "effective_control": support.effective_control,
    }


def _some(names: Iterable[str], between: str = ", ") -> str:
    """Return the first names, and how many more there are."""
    every = list(names)
    more = f", … {len(every) - _FEW_ARMS:,} more" if len(every) > _FEW_ARMS else ""
    return between.join(every[:_FEW_ARMS]) + more
