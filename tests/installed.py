"""One use of the installed wheel and of each extra: ``python installed.py EXTRA``.

What the wheel with this extra alone would not install cannot be imported, so that one environment
with all extras serves for each of them.
"""

import subprocess
import sys
import sysconfig
import warnings
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions, requires
from importlib.resources import files
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement  # what pip itself reads them with
from pip._vendor.packaging.utils import canonicalize_name

PROGRAM = str(Path(sysconfig.get_path("scripts")) / "private-ate")
ABSENT_SERVER = "postgresql://nobody@127.0.0.1:1/none"


def installed_with(extra):
    """Return the distributions that come with the wheel and an extra."""
    found, waiting = set(), [("private-ate", frozenset({"", extra}))]
    while waiting:
        asked = waiting.pop()
        if asked in found:
            continue
        found.add(asked)
        waiting += [
            (canonicalize_name(one.name), frozenset({"", *one.extras}))
            for one in map(Requirement, requires(asked[0]) or ())
            if one.marker is None or any(one.marker.evaluate({"extra": name}) for name in asked[1])
        ]
    return {name for name, _ in found}


class NotInstalled:
    """A finder in place of Python's own: packages that would not be installed are not found.

    Others may ask whether a package is there, so it answers None and raises nothing.
    """

    def __init__(self, extra):
        brought = installed_with(extra)
        self.names = {
            module
            for module, homes in packages_distributions().items()
            if brought.isdisjoint(map(canonicalize_name, homes))
        }

    def find_spec(self, name, path=None, target=None):
        """Find a module as Python does, unless its package would not be installed."""
        if name.partition(".")[0] in self.names:
            return None
        return PathFinder.find_spec(name, path, target)

    def find_distributions(self, *context):
        """Find what is installed as Python does."""
        return PathFinder.find_distributions(*context)


def use_plain():
    """The program helps, demonstrates and estimates; the library is the installed one."""
    import private_ate

    assert Path(private_ate.__file__).is_relative_to(sysconfig.get_path("purelib"))
    helped = subprocess.run([PROGRAM, "--help"], check=True, capture_output=True, text=True)
    assert "estimate" in helped.stdout
    subprocess.run([PROGRAM, "demo"], check=True, stdout=subprocess.DEVNULL)
    study = ["demo/clinic.csv", "--domain", "demo/clinic.toml", "--level", "label"]
    asked = [PROGRAM, "estimate", *study, "--epsilon", "1.0", "--json"]
    found = subprocess.run(asked, check=True, capture_output=True, text=True)
    assert '"ate"' in found.stdout
    assert (files("private_ate") / "release.schema.json").is_file()


def use_datasets():
    """The packages that carry benchmark data are found."""
    from private_ate.datasets import load

    assert {load(name).size for name in ("ihdp", "lalonde", "acic")} == {747, 445, 4802}


def use_dowhy():
    """DoWhy takes the estimator."""
    warnings.simplefilter("ignore")  # DoWhy and what it imports warn about their own future
    import pandas as pd
    from dowhy import CausalModel

    from private_ate.datasets.clinic import draw_clinic

    study = draw_clinic(1500)
    records = pd.DataFrame(study.frame.to_dict(as_series=False))  # to_pandas would need pyarrow
    model = CausalModel(
        data=records, treatment="drug", outcome="pressure_drop",
        common_causes=["age", "pressure_before", "weight", "smoker", "diabetes"],
    )  # fmt: skip
    estimate = model.estimate_effect(
        model.identify_effect(proceed_when_unidentifiable=True),
        method_name="backdoor.private_ate.dowhy.PrivateATE",
        method_params={"level": "label", "epsilon": "2.0", "domain": study.domain},
    )
    assert estimate.value == estimate.release.ate


def use_formats():
    """A Stata file is read, and R's reader is there."""
    import pyreadstat
    import rdata
    from typer.testing import CliRunner

    from private_ate.cli.app import app
    from private_ate.datasets.clinic import draw_clinic

    assert rdata.parser
    study = draw_clinic(1500)
    frame = study.frame.with_columns((study.frame["drug"] == "yes").cast(int))
    pyreadstat.write_dta(frame, "clinic.dta")
    asked = ["clinic.dta", "--treatment", "drug", "--outcome", "pressure_drop", "--level", "label",
             "--outcome-bounds", "-40", "60", "--covariates", "age,weight"]  # fmt: skip
    done = CliRunner().invoke(app, ["estimate", *asked, "--epsilon", "1.0", "--json"])
    assert done.exit_code == 0, done.output


def use_plots():
    """A figure is drawn."""
    from private_ate.report.plots import draw_errors

    draw_errors({"ours": {0.5: 0.9, 1.0: 0.5}}, Path("errors.svg"))
    assert Path("errors.svg").stat().st_size > 5000


def use_postgres():
    """The driver is there: what is missing is the server."""
    from private_ate import Ledger
    from private_ate.errors import LedgerError

    refusals = []
    try:
        Ledger.create(ABSENT_SERVER, "trial", epsilon="1")
    except LedgerError as refusal:
        refusals.append(str(refusal))
    assert len(refusals) == 1
    assert "psycopg" not in refusals[0], refusals


def use_serve():
    """The service comes up, and a stranger is refused."""
    import asyncio

    from private_ate.service.processes import create_demo, open_service, read_config
    from private_ate.service.web.app import make_app

    assert len(create_demo(Path("service"), 8470)) == 3
    told = []

    async def send(message):
        await asyncio.sleep(0)
        told.append(message)

    async def receive():
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"", "more_body": False}

    with open_service(read_config(Path("service"))) as (_, service):
        scope = {
            "type": "http", "method": "GET", "path": "/v1/datasets", "raw_path": b"/v1/datasets",
            "headers": [], "query_string": b"", "scheme": "http", "http_version": "1.1",
            "root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8470),
        }  # fmt: skip
        asyncio.run(make_app(service)(scope, receive, send))
    assert told[0]["status"] == 401


def use_sklearn():
    """The estimator fits."""
    import numpy as np

    from private_ate.sklearn import PrivateATE

    rng = np.random.default_rng(0)
    covariates, treatment = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    estimator = PrivateATE(level="label", epsilon="2", outcome_bounds=(-8, 8))
    outcome = 2.0 * treatment + rng.normal(size=500)
    assert abs(estimator.fit(covariates, outcome, treatment=treatment).ate_ - 2) < 2


def use_spark():
    """A frame on a cluster of one machine is folded there."""
    import os

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    from pyspark.sql import SparkSession

    from private_ate import estimate_ate
    from private_ate.datasets.clinic import draw_clinic

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    study = draw_clinic(2000)
    study.frame.write_parquet("study.parquet")
    frame = spark.read.parquet("study.parquet")
    release = estimate_ate(frame, domain=study.domain, level="label", epsilon="1.0")
    spark.stop()
    assert release.n == 2000


if __name__ == "__main__":
    extra = sys.argv[1]
    hook = NotInstalled("" if extra == "plain" else extra)
    sys.meta_path[sys.meta_path.index(PathFinder)] = hook
    try:
        import_module("pip._internal")
    except ModuleNotFoundError:
        pass
    else:
        sys.exit("what is not installed can be imported")
    globals()[f"use_{extra}"]()
    print(f"the wheel with {extra}: used")  # noqa: T201  # a line of the log
