"""Several arms on a cluster are encoded and told of as they are on one machine."""

import pickle

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyspark")

from private_ate import Domain, Interval, Treatment, UndeclaredError, estimate_ate
from private_ate.data.missing_rules import Reading
from private_ate.engines.open_table import open_table

ROWS = 3_000
PARTITION_BYTES = 60_000
LABELS = Treatment("t", arms=("none", "1", "high"), reference="1")
OTHERS = Treatment("t", arms=("none", "1", "high"), reference="1", other="high")
DOSES = Treatment("dose", bins=(0, 1, 6, 100), labels=("zero", "few", "many"), reference="few")


def domain(treatment):
    return Domain(treatment, ("y", Interval(0, 10)), {"x": Interval(0, 1)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(2)
    labels = rng.choice(["none", "1", "1.0", " high ", "odd", ""], ROWS)
    doses = rng.choice([-3.0, 0.0, 0.5, 1.0, 5.9, 6.0, 200.0, np.nan], ROWS)
    frame = pl.DataFrame(
        {"t": labels, "dose": pl.Series(doses).fill_nan(None), "x": rng.random(ROWS).round(3),
         "y": (rng.random(ROWS) * 10).round(3)}
    )  # fmt: skip
    found = tmp_path_factory.mktemp("arms")
    frame.write_csv(found / "study.csv")
    frame.write_parquet(found / "study.parquet", row_group_size=1_500)
    return found


def encoded(path, treatment, engine, level):
    asked = {"treatment": None, "outcome": None, "covariates": None, "domain": domain(treatment)}
    opened = open_table(
        path, {**asked, "level": level, "from_data": False}, memory=1 << 30, engine=engine,
        master=None,
    )  # fmt: skip
    reading = Reading(level, leave_out_undeclared=level == "label")
    with opened.encoded(None, reading) as study:
        if engine != "spark":
            taking = np.ones(study.size, bool) if study.takes_part is None else study.takes_part
            return study.rules, (study.covariates[:, :], study.treatment, study.outcome, taking)
        blocks = [pickle.loads(block) for _, block in study.blocks.collect()]  # noqa: S301
        arrays = [np.concatenate(same, axis=-1) for same in zip(*blocks, strict=True)]
        return study.rules, tuple(arrays[:4])


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize(
    ("treatment", "form", "level"),
    [
        (LABELS, "csv", "label"),
        (LABELS, "parquet", "sample"),
        (OTHERS, "parquet", "label"),
        (DOSES, "csv", "sample"),
        (DOSES, "parquet", "label"),
    ],
)
def test_a_cluster_codes_arms_as_one_machine_does(folder, treatment, form, level):
    path = folder / f"study.{form}"
    rules, expected = encoded(path, treatment, "local", level)
    there, found = encoded(path, treatment, "spark", level)

    assert there == rules
    assert found[1].dtype == np.uint8
    assert set(np.unique(found[1])) == {0, 1, 2}
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.usefixtures("session")
def test_undeclared_labels_of_several_arms_are_told_in_the_words_of_one_machine(folder):
    told = []
    for engine in ("local", "spark"):
        with pytest.raises(UndeclaredError) as caught, opened(folder / "study.csv", engine):
            pass
        told.append(str(caught.value))
    assert "none of 'none', '1', 'high'" in told[0]
    assert told[1] == told[0]


def opened(path, engine):
    asked = {"treatment": None, "outcome": None, "covariates": None, "domain": domain(LABELS)}
    columns = {**asked, "level": "label", "from_data": False}
    table = open_table(path, columns, memory=1 << 30, engine=engine, master=None)
    return table.encoded(None, Reading("label"))


@pytest.mark.usefixtures("session")
def test_a_sample_level_release_of_several_arms_is_the_same_on_a_cluster(folder):
    path = folder / "study.parquet"
    here, there = (
        estimate_ate(path, domain=domain(OTHERS), engine=engine, level="sample", epsilon=4, seed=3)
        for engine in ("local", "spark")
    )
    assert len(there.contrasts) == 3
    for mine, theirs in zip(there.contrasts, here.contrasts, strict=True):
        assert mine.effect == pytest.approx(theirs.effect, abs=1e-6)
        assert mine.interval == pytest.approx(theirs.interval, abs=1e-6)
