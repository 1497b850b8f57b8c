"""Values of groups of rows on a cluster: the same as on one machine, and a whole release."""

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyspark")

from private_ate import Domain, Interval, Treatment, estimate_ate
from private_ate.data.files import read_table
from private_ate.engines.local import LocalStudy
from private_ate.engines.spark import SparkStudy
from private_ate.engines.spark_table import SparkColumns
from private_ate.methods.blocks.partition import Shuffle

ROWS, EFFECT = 30_000, 0.1
PARTITION_BYTES = 200_000
DOMAIN = Domain(
    Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x1": Interval(0, 1), "x2": Interval(0, 1)}
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(3)
    x = rng.random((ROWS, 2))
    treated = rng.random(ROWS) < 1 / (1 + np.exp(1 - 2 * x[:, 0]))
    labels = np.where(rng.random(ROWS) < 0.1, "?", treated.astype(int).astype(str))
    outcome = 0.2 + 0.3 * x[:, 0] + EFFECT * treated + 0.05 * rng.standard_normal(ROWS)
    frame = pl.DataFrame({"t": labels, "y": outcome, "x1": x[:, 0], "x2": x[:, 1]})
    file = tmp_path_factory.mktemp("spark") / "study.parquet"
    frame.write_parquet(file, row_group_size=4000)
    return file


def sums_of(groups):
    shown = groups.takes_part
    parts = [
        (groups.outcome * shown).sum(axis=1, dtype=np.int64),
        (groups.treatment & shown).sum(axis=1),
        np.rint(1e12 * (groups.covariates[..., 0] * shown)[:, 0]).astype(np.int64),
    ]
    return np.stack(parts, axis=1)


def test_groups_hold_the_same_rows_in_the_same_order_on_both_engines(session, path):
    local = LocalStudy.encode(read_table(path), DOMAIN)
    cluster = SparkStudy.encode(SparkColumns(session.read.parquet(str(path))), DOMAIN)
    shuffle = Shuffle(ROWS, 777, 5)

    here, there = (study.by_groups(shuffle, sums_of) for study in (local, cluster))
    partitions = cluster.blocks.getNumPartitions()
    cluster.close()

    assert partitions > 1
    np.testing.assert_array_equal(here, there)


def test_a_release_on_a_cluster_finds_the_effect(session, path):
    release = estimate_ate(
        session.read.parquet(str(path)), domain=DOMAIN, level="sample", epsilon=2, method="blocks",
        seed=1,
    )  # fmt: skip

    assert release.settings["adjusted"] is True
    assert release.ate == pytest.approx(EFFECT, abs=0.01)
