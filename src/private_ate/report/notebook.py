"""What a notebook shows of a release, a plan and a curator's view, in a style of its own."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from private_ate.report.effects_table import Cells, effect_tables
from private_ate.report.markup import Markup, card, element, table, warning_boxes
from private_ate.report.phrasing import headline
from private_ate.report.plans import plan_cells, plan_legend
from private_ate.report.text import summary_rows

if TYPE_CHECKING:
    from private_ate.planning.plan import Plan
    from private_ate.release.curator import ArmDiagnostics, Diagnostics
    from private_ate.release.release import Release


def plan_card(plan: Plan) -> str:
    """Return a plan: the answer, a row per ε, and what the columns mean, folded."""
    names, rows = plan_cells(plan)
    title = f"What to expect, {plan.level} level, method {plan.method}. Nothing was spent."
    head = [element("th", name, scope="col", class_="number") for name in names]
    body = [element("tr", *(element("td", text, class_="number") for text in row)) for row in rows]
    answer = [element("p", f"{plan.answer}.")] if plan.answer else []
    legend = [
        element("tr", element("th", name, scope="row"), element("td", meaning))
        for name, meaning in plan_legend(plan)
    ]
    return card(
        table(title, head, body),
        *answer,
        element(
            "details",
            element("summary", "What the columns mean"),
            element("table", element("tbody", *legend)),
            element("p", f"This plan {plan.caveat}."),
        ),
    )


def diagnostics_card(diagnostics: Diagnostics | ArmDiagnostics) -> str:
    """Return what a curator's view holds, and no value of it.

    A notebook is saved with its output and handed on; the page is written where it is asked for.
    """
    held = [item.name for item in fields(diagnostics) if item.name != "note"]
    listed: list[Markup] = [element("li", name.replace("_", " ")) for name in held]
    call = element("code", "Path(…).write_text(diagnostics.to_html(release))")
    return card(
        element("p", f"Curator's view: {diagnostics.note}.", class_="warning", role="note"),
        element("p", "It holds, without noise:"),
        element("ul", *listed),
        element("p", "Its values are not shown here, as notebooks are saved with what they show. "
                "A page with all of them: ", call),
    )  # fmt: skip


def release_card(release: Release) -> str:
    """Return the summary as a fragment for a notebook: warnings first, then a table."""
    rows = [
        element("tr", element("th", name.strip(), scope="row"), element("td", value))
        for name, value in summary_rows(release)
    ]
    title = f"{headline(release)}, released by private-ate"
    cells = effect_tables(release)
    captions = [each.title for each in cells]
    if release.arms:
        captions[0] = title
    tables = [_table(each, caption) for each, caption in zip(cells, captions, strict=True)]
    caption = [] if release.arms else [element("caption", title)]
    summary = element("table", *caption, element("tbody", *rows))
    return card(*warning_boxes(release.warnings), *tables, summary)


def _table(cells: Cells, caption: str) -> Markup:
    """Return a table of texts as it is."""
    head = (element("th", name, scope="col") for name in cells.head)
    rows = (element("tr", *(element("td", text) for text in row)) for row in cells.rows)
    return table(caption, head, rows)
