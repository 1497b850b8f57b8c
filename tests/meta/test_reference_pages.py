"""Pages of reference say what the code says: commands, TOML keys, exit codes, public names."""

import ast
import inspect
import json
import re
from pathlib import Path

import pytest

import private_ate
from private_ate.cli.app import EXIT_CODES
from private_ate.errors import PrivateAteError

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def load(name):
    from importlib.util import module_from_spec, spec_from_file_location
    from sys import modules

    spec = spec_from_file_location(name, DOCS / f"{name}.py")
    module = modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_generated_part_has_one_page_and_can_be_written():
    hook = load("_site/generated")
    pages = {path: path.read_text("utf-8") for path in DOCS.rglob("*.md")}

    for marker in hook.MAKERS:
        assert len([path for path, text in pages.items() if marker in text]) == 1, marker
        assert hook.on_page_markdown(marker).count("\n| `") > 40, marker


def test_the_page_of_the_command_line_names_every_command():
    from typer.main import get_command

    from private_ate.cli.app import app

    page = (DOCS / "reference/command-line.md").read_text("utf-8")
    named = re.findall(r"`private-ate ([a-z]+)[^`]*`", page.partition("## Exit codes")[0])

    assert set(get_command(app).commands) <= set(named)


def test_every_exit_code_of_the_program_is_on_the_page():
    used = {0}
    for path in (ROOT / "src/private_ate/cli").glob("*.py"):
        text = path.read_text("utf-8")
        used |= {int(code) for code in re.findall(r"(?:Exit\(|, )(\d)\)$", text, re.MULTILINE)}

    assert used & set(EXIT_CODES) == set(EXIT_CODES)
    page = (DOCS / "reference/command-line.md").read_text("utf-8")
    assert all(f"| {code} | {meaning} |" in page for code, meaning in EXIT_CODES.items())


def keys_of_a_domain():
    """Return the keys that the reader of domains lets pass, as its source has them."""
    tree = ast.parse((ROOT / "src/private_ate/domain/toml.py").read_text("utf-8"))
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_only"
    ]
    lists = [node.value for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)
             and getattr(node.target, "id", "").endswith("_KEYS")]  # fmt: skip
    return {
        item.value
        for part in [*(call.args[2] for call in calls), *lists]
        for item in ast.walk(part)
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    }


def test_every_key_of_a_domain_is_on_its_page():
    keys = keys_of_a_domain()
    page = (DOCS / "reference/domain-toml.md").read_text("utf-8")

    assert {"column", "bins", "categories", "dataset", "high"} <= keys
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []


def test_every_public_name_is_on_the_api_page():
    page = (DOCS / "api.md").read_text("utf-8")
    named = {path.rpartition(".")[2] for path in re.findall(r"^::: (\S+)", page, re.MULTILINE)}

    lacking = [
        name
        for name in private_ate.__all__
        if name not in named and name != "__version__" and not is_error(name)
    ]

    assert lacking == []
    assert "errors" in named


def is_error(name):
    held = getattr(private_ate, name)
    return inspect.isclass(held) and issubclass(held, PrivateAteError)


@pytest.mark.parametrize("name", load("make_notebooks").names())
def test_a_notebook_of_the_gallery_is_what_its_source_says_and_was_run(name):
    script = load("make_notebooks")
    cells = script.read_cells(name)
    held = json.loads((script.FOLDER / f"{name}.ipynb").read_text("utf-8"))

    assert held["nbformat"] == 4
    assert ["".join(cell["source"]) for cell in held["cells"]] == [cell.source for cell in cells]
    shown = [cell for cell in held["cells"] if cell.get("outputs")]
    assert len(shown) >= 2
    assert (script.FOLDER / f"{name}.ipynb").stat().st_size < 60_000
    stub = (script.FOLDER / f"{name}.md").read_text("utf-8")
    page = load("_site/generated").on_page_markdown(stub)
    assert all(cell.source in page for cell in cells), "run python docs/make_notebooks.py"
    assert f"({name}.md)" in (script.FOLDER / "index.md").read_text("utf-8")


def test_a_cell_keeps_what_it_prints_and_shows():
    script = load("make_notebooks")
    code = script.Cell("print('a')\nvalue = 1\nvalue + 1", is_text=False)

    (done,) = script.run_cells([code])

    assert (done.printed, done.value, done.html) == ("a\n", "2", "")
