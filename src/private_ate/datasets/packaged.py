"""Benchmark data that packages on the index carry: IHDP, Lalonde and ACIC 2016.

A file is found inside the installed package, without importing it, and known by its sha256.
Domains hold the observed ranges as constants, the paper's convention for benchmarks.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from private_ate.datasets.dataset import Dataset
from private_ate.domain import Categories, Domain, Interval, Treatment
from private_ate.errors import ArgumentError, DatasetError

__all__ = [
    "ACIC_COVARIATES",
    "ACIC_SETTINGS",
    "IHDP",
    "LALONDE",
    "PackagedFile",
    "load_acic",
    "load_ihdp",
    "load_lalonde",
    "with_coded_letters",
]


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file that a package on the index carries, known by its sha256."""

    package: str
    version: str
    path: str
    sha256: str

    def read(self) -> bytes:
        """Return the bytes of the file, after checking that they are the expected ones."""
        content = self._locate().read_bytes()
        if hashlib.sha256(content).hexdigest() != self.sha256:
            msg = (
                f"{self.path} of the installed {self.package} is not the file of version "
                f"{self.version}; run `make data` to install that version"
            )
            raise DatasetError(msg)
        return content

    def read_csv(self, columns: list[str] | None = None) -> pl.DataFrame:
        """Return the rows of a CSV file; with names of columns it has no header."""
        return pl.read_csv(
            io.BytesIO(self.read()), has_header=columns is None, new_columns=columns,
            infer_schema_length=None,
        )  # fmt: skip

    def _locate(self) -> Path:
        try:
            path = Path(str(distribution(self.package).locate_file(self.path)))
        except PackageNotFoundError:
            path = None
        if path is None or not path.is_file():
            msg = (
                f"this data set is read from the package {self.package} {self.version}, which is "
                f"not installed; run `make data`, or `pip install {self.package}=={self.version}`"
            )
            raise DatasetError(msg)
        return path


_IHDP_FILE: Final = PackagedFile(
    "skcausal",
    "0.1.1",
    "skcausal/datasets/raw/ihdp.csv",
    "ed1bb91873a212989999b55d7198630b93e8f10d02ae47a196508a5950e6c66d",
)
IHDP: Final = Domain(
    Treatment("treatment", treated=1, control=0),
    ("y", Interval(-1.544, 11.2682)),
    {
        "x1": Interval(-2.7313, 1.5055),
        "x2": Interval(-3.8009, 2.5955),
        "x3": Interval(-1.8504, 2.9904),
        "x4": Interval(-0.8797, 2.2444),
        "x5": Interval(-5.1305, 2.3717),
        "x6": Interval(-1.8515, 2.9514),
        # x14, whether the child is the first born, is coded 1 and 2.
        **{f"x{j}": Interval(1, 2) if j == 14 else Interval(0, 1) for j in range(7, 26)},
    },
)
"""The Infant Health and Development Program."""


def load_ihdp() -> Dataset:
    """Load the 747 units; the true effect is the mean difference of the response surfaces."""
    rows = _IHDP_FILE.read_csv(["treatment", "y", "y_cf", "mu0", "mu1", *IHDP.covariates])
    return Dataset(
        name="ihdp",
        frame=rows.drop("y_cf", "mu0", "mu1"),
        domain=IHDP,
        true_effect=float((rows["mu1"] - rows["mu0"]).to_numpy().mean()),
        treated=139,
        control=608,
        source="Hill (2011), response surface B, as carried by the package skcausal",
    )


