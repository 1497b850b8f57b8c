"""The page that leads from the paper to the code: complete, and every name on it exists."""

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "the-paper.md").read_text("utf-8")
NUMBERED = {  # how many of each kind the paper has; theorems and lemmas share their numbers
    "Algorithms": 4,
    "Equations": 12,
    "Theorems and lemmas": 4,
    "Definitions": 7,
    "Figures": 12,
    "Tables": 5,
    "Formulas without a number": 6,
}
_SECTION = re.compile(
    r"^## (?P<kind>[^\n:]+): (?P<count>\d+)\n(?P<body>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)
_ROW = re.compile(
    r"^\| (\d+) \| ([^|]+) \| `([\w.]+)` \| `([\w/.]+)::(\w+)` \| ([^|]*)\|$", re.MULTILINE
)
SECTIONS = {found["kind"]: found for found in _SECTION.finditer(PAGE)}
ENTRIES = [(kind, *row) for kind, found in SECTIONS.items() for row in _ROW.findall(found["body"])]


def find(dotted):
    """Return what a dotted name stands for: a module's member, or a member of that."""
    parts = dotted.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(dotted)


@cache
def functions_of(path):
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_number_of_the_paper_is_on_the_page_once_and_in_order():
    assert {kind: int(found["count"]) for kind, found in SECTIONS.items()} == NUMBERED
    for kind, count in NUMBERED.items():
        numbers = [int(number) for section, number, *_ in ENTRIES if section == kind]
        assert numbers == list(range(1, count + 1)), kind
        lines = [line for line in SECTIONS[kind]["body"].splitlines() if line.startswith("| ")]
        assert len(lines) == count + 1, f"a row of {kind} cannot be read"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry[0]}-{entry[1]}")
def test_every_entry_leads_to_a_function_and_a_test(entry):
    function, path, test = entry[3:6]
    assert inspect.getdoc(find(function)), function
    assert test in functions_of(path), f"{path} has no test {test}"


@pytest.mark.parametrize("number", range(1, 5))
def test_the_function_of_an_algorithm_says_so(number):
    (function,) = (row[3] for row in ENTRIES if row[:2] == ("Algorithms", str(number)))
    assert re.search(rf"\bAlgorithm {number}\b", inspect.getdoc(find(function)))


@pytest.mark.parametrize("number", [4, 5, 9, 10, 11, 12])
def test_an_equation_that_is_computed_is_named_in_the_published_method(number):
    folder = ROOT / "src" / "private_ate" / "methods" / "published"
    text = " ".join(path.read_text("utf-8") for path in sorted(folder.glob("*.py")))
    assert re.search(rf"Equations? (?:\d+ and )?{number}\b", text)


def test_the_glossary_has_every_symbol_of_the_papers_first_table():
    glossary = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    first = glossary.partition("## Symbols of the paper")[2]
    cells = re.findall(r"^\| ([^|]+) \|", first, re.MULTILINE)
    symbols = {symbol.strip() for cell in cells for symbol in cell.split(",")}
    assert symbols >= {*"D T X Y Y₁ Y₀ ε n n_t n_c d k N B w e τ".split()}  # noqa: SIM905  # short
