"""What a notebook shows of a plan and of a curator's view, in a style that touches nothing else."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from private_ate.report.markup import Markup, card, element
from private_ate.report.plans import plan_cells, plan_legend

if TYPE_CHECKING:
    from private_ate.planning.plan import Plan
    from private_ate.release import ArmDiagnostics, Diagnostics


def plan_card(plan: Plan) -> str:
    """Return a plan: the answer, a row per ε, and what the columns mean, folded."""
    names, rows = plan_cells(plan)
    title = f"What to expect, {plan.level} level, method {plan.method}. Nothing was spent."
    head = element("tr", *(element("th", name, scope="col", class_="number") for name in names))
    body = [element("tr", *(element("td", text, class_="number") for text in row)) for row in rows]
    answer = [element("p", f"{plan.answer}.")] if plan.answer else []
    legend = [
        element("tr", element("th", name, scope="row"), element("td", meaning))
        for name, meaning in plan_legend(plan)
    ]
    return card(
        element(
            "table",
            element("caption", title),
            element("thead", head),
            element("tbody", *body),
        ),
        *answer,
        element(
            "details",
            element("summary", "What the columns mean"),
            element("table", element("tbody", *legend)),
            element("p", f"This plan {plan.caveat}."),
        ),
    )


def diagnostics_card(diagnostics: Diagnostics | ArmDiagnostics) -> str:
    """Return the sign on the door of a curator's view: what is inside, and no value of it.

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
