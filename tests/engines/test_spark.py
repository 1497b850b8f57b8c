"""The cluster engine against the local one; needs the spark extra (`make test-spark`)."""

import os
import subprocess
import sys
import traceback

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyspark")

from private_ate import (
    ArgumentError,
    Categories,
    Domain,
    Interval,
    Ledger,
    SchemaError,
    Treatment,
    estimate_ate,
)
from private_ate.baselines.blocking import Strata, count_cells
from private_ate.data.files import read_table
from private_ate.engines.local import LocalStudy
from private_ate.engines.spark import SparkStudy, _add_up
from private_ate.engines.spark_table import SparkColumns, is_spark_frame
from private_ate.errors import RecordsError
from private_ate.models.private_score import Scaling, _moments
from private_ate.models.propensity import fit_propensity

ROWS = 20_000
SAME_FIT = 1e-10  # both fits stop at a gradient of 1e-10; order of additions does the rest
DOMAIN = Domain(
    Treatment("t", 1, 0),
    ("y", Interval(0, 10)),
    {"x1": Interval(0, 1), "x2": Interval(0, 1), "colour": Categories("red", "green")},
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(3)
    x = rng.random((ROWS, 2))
    treated = rng.random(ROWS) < 1 / (1 + np.exp(1 - 2 * x[:, 0]))
    frame = pl.DataFrame(
        {
            "x1": x[:, 0],
            "x2": x[:, 1],
            "colour": np.array(["red", "green"])[rng.integers(0, 2, ROWS)],
            "t": treated.astype(np.int8),
            "y": np.clip(3 + x[:, 0] + 2 * treated + rng.normal(size=ROWS), 0, 10),
            "id": np.arange(ROWS) // 2,
        }
    )
    file = tmp_path_factory.mktemp("spark") / "study.parquet"
    frame.write_parquet(file)
    return file


@pytest.fixture(scope="module")
def local(path):
    return LocalStudy.encode(read_table(path), DOMAIN)


@pytest.fixture(scope="module", params=[1, 3, 70])
def cluster(request, session, path):
    frame = session.read.parquet(str(path)).repartition(request.param)
    study = SparkStudy.encode(SparkColumns(frame), DOMAIN)
    yield study
    study.close()


def test_integer_sums_are_the_same_bit_by_bit_however_rows_are_partitioned(cluster, local):
    strata = Strata(Scaling(np.zeros(0), np.zeros(0)), np.zeros(0), 1)
    cells, expected = (count_cells(study, strata) for study in (cluster, local))

    np.testing.assert_array_equal(cells, expected, strict=True)
    moments = [study.fold(lambda block: _moments(block, 30)) for study in (cluster, local)]
    assert moments[0].tolist() == moments[1].tolist()


def test_the_logistic_fit_agrees_to_ten_digits_however_rows_are_partitioned(cluster, local):
    fits = [fit_propensity(study.public(), 1 / ROWS).coordinates for study in (cluster, local)]

    assert np.abs(fits[0] - fits[1]).max() <= SAME_FIT


def test_blocks_know_their_place_in_the_study(cluster):
    def places(block):
        return sum(range(block.first, block.first + block.treatment.size))

    assert cluster.fold(places) == ROWS * (ROWS - 1) // 2


def test_a_thinned_study_holds_some_rows_of_every_block(cluster):
    with cluster.thinned(100) as few:
        counted = few.fold(lambda block: block.treatment.size)
        assert counted == few.size
        assert ROWS / 100 <= few.size <= ROWS / 100 + 70
        assert few.blocks.is_cached
    assert not few.blocks.is_cached


def test_a_public_view_shows_no_outcome(cluster):
    hidden = cluster.public().fold(lambda block: int(block.outcome is None))
    shown = cluster.fold(lambda block: int(block.outcome is None))

    assert hidden > 0
    assert shown == 0


def test_a_worker_that_dies_and_is_repeated_changes_nothing(cluster):
    def fragile(block):
        from pyspark import TaskContext

        task = TaskContext.get()
        if task.partitionId() == 0 and task.attemptNumber() == 0:
            os._exit(1)
        return int(block.outcome.sum())

    assert cluster.fold(fragile) == cluster.fold(lambda block: int(block.outcome.sum()))


def test_additions_form_a_tree_in_the_order_of_partitions(session):
    count = 300
    parts = session.sparkContext.parallelize(range(count), count)
    pairs = parts.mapPartitionsWithIndex(lambda index, _: [(index, (index,))])

    assert _add_up(pairs, count) == tuple(range(count))


@pytest.mark.parametrize("level", ["label", "sample"])
def test_one_partition_in_row_order_gives_the_release_of_the_local_engine(session, path, level):
    asked = {"domain": DOMAIN, "level": level, "epsilon": "1.0", "seed": 11}

    frame = session.read.parquet(str(path)).coalesce(1)

    assert estimate_ate(frame, **asked) == estimate_ate(path, **asked)


def test_ranges_of_public_covariates_are_looked_up_on_the_cluster(session, path):
    columns = SparkColumns(session.read.parquet(str(path)))
    names = ["x1", "colour", "y"]

    assert columns.observe(names) == read_table(path).observe(names)
    assert [columns.kind(one) for one in names] == ["number", "label", "number"]


@pytest.mark.usefixtures("session")
def test_a_csv_is_texts_that_are_parsed_value_by_value(tmp_path):
    (tmp_path / "odd.csv").write_text('x,t,y\n1,1,2\nzz,0,"8\n3,1\n4,0,1,extra\n')
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), {"x": Interval(0, 10)})

    release = estimate_ate(
        tmp_path / "odd.csv", domain=domain, level="sample", epsilon=1, engine="spark", seed=1
    )

    assert release.n == 4


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ({"level": "label", "method": "published"}, "method 'published' does not run on Spark"),
        ({"level": "sample", "method": "published"}, "method 'published' does not run on Spark"),
        ({"level": "label", "target": "track"}, "target 'track' does not run on Spark"),
        ({"level": "sample", "method": "ipw"}, "method 'ipw' does not run on Spark"),
        ({"level": "label", "person": "id"}, "on a cluster declare rows_per_person"),
        ({"level": "label", "engine": "local"}, "collect it first to use engine 'local'"),
    ],
)
def test_what_needs_an_order_of_all_rows_is_refused_with_advice(session, path, asked, refused):
    frame = session.read.parquet(str(path))

    assert is_spark_frame(frame)
    with pytest.raises(ArgumentError, match=refused):
        estimate_ate(frame, domain=DOMAIN, epsilon=1, **asked)


