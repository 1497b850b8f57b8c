"""Several arms at label level on a cluster: the release of one machine, by folds alone."""

import pytest

pytest.importorskip("pyspark")

from private_ate import ArgumentError, estimate_ate
from several_arms import arm_study, arm_table

ARMS = 4


@pytest.fixture(scope="module")
def study():
    return arm_study(ARMS, rows=2000, seed=3)


@pytest.fixture(scope="module")
def path(study, tmp_path_factory):
    found = tmp_path_factory.mktemp("arms") / "study.parquet"
    arm_table(study).write_parquet(found)
    return found


def released(study, path, engine, **asked):
    return estimate_ate(
        path, domain=study.domain, level="label", epsilon=2, engine=engine, seed=5, **asked
    )


@pytest.mark.usefixtures("session")
def test_a_cluster_releases_the_means_that_one_machine_does_among_one_arm(study, path):
    here, there = (released(study, path, engine, among="a2") for engine in ("local", "spark"))

    means = [[arm.mean for arm in release.arms] for release in (here, there)]
    assert means[1] == pytest.approx(means[0], abs=1e-6)
    assert there.settings["arms"] == here.settings["arms"]
    assert there.interval == pytest.approx(here.interval, abs=0.05)


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("asked", [{"target": "track"}, {"method": "published"}])
def test_what_needs_all_rows_in_order_is_refused(study, path, asked):
    with pytest.raises(ArgumentError, match="does not run on Spark"):
        released(study, path, "spark", **asked)
