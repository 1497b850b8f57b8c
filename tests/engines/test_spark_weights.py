"""Sampling weights on a cluster: the same shares, sums and releases as on one machine."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyspark")

from private_ate import Domain, Interval, Treatment, UndeclaredError, estimate_ate
from private_ate.data.files import read_table
from private_ate.engines.local import LocalStudy
from private_ate.engines.spark import SparkStudy
from private_ate.engines.spark_table import read_frame
from private_ate.methods.blocks.partition import Shuffle

ROWS = 6000
PARTITION_BYTES = 60_000
DOMAIN = Domain(
    Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x1": Interval(0, 1), "x2": Interval(0, 1)},
    weights=("w", Interval(0, 5)),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(3)
    x = rng.random((ROWS, 2))
    treated = rng.random(ROWS) < 1 / (1 + np.exp(1 - 2 * x[:, 0]))
    outcome = 0.1 + 0.2 * x[:, 0] + (0.05 + 0.2 * x[:, 1]) * treated
    outcome += 0.05 * rng.standard_normal(ROWS)
    frame = pl.DataFrame({
        "t": treated.astype(int), "y": outcome, "x1": x[:, 0], "x2": x[:, 1],
        "w": np.where(x[:, 1] > 0.5, 4.5, 0.5),
    })  # fmt: skip
    folder = tmp_path_factory.mktemp("spark")
    frame.write_parquet(folder / "study.parquet", row_group_size=2000)
    frame.write_csv(folder / "study.csv")
    odd = frame.with_columns(w=pl.when(pl.col("x1") < 0.1).then(-1.0).otherwise(pl.col("w")))
    odd.write_csv(folder / "odd.csv")
    return folder


def steps_of(block):
    return int(np.rint(block.shares * 2**20).astype(np.int64).sum())


def heavy_by_group(groups):
    return np.rint(groups.weights * groups.takes_part * 2**20).sum(axis=1)[:, None].astype(np.int64)


@pytest.mark.parametrize("name", ["study.parquet", "study.csv"])
def test_both_engines_hold_the_same_weights(session, folder, name):
    path = folder / name
    local = LocalStudy.encode(read_table(path), DOMAIN)
    columns = read_frame(str(path))
    cluster = SparkStudy.encode(columns, DOMAIN)
    shuffle = Shuffle(ROWS, 150, 5)

    sums = [one.fold(steps_of) for one in (local, cluster)]
    groups = [one.by_groups(shuffle, heavy_by_group) for one in (local, cluster)]
    with cluster.thinned(4) as few:
        part = few.fold(steps_of)
    cluster.close()

    assert session is not None
    assert sums[0] == sums[1] > 0
    assert 0 < part < sums[0] / 2
    np.testing.assert_array_equal(*groups)
    assert not cluster.everyone_takes_part


@pytest.mark.parametrize(
    ("level", "declared"),
    [
        ("label", DOMAIN),
        ("sample", DOMAIN),
        ("sample", replace(DOMAIN, treatment=Treatment("t", 1, 0, other=0))),
        ("label", replace(DOMAIN, treatment=Treatment("t", arms=("0", "1", "2")))),
    ],
)
def test_a_weighted_release_of_a_cluster_is_that_of_one_machine(session, folder, level, declared):
    path = folder / "study.parquet"
    if declared.treatment.size > 2:
        frame = pl.read_parquet(path)
        third = (pl.arange(0, ROWS) % 3 == 0) & (pl.col("x1") > 0.1)
        frame = frame.with_columns(t=pl.when(third).then(2).otherwise(pl.col("t")))
        path = folder / "arms.parquet"
        frame.write_parquet(path, row_group_size=2000)
    asked = {"level": level, "epsilon": 4, "domain": declared, "seed": 1}

    there = estimate_ate(session.read.parquet(str(path)), engine="spark", **asked)
    here = estimate_ate(path, **asked)

    assert there.ate == pytest.approx(here.ate, abs=2e-3)
    assert there.interval == pytest.approx(here.interval, abs=4e-3)
    key = "sampling_weights" if level == "label" else "private_weights"
    told, known = (one.settings[key] for one in (there, here))
    assert told["worth"] == pytest.approx(known["worth"], rel=1e-3)
    assert "weighted to the target population" in there.settings["population"]


def test_weights_outside_their_bounds_are_public_at_label_level_there_too(session, folder):
    asked = {"level": "label", "epsilon": 4, "domain": DOMAIN, "engine": "spark", "seed": 1}
    path = str(folder / "odd.csv")

    with pytest.raises(
        UndeclaredError, match="sampling weight 'w' is missing or not between 0 and"
    ):
        estimate_ate(path, **asked)
    release = estimate_ate(path, leave_out_undeclared=True, **asked)

    assert session is not None
    assert release.missing["left_out_weights"] > 300
