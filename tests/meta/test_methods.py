"""A registered method is known everywhere; a third level or estimand is nobody's ``else``."""

import ast
import importlib.util
import inspect
import sys
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import get_args

import pytest

import private_ate
from private_ate import ArgumentError, Domain, Interval, Outcome, Survival, Treatment
from private_ate.api import METHODS, method_for
from private_ate.cli.app import app
from private_ate.experiments import arms
from private_ate.experiments.arms import ARM_STYLES
from private_ate.methods.composition import AXES, COMPOSES, refuse_gaps, takes
from private_ate.methods.registry import AUTO, is_default
from private_ate.parameters import Estimand, Target
from private_ate.privacy.levels import Level, has_public_covariates, private_part
from private_ate.release.metadata import ReleasedEstimand
from private_ate.report import phrasing, text
from private_ate.request import Request

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "private_ate"
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@every_method
def test_a_method_is_what_its_record_says(method):
    assert METHODS[method.name] is method
    assert is_dataclass(method.options)
    assert getattr(private_ate, method.options.__name__) is method.options
    assert list(inspect.signature(method.run).parameters) == ["study", "request", "noise"]
    assert set(method.levels) <= set(get_args(Level))
    assert set(method.estimands) <= set(get_args(Estimand))
    assert set(method.targets) <= set(get_args(Target))
    assert method.promise
    assert method.adjusts


@every_method
def test_a_method_has_a_page_a_golden_release_and_a_replay_at_each_level(method):
    page = (ROOT / "docs" / method.page).read_text("utf-8")
    golden = load(ROOT / "tests" / "golden" / "test_golden.py").CASES
    sys.path.insert(0, str(ROOT / "tests"))
    replayed = load(ROOT / "tests" / "attacks" / "studies.py").CASES
    sys.path.pop(0)

    assert method.name in page
    for level in method.levels:
        assert any(case.method == method.name and case.level == level for case in golden)
        assert any(case.values == (method, level) for case in replayed)


@pytest.mark.parametrize("page", ["methods.md", "baselines/README.md"])
def test_the_tables_of_methods_are_current(page):
    script = load(ROOT / "docs" / "make_methods.py")

    assert (ROOT / "docs" / page).read_text("utf-8") == script.render(page), (
        "run python docs/make_methods.py"
    )


def test_every_level_has_a_default_that_works_there():
    assert set(AUTO) == set(get_args(Level))
    for level, default in AUTO.items():
        assert level in METHODS[default].levels
        assert method_for("auto", Request(level, Fraction(1))).name == default
        assert [name for name in METHODS if is_default(name, level)] == [default]


def test_help_names_every_method(runner_output):
    for name in METHODS:
        assert name in runner_output


@pytest.fixture
def runner_output():
    from typer.testing import CliRunner

    wide = {"COLUMNS": "400", "TERM": "dumb"}
    return CliRunner().invoke(app, ["estimate", "--help"], env=wide).output


@every_method
def test_a_method_refuses_whatever_its_record_does_not_name(method):
    level = method.levels[0]
    for estimand in get_args(Estimand):
        request = Request(level, Fraction(1), estimand=estimand)
        if estimand in method.estimands:
            assert method_for(method.name, request) is method
        else:
            with pytest.raises(ArgumentError, match=f"only; the {estimand.upper()} needs"):
                method_for(method.name, request)
    for other in set(get_args(Level)) - set(method.levels):
        with pytest.raises(ArgumentError, match=f"not at {other} level"):
            refuse_gaps(method, Request(other, Fraction(1)))
    several = Request(level, Fraction(1), rows_per_person=2)
    if takes(method.name, level, "rows"):
        assert method_for(method.name, several) is method
    else:
        with pytest.raises(ArgumentError, match="one row per person"):
            method_for(method.name, several)


def test_what_composes_is_a_row_for_a_method_at_its_level():
    for (name, level), row in COMPOSES.items():
        assert level in METHODS[name].levels
        assert list(row) == [axis for axis in AXES if axis in row]  # each once, in one order


