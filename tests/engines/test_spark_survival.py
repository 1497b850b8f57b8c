"""A time to an event on the cluster engine; needs the spark extra (`make test-spark`)."""

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyspark")

from private_ate import estimate_ate
from survival_studies import draw_times, survival_domain


@pytest.mark.parametrize("level", ["label", "sample"])
def test_one_partition_in_row_order_gives_the_release_of_the_local_engine(session, tmp_path, level):
    rng = np.random.default_rng(5)
    a, b = rng.random((2, 600))
    arm = (rng.random(600) < a).astype(int)
    times, ended = draw_times(rng, 600, arm, a)
    path = tmp_path / "s.parquet"
    status = np.where(ended, "dead", "alive")
    pl.DataFrame({"a": a, "b": b, "t": arm, "days": times, "status": status}).write_parquet(path)
    asked = {"domain": survival_domain(), "level": level, "epsilon": "1", "seed": 2}
    spread = estimate_ate(session.read.parquet(str(path)).coalesce(1), **asked)
    local = estimate_ate(path, **asked)
    assert spread.curves == local.curves
    assert spread.ate == local.ate
