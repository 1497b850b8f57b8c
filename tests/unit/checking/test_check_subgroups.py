"""What a check says of planned subgroups: their sizes, and which of them lack an arm."""

import json

import numpy as np
import polars as pl
import pytest

from private_ate import (
    ArgumentError,
    Categories,
    Domain,
    Interval,
    Treatment,
    check_data,
    estimate_ate,
)

COVARIATES = {"sex": Categories("f", "m"), "age": Interval(18, 98), "level": Interval(0, 1)}
DOMAIN = Domain("t", ("y", Interval(0, 10)), COVARIATES)


def clinic(rows=400):
    rng = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "t": rng.integers(0, 2, rows),
            "y": rng.uniform(0, 10, rows),
            "sex": np.where(rng.random(rows) < 0.8, "f", "m"),
            "age": rng.uniform(18, 98, rows),
            "level": rng.random(rows),
        }
    )


def findings(data, by, domain=DOMAIN):
    found = check_data(data, domain=domain, by=by)
    return {one.severity: one for one in found.findings if one.topic == "subgroups"}


def test_cells_are_counted_as_a_release_counts_them():
    data = clinic()
    gaps = pl.Series(np.arange(400) % 10 == 0)
    data = data.with_columns(age=pl.when(gaps).then(None).otherwise(pl.col("age")))
    found = findings(data, ["sex", "age<60"])
    release = estimate_ate(
        data, domain=DOMAIN, level="label", epsilon=1, by=["sex", "age<60"], seed=1
    )
    cells = {cell["name"]: cell["arms"] for cell in release.settings["subgroups"]["cells"]}
    assert found["ok"].counts["cells"] == cells
    assert sum(cells["sex or age not known"].values()) == 40
    assert "overall=True is recommended" in found["ok"].sentence
    assert "note" in found  # men below 60 are few
    assert "sex=m, age<60 (" in found["note"].sentence


def test_a_subgroup_that_lacks_an_arm_is_a_problem_and_small_ones_are_named():
    data = clinic().filter(~((pl.col("sex") == "m") & (pl.col("t") == 1)))
    found = findings(data, ["sex"])
    assert "an arm is missing in sex=m (0 treated" in found["bends"].sentence
    more = len(check_data(data, domain=DOMAIN, by=["sex"]).bends)
    assert more == len(check_data(data, domain=DOMAIN).bends) + 1
    plain = findings(clinic(), ["sex"])
    assert set(plain) == {"ok"}
    assert "recommended" not in plain["ok"].sentence


def test_several_arms_and_files_are_counted_alike(tmp_path):
    domain = Domain(Treatment("t", arms=(0, 1, 2)), ("y", Interval(0, 10)), COVARIATES)
    data = clinic().with_columns(t=pl.Series(np.arange(400) % 4))
    path = tmp_path / "clinic.csv"
    data.write_csv(path)
    found = [check_data(form, domain=domain, by=["sex"]).to_json() for form in (data, path)]
    counts = [
        next(
            one["counts"]
            for one in json.loads(text)["findings"]
            if (one["topic"], one["severity"]) == ("subgroups", "ok")
        )
        for text in found
    ]
    assert counts[0] == counts[1]
    assert sum(sum(arms.values()) for arms in counts[0]["cells"].values()) == 300


@pytest.mark.parametrize(
    ("by", "part"), [(["height"], "not by 'height'"), (["sex", "sex"], "twice"), ([1], "a list of")]
)
def test_what_makes_no_subgroups_is_refused_before_a_record_is_read(by, part):
    with pytest.raises(ArgumentError, match=part):
        check_data("no such file.csv", domain=DOMAIN, by=by)
