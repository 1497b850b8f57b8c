"""Write the tables of methods in docs/methods.md and docs/baselines/README.md from their records.

Run ``python docs/make_methods.py`` after adding a method or changing its record.
"""

from __future__ import annotations

from pathlib import Path

from private_ate.methods.composition import AXES, COMPOSES, gap_sentences, takes
from private_ate.methods.registry import AUTO, METHODS, Method

DOCS = Path(__file__).resolve().parent
_START, _END = "<!-- methods -->\n", "<!-- end of methods -->\n"
_PAGES = {"methods.md": False, "baselines/README.md": True}


def render(page: str) -> str:
    """Return a page with its table as the registry has it."""
    before, _, rest = (DOCS / page).read_text("utf-8").partition(_START)
    _, _, after = rest.partition(_END)
    table = _baselines() if _PAGES[page] else f"{_all_methods()}\n{_composition()}"
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
    head = "| method | levels | promise | estimands | adjusts for |\n|---|---|---|---|---|\n"
    return head + "".join(_row(method) for method in METHODS.values())


def _row(method: Method) -> str:
    levels = (
        f"{level} (default)" if AUTO[level] == method.name else level for level in method.levels
    )
    estimands = ", ".join(estimand.upper() for estimand in method.estimands)
    cells = (_link(method, ""), ", ".join(levels), method.promise, estimands, method.adjusts)
    return f"| {' | '.join(cells)} |\n"


def _composition() -> str:
    """Return what each method takes at each level, and what of it does not go together."""
    at = [f"`{name}` ({level})" for name, level in COMPOSES]
    head = f"| takes | {' | '.join(at)} |\n|---|{'---|' * len(at)}\n"
    rows = (
        (text.title, *("yes" if takes(*place, axis) else "–" for place in COMPOSES))
        for axis, text in AXES.items()
    )
    table = head + "".join(f"| {' | '.join(cells)} |\n" for cells in rows)
    gaps = "".join(
        f"- {name}: {'; '.join(sentences)}.\n"
        for place, name in zip(COMPOSES, at, strict=True)
        if (sentences := gap_sentences(*place))
    )
    return (
        "Methods that are not listed below compare two arms among all units on one outcome, with "
        f"one row of each person, on this machine.\n\n{table}\n"
        f"What a method takes, but not together:\n\n{gaps}"
    )


def _link(method: Method, folder: str) -> str:
    return f"[`{method.name}`]({method.page.removeprefix(folder)})"


if __name__ == "__main__":
    for name in _PAGES:
        (DOCS / name).write_text(render(name), "utf-8")
