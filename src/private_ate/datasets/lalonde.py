"""Lalonde: the job training experiment as selected by Dehejia and Wahba, real earnings."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from private_ate.datasets.dataset import Dataset
from private_ate.datasets.files import PackagedFile
from private_ate.domain import Domain, Interval, Treatment

__all__ = ["DOMAIN", "load"]

_FILE: Final = PackagedFile(
    "causaldata",
    "0.1.5",
    "causaldata/nsw_mixtape/nsw_mixtape.dta",
    "e4a64e4436c2c178f47d6c82a371d20f1596b82b44862ce24bf13c71ac797339",
)
DOMAIN: Final = Domain(
    Treatment("treat", treated=1, control=0),
    ("re78", Interval(0, 60307.93)),
    {
        "age": Interval(17, 55),
        "educ": Interval(3, 16),
        "black": Interval(0, 1),
        "hisp": Interval(0, 1),
        "marr": Interval(0, 1),
        "nodegree": Interval(0, 1),
        "re74": Interval(0, 39570.68),
        "re75": Interval(0, 25142.25),
    },
)
"""Observed ranges as constants, the paper's convention for benchmarks."""

_SMALL: Final = ("treat", "age", "educ", "black", "hisp", "marr", "nodegree")
# The sha256 fixes every byte of this Stata file, so the place and the layout of its records are
# constants too, and reading it needs no Stata reader.
_RECORDS_START: Final = 7532
_RECORDS: Final = 445
_LAYOUT: Final = np.dtype(
    [("data_id", "S20")]
    + [(name, "<i1") for name in _SMALL]
    + [(name, "<f4") for name in ("re74", "re75", "re78")]
)


def load() -> Dataset:
    """Load the 445 units; earnings are real, so no true effect is known."""
    records = np.frombuffer(_FILE.read(), _LAYOUT, count=_RECORDS, offset=_RECORDS_START)
    columns = [name for name in _LAYOUT.names or () if name != "data_id"]
    return Dataset(
        name="lalonde",
        frame=pl.DataFrame({name: np.ascontiguousarray(records[name]) for name in columns}),
        domain=DOMAIN,
        true_effect=None,
        treated=185,
        control=260,
        source="Dehejia and Wahba (1999), as carried by the package causaldata",
    )
