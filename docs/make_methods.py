"""Write the tables of methods in docs/methods.md and docs/baselines/README.md from the registry.

Run ``python docs/make_methods.py`` after adding a method or changing its record.
"""

from __future__ import annotations

from pathlib import Path

from private_ate.estimators.registry import AUTO, METHODS, Method

DOCS = Path(__file__).resolve().parent
_START, _END = "<!-- methods -->\n", "<!-- end of methods -->\n"
_PAGES = {"methods.md": False, "baselines/README.md": True}


def render(page: str) -> str:
    """Return a page with its table as the registry has it."""
    before, _, rest = (DOCS / page).read_text("utf-8").partition(_START)
    _, _, after = rest.partition(_END)
    table = _baselines() if _PAGES[page] else _all_methods()
    return f"{before}{_START}\n{table}\n{_END}{after}"


def _baselines() -> str:
    head = "| method | after | promise | adjusts for |\n|---|---|---|---|\n"
    rows = (
        (_link(method, "baselines/"), method.after, method.promise, method.adjusts)
        for method in METHODS.values()
        if method.is_baseline
    )
    return head + "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _all_methods() -> str:
    head = (
        "| method | levels | promise | estimands | arms | engines | rows of a person "
        "| adjusts for |\n|---|---|---|---|---|---|---|---|\n"
    )
    return head + "".join(_row(method) for method in METHODS.values())


def _row(method: Method) -> str:
    levels = (
        f"{level} (default)" if AUTO[level][0] == method.name else level for level in method.levels
    )
    estimands = ", ".join(estimand.upper() for estimand in method.estimands)
    rows = "any declared number" if method.several_rows else "one"
    cells = (
        _link(method, ""), ", ".join(levels), method.promise, estimands, str(method.arms),
        ", ".join(method.engines), rows, method.adjusts,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |\n"


def _link(method: Method, folder: str) -> str:
    return f"[`{method.name}`]({method.page.removeprefix(folder)})"


if __name__ == "__main__":
    for name in _PAGES:
        (DOCS / name).write_text(render(name), "utf-8")
