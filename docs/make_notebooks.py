"""Run the notebooks of the gallery and write them with their output.

A notebook is written as ``docs/notebooks/NAME.py``, with cells that begin with ``# %%``, or with
``# %% [markdown]`` for text. ``python docs/make_notebooks.py`` runs each in this process and
writes ``NAME.ipynb``, from which the site makes a page. All data in them are simulated.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "notebooks"
_CELL = re.compile(r"^# %%(?P<text> \[markdown\])?[^\n]*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of a notebook: text or code, and what the code showed."""

    source: str
    is_text: bool
    printed: str = ""
    html: str = ""
    value: str = ""


def names() -> list[str]:
    """Return the notebooks in order."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def read_cells(name: str) -> list[Cell]:
    """Cut a source into its cells."""
    text = (FOLDER / f"{name}.py").read_text("utf-8")
    starts = list(_CELL.finditer(text))
    ends = [*(found.start() for found in starts[1:]), len(text)]
    cells = []
    for found, end in zip(starts, ends, strict=True):
        source = text[found.end() : end].strip()
        if found["text"]:
            source = "\n".join(
                line.removeprefix("#").removeprefix(" ") for line in source.split("\n")
            )
        cells.append(Cell(source, bool(found["text"])))
    return cells


def run_cells(cells: list[Cell]) -> list[Cell]:
    """Run the code of a notebook in an empty folder and keep what each cell shows."""
    held: dict[str, Any] = {"__name__": "notebook"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return [cell if cell.is_text else _run(cell, held) for cell in cells]
        finally:
            os.chdir(before)


def _run(cell: Cell, held: dict[str, Any]) -> Cell:
    tree = ast.parse(cell.source)
    shown = None
    last = tree.body[-1] if tree.body else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), held)  # noqa: S102
            shown = eval(compile(ast.Expression(last.value), "cell", "eval"), held)  # noqa: S307
        else:
            exec(compile(tree, "cell", "exec"), held)  # noqa: S102
    html = shown._repr_html_() if hasattr(shown, "_repr_html_") else ""
    value = "" if shown is None else repr(shown)
    return Cell(cell.source, is_text=False, printed=printed.getvalue(), html=html, value=value)


def notebook(cells: list[Cell]) -> str:
    """Return a notebook as Jupyter writes it."""
    plain = {
        "cells": [_plain_cell(cell, index) for index, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


def _plain_cell(cell: Cell, index: int) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "cell_type": "markdown" if cell.is_text else "code",
        "id": f"cell-{index}",
        "metadata": {},
        "source": cell.source.splitlines(keepends=True),
    }
    if cell.is_text:
        return plain
    outputs: list[dict[str, Any]] = []
    if cell.printed:
        lines = cell.printed.splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines})
    if cell.value:
        data = {"text/plain": cell.value.splitlines(keepends=True)}
        if cell.html:
            data["text/html"] = cell.html.splitlines(keepends=True)
        outputs.append(
            {"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"}
        )
    return plain | {"execution_count": None, "outputs": outputs}


def page(name: str) -> str:
    """Return a notebook, with its output, as a page of the site."""
    parts = []
    for cell in json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:  # a block of raw HTML ends at an empty line
                parts.append(re.sub(r"\n\s*\n", "\n", "".join(data["text/html"])))
            else:
                shown = "".join(output.get("text", data.get("text/plain", ())))
                parts.append(f"```text\n{shown.rstrip()}\n```")
    parts.append(f"[This page as a notebook]({name}.ipynb){{ download }}")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    for each in names():
        (FOLDER / f"{each}.ipynb").write_text(notebook(run_cells(read_cells(each))), "utf-8")
