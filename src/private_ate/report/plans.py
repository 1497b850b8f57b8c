"""A plan as text: a table that fits a terminal of 80 columns, its answer and its legend."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from private_ate.report.phrasing import capital, number_text

if TYPE_CHECKING:
    from private_ate.planning.plan import Plan, PlanRow

_WIDTH = 80


def plan_text(plan: Plan) -> str:
    """Return the table, the answer, what the columns mean and what the plan rests on."""
    parts = [f"What to expect, {plan.level} level, method {plan.method}", _table(plan)]
    if plan.answer:
        parts.append(_wrapped(f"{capital(plan.answer)}."))
    parts += [
        "\n".join(
            textwrap.fill(meaning, _WIDTH, initial_indent=f"{name:12}", subsequent_indent=" " * 12)
            for name, meaning in plan_legend(plan)
        ),
        _wrapped(f"This plan {plan.caveat}. Nothing was spent."),
    ]
    return "\n\n".join(parts)


def plan_legend(plan: Plan) -> list[tuple[str, str]]:
    """Return what each column means."""
    share = f"{100 * plan.confidence:g} %"
    notes = _NOTES if plan.rows[0].arm is None else _ARM_NOTES
    note = _SUBGROUP_NOTE if plan.has_subgroups else notes[plan.level]
    return [
        ("noise", "expected size of the privacy noise"),
        ("sampling", "standard deviation without noise: what this many units leave uncertain"),
        ("error", "expected size of both together"),
        ("half-width", f"of the {share} interval that a release will show, about the median"),
        ("detectable", "smallest effect whose interval excludes zero in four of five studies"),
        ("note", note),
    ]


_NOTES = {
    "label": "largest weight of a unit, which the noise follows",
    "sample": "whether the estimate adjusts for covariates; if not, it is a difference in means",
}
_SUBGROUP_NOTE = (
    "largest weight of a unit, which the noise follows, or how many subgroups are added up"
)
_ARM_NOTES = {
    "label": "largest weight of a unit of the first arm, which its noise follows",
    "sample": "what the estimate adjusts by: plain is nothing and makes differences in means, "
    "prognosis a model of the outcome, score that and a model of each arm",
}


def plan_cells(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns and the texts of every row, of which several are named."""
    names, rows = _columns(plan)
    title, named = _named(plan)
    if not title:
        return names, rows
    return [*names, title], [[*row, name] for row, name in zip(rows, named, strict=True)]


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


def _columns(plan: Plan) -> tuple[list[str], list[list[str]]]:
    solved = plan.rows_needed is not None
    names = ["ε", *(["rows"] if solved else []), "noise", "sampling", "error", "half-width",
             "detectable", "note"]  # fmt: skip
    return names, [_cells(row, solved=solved) for row in plan.rows]


def _table(plan: Plan) -> str:
    names, rows = _columns(plan)
    lines = [names, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(names) - 1)]
    texts = [
        "  ".join(
            [
                *(cell.rjust(width) for cell, width in zip(line[:-1], widths, strict=True)),
                line[-1],
            ]
        ).rstrip()
        for line in lines
    ]
    title, named = _named(plan)
    return "\n".join(_by_epsilon(title, named, texts) if title else texts)


def _by_epsilon(title: str, named: list[str], texts: list[str]) -> list[str]:
    """Put a row's name behind its numbers; if that does not fit, above all numbers about it."""
    head, *lines = texts
    width = max(map(len, texts))
    if width + 2 + max(map(len, named)) <= _WIDTH:
        return [
            f"{head.ljust(width)}  {title}",
            *(f"{line.ljust(width)}  {name}" for line, name in zip(lines, named, strict=True)),
        ]
    found = [f"  {head}"]
    for each in dict.fromkeys(named):
        found.append(each)
        found += [f"  {line}" for line, name in zip(lines, named, strict=True) if name == each]
    return found


def _cells(row: PlanRow, *, solved: bool) -> list[str]:
    numbers = (
        row.noise_error, row.sampling_error, row.expected_error, row.half_width,
        row.detectable_effect,
    )  # fmt: skip
    return [
        f"{row.epsilon:g}",
        *([f"{row.size:,}"] if solved else []),
        *(number_text(number, row.half_width) for number in numbers),
        row.note.partition(" (")[0],
    ]


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH)
