"""Fills in what is written by code: commands, fields of a release, modules, notebooks.

A page with such a part holds a marker; the site has the part in its place.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

DOCS = Path(__file__).resolve().parent.parent
MAKERS: dict[str, tuple[str, str]] = {  # marker: script below docs/, function that writes the part
    "<!-- generated: commands -->": ("make_reference", "commands"),
    "<!-- generated: fields -->": ("make_schema", "tables"),
    "<!-- generated: modules -->": ("make_architecture", "tables"),
}
NOTEBOOK = re.compile(r"<!-- generated: notebook ([\w-]+) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each marker by what its script writes; of a notebook, the whole page."""
    notebook = NOTEBOOK.search(markdown)
    if notebook:
        return str(load("make_notebooks").page(notebook[1]))
    for marker, (script, function) in MAKERS.items():
        if marker in markdown:
            write: Callable[[], str] = getattr(load(script), function)
            markdown = markdown.replace(marker, write())
    return markdown


def load(name: str) -> ModuleType:
    """Return a script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(name)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
