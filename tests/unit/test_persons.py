"""A public column of ids says how many rows a person has."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from private_ate import (
    ArgumentError,
    Domain,
    Interval,
    Outcome,
    SchemaError,
    Treatment,
    check_data,
    estimate_ate,
    plan_ate,
)
from private_ate.cli.app import app
from private_ate.data.files import read_table
from private_ate.engines.local import LocalStudy

ROWS = 240
DOMAIN = Domain(Treatment("t", 1, 0), Outcome("y", Interval(0, 3), missing="private"))


def visits(ids=None):
    """Return a study in which each person has two rows, or one with other ids."""
    rng = np.random.default_rng(0)
    x, t = rng.random(ROWS), rng.integers(0, 2, ROWS)
    known = np.repeat(np.arange(ROWS // 2), 2) if ids is None else ids
    return pl.DataFrame({"id": known, "x": x, "t": t, "y": np.clip(x + t, 0, 3)})


def ask(data, **changes):
    asked = {"domain": DOMAIN, "covariates": "all", "level": "label", "epsilon": 1, "seed": 1}
    return estimate_ate(data, **asked | changes)


def forms(frame, folder):
    frame.write_csv(folder / "study.csv")
    frame.write_parquet(folder / "study.parquet")
    return [frame, frame.to_pandas(), frame.lazy(), folder / "study.csv", folder / "study.parquet"]


@pytest.mark.parametrize("memory", ["1GB", "0"])
def test_ids_say_the_same_as_the_declared_number_in_every_form(tmp_path, memory):
    declared = ask(visits().drop("id"), rows_per_person=2)

    for data in forms(visits(), tmp_path):
        release = ask(data, person="id", memory_limit=memory)

        assert release.ate == declared.ate
        assert release.settings["rows_per_person"] == 2
        assert release.adjacency == declared.adjacency
        assert "no person has more than 2 rows, by the ids in 'id'" in release.settings["notes"]


def counted(ids):
    return ask(visits(ids), person="id").settings["rows_per_person"]


@pytest.mark.parametrize(
    ("ids", "most"),
    [
        (["7", "7.0", "07", *(f"p{row}" for row in range(ROWS - 3))], 3),  # one number
        ([2**60 + row for row in range(ROWS)], 1),  # floats would not tell them apart
        ([None, "", " ", "NaN", *(f"p{row}" for row in range(ROWS - 4))], 4),
        ([" a", "a ", "A", *(f"p{row}" for row in range(ROWS - 3))], 2),
    ],
    ids=["numbers", "large numbers", "none", "spaces"],
)
def test_persons_are_told_apart_alike_by_an_estimate_and_a_check(ids, most):
    found = check_data(visits(ids), domain=DOMAIN, level="label", person="id")
    (rows,) = (one for one in found.findings if one.column == "id")

    assert counted(ids) == most
    assert rows.counts["largest"] == most


def test_a_plan_counts_the_same_rows():
    asked = {"domain": DOMAIN, "covariates": "all", "level": "label", "epsilons": ["1"]}

    assert (
        plan_ate(visits(), person="id", **asked).rows
        == plan_ate(visits().drop("id"), rows_per_person=2, **asked).rows
    )


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"level": "sample"}, ArgumentError, "ids are private at sample level"),
        ({"rows_per_person": 2}, ArgumentError, "say one of them"),
        ({"person": "y"}, ArgumentError, "'y' cannot tell persons apart and have another role"),
        ({"person": "t"}, ArgumentError, "'t' cannot tell persons apart and have another role"),
        ({"covariates": ["x", "id"]}, ArgumentError, "'id' cannot tell persons apart"),
        ({"person": "nobody"}, SchemaError, "no person column 'nobody'"),
        ({"person": ["id"]}, ArgumentError, "person names one column"),
        ({"by": ["x<0.5"]}, ArgumentError, "subgroups need one row per person"),
    ],
)
def test_ids_that_cannot_be_counted_are_refused_in_a_sentence(changes, error, words):
    domain = Domain(DOMAIN.treatment, ("y", Interval(0, 3)), {"x": Interval(0, 1)})
    asked = {"person": "id", "domain": domain, "covariates": ["x"]} | changes

    with pytest.raises(error, match=words):
        ask(visits(), **asked)


def test_a_further_outcome_of_the_domain_tells_no_persons_apart():
    table = visits().with_columns(z=pl.col("y"))
    outcomes = [Outcome("y", Interval(0, 3)), Outcome("z", Interval(0, 3))]
    domain = Domain("t", outcomes, {"x": Interval(0, 1)})

    with pytest.raises(ArgumentError, match="'z' cannot tell persons apart"):
        ask(table, domain=domain, covariates=None, outcome="y", person="z")


def test_a_study_that_is_encoded_has_no_ids():
    frame = visits().drop("id")
    domain = Domain(DOMAIN.treatment, ("y", Interval(0, 3)), {"x": Interval(0, 1)})

    encoded = LocalStudy.encode(read_table(frame), domain)
    with pytest.raises(ArgumentError, match="has no ids; declare rows_per_person"):
        estimate_ate(encoded, level="label", epsilon=1, person="id")


def test_the_command_line_counts_ids_and_keeps_them_off_its_pages(tmp_path):
    forms(visits(), tmp_path)
    page, curator = tmp_path / "page.html", tmp_path / "curator.html"
    flags = [
        "--treatment", "t", "--treated", "1", "--control", "0", "--outcome", "y",
        "--outcome-bounds", "0", "3", "--level", "label", "--person", "id", "--covariates", "all",
    ]  # fmt: skip
    run = CliRunner().invoke
    made = run(
        app,
        ["estimate", str(tmp_path / "study.csv"), *flags, "--epsilon", "1", "--json", "--quiet",
         "--report", str(page), "--diagnostics", str(curator)],
    )  # fmt: skip
    planned = run(app, ["plan", str(tmp_path / "study.csv"), *flags, "--json", "--quiet"])

    assert made.exit_code == planned.exit_code == 0
    assert json.loads(made.stdout)["settings"]["rows_per_person"] == 2
    assert page.exists()
    for path in (page, curator):
        assert ">id<" not in path.read_text("utf-8")
