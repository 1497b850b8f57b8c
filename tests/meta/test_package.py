"""Tests about the code itself: names, imports, docstrings and the page that lists them."""

import ast
import graphlib
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

import private_ate
from private_ate.methods.registry import option_homes
from private_ate.privacy.noise import Noise

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "private_ate"
MODULES = sorted(SOURCE.rglob("*.py"))
NAMES = {
    ".".join(("private_ate", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in MODULES
}
ROOMS = {path.stem for path in SOURCE.iterdir()}
HEAVY = ("numba", "polars", "pandas", "pyarrow", "scipy", "rich", "matplotlib", "numpy", "narwhals")


def source_id(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def test_every_public_name_can_be_imported():
    for name in private_ate.__all__:
        assert getattr(private_ate, name) is not None
    assert dir(private_ate) == sorted(private_ate.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'magic'"):
        _ = private_ate.magic


def test_every_lazy_name_is_public():
    served = {*private_ate._HOME_OF, *option_homes(), "__version__"}
    assert served >= set(private_ate.__all__)
    assert set(private_ate.__all__) >= served - set(option_homes())


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return {name.partition(".")[0] for name in found.stdout.split()}


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_after("import private_ate") & set(HEAVY) == set()


def test_building_the_command_line_loads_nothing_that_computes():
    heavy = {"numba", "polars", "pandas", "pyarrow", "scipy", "matplotlib", "numpy", "narwhals"}
    assert loaded_after("import private_ate.cli.app") & heavy == set()


def test_importing_the_front_door_loads_no_compiler_and_no_frame():
    heavy = {"numba", "polars", "pandas", "pyarrow", "matplotlib", "rich"}
    assert loaded_after("from private_ate import estimate_ate") & heavy == set()


def test_the_import_contracts_hold():
    lint = Path(sys.executable).with_name("lint-imports")
    found = subprocess.run(
        [str(lint), "--config", str(ROOT / "pyproject.toml"), "--no-cache"],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=120,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout


def imported_by(path: Path) -> set[str]:
    """Return the package's modules that a file imports, those for typing and later ones too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= parts & NAMES.keys() or {node.module}
    return names & NAMES.keys()


def test_no_module_imports_itself_by_way_of_others():
    needs = {name: imported_by(path) for name, path in NAMES.items()}
    sorter = graphlib.TopologicalSorter(needs)

    sorter.prepare()  # raises CycleError with the modules of a cycle


@pytest.mark.parametrize("path", MODULES, ids=source_id)
def test_every_module_opens_with_a_sentence(path):
    text = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert text
    first = text.partition("\n")[0]
    assert first.endswith((".", ":"))
    assert len(first) <= 100


@pytest.mark.parametrize("path", MODULES, ids=source_id)
def test_unsafe_randomness_stays_where_it_is_allowed(path):
    allowed = {"privacy/entropy.py"}
    if source_id(path) in allowed or source_id(path).startswith(("datasets/", "experiments/")):
        return
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert ast.unparse(node) not in ("np.random", "numpy.random"), ast.unparse(node)
            assert node.attr != "default_rng", ast.unparse(node)
        if isinstance(node, ast.Import):
            assert not {alias.name for alias in node.names} & {"random", "numpy.random"}
        if isinstance(node, ast.ImportFrom):
            assert node.module not in ("random", "numpy.random")


def mechanisms() -> dict[str, object]:
    return {
        name: method
        for name, method in inspect.getmembers(Noise, inspect.isfunction)
        if not name.startswith("_")
    }


def test_every_mechanism_states_neighbours_and_cost():
    assert {"laplace", "laplace_disjoint", "laplace_rows", "randomized_response", "staircase"} <= (
        set(mechanisms())
    )
    for name, method in mechanisms().items():
        text = inspect.getdoc(method) or ""
        assert "Cost: " in text, name
        assert "Neighbours:" in text, name


def test_every_release_step_of_the_published_method_states_its_privacy():
    steps = {
        "effect": ("release_arm_sums",),
        "matching": ("match_similar_units", "release_model", "ScoreNoise.add"),
        "method": ("private_ate_at_label_level", "private_ate_at_sample_level"),
    }
    for home, name in ((home, name) for home, names in steps.items() for name in names):
        module = importlib.import_module(f"private_ate.methods.published.{home}")
        text = inspect.getdoc(attrgetter(name)(module)) or ""
        for word in ("Neighbours:", "Sensitivity", "Cost: ", "Proof: docs/proofs/"):
            assert word in text, (name, word)


def test_every_proof_that_the_code_names_is_written():
    named = {
        name
        for path in MODULES
        for name in re.findall(r"docs/proofs/([\w-]+)\.md", path.read_text("utf-8"))
    }
    missing = {name for name in named if not (ROOT / "docs" / "proofs" / f"{name}.md").is_file()}
    assert named
    assert missing == set()


def architecture():
    script = ROOT / "docs" / "make_architecture.py"
    spec = importlib.util.spec_from_file_location("make_architecture", script)
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    return page


def test_the_picture_of_layers_is_current():
    page = architecture()
    assert page.PICTURE.read_text("utf-8") == page.draw(), "run python docs/make_architecture.py"


def test_the_list_holds_every_module_once_and_in_the_order_of_the_layers():
    page = architecture()
    listed = re.findall(r"^\| `(private_ate[\w.]*)` \|", page.tables(), re.MULTILINE)
    rooms = [name.split(".")[1] for name in listed[2:]]

    assert sorted(listed) == sorted(page.modules())
    assert list(dict.fromkeys(rooms)) == [name for layer in page.layers() for name in layer]


def test_every_module_that_the_guide_through_the_code_names_is_there():
    modules = architecture().modules()
    guide = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = [name for name in re.findall(r"`([A-Za-z_.]+)`", guide) if name.split(".")[0] in ROOMS]

    assert len(named) >= 20
    for name in named:
        module, _, member = f"private_ate.{name}".rpartition(".")
        found = f"private_ate.{name}" in modules or hasattr(importlib.import_module(module), member)
        assert found, name


def test_every_place_where_new_code_goes_is_there():
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = guide.partition("Where new code goes")[2].partition("A new mechanism")[0]
    for name in re.findall(r"`([\w/.]+/[\w/.]*|\w+\.py)`", table):
        place = name.partition("NAME")[0]
        assert (SOURCE / place).exists() or (ROOT / place).exists(), name


def test_no_test_shares_a_fixed_place_with_another():
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text("utf-8")
        assert "/" + "tmp/" not in text, path
        assert "Path." + "cwd" not in text, path
