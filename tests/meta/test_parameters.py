"""One table of parameters: every door has what the table says, with its default and its words."""

import ast
import inspect
import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest
import typer

import private_ate
from private_ate import ArgumentError
from private_ate.cli.app import app
from private_ate.parameters import PARAMETERS, REQUIRED, SAME, checked, keywords_of, parameters_of
from private_ate.request import Request
from private_ate.service.policy import Question

ROOT = Path(__file__).resolve().parents[2]
# What a door asks that is no parameter of an estimate.
OWN = {
    "domain": {"data", "treatment", "outcome", "covariates", "level"},
    "ask": {"url", "dataset", "token_file", "key", "plan_only"},
    "dowhy": {"test_significance", "evaluate_effect_strength", "confidence_intervals"},
    "r": {"transfer", "folder", "program"},
}  # fmt: skip


def of_signature(function):
    found = inspect.signature(function).parameters.values()
    return {one.name: REQUIRED if one.default is one.empty else one.default for one in found}


def of_command(name):
    found = typer.main.get_command(app).commands[name].params
    return {one.name: REQUIRED if one.required else one.default for one in found}


def of_question():
    usual = {one.name: one.default for one in fields(Question)}
    made = {one.name: one.default_factory() for one in fields(Question)
            if one.default_factory is not MISSING}  # fmt: skip
    return {name: REQUIRED if value is MISSING else value for name, value in usual.items()} | made


def of_body():
    models = pytest.importorskip("private_ate.service.web.models")
    found = models.QuestionBody.model_fields
    return {
        name: REQUIRED if one.is_required() else one.get_default(call_default_factory=True)
        for name, one in found.items()
    }


def of_r():
    text = (ROOT / "r/R/private_ate.R").read_text("utf-8")
    inside = re.search(r"private_ate <- function\((.*?)\) \{\n", text, re.DOTALL)[1]
    words = {"NULL": None, "FALSE": False, "TRUE": True}
    found = {}
    for part in re.split(r",(?![^(]*\))", inside):
        name, sign, default = (word.strip() for word in part.partition("="))
        read = words.get(default, default.strip('"'))
        if re.fullmatch(r"[\d.]+", str(read)):
            read = float(read)
        found[name] = read if sign else REQUIRED
    return found


def of_class(module):
    """Return the arguments of a class from its source: what it inherits may not be installed."""
    tree = ast.parse((ROOT / f"src/private_ate/{module}.py").read_text("utf-8"))
    made = next(node for node in ast.walk(tree) if getattr(node, "name", "") == "__init__")
    names = [one.arg for one in made.args.kwonlyargs]
    return {
        name: REQUIRED if default is None else ast.literal_eval(default)
        for name, default in zip(names, made.args.kw_defaults, strict=True)
    }


DOORS = {
    "estimate_ate": lambda: of_signature(private_ate.estimate_ate),
    "plan_ate": lambda: of_signature(private_ate.plan_ate),
    "check_data": lambda: of_signature(private_ate.check_data),
    "estimate": lambda: of_command("estimate"),
    "plan": lambda: of_command("plan"),
    "check": lambda: of_command("check"),
    "domain": lambda: of_command("domain"),
    "ask": lambda: of_command("ask"),
    "sklearn": lambda: of_class("sklearn"),
    "dowhy": lambda: of_class("dowhy"),
    "service": of_question,
    "service's body": of_body,
    "r": of_r,
}
COMMANDS = ("estimate", "plan", "check", "domain", "ask")


@pytest.mark.parametrize("name", DOORS)
def test_a_door_has_the_parameters_of_the_table_with_their_defaults(name):
    door = name.split("'", maxsplit=1)[0]
    listed = {one.name: one for one in parameters_of(door)}
    found = {key: value for key, value in DOORS[name]().items() if key not in OWN.get(door, ())}
    found.pop("data", None)
    listed.pop("data", None)

    assert set(found) == set(listed) - OWN.get(door, set())
    for key, value in found.items():
        wanted = listed[key].default_at(door)
        if door in COMMANDS and listed[key].flag_default is not SAME:
            wanted = listed[key].flag_default
        if door == "domain" and key == "out":
            wanted = REQUIRED
        assert value == wanted or (value in ([], (), {}) and wanted in ([], (), {})), key


def test_every_door_is_known_and_every_parameter_has_one():
    known = {name for name in DOORS if "'" not in name} | {"report"}
    for one in PARAMETERS:
        assert set(one.interfaces.split()) <= known, one.name
        assert one.interfaces or one.name == "help"
    for door in known:
        names = [one.name for one in parameters_of(door)]
        assert len(names) == len(set(names)), door


def test_a_flag_has_words_a_panel_and_one_spelling():
    spelled = {}
    for one in PARAMETERS:
        if set(one.interfaces.split()) & {"estimate", "plan", "check"}:
            assert one.help
            assert one.group
        for spelling in one.spellings:
            if set(one.interfaces.split()) & set(COMMANDS):
                assert spelled.setdefault(spelling, one.name) == one.name


@pytest.mark.parametrize("door", ["estimate_ate", "plan_ate", "check_data"])
def test_a_docstring_names_every_parameter(door):
    text = inspect.getdoc(getattr(private_ate, door))
    for one in parameters_of(door):
        if one.name != "progress":
            assert re.search(rf"\b{one.name}\b", text), one.name


def test_the_manual_of_r_names_every_argument():
    text = (ROOT / "r/man/private_ate.Rd").read_text("utf-8")
    for one in parameters_of("r"):
        assert re.search(rf"\b{one.name}\b", text), one.name


def test_a_request_has_the_defaults_of_the_table():
    listed = {one.name: one for one in parameters_of("estimate_ate")}
    for item in fields(Request):
        if item.name in listed and item.default is not MISSING:
            assert item.default == listed[item.name].default, item.name


def test_a_value_is_checked_by_the_table():
    assert checked({"neighbors": 3, "epsilon": "1"}) == {"neighbors": 3}
    for name, value in {"level": "other", "neighbors": 0, "design": 1, "overall": "yes",
                        "confidence": 0.2, "seed": -1, "engine": "gpu"}.items():  # fmt: skip
        with pytest.raises(ArgumentError, match=name):
            checked({name: value})


def test_flags_become_arguments_of_the_function():
    given = {one.name: one.default for one in parameters_of("check")}
    given |= {"by": "sex,age<65", "covariates": "all", "level": "label"}

    found = keywords_of("check", "check_data", given)

    assert found["by"] == ["sex", "age<65"]
    assert found["covariates"] == "all"
    assert not {"treatment", "outcome", "domain", "bounds", "json"} & set(found)