@pytest.mark.parametrize("level", get_args(Level))
@every_method
def test_every_axis_is_taken_or_refused_with_a_way_out(method, level):
    if level not in method.levels:
        return
    two = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x": Interval(0, 1)})
    several = replace(two, treatment=Treatment("t", arms=("a", "b", "c")))
    asked = Request(level, Fraction(1))
    survival = Survival("y", "e", event_label=1, horizon=1)
    uses = {
        "arms": (asked, several),
        "among": (replace(asked, among="b"), several),
        "rows": (replace(asked, rows_per_person=2), two),
        "probability": (replace(asked, design="randomized", probability=0.5), two),
        "subgroups": (replace(asked, by=("x<0.5",)), two),
        "outcomes": (asked, replace(two, further=(Outcome("z", Interval(0, 1)),))),
        "public missing": (asked, replace(two, outcome=two.outcome.with_missing("public"))),
        "private missing": (asked, replace(two, outcome=two.outcome.with_missing("private"))),
        "weights": (asked, replace(two, weights=("w", Interval(0, 2)))),
        "spark": (asked, two),
        "survival": (asked, replace(two, outcome=survival)),
    }
    assert {*uses, "undeclared"} == set(AXES)
    for axis, (request, known) in uses.items():
        on_spark = axis == "spark"
        if takes(method.name, level, axis):
            refuse_gaps(method, request, known, on_spark=on_spark)
            continue
        with pytest.raises(ArgumentError, match="use method '") as caught:
            refuse_gaps(method, request, known, on_spark=on_spark)
        assert repr(method.name) in str(caught.value)


@every_method
def test_a_method_refuses_by_itself_too_however_it_is_called(method):
    request = Request(method.levels[0], Fraction(1), estimand="atc", rows_per_person=2)
    if "atc" in method.estimands:
        return
    with pytest.raises(ArgumentError):
        method.run(None, request, None)


def test_a_new_method_gets_arms_and_a_look_of_its_own():
    new = replace(METHODS["ipw"], name="new_idea", figure="New idea", levels=get_args(Level))

    found = list(arms._arms_of(new))

    assert [arm.label for arm in found] == ["new-idea-label", "new-idea-sample"]
    assert [arm.display for arm in arms._arms_of(replace(new, figure=""))] == ["new idea"] * 2
    assert {arm.label for arm in arms.ALL_ARMS} == set(ARM_STYLES)
    assert {arm.method for arm in arms.ALL_ARMS} == set(METHODS)
    assert {arm.method for arm in arms.ARMS} == {m.name for m in METHODS.values() if m.figure}


def test_all_words_about_levels_and_estimands_are_there():
    for table in (phrasing._PRIVATE, phrasing._PUBLIC):
        assert set(table) == set(get_args(Level))
    assert set(get_args(Level)) < set(text._LEVELS)
    assert set(phrasing._NAMES) == set(get_args(Estimand))
    assert set(get_args(ReleasedEstimand)) == {*get_args(Estimand), "difference"}
    for level in get_args(Level):
        assert private_part(level)
        assert has_public_covariates(level) in (True, False)
    for decide in (private_part, has_public_covariates):
        with pytest.raises(AssertionError):
            decide("third")


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.name)
def test_no_branch_compares_a_level_with_one_of_its_names(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Compare) and ast.unparse(node.left).endswith("level"):
            named = [one for one in node.comparators if isinstance(one, ast.Constant) and one.value]
            assert not [one.value for one in named if one.value in get_args(Level)], (
                f"line {node.lineno}: use match with assert_never, or privacy/levels.py"
            )


def test_options_are_frozen_and_named_by_fields():
    for method in METHODS.values():
        assert method.options.__dataclass_params__.frozen, method.name
        assert all(item.name.isidentifier() for item in fields(method.options))
