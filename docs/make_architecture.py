"""Write ARCHITECTURE.md: the tree of modules, one line each, taken from their docstrings.

Run ``python docs/make_architecture.py`` after adding or renaming a module.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "private_ate"
PAGE = ROOT / "ARCHITECTURE.md"

_INTRODUCTION = """\
# Architecture

One idea: **records stay behind a boundary and only paid-for numbers cross it.**

A `Study` answers folds: a kernel is a pure function of a block of rows that returns a small value
which adds up, and the engine hands back the sum. Methods never hold an array with a row per person,
engines never know ε, and all noise is drawn at one choke point, `Noise`, which writes down what
each call costs and on which sensitivity it rests. What a method hands over becomes a `Release`,
which holds paid-for numbers and public facts only.

A request flows through the modules in this order: `cli` or `estimation` takes it, `Request` and the
options check themselves with the readers in `arguments`, `inputs` and `tables` read and encode the
data as the `domain` declares, an `engines` module keeps the rows, an `estimators` module asks for
folds and for noise, and `release` is what comes out. Imports go one way only; the contracts in
`pyproject.toml` are checked by `lint-imports`.

## Modules

This table is written by `docs/make_architecture.py` from the first line of each module.

| module | what it holds |
|---|---|
"""


def render() -> str:
    """Return the page as it should be."""
    rows = [f"| `{name}` | {_escape(first)} |" for name, first in modules().items()]
    return _INTRODUCTION + "\n".join(rows) + "\n"


def modules() -> dict[str, str]:
    """Return the first line of every module's docstring, packages before their modules."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py"), key=_order):
        text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        found[_name(path)] = text.partition("\n")[0]
    return found


def _order(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
