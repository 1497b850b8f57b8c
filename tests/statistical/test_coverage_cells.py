"""One coverage cell of each interval that ε pays for: it must hold the effect often enough.

`make audit` crosses outcomes, selections and ε; this is the smallest part of it that still notices
an interval which covers .80 instead of .95. With 300 studies a true .95 lies four standard errors
above the bound, a true .80 four below it.
"""

import numpy as np
import polars as pl
import pytest

from private_ate import (
    CalibratedOptions,
    Domain,
    Interval,
    Treatment,
    estimate_ate,
)

pytestmark = pytest.mark.coverage_cell
STUDIES = 300
LEAST_COVERAGE = 0.90
# By what a 95 % interval shrinks to become an 80 % one, if errors are normal.
SHRUNK = 1.2816 / 1.95996
EFFECT = 0.1
DOMAIN = Domain(
    Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x0": Interval(0, 1), "x1": Interval(0, 1)}
)
CELLS = {
    "calibrated": ("label", "8", 2000, 0.7, None),
    "calibrated, means": ("label", "8", 2000, 0.7, CalibratedOptions(means=True)),
}


def draw(rows, selection, rng):
    """Return a study whose treatment follows the covariates as strongly as told."""
    covariates = rng.random((rows, 2))
    treated = rng.random(rows) < 1 / (1 + np.exp(-selection * (covariates.sum(axis=1) - 1)))
    outcome = 0.25 + 0.2 * covariates.sum(axis=1) + EFFECT * treated
    outcome += rng.uniform(-0.2, 0.2, rows)
    return pl.DataFrame(
        {"x0": covariates[:, 0], "x1": covariates[:, 1], "t": treated, "y": outcome}
    )


def coverages(cell):
    """Return the share of intervals that hold the effect, as they are and shrunk to 80 %."""
    level, epsilon, rows, selection, options = CELLS[cell]
    rng = np.random.default_rng(len(cell))
    asked = {"domain": DOMAIN, "level": level, "epsilon": epsilon, "options": options}
    ends = np.array([
        estimate_ate(draw(rows, selection, rng), seed=seed, **asked).interval
        for seed in range(STUDIES)
    ])  # fmt: skip
    distance = np.abs(ends.mean(axis=1) - EFFECT)
    half_width = np.diff(ends).ravel() / 2
    return np.mean(distance <= half_width), np.mean(distance <= SHRUNK * half_width)


@pytest.mark.parametrize("cell", CELLS)
def test_a_paid_interval_covers_and_one_of_eighty_per_cent_would_be_noticed(cell):
    covered, covered_if_shrunk = coverages(cell)

    assert covered >= LEAST_COVERAGE
    assert covered_if_shrunk < LEAST_COVERAGE
