"""Draw the import layers of pyproject.toml, and list their modules for the site.

Run ``python docs/make_architecture.py`` after adding or renaming a layer; it writes
docs/architecture.svg. The list of modules is written when the site is built.
"""

from __future__ import annotations

import ast
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "private_ate"
PICTURE = ROOT / "docs" / "architecture.svg"

# Which part of the package a layer belongs to, for the picture's colours; a new layer is grey.
_PARTS = {
    "entry points": (
        "cli", "dowhy", "sklearn", "api", "charging", "planning", "report",
    ),
    "checks": ("experiments", "audit", "datasets", "diagnostics"),
    "methods": ("baselines", "methods", "models"),
    "rows": ("engines", "data", "study", "domain"),
    "privacy": ("privacy", "ledger", "release", "effects"),
}
_COLOURS = {  # fill and edge
    "entry points": ("#e3edf7", "#3b6ea5"),
    "checks": ("#f1ecf7", "#7a5ba6"),
    "methods": ("#fdf0dc", "#b8741a"),
    "rows": ("#e4f2e7", "#3c8050"),
    "privacy": ("#fbe6e6", "#b0413e"),
    "ground": ("#eeeeee", "#777777"),
}
_WIDTH, _ROW, _GAP, _TOP = 980, 34, 8, 46
_LETTERS = 'font-family="system-ui, sans-serif" font-size="14" fill="#444444" role="img"'


def tables() -> str:
    """Return every module with the first line of its docstring, layer by layer from the top."""
    found, pieces = modules(), []
    front = [name for name in found if name in ("private_ate", "private_ate.__main__")]
    for title, members in [("the package itself", front), *_by_layer(found)]:
        rows = [f"| `{name}` | {_escape(found[name])} |" for name in members]
        pieces += [
            f"## {title}\n\n| module | what it holds |\n|---|---|\n",
            "\n".join(rows),
            "\n\n",
        ]
    return "".join(pieces)


def draw() -> str:
    """Return the picture of the layers as it should be."""
    found, stack = modules(), layers()
    height = _TOP + len(stack) * (_ROW + _GAP) + 34
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_LETTERS}>',
        "<title>The import layers of private_ate, from top to bottom</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        *_legend(),
        *_arrow(height),
    ]
    for number, layer in enumerate(stack):
        top = _TOP + number * (_ROW + _GAP)
        width = (_WIDTH - 60 - _GAP * (len(layer) - 1)) / len(layer)
        for place, name in enumerate(layer):
            text = found[f"private_ate.{name}"] if len(layer) == 1 else ""
            lines += _box(name, text, 46 + place * (width + _GAP), top, width)
    return "\n".join([*lines, "</svg>", ""])


def layers() -> list[list[str]]:
    """Return the names of each layer, from the top, as the import contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (contract,) = (one for one in contracts if one.get("containers") == ["private_ate"])
    return [
        [name.strip(" ()") for name in layer.replace(":", "|").split("|")]
        for layer in contract["layers"]
    ]


def modules() -> dict[str, str]:
    """Return the first line of every module's docstring, packages before their modules."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py"), key=_order):
        text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        found[_name(path)] = text.partition("\n")[0]
    return found


def _by_layer(found: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Return a title and the modules of each layer; of several packages one after the other."""
    return [
        (
            " · ".join(f"`{name}`" for name in layer),
            [module for name in layer for module in found if module.split(".")[1:2] == [name]],
        )
        for layer in layers()
    ]


def _box(name: str, text: str, left: float, top: float, width: float) -> list[str]:
    part = next((part for part, names in _PARTS.items() if name in names), "ground")
    middle = top + _ROW / 2 + 5
    bold = _text(left + 12, middle, f'<tspan font-weight="600" fill="#222222">{name}</tspan>')
    sentence = [_text(left + 130, middle, escape(text))] if text else []
    return [_rectangle(left, top, width, _ROW, part), bold, *sentence]


def _legend() -> list[str]:
    lines = []
    for place, part in enumerate(_COLOURS):
        left = 46 + place * 110
        lines += [_rectangle(left, 14, 16, 16, part), _text(left + 23, 27, part)]
    return lines


def _arrow(height: int) -> list[str]:
    path = f"M24 {_TOP + 4} V{height - 34} m-6 -10 l6 10 l6 -10"
    return [
        f'<path d="{path}" fill="none" stroke="#777777" stroke-width="2"/>',
        _text(46, height - 10, "imports go down, never up"),
    ]


def _rectangle(left: float, top: float, width: float, height: float, part: str) -> str:
    fill, edge = _COLOURS[part]
    place = f'x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}"'
    return f'<rect {place} rx="4" fill="{fill}" stroke="{edge}"/>'


def _text(left: float, base: float, markup: str) -> str:
    return f'<text x="{left:g}" y="{base:g}">{markup}</text>'


def _order(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
