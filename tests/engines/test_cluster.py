"""A standalone cluster on this machine, one of whose two workers is killed in mid-run."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from private_ate import Domain, Interval, Ledger, Treatment, estimate_ate

pyspark = pytest.importorskip("pyspark")
pytestmark = pytest.mark.audit
DOMAIN = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), {"x": Interval(0, 1)})
PATIENCE = 300
SAME_EFFECT = 1e-6  # of a range of 10: weights agree as far as their solver goes

# The driver says when it is in mid-run, so that the test knows when to strike.
DRIVER = """
import json, sys, time
from private_ate import Domain, Interval, Treatment, estimate_ate

def tell(title, done, total):
    if done == 0:
        print("PASS", title, flush=True)
        time.sleep(0.3)

domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), {"x": Interval(0, 1)})
asked = json.loads(sys.argv[1])
release = estimate_ate(domain=domain, engine="spark", progress=tell, **asked)
print("RELEASE", json.dumps(release.to_dict()), flush=True)
"""


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """A master and two workers on the loopback device, each in a process group of its own."""

    def __init__(self, folder):
        self.home = Path(pyspark.__file__).parent
        self.folder = folder
        port = _free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self.processes = [
            self._start("master.Master", "--host", "127.0.0.1", "--port", str(port),
                        "--webui-port", "0"),
        ]  # fmt: skip
        time.sleep(8)
        self.processes += [
            self._start("worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g",
                        "--webui-port", "0", "--work-dir", str(folder / f"work{one}"), self.url)
            for one in (1, 2)
        ]  # fmt: skip
        time.sleep(8)

    @property
    def environment(self):
        return {
            **os.environ,
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            # Small splits, so that both workers hold some.
            "PYSPARK_SUBMIT_ARGS": "--conf spark.sql.files.maxPartitionBytes=100000 pyspark-shell",
        }

    def _start(self, role, *arguments):
        command = [str(self.home / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}"]
        with (self.folder / f"{role}{time.monotonic_ns()}.log").open("w") as log:
            return subprocess.Popen(
                [*command, *arguments],
                stdout=log, stderr=log, start_new_session=True, env=self.environment,
            )  # fmt: skip

    def drive(self, asked):
        """Start an estimate in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-c", DRIVER, json.dumps({**asked, "master": self.url})],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.environment,
        )  # fmt: skip

    def kill_worker(self):
        """Kill the last process and its executors, without a word to anybody."""
        process = self.processes.pop()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)

    def stop(self):
        while self.processes:
            self.kill_worker()


@pytest.fixture
def cluster(tmp_path):
    started = Cluster(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(1)
    rows = 30_000
    x = rng.random(rows)
    treated = rng.random(rows) < 0.3 + 0.4 * x
    y = np.clip(3 + x + 2 * treated + rng.normal(size=rows), 0, 10)
    file = tmp_path / "study.parquet"
    pl.DataFrame({"x": x, "t": treated.astype(np.int8), "y": y}).write_parquet(
        file, row_group_size=3000
    )
    return file


def _finish(driver, strike):
    """Read what the driver says, strike in its fifth pass, and return the release."""
    passes, release = 0, None
    with driver:
        for line in driver.stdout:
            if line.startswith("PASS"):
                passes += 1
                if passes == 5:
                    strike()
            if line.startswith("RELEASE"):
                release = json.loads(line.removeprefix("RELEASE "))
    return release


def test_a_killed_worker_leaves_a_seeded_release_as_it_was(cluster, path):
    asked = {"level": "label", "epsilon": "1.0", "seed": 5}

    release = _finish(cluster.drive({"data": str(path), **asked}), cluster.kill_worker)

    expected = estimate_ate(path, domain=DOMAIN, **asked)
    assert release is not None
    assert release["ate"] == pytest.approx(expected.ate, abs=SAME_EFFECT)


def test_a_killed_worker_leaves_one_charge_in_the_ledger(cluster, path, tmp_path):
    place = tmp_path / "ledger.db"
    Ledger.create(place, "study", epsilon="2").close()

    asked = {"level": "sample", "epsilon": "1", "ledger": str(place), "dataset": "study"}
    release = _finish(cluster.drive({"data": str(path), **asked}), cluster.kill_worker)

    assert release is not None
    ledger = Ledger.open(place)
    charges = [entry for entry in ledger.history() if entry.kind == "charge"]
    ledger.close()
    assert len(charges) == 1
