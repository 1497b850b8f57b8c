"""IHDP: covariates of the Infant Health and Development Program, simulated outcomes."""

from __future__ import annotations

import io
from typing import Final

import polars as pl

from private_ate.datasets.dataset import Dataset
from private_ate.datasets.files import PackagedFile
from private_ate.domain import Domain, Interval, Treatment

__all__ = ["DOMAIN", "load"]

_FILE: Final = PackagedFile(
    "skcausal",
    "0.1.1",
    "skcausal/datasets/raw/ihdp.csv",
    "ed1bb91873a212989999b55d7198630b93e8f10d02ae47a196508a5950e6c66d",
)
_CONTINUOUS: Final = {
    "x1": Interval(-2.7313, 1.5055),
    "x2": Interval(-3.8009, 2.5955),
    "x3": Interval(-1.8504, 2.9904),
    "x4": Interval(-0.8797, 2.2444),
    "x5": Interval(-5.1305, 2.3717),
    "x6": Interval(-1.8515, 2.9514),
}
# x14, whether the child is the first born, is coded 1 and 2.
_BINARY: Final = {f"x{j}": Interval(1, 2) if j == 14 else Interval(0, 1) for j in range(7, 26)}
DOMAIN: Final = Domain(
    Treatment("treatment", treated=1, control=0),
    ("y", Interval(-1.544, 11.2682)),
    _CONTINUOUS | _BINARY,
)
"""Observed ranges as constants, the paper's convention for benchmarks."""

_COLUMNS: Final = ("treatment", "y", "y_cf", "mu0", "mu1", *DOMAIN.covariates)


def load() -> Dataset:
    """Load the 747 units; the true effect is the mean difference of the response surfaces."""
    rows = pl.read_csv(
        io.BytesIO(_FILE.read()),
        has_header=False,
        new_columns=list(_COLUMNS),
        infer_schema_length=None,
    )
    difference = rows["mu1"] - rows["mu0"]
    return Dataset(
        name="ihdp",
        frame=rows.drop("y_cf", "mu0", "mu1"),
        domain=DOMAIN,
        true_effect=float(difference.to_numpy().mean()),
        treated=139,
        control=608,
        source="Hill (2011), response surface B, as carried by the package skcausal",
    )
