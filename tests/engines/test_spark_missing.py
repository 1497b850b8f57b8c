"""Missing outcomes on a cluster: the same masks, sums and releases as on one machine."""

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyspark")

from private_ate import Domain, Interval, Outcome, Treatment, estimate_ate
from private_ate.data.files import read_table
from private_ate.engines.local import LocalStudy
from private_ate.engines.spark import SparkStudy
from private_ate.engines.spark_table import SparkColumns, read_frame
from private_ate.methods.blocks.partition import Shuffle

ROWS = 20_000
PARTITION_BYTES = 200_000


def domain_with(rule):
    covariates = {"x1": Interval(0, 1), "x2": Interval(0, 1)}
    return Domain(Treatment("t", 1, 0), Outcome("y", Interval(0, 1), rule), covariates)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(3)
    x = rng.random((ROWS, 2))
    treated = rng.random(ROWS) < 1 / (1 + np.exp(1 - 2 * x[:, 0]))
    outcome = 0.1 + 0.2 * x[:, 0] + 0.1 * treated + 0.05 * rng.standard_normal(ROWS)
    gone = treated & (rng.random(ROWS) < 0.6 * x[:, 0])
    observed = pl.Series(outcome).set(pl.Series(gone), None)
    frame = pl.DataFrame({"t": treated, "y": observed, "x1": x[:, 0], "x2": x[:, 1]})
    file = tmp_path_factory.mktemp("spark") / "study.parquet"
    frame.write_parquet(file, row_group_size=4000)
    return file


def count_present(block):
    return int(np.count_nonzero(block.present))


def present_by_group(groups):
    return groups.takes_part.sum(axis=1)[:, None].astype(np.int64)


@pytest.mark.parametrize("rule", ["public", "private", None])
def test_both_engines_know_who_lacks_an_outcome_and_who_may_know(session, path, rule):
    domain = domain_with(rule)
    local = LocalStudy.encode(read_table(path), domain)
    cluster = SparkStudy.encode(SparkColumns(session.read.parquet(str(path))), domain)
    views = [(local, cluster), (local.public(), cluster.public())]
    shuffle = Shuffle(ROWS, 500, 5)

    counts = [[one.fold(count_present) for one in pair] for pair in views]
    groups = [one.by_groups(shuffle, present_by_group) for one in (local, cluster)]
    cluster.close()

    missing = read_table(path).frame.to_native()["y"].null_count()
    whole, shown = ROWS if rule is None else ROWS - missing, rule == "public"
    assert counts == [[whole, whole], [ROWS - missing if shown else ROWS] * 2]
    np.testing.assert_array_equal(*groups)


@pytest.mark.parametrize("rule", ["public", "private"])
def test_a_release_on_a_cluster_is_that_of_one_machine(session, path, rule):
    asked = {"domain": domain_with(rule), "level": "label", "epsilon": 2, "seed": 1}

    here = estimate_ate(path, **asked)
    there = estimate_ate(session.read.parquet(str(path)), **asked)

    assert here.ate == pytest.approx(there.ate, abs=1e-3)
    assert here.settings["notes"] == there.settings["notes"]
    assert here.settings.get("left_out_outcome") == there.settings.get("left_out_outcome")


@pytest.mark.parametrize("method", ["blocks"])
def test_at_sample_level_a_cluster_leaves_out_rows_without_an_outcome(session, path, method):
    release = estimate_ate(
        session.read.parquet(str(path)), domain=domain_with("private"), level="sample", epsilon=4,
        method=method, seed=1,
    )  # fmt: skip

    assert release.ate == pytest.approx(0.1, abs=0.02)


@pytest.mark.usefixtures("session")
def test_lines_of_texts_know_it_too(path, tmp_path):
    lines = tmp_path / "study.csv"
    read_table(path).frame.to_native().write_csv(lines)

    cluster = SparkStudy.encode(read_frame(str(lines)), domain_with("public"))
    present = cluster.fold(count_present)
    cluster.close()

    assert present == LocalStudy.encode(read_table(path), domain_with("public")).observed.sum()
