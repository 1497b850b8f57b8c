"""Plans for subgroups: a row for every row of the table, near what releases show."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from private_ate import (
    ArgumentError,
    Categories,
    Domain,
    Interval,
    SchemaError,
    StudySizes,
    Treatment,
    estimate_ate,
    plan_ate,
)
from private_ate.cli.app import app
from private_ate.cli.flags import with_flag

COVARIATES = {"sex": Categories("f", "m"), "age": Interval(18, 98), "level": Interval(-4, 4)}
DOMAINS = {
    2: Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), COVARIATES),
    3: Domain(Treatment("t", arms=(0, 1, 2)), ("y", Interval(0, 10)), COVARIATES),
}
BY = ["sex", "age<60"]


def clinic(seed, arms=2, rows=1200):
    rng = np.random.default_rng(seed)
    female, age, level = rng.random(rows) < 0.7, rng.uniform(18, 98, rows), rng.normal(size=rows)
    lean = rng.random(rows) + 0.1 * np.tanh(level)
    t = np.clip(np.floor(arms * lean), 0, arms - 1).astype(int)
    y = np.clip(4 + 0.4 * level + 0.5 * t + 1.1 * rng.normal(size=rows), 0, 10)
    columns = {"sex": np.where(female, "f", "m"), "age": age, "level": level.clip(-4, 4)}
    return pl.DataFrame({"t": t, "y": y} | columns)


@pytest.mark.parametrize(
    ("arms", "asked"),
    [
        (2, {}),
        (2, {"overall": True}),
        (2, {"estimand": "att", "overall": True}),
        (2, {"estimand": "ato"}),
        (3, {"overall": True}),
    ],
)
def test_expected_widths_and_noises_are_near_those_of_releases(arms, asked):
    asked = {"domain": DOMAINS[arms], "level": "label", "outcome_sd": 1.2, "by": BY} | asked
    plan = plan_ate(clinic(0, arms), epsilons=[1], **asked)
    releases = [
        estimate_ate(clinic(seed, arms), epsilon=1, seed=seed, **asked) for seed in range(1, 4)
    ]
    named = [(row.subgroup, row.arm, row.against) for row in plan.rows]
    if arms == 2:
        named = [(subgroup, "1", "0") for subgroup, _, _ in named]
    assert named == [(row.subgroup, row.arm, row.against) for row in releases[0].effects]

    def halves(kind):
        pairs = np.array([[getattr(row, kind) for row in one.effects] for one in releases])
        return np.median(pairs[..., 1] - pairs[..., 0], axis=0) / 2

    expected = np.array([row.half_width for row in plan.rows])
    assert expected / halves("interval") == pytest.approx(1, abs=0.25)
    noise = halves("noise_interval") / [row.noise_error for row in plan.rows]
    # What covers 95 % of a noise is from 2.4 (of many draws) to 3.2 (of one) times its mean size.
    assert np.all((noise > 2.1) & (noise < 4.0))  # caps of small cells differ between draws
    for row in plan.rows:
        assert row.noise_error < row.expected_error < row.half_width < row.detectable_effect


def test_a_plan_has_the_rows_of_the_table_and_fits_a_terminal():
    plan = plan_ate(clinic(1, 3), domain=DOMAINS[3], level="label", epsilons=[1, 2], by=["sex"])
    named = [(row.epsilon, row.subgroup, row.arm, row.against) for row in plan.rows]
    pairs = [(None, "1", "0"), (None, "2", "0"), (None, "2", "1"), ("sex=f", "1", "0"),
             ("sex=f", "2", "0"), ("sex=m", "1", "0"), ("sex=m", "2", "0")]  # fmt: skip
    assert named == [(epsilon, *pair) for epsilon in (1, 2) for pair in pairs]
    text = str(plan)
    assert "sex=m: 2 against 0" in text
    assert "all units: 2 against 1" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "subgroup" in plan._repr_html_()
    first, last = plan.to_dict()["rows"][0], plan.to_dict()["rows"][-1]
    assert (first["subgroup"], last["subgroup"], last["arm"]) == (None, "sex=m", "2")
    assert plan.rows[3].size + plan.rows[5].size == plan.rows[0].size == 1200


def test_above_three_cells_all_units_are_recommended_to_be_paid_for():
    asked = {"domain": DOMAINS[2], "level": "label", "epsilons": [1]}
    rolled, paid = (plan_ate(clinic(1), by=BY, overall=overall, **asked)
                    for overall in (False, True))  # fmt: skip
    alone = plan_ate(clinic(1), domain=DOMAINS[2], level="label", epsilons=["0.5"])
    assert "above three cells overall=True is recommended" in rolled.caveat
    assert "recommended" not in paid.caveat
    assert "recommended" not in plan_ate(clinic(1), by=["sex"], **asked).caveat
    assert paid.rows[0].noise_error < rolled.rows[0].noise_error
    assert paid.rows[0].noise_error <= 1.1 * alone.rows[0].noise_error
    assert paid.rows[-1].noise_error > rolled.rows[-1].noise_error


def test_a_wanted_half_width_is_reached_in_every_row():
    asked = {"domain": DOMAINS[2], "level": "label", "by": ["sex"], "outcome_sd": 1.2}
    plan = plan_ate(clinic(1), epsilons=[1], half_width=0.5, **asked)
    reached = plan_ate(clinic(1), epsilons=[plan.epsilon_needed], **asked)
    assert max(row.half_width for row in reached.rows) == pytest.approx(0.5, rel=0.02)
    assert "in every row of the table" in plan.answer
    more = plan_ate(clinic(1), epsilons=[1], half_width=0.2, solve="rows", **asked)
    assert more.rows_needed[0] > 1200
    assert max(row.half_width for row in more.rows) == pytest.approx(0.2, rel=0.05)


def test_cells_without_an_arm_are_named_and_what_cannot_be_planned_is_refused():
    data = clinic(1)
    lacking = data.filter(~((pl.col("sex") == "m") & (pl.col("t") == 1)))
    asked = {"domain": DOMAINS[2], "level": "label", "epsilons": [1]}
    assert "no effect in sex=m" in plan_ate(lacking, by=["sex"], **asked).caveat
    with pytest.raises(SchemaError, match="no subgroup holds units of every arm"):
        plan_ate(data.with_columns(t=(pl.col("sex") == "m").cast(pl.Int8)), by=["sex"], **asked)
    with pytest.raises(ArgumentError, match="from a table"):
        plan_ate(StudySizes(100, 3, 1.0), level="label", by=["sex"])
    with pytest.raises(ArgumentError, match="at label level"):
        plan_ate(data, domain=DOMAINS[2], level="sample", by=["sex"])
    with pytest.raises(ArgumentError, match="not by 'height'"):
        plan_ate("no such file.csv", by=["height"], **asked)
    with pytest.raises(ArgumentError, match="name these too"):
        plan_ate(data, overall=True, **asked)


def test_the_command_line_plans_subgroups(tmp_path):
    path = tmp_path / "clinic.csv"
    clinic(1, rows=400).write_csv(path)
    flags = [
        "--level", "label", "--treatment", "t", "--outcome", "y", "--outcome-bounds", "0", "10",
        "--categories", "sex=f|m", "--bounds", "age=18:98", "--epsilons", "1",
    ]  # fmt: skip
    done = CliRunner().invoke(
        app, ["plan", str(path), *flags, "--by", "sex, age<60", "--overall", "--json"]
    )
    assert done.exit_code == 0, done.output
    rows = json.loads(done.output)["rows"]
    assert [row["subgroup"] for row in rows] == [
        None, "sex=f", "sex=m", "age<60", "age≥60",
        "sex=f, age<60", "sex=f, age≥60", "sex=m, age<60", "sex=m, age≥60",
    ]  # fmt: skip
    wrong = CliRunner().invoke(app, ["plan", str(path), *flags, "--by", "age"])
    assert "name where it is cut" in str(wrong.exception)
    assert with_flag(wrong.exception).endswith("--by COLUMN,COLUMN<NUMBER")
