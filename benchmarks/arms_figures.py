"""The figures that the methods for several arms were designed with, for `accuracy_arms.py`.

From a prototype, before anything of this package was written for several arms: few studies, few
draws. They are what an implementation is held against, not a proof of anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean relative error against the truth, against matching, and the path at sample level."""

    error: float
    matching: float | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of covered single contrasts and of studies with all covered, and a width."""

    single: float
    together: float | None
    width: float | None
    repetitions: int

    @property
    def error(self) -> float:
        """The standard error of the share, were contrasts of one study all alike."""
        share = min(self.single, 0.99)
        return math.sqrt(share * (1 - share) / self.repetitions)


NOT_PRIVATE = {
    ("errors", "3x1000"): (0.99, 0.202, 0.072),
    ("errors", "3x10000"): (0.968, 0.089, 0.029),
    ("errors", "3x100000"): (0.97, 0.087, 0.011),
    ("errors", "4x1000"): (0.328, 0.267, 0.094),
    ("errors", "4x10000"): (0.319, 0.133, 0.03),
    ("errors", "4x100000"): (0.322, 0.115, 0.007),
    ("errors", "4x10000 skewed"): (0.333, 0.174, 0.048),
    ("errors", "6x10000"): (0.72, 0.149, 0.045),
    ("fresh", "3x1000"): (1.0, 0.139),
    ("fresh", "4x1000"): (0.348, 0.185),
    ("fresh", "3x10000"): (0.972, 0.087),
    ("fresh", "4x10000"): (0.311, 0.12),
    ("fresh", "5x20000"): (0.814, 0.141),
    ("fresh", "3x10000 binary"): (1.15, 0.124),
    ("fresh", "3x10000 weak"): (0.4, 0.037),
    ("fresh", "4x10000 skewed"): (0.344, 0.157),
    ("fresh", "3x100000"): (0.97, 0.09),
    ("fresh", "4x100000"): (0.334, 0.128),
}

ERRORS = {
    ("3x1000", "label, published"): {
        "0.5": Figure(0.414, 0.314),
        "1": Figure(0.313, 0.215),
        "2": Figure(0.235, 0.13),
        "4": Figure(0.205, 0.076),
    },
    ("3x1000", "label, track"): {
        "0.5": Figure(0.267, 0.177),
        "1": Figure(0.204, 0.113),
        "2": Figure(0.162, 0.083),
        "4": Figure(0.165, 0.06),
    },
    ("3x1000", "label, balance"): {
        "0.5": Figure(0.238),
        "1": Figure(0.139),
        "2": Figure(0.096),
        "4": Figure(0.072),
    },
    ("3x1000", "sample, published"): {
        "0.5": Figure(1.08),
        "1": Figure(0.926),
        "2": Figure(0.853),
        "4": Figure(0.919),
    },
    ("3x1000", "sample, plain"): {
        "0.5": Figure(1.0),
        "1": Figure(0.982),
        "2": Figure(0.989),
        "4": Figure(0.99),
    },
    ("3x10000", "label, published"): {
        "0.5": Figure(0.147, 0.127),
        "1": Figure(0.113, 0.08),
        "2": Figure(0.1, 0.051),
        "4": Figure(0.095, 0.034),
    },
    ("3x10000", "label, track"): {
        "0.5": Figure(0.081, 0.038),
        "1": Figure(0.077, 0.028),
        "2": Figure(0.078, 0.021),
        "4": Figure(0.081, 0.014),
    },
    ("3x10000", "label, balance"): {
        "0.5": Figure(0.043),
        "1": Figure(0.034),
        "2": Figure(0.029),
        "4": Figure(0.027),
    },
    ("3x10000", "sample, published"): {
        "0.5": Figure(0.977),
        "1": Figure(0.925),
        "2": Figure(0.833),
        "4": Figure(0.901),
    },
    ("3x10000", "sample, plain"): {
        "0.5": Figure(0.961),
        "1": Figure(0.96),
        "2": Figure(0.96),
        "4": Figure(0.96),
    },
    ("3x100000", "label, published"): {
        "0.5": Figure(0.113, 0.063),
        "1": Figure(0.093, 0.044),
        "2": Figure(0.086, 0.019),
        "4": Figure(0.09, 0.011),
    },
    ("3x100000", "label, track"): {
        "0.5": Figure(0.099, 0.015),
        "1": Figure(0.096, 0.013),
        "2": Figure(0.094, 0.012),
        "4": Figure(0.092, 0.009),
    },
    ("3x100000", "label, balance"): {
        "0.5": Figure(0.011),
        "1": Figure(0.01),
        "2": Figure(0.011),
        "4": Figure(0.01),
    },
    ("3x100000", "sample, published"): {
        "0.5": Figure(0.968),
        "1": Figure(0.927),
        "2": Figure(0.84),
        "4": Figure(0.898),
    },
    ("3x100000", "sample, plain"): {
        "0.5": Figure(0.972),
        "1": Figure(0.972),
        "2": Figure(0.972),
        "4": Figure(0.972),
    },
    ("4x1000", "label, published"): {
        "0.5": Figure(0.338, 0.275),
        "1": Figure(0.311, 0.18),
        "2": Figure(0.284, 0.116),
        "4": Figure(0.278, 0.071),
    },
    ("4x1000", "label, track"): {
        "0.5": Figure(0.272, 0.245),
        "1": Figure(0.258, 0.117),
        "2": Figure(0.261, 0.066),
        "4": Figure(0.264, 0.037),
    },
    ("4x1000", "label, balance"): {
        "0.5": Figure(0.256),
        "1": Figure(0.163),
        "2": Figure(0.111),
        "4": Figure(0.099),
    },
    ("4x1000", "sample, published"): {
        "0.5": Figure(1.18),
        "1": Figure(0.876),
        "2": Figure(0.621),
        "4": Figure(0.416),
    },
    ("4x1000", "sample, plain"): {
        "0.5": Figure(0.442),
        "1": Figure(0.363),
        "2": Figure(0.328),
        "4": Figure(0.329),
    },
    ("4x10000", "label, published"): {
        "0.5": Figure(0.154, 0.087),
        "1": Figure(0.138, 0.049),
        "2": Figure(0.134, 0.025),
        "4": Figure(0.134, 0.012),
    },
    ("4x10000", "label, track"): {
        "0.5": Figure(0.132, 0.027),
        "1": Figure(0.132, 0.017),
        "2": Figure(0.132, 0.01),
        "4": Figure(0.132, 0.006),
    },
    ("4x10000", "label, balance"): {
        "0.5": Figure(0.038),
        "1": Figure(0.031),
        "2": Figure(0.028),
        "4": Figure(0.028),
    },
    ("4x10000", "sample, published"): {
        "0.5": Figure(0.942),
        "1": Figure(0.836),
        "2": Figure(0.652),
        "4": Figure(0.384),
    },
    ("4x10000", "sample, plain"): {
        "0.5": Figure(0.315),
        "1": Figure(0.315),
        "2": Figure(0.315),
        "4": Figure(0.316),
    },
    ("4x100000", "label, published"): {
        "0.5": Figure(0.119, 0.021),
        "1": Figure(0.117, 0.01),
        "2": Figure(0.116, 0.005),
        "4": Figure(0.115, 0.002),
    },
    ("4x100000", "label, track"): {
        "0.5": Figure(0.116, 0.005),
        "1": Figure(0.116, 0.003),
        "2": Figure(0.116, 0.002),
        "4": Figure(0.116, 0.001),
    },
    ("4x100000", "label, balance"): {
        "0.5": Figure(0.006),
        "1": Figure(0.005),
        "2": Figure(0.005),
        "4": Figure(0.005),
    },
    ("4x100000", "sample, published"): {
        "0.5": Figure(0.917),
        "1": Figure(0.838),
        "2": Figure(0.66),
        "4": Figure(0.392),
    },
    ("4x100000", "sample, plain"): {
        "0.5": Figure(0.324),
        "1": Figure(0.324),
        "2": Figure(0.324),
        "4": Figure(0.324),
    },
    ("4x10000 skewed", "label, published"): {
        "0.5": Figure(0.189, 0.104),
        "1": Figure(0.173, 0.068),
        "2": Figure(0.169, 0.046),
        "4": Figure(0.174, 0.027),
    },
    ("4x10000 skewed", "label, track"): {
        "0.5": Figure(0.177, 0.06),
        "1": Figure(0.173, 0.039),
        "2": Figure(0.177, 0.022),
        "4": Figure(0.173, 0.013),
    },
    ("4x10000 skewed", "label, balance"): {
        "0.5": Figure(0.08),
        "1": Figure(0.06),
        "2": Figure(0.053),
        "4": Figure(0.046),
    },
    ("4x10000 skewed", "sample, published"): {
        "0.5": Figure(0.977),
        "1": Figure(0.921),
        "2": Figure(0.837),
        "4": Figure(0.61),
    },
    ("4x10000 skewed", "sample, plain"): {
        "0.5": Figure(0.346),
        "1": Figure(0.342),
        "2": Figure(0.334),
        "4": Figure(0.334),
    },
    ("6x10000", "label, published"): {
        "0.5": Figure(0.222, 0.188),
        "1": Figure(0.189, 0.123),
        "2": Figure(0.162, 0.071),
        "4": Figure(0.152, 0.041),
    },
    ("6x10000", "label, track"): {
        "0.5": Figure(0.148, 0.072),
        "1": Figure(0.139, 0.046),
        "2": Figure(0.139, 0.029),
        "4": Figure(0.143, 0.017),
    },
    ("6x10000", "label, balance"): {
        "0.5": Figure(0.095),
        "1": Figure(0.067),
        "2": Figure(0.056),
        "4": Figure(0.052),
    },
    ("6x10000", "sample, published"): {
        "0.5": Figure(0.995),
        "1": Figure(0.962),
        "2": Figure(0.89),
        "4": Figure(0.776),
    },
    ("6x10000", "sample, plain"): {
        "0.5": Figure(0.715),
        "1": Figure(0.724),
        "2": Figure(0.721),
        "4": Figure(0.721),
    },
}

INTERVALS = {
    ("3x1000", "label, balance"): {
        "1": Coverage(0.985, 0.990, 1.42, 200),
        "4": Coverage(0.987, 0.985, 1.42, 200),
    },
    ("3x10000", "label, balance"): {
        "1": Coverage(0.987, 1.0, 1.32, 50),
        "4": Coverage(0.987, 1.0, 1.30, 50),
    },
    ("4x1000", "label, balance"): {
        "1": Coverage(0.991, 0.995, 1.52, 200),
        "4": Coverage(0.994, 1.0, 1.61, 200),
    },
    ("4x10000", "label, balance"): {
        "1": Coverage(1.0, 1.0, 1.57, 50),
        "4": Coverage(1.0, 1.0, 1.66, 50),
    },
}
