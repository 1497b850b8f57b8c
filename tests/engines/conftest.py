"""One session of Spark for all its tests; a module says how finely files are cut."""

import os
import sys

import pytest


@pytest.fixture(scope="session")
def started():
    """Start Spark on this machine once: two processors, a task tried three times."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


@pytest.fixture(scope="module")
def session(started, request):
    """Return the session; a file has a part for each `PARTITION_BYTES` of the module, if any."""
    size = getattr(request.module, "PARTITION_BYTES", None)
    if size is not None:
        started.conf.set("spark.sql.files.maxPartitionBytes", str(size))
        started.conf.set("spark.sql.files.openCostInBytes", "1")
    yield started
    started.conf.unset("spark.sql.files.maxPartitionBytes")
    started.conf.unset("spark.sql.files.openCostInBytes")
