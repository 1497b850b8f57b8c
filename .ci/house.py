"""Measures the size and the shape of the sources: .ci/house.py prints a table.

Counts are of `src/private_ate` and the documents. Imports are read from the syntax tree, so those
for type checkers and those inside functions count too, unless a row says otherwise.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl

import private_ate
from private_ate.domain import Domain, Interval

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "private_ate"
Graph = Mapping[str, set[str]]


def read_modules() -> dict[str, ast.Module]:
    """Return the syntax tree of every module by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text())
    return found


def imports_of(tree: ast.AST, names: set[str], *, lazy: bool) -> Iterator[str]:
    """Yield the modules of ours that a module imports; ``lazy`` includes imports in functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not lazy:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in names:
                    yield inner
                elif node.module in names:
                    yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        else:
            yield from imports_of(node, names, lazy=lazy)


def import_graph(modules: Mapping[str, ast.Module], *, lazy: bool) -> dict[str, set[str]]:
    """Return which modules of ours each module imports."""
    names = set(modules)
    return {
        name: set(imports_of(tree, names, lazy=lazy)) - {name} for name, tree in modules.items()
    }


def components(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components, by Tarjan's algorithm without recursion."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found = []
    for root in graph:
        if root in order:
            continue
        work = [(root, iter(sorted(graph[root])))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            name, rest = work[-1]
            for other in rest:
                if other not in order:
                    order[other] = low[other] = len(order)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in on_stack:
                    low[name] = min(low[name], order[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == order[name]:
                    group = []
                    while not group or group[-1] != name:
                        group.append(stack.pop())
                        on_stack.discard(group[-1])
                    found.append(group)
    return found


def longest_chain(graph: Graph) -> int:
    """Return the number of modules on the longest chain of imports; a cycle counts its members."""
    groups = components(graph)  # in an order in which imported groups come first
    place = {name: number for number, group in enumerate(groups) for name in group}
    longest: list[int] = []
    for number, group in enumerate(groups):
        below = {place[other] for name in group for other in graph[name]} - {number}
        longest.append(len(group) + max((longest[other] for other in below), default=0))
    return max(longest)


def dataclass_names(modules: Mapping[str, ast.Module]) -> Counter[str]:
    """Count the dataclasses by their names."""
    return Counter(
        node.name
        for tree in modules.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any("dataclass" in ast.unparse(one) for one in node.decorator_list)
    )


def class_names(modules: Mapping[str, ast.Module]) -> Counter[str]:
    """Count all classes by their names."""
    return Counter(
        node.name
        for tree in modules.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )


def visited_by_an_estimate() -> tuple[int, int]:
    """Return how many modules a label-level estimate runs through, and builds of a domain."""
    generator = np.random.default_rng(1)
    x = generator.uniform(size=(400, 2))
    treated = generator.uniform(size=400) < x[:, 0]
    outcome = np.clip(x.sum(axis=1) + treated, 0, 4)
    data = pl.DataFrame({"x": x[:, 0], "z": x[:, 1], "t": treated, "y": outcome})
    domain = Domain("t", ("y", Interval(0, 4)), dict.fromkeys("xz", Interval(0, 1)))

    def estimate() -> None:
        private_ate.estimate_ate(data, level="label", epsilon="1", domain=domain)

    estimate()  # what loads and compiles once is not a step of every estimate
    seen: set[str] = set()
    builds = 0

    def note(frame: object, event: str, _: object) -> None:
        nonlocal builds
        code = frame.f_code  # type: ignore[attr-defined]
        if event != "call" or not code.co_filename.startswith(str(PACKAGE)):
            return
        seen.add(code.co_filename)
        builds += code is Domain.__init__.__code__

    sys.setprofile(note)
    try:
        estimate()
    finally:
        sys.setprofile(None)
    return len(seen), builds


def words(path: Path) -> int:
    """Count the words of a document."""
    return len(re.findall(r"\S+", path.read_text()))


def main() -> None:
    """Print the table."""
    modules = read_modules()
    lines = sum(len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.py"))
    everything = import_graph(modules, lazy=True)
    at_the_top = import_graph(modules, lazy=False)
    knots = [group for group in components(everything) if len(group) > 1]
    top_knots = [group for group in components(at_the_top) if len(group) > 1]
    dataclasses = dataclass_names(modules)
    twice = [name for name, count in class_names(modules).items() if count > 1]
    visited, builds = visited_by_an_estimate()
    rows = [
        ("source lines / modules", f"{lines:,} / {len(modules)}"),
        ("modules in import cycles, imports inside functions included",
         f"{sum(map(len, knots))} (largest {max(map(len, knots), default=0)})"),
        ("modules in import cycles, without those", f"{sum(map(len, top_knots))}"),
        ("longest import chain, without those", str(longest_chain(at_the_top))),
        ("modules visited by a label-level estimate; domains built", f"{visited}; {builds}"),
        ("dataclasses; class names used twice", f"{dataclasses.total()}; {len(twice)}"),
        ("words of README", str(words(ROOT / "README.md"))),
        ("lines of ARCHITECTURE.md", str(len((ROOT / "ARCHITECTURE.md").read_text().splitlines()))),
        ("words of docs", f"{sum(map(words, (ROOT / 'docs').rglob('*.md'))):,}"),
    ]  # fmt: skip
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")


if __name__ == "__main__":
    main()