def test_a_path_that_spark_cannot_read_is_one_sentence(session, tmp_path):
    with pytest.raises(ArgumentError, match="Spark cannot read"):
        estimate_ate(
            tmp_path / "none.parquet", domain=DOMAIN, level="label", epsilon=1, engine="spark"
        )
    empty = session.createDataFrame([], "x1 double, x2 double, colour string, t int, y double")
    with pytest.raises(SchemaError, match="the table has no rows"):
        estimate_ate(empty, domain=DOMAIN, level="label", epsilon=1)


SECRET = 4115550199887766554
SMALL = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), {"x": Interval(0, 1)})


def write_small(file, **columns):
    """Write a few rows of whole numbers; a keyword replaces a column."""
    plain = {"x": [0, 1] * 8, "t": [0, 0, 1, 1] * 4, "y": [1, 2, 3, 4] * 4}
    pl.DataFrame(plain | columns).write_parquet(file)
    return file


@pytest.mark.parametrize("column", ["x", "t", "y"])
def test_an_integer_beyond_two_to_the_53_is_encoded_like_any_other(session, tmp_path, column):
    odd = [0, 1] * 7 + [0, SECRET]
    frame = session.read.parquet(str(write_small(tmp_path / "a.parquet", **{column: odd})))
    study = SparkStudy.encode(SparkColumns(frame), SMALL)
    assert study.size == 16
    study.close()


def test_the_program_releases_such_an_integer_on_spark_and_tells_nothing_of_it(tmp_path):
    path = write_small(tmp_path / "a.parquet", y=[1, 2, 3, 4] * 3 + [1, 2, 3, SECRET])
    SMALL.write(tmp_path / "d.toml")
    done = subprocess.run(
        [sys.executable, "-m", "private_ate", "estimate", path, "--domain", tmp_path / "d.toml",
         "--level", "sample", "--epsilon", "1", "--engine", "spark", "--master", "local[1]"],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0
    assert str(SECRET) not in done.stdout + done.stderr


def test_what_spark_says_of_a_value_that_it_cannot_cast_is_charged_and_not_repeated(
    session, tmp_path
):
    texts = write_small(tmp_path / "a.parquet", y=["1", "2", "3", f"secret{SECRET}"] * 4)
    frame = session.read.parquet(str(texts)).selectExpr("x", "t", "cast(y as bigint) as y")
    Ledger.create(tmp_path / "budget.db", "trial", epsilon="4").close()
    for level in ("label", "sample"):
        with pytest.raises(RecordsError, match="Spark could not finish a pass") as caught:
            estimate_ate(frame, domain=SMALL, level=level, epsilon=1, ledger=tmp_path / "budget.db")
        assert caught.value.__context__ is None
        assert str(SECRET) not in "".join(traceback.format_exception(caught.value))
    ledger = Ledger.open(tmp_path / "budget.db")
    assert str(ledger.accounts()[0].left) == "ε = 2"
    ledger.close()


def test_a_block_that_cannot_be_encoded_is_a_number_and_no_words(session, tmp_path, monkeypatch):
    def fail(*_, **__):
        message = f"cannot encode {SECRET}"
        raise ValueError(message)

    from private_ate.engines import spark, spark_table

    monkeypatch.setattr(spark_table, "encode_rows", fail)
    table = read_table(write_small(tmp_path / "a.parquet"))
    assert spark_table.encode_block(table, SMALL) == (-1, b"")
    blocks = session.sparkContext.parallelize([(3, b""), (-1, b""), (5, b"")], 2)
    assert spark._places(blocks) == (-1, ())


def test_names_of_people_are_no_covariate_on_spark(session, tmp_path):
    named = write_small(tmp_path / "a.parquet", name=[f"Person{row:03d}" for row in range(16)])
    frame = session.read.parquet(str(named))
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)))
    with pytest.raises(ArgumentError, match="so name them"):
        estimate_ate(frame, domain=domain, level="label", epsilon=1)
    with pytest.raises(SchemaError, match="'name' has a label of its own") as caught:
        estimate_ate(frame, domain=domain, covariates="all", level="label", epsilon=1)
    assert "Person0" not in "".join(traceback.format_exception(caught.value))


def test_a_type_that_does_not_fit_is_refused_before_a_job_is_run(session, tmp_path):
    texts = write_small(tmp_path / "a.parquet", y=["1", "2", "3", "4"] * 4)
    frame = session.read.parquet(str(texts))
    with pytest.raises(SchemaError, match="'y' is declared as numbers but its type is string"):
        estimate_ate(frame, domain=SMALL, level="sample", epsilon=1)