_LALONDE_FILE: Final = PackagedFile(
    "causaldata",
    "0.1.5",
    "causaldata/nsw_mixtape/nsw_mixtape.dta",
    "e4a64e4436c2c178f47d6c82a371d20f1596b82b44862ce24bf13c71ac797339",
)
LALONDE: Final = Domain(
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
"""The job training experiment as selected by Dehejia and Wahba."""

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


def load_lalonde() -> Dataset:
    """Load the 445 units; earnings are real, so no true effect is known."""
    content = _LALONDE_FILE.read()
    records = np.frombuffer(content, _LAYOUT, count=_RECORDS, offset=_RECORDS_START)
    columns = [name for name in _LAYOUT.names or () if name != "data_id"]
    return Dataset(
        name="lalonde",
        frame=pl.DataFrame({name: np.ascontiguousarray(records[name]) for name in columns}),
        domain=LALONDE,
        true_effect=None,
        treated=185,
        control=260,
        source="Dehejia and Wahba (1999), as carried by the package causaldata",
    )


def _of_acic(name: str, sha256: str) -> PackagedFile:
    path = f"causallib/datasets/data/acic_challenge_2016/{name}"
    return PackagedFile("causallib", "0.10.0", path, sha256)


_ACIC_FILE: Final = _of_acic(
    "x.csv", "914d4d6c8dcea14f0268bb0c0558292746cbfbff7111c71434801e8ce48cdbdf"
)
# Of each of the ten simulations: treated units, the range of outcomes, the file's sha256.
ACIC_SETTINGS: Final = {
    1: (858, Interval(-12.2, 27.7113),
        "c77c7ba8cefeb350983d9e3918c444004b290e32f53ce028028701387898e175"),
    2: (1497, Interval(3.3873, 94.0802),
        "faf5ad7c584d7c2dd6eed5120de8bb5de0a738b9fc343275d7d59a05efbf8ada"),
    3: (1356, Interval(-18.4013, 23.9778),
        "394974df8181524c3a5f0166cae961adc7e1311bf05db2050c1668879bf8e130"),
    4: (1736, Interval(-9.7254, 33.3722),
        "478153982835c31ca5442df3dba9020a9b8b04cad2f87d5a2beae56638cdd9e9"),
    5: (1444, Interval(-57.4565, 15.4842),
        "96b9252370b5f72da72a643b81a3233337ff274f4abbe74837e152f969f9bb87"),
    6: (1250, Interval(-8.4509, 52.6978),
        "73cac08e9444b336417ae99696f2156b96ee096fd195a1ec118fc315571c608e"),
    7: (1504, Interval(-31.4616, 137.7303),
        "b456f0f230fdb6b503acf691ed4efaaf59806d7a23f6ac3f7b47a6b6588292c4"),
    8: (1237, Interval(-12.2446, 61.3397),
        "3d1d6a5646efaba235f9ed0c41c80644050d88764a1728e9411e1000266560b4"),
    9: (1374, Interval(-17.8087, 23.022),
        "0c3d16e75faf07b8b63c991522270f481c1570f64ebc3c24671e9805612f933e"),
    10: (1191, Interval(-77.019, -26.3319),
         "81fe53b05fce5cf889a5884179dff485e67e9caeabc9fc1cb0da1da39c4dba3b"),
}  # fmt: skip

_LETTERS: Final = {2: "ABCDEF", 21: "ABCDEFGHIJKLMNOP", 24: "ABCDE"}
_LOW: Final = {1: 14, 5: 40, 6: 71, 20: 2, 25: 7, 26: 12, 27: 88, 28: 14, 34: 7, 35: 7, 36: 150,
               37: 1, 40: 1, 44: 13, 45: 4, 57: 34, 58: 21}  # fmt: skip
_HIGH: Final = {
    1: 48, 3: 60, 4: 35, 5: 78, 6: 289, 7: 5, 8: 4, 9: 5, 10: 8, 11: 3, 12: 8, 13: 5, 14: 5, 15: 6,
    16: 2, 17: 1, 18: 18, 19: 105, 20: 70, 22: 1, 23: 95, 25: 19, 26: 124, 27: 284, 28: 66, 29: 18,
    30: 7, 31: 7, 32: 4, 33: 7, 34: 99, 35: 43, 36: 940, 37: 98, 38: 1, 39: 10, 40: 10, 41: 8,
    42: 8, 43: 25, 44: 85, 45: 27, 46: 8, 47: 2, 48: 3, 49: 8, 50: 3, 51: 1, 52: 3, 53: 3, 54: 1,
    55: 2, 56: 8, 57: 51, 58: 50,
}  # fmt: skip
ACIC_COVARIATES: Final[dict[str, Interval | Categories]] = {
    # Nothing is missing; naming the last letter keeps a synthesiser from an empty further code.
    f"x_{j}": Categories(*_LETTERS[j], other=_LETTERS[j][-1])
    if j in _LETTERS
    else Interval(_LOW.get(j, 0), _HIGH[j])
    for j in range(1, 59)
}


def load_acic(setting: int = 1) -> Dataset:
    """Load the 4802 units with the treatments and outcomes of a setting from 1 to 10.

    The paper uses setting 1. The true effect is the mean difference of the expected outcomes.
    """
    if setting not in ACIC_SETTINGS:
        msg = f"ACIC has the settings 1 to 10, not {setting}"
        raise ArgumentError(msg)
    treated, bounds, sha256 = ACIC_SETTINGS[setting]
    covariates = _ACIC_FILE.read_csv()
    simulated = _of_acic(f"zymu_{setting}.csv", sha256).read_csv()
    outcome = pl.when(pl.col("z") == 1).then(pl.col("y1")).otherwise(pl.col("y0")).alias("y")
    return Dataset(
        name="acic" if setting == 1 else f"acic-{setting}",
        frame=pl.concat([simulated.select("z", outcome), covariates], how="horizontal"),
        domain=Domain(Treatment("z", treated=1, control=0), ("y", bounds), ACIC_COVARIATES),
        true_effect=float((simulated["mu1"] - simulated["mu0"]).to_numpy().mean()),
        treated=treated,
        control=covariates.height - treated,
        source=f"Dorie et al. (2019), setting {setting}, as carried by the package causallib",
    )


def with_coded_letters(dataset: Dataset) -> Dataset:
    """Replace ACIC's three columns of letters by their places in the alphabet.

    The paper counts 58 covariates, so it seems to have done this; the letters have no order that
    we know of, so it is not the default. The matching estimate moves from 3.69 to 3.21.
    """
    codes = {f"x_{j}": {c: place for place, c in enumerate(_LETTERS[j])} for j in _LETTERS}
    ranges = {name: Interval(0, len(places) - 1) for name, places in codes.items()}
    outcome = (dataset.domain.outcome.column, dataset.domain.bounds)
    return replace(
        dataset,
        name=f"{dataset.name}-codes",
        frame=dataset.frame.with_columns(
            pl.col(name).replace_strict(places, return_dtype=pl.Int8)
            for name, places in codes.items()
        ),
        domain=Domain(dataset.domain.treatment, outcome, ACIC_COVARIATES | ranges),
    )
