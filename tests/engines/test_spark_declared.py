"""Undeclared and missing entries on a cluster are told and encoded as they are on one machine."""

import pickle

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyspark")

from private_ate import (
    Categories,
    Domain,
    Interval,
    Ledger,
    Treatment,
    UndeclaredError,
    estimate_ate,
)
from private_ate.data.missing_rules import Reading
from private_ate.engines.open_table import open_table

ROWS = 20_000
PARTITION_BYTES = 100_000
DOMAIN = Domain(
    Treatment("t", "A", "placebo"),
    ("y", Interval(0, 10)),
    {"x": Interval(0, 1), "g": Categories("a", "b")},
)


def columns(*, third_arm):
    rng = np.random.default_rng(1)
    arm = rng.choice(["A", "placebo"], ROWS).tolist()
    x = rng.random(ROWS).round(3).tolist()
    g = rng.choice(["a", "b"], ROWS).tolist()
    for row in range(700, 900):
        x[row] = None
    for row in range(17_000, 17_100):
        g[row] = "z"
    if third_arm:
        for row in [*range(15_000, 15_400), 19_999]:
            arm[row] = "B"
        arm[16_000] = None
    return pl.DataFrame({"t": arm, "x": x, "g": g, "y": (rng.random(ROWS) * 10).round(3)})


def written(frame, form, folder):
    path = folder / f"study.{form}"
    if form == "csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path, row_group_size=3_000)
    return path


def encoded(path, engine, *, left_out):
    asked = {"treatment": None, "outcome": None, "covariates": None, "domain": DOMAIN}
    opened = open_table(
        path, {**asked, "level": "label", "from_data": False}, memory=1 << 30, engine=engine,
        master=None,
    )  # fmt: skip
    with opened.encoded(None, Reading("label", leave_out_undeclared=left_out)) as study:
        if engine != "spark":
            return study, (study.covariates[:, :], study.treatment, study.outcome)
        blocks = [pickle.loads(block) for _, block in study.blocks.collect()]  # noqa: S301
        arrays = [np.concatenate(same, axis=-1) for same in zip(*blocks, strict=True)]
        return study, tuple(arrays[:3])


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_third_arm_is_refused_on_a_cluster_with_the_words_of_one_machine(form, tmp_path):
    path = written(columns(third_arm=True), form, tmp_path)
    told = []
    for engine in ("local", "spark"):
        with pytest.raises(UndeclaredError) as caught:
            estimate_ate(path, domain=DOMAIN, level="label", epsilon=1, engine=engine)
        told.append(str(caught.value))

    assert "in 401 of 20000 rows ('B' in 401)" in told[0]
    place = "line 15002 (line 1 is the header)" if form == "csv" else "row 15001"
    assert f"first in {place}" in told[0]
    assert told[1] == told[0]


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("third_arm", [False, True])
def test_rows_are_left_out_and_indicators_made_as_on_one_machine(form, third_arm, tmp_path):
    path = written(columns(third_arm=third_arm), form, tmp_path)

    here, expected = encoded(path, "local", left_out=third_arm)
    there, found = encoded(path, "spark", left_out=third_arm)

    assert there.domain.features == here.domain.features == ("x", "g=a", "g=b", "x (missing)")
    assert there.rules == here.rules
    assert there.rules.filled == {"x": 200}
    assert there.rules.undeclared == {"g": 100}
    assert there.size == here.size == ROWS - 402 * third_arm
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.usefixtures("session")
def test_a_release_on_a_cluster_leaves_out_and_a_refusal_costs_nothing(tmp_path):
    path = written(columns(third_arm=True), "csv", tmp_path)
    ledger = Ledger.create(tmp_path / "budget.db", "trial", epsilon="5")
    asked = {"domain": DOMAIN, "level": "label", "epsilon": 1, "engine": "spark", "ledger": ledger}

    with pytest.raises(UndeclaredError):
        estimate_ate(str(path), **asked)
    assert ledger.accounts()[0].left.epsilon_text == "5"
    assert estimate_ate(str(path), **asked, leave_out_undeclared=True).n == ROWS - 402
    ledger.close()


@pytest.mark.usefixtures("session")
def test_a_block_whose_rows_are_all_left_out_is_no_block(tmp_path):
    frame = columns(third_arm=False)[:200]
    frame = pl.concat([frame.with_columns(t=pl.lit("B"))] * 100 + [frame])
    here, expected = encoded(written(frame, "csv", tmp_path), "local", left_out=True)
    there, found = encoded(written(frame, "csv", tmp_path), "spark", left_out=True)
    assert there.size == here.size == 200
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
