"""A plan as text that fits a terminal of 80 columns, and as a card for notebooks."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from private_ate.report.effects_table import Cells
from private_ate.report.markup import card, element, folded, pairs_table, table
from private_ate.report.phrasing import capital, number_text
from private_ate.report.text import aligned_lines, named_lines

if TYPE_CHECKING:
    from private_ate.planning.plan import Plan

_WIDTH = 80
_NOTES: Final = {
    "label": "largest weight of a unit, which the noise follows",
    "sample": "whether the estimate adjusts for covariates; if not, it is a difference in means",
}
_SUBGROUP_NOTE: Final = (
    "largest weight of a unit, which the noise follows, or how many subgroups are added up"
)
_ARM_NOTES: Final = {
    "label": "largest weight of a unit of the first arm, which its noise follows",
    "sample": "what the estimate adjusts by: plain is nothing and makes differences in means, "
    "prognosis a model of the outcome, score that and a model of each arm",
}


def plan_text(plan: Plan) -> str:
    """Return the table, the answer, what the columns mean and what the plan rests on."""
    answer = [textwrap.fill(f"{capital(plan.answer)}.", _WIDTH)] if plan.answer else []
    parts = [
        f"What to expect, {plan.level} level, method {plan.method}",
        "\n".join(_lines(plan)),
        *answer,
        "\n".join(named_lines(plan_legend(plan), 12, _WIDTH)),
        textwrap.fill(f"This plan {plan.caveat}. Nothing was spent.", _WIDTH),
    ]
    return "\n\n".join(parts)


def plan_card(plan: Plan) -> str:
    """Return a plan: the answer, a row per ε, and what the columns mean, folded."""
    cells, title, named = _cells(plan), *_named(plan)
    head, rows = list(cells.head), [list(row) for row in cells.rows]
    if title:
        head.append(title)
        rows = [[*row, name] for row, name in zip(rows, named, strict=True)]
    caption = f"What to expect, {plan.level} level, method {plan.method}. Nothing was spent."
    return card(
        table(caption, [(name, "number") for name in head], rows),
        *([element("p", f"{plan.answer}.")] if plan.answer else []),
        folded(
            "What the columns mean",
            pairs_table("", plan_legend(plan)),
            element("p", f"This plan {plan.caveat}."),
        ),
    )


def plan_legend(plan: Plan) -> list[tuple[str, str]]:
    """Return what each column means."""
    share = f"{100 * plan.confidence:g} %"
    notes = _NOTES if plan.rows[0].arm is None else _ARM_NOTES
    return [
        ("noise", "expected size of the privacy noise"),
        ("sampling", "standard deviation without noise: what this many units leave uncertain"),
        ("error", "expected size of both together"),
        ("half-width", f"of the {share} interval that a release will show, about the median"),
        ("detectable", "smallest effect whose interval excludes zero in four of five studies"),
        ("note", _SUBGROUP_NOTE if plan.has_subgroups else notes[plan.level]),
    ]


def _cells(plan: Plan) -> Cells:
    """Return a row per ε and row of the table of effects."""
    is_solved = plan.rows_needed is not None
    names = ("ε", *(["rows"] * is_solved), "noise", "sampling", "error", "half-width",
             "detectable", "note")  # fmt: skip
    rows = []
    for row in plan.rows:
        numbers = (
            row.noise_error, row.sampling_error, row.expected_error, row.half_width,
            row.detectable_effect,
        )  # fmt: skip
        texts = [number_text(number, row.half_width) for number in numbers]
        size = [f"{row.size:,}"] * is_solved
        rows.append((f"{row.epsilon:g}", *size, *texts, row.note.partition(" (")[0]))
    return Cells(names, tuple(rows), (*[True] * (len(names) - 1), False))


def _named(plan: Plan) -> tuple[str, list[str]]:
    """Return what distinguishes rows of an ε: outcomes, subgroups, contrasts, or several."""
    first, kinds = plan.rows[0], []
    if first.outcome is not None:
        kinds.append(("outcome", [row.outcome or "" for row in plan.rows]))
    if plan.has_subgroups:
        kinds.append(("subgroup", [row.subgroup or "all units" for row in plan.rows]))
    if first.arm is not None:
        kinds.append(("contrast", [f"{row.arm} against {row.against}" for row in plan.rows]))
    if not kinds:
        return "", []
    title = "subgroup" if plan.has_subgroups else kinds[-1][0]
    return title, [": ".join(names) for names in zip(*(names for _, names in kinds), strict=True)]


def _lines(plan: Plan) -> list[str]:
    """Return the table; names of rows are behind their numbers, or above them if that is wide."""
    cells, title, named = _cells(plan), *_named(plan)
    head, *lines = aligned_lines([cells.head, *cells.rows], cells.numbers, 2)
    if not title:
        return [head, *lines]
    width = max(map(len, (head, *lines)))
    if width + 2 + max(map(len, named)) <= _WIDTH:
        beside = zip((head, *lines), (title, *named), strict=True)
        return [f"{line.ljust(width)}  {name}" for line, name in beside]
    found = [f"  {head}"]
    for each in dict.fromkeys(named):
        found.append(each)
        found += [f"  {line}" for line, name in zip(lines, named, strict=True) if name == each]
    return found
