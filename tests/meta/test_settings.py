"""Settings are typed where they are written, and read through one view."""

import ast
import importlib.util
import re
from dataclasses import fields
from itertools import combinations
from pathlib import Path

import pytest

from private_ate.api import METHODS
from private_ate.methods.composition import takes
from private_ate.methods.registry import RETIRED
from private_ate.settings import ArmsSettings, Settings

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "private_ate"
# Methods that still hand over a plain mapping, and their modules; each entry is a debt.
UNTYPED: dict[str, str] = {}
READERS = {"settings.py"}


def generator():
    spec = importlib.util.spec_from_file_location("make_schema", ROOT / "docs" / "make_schema.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = generator()
KINDS = MAKER.settings_types()
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def is_settings(node: ast.AST) -> bool:
    return ast.unparse(node).rpartition(".")[2] == "settings" or (
        isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "'settings'"
    )


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant | ast.JoinedStr | ast.Name)


def lookups(tree: ast.AST) -> list[str]:
    """Return every place where a key of settings is looked up by its text."""
    other_names = {
        ast.unparse(node.targets[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and is_settings(node.value)
    }

    def hold_settings(node: ast.AST) -> bool:
        return is_settings(node) or ast.unparse(node) in other_names

    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=held, slice=key) if is_text(key):
                pass
            case ast.Call(func=ast.Attribute(value=held, attr="get" | "pop" | "setdefault")):
                pass
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[held]):
                pass
            case _:
                continue
        if hold_settings(held):
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize(
    "line",
    [
        "release.settings['arms']",
        "settings.get('arms', 1)",
        "settings[name]",
        "settings['notes'] = []",
        "plain['settings']['arms']",
        "plain['settings'].get('arms')",
        "'means' in release.settings",
        "self.release.settings.pop('arms')",
        "held = release.settings; held['arms']",
    ],
)
def test_a_lookup_by_text_is_found(line):
    assert lookups(ast.parse(line))


def test_no_module_but_one_looks_a_setting_up_by_its_text():
    found = {
        path.relative_to(SOURCE).as_posix(): lookups(ast.parse(path.read_text("utf-8")))
        for path in SOURCE.rglob("*.py")
    }
    allowed = (*READERS, *UNTYPED.values())

    assert {name: lines for name, lines in found.items() if lines and not name.startswith(allowed)
            } == {}, "read settings through private_ate.settings.Facts"  # fmt: skip
    assert found["settings.py"]


def test_every_method_has_typed_settings_at_each_of_its_levels():
    typed = [
        (name, level)
        for kind in KINDS
        for name in kind.methods
        for level in kind.levels
        if not kind.several_arms
    ]
    wanted = [(method.name, level) for method in METHODS.values() for level in method.levels]

    assert len(typed) == len(set(typed))
    untyped = {name for name, level in wanted if (name, level) not in typed}
    assert untyped == set(UNTYPED) & set(METHODS)
    assert {one for one in typed if one[0] not in RETIRED} <= set(wanted)


def test_every_method_of_several_arms_has_typed_settings_for_them():
    several = [kind for kind in KINDS if kind.several_arms]
    typed = [(name, level) for kind in several for name in kind.methods for level in kind.levels]
    known = {(method.name, level) for method in METHODS.values() for level in method.levels}
    able = {
        (method.name, level)
        for method in METHODS.values()
        for level in method.levels
        if takes(method.name, level, "arms")
    }

    assert len(typed) == len(set(typed))
    assert able <= {one for one in typed if one[0] not in RETIRED} <= known
    assert all(issubclass(kind, ArmsSettings) for kind in several)


@every_kind
def test_settings_are_frozen_and_say_what_each_key_means(kind):
    names = [item.name for item in fields(kind)]

    assert kind.__dataclass_params__.frozen
    assert not hasattr(kind, "__dict__") or "__slots__" in vars(kind)
    assert set(Settings.__annotations__) - {"methods", "levels", "several_arms"} <= set(names)
    assert list(MAKER.descriptions(kind)) == names
    assert set(MAKER.documented(kind)) <= set(names)


def options_of(described: dict) -> list[str]:
    plain = {key: value for key, value in described.items() if key != "description"}
    return [str(one) for one in plain.get("anyOf", [plain]) if one != {"type": "null"}]


def test_a_key_holds_the_same_kind_of_value_in_every_method():
    defined = MAKER.schema()["$defs"]
    shared = 0

    for pair in combinations(KINDS, 2):
        if pair[0].several_arms is not pair[1].several_arms:
            continue
        one, other = (defined[kind.__name__]["properties"] for kind in pair)
        for name in one.keys() & other.keys():
            shared += 1
            assert options_of(one[name]) == options_of(other[name]), (name, pair)
    assert shared > 100


@pytest.mark.parametrize("path", [MAKER.SHIPPED, MAKER.PUBLISHED], ids=["shipped", "published"])
def test_the_schema_is_made_from_the_types(path):
    assert path.read_text("utf-8") == MAKER.schema_text(), "run python docs/make_schema.py"


def test_the_tables_of_the_reference_page_name_every_method():
    text = MAKER.tables()

    for kind in KINDS:
        for name in kind.methods:
            assert re.search(rf"^## Settings of .*`{name}`", text, re.MULTILINE)


def test_a_value_that_json_cannot_hold_has_no_schema():
    with pytest.raises(TypeError, match="cannot hold"):
        MAKER._of_type(set[int])
