"""Coverage over fresh data sets: intervals hold the truth as often as they say.

Families differ in the outcome's law (uniform, binary, heavy tails) and in whether treatment was
random or followed the covariates. A 95 % interval must cover at least 0.93 of them; the noise
interval covers the noiseless estimate 0.95 ± 0.02 of the time.
"""

import sys
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from private_ate import (
    Binary,
    BlocksOptions,
    CalibratedOptions,
    Domain,
    Interval,
    Treatment,
    estimate_ate,
)
from private_ate.api import METHODS, estimate_study
from private_ate.audit.replay import Recording
from private_ate.data.files import read_table
from private_ate.engines.local import LocalStudy
from private_ate.request import Request

LEAST_COVERAGE = 0.93
DATA_SETS = 300
EFFECT = 0.1


def draw(family, selection, rows, rng):
    """Return a frame, its domain and the average effect that is built into it."""
    covariates = rng.random((rows, 4))
    level = 0.25 + 0.1 * (covariates @ np.array([1.0, 0.8, 0.6, 0.4]))
    score = 0.0 if selection == "random" else 2.0 * (covariates @ np.ones(4) - 2)
    treated = rng.random(rows) < 1 / (1 + np.exp(-score))
    bounds = Interval(0, 1)
    if family == "uniform":
        outcome = level + EFFECT * treated + rng.uniform(-0.2, 0.2, rows)
    elif family == "heavy":
        tail = np.clip(rng.standard_t(2.5, rows) * 0.04, -0.24, 0.34)
        tail -= _mean_of_clipped_t()
        outcome = level + EFFECT * treated + tail
    else:
        outcome = (rng.random(rows) < level + EFFECT * treated).astype(float)
        bounds = Binary()
    frame = pl.DataFrame(
        {f"x{j}": covariates[:, j] for j in range(4)} | {"t": treated, "y": outcome}
    )
    domain = Domain(
        Treatment("t", 1, 0), ("y", bounds), {f"x{j}": Interval(0, 1) for j in range(4)}
    )
    return frame, domain


def _mean_of_clipped_t():
    draws = np.random.default_rng(0).standard_t(2.5, 2_000_000) * 0.04
    return float(np.clip(draws, -0.24, 0.34).mean())


def report(line):
    """Show a measured coverage under ``pytest -s``."""
    sys.stderr.write(f"\n{line}\n")


def coverage(family, selection, *, rows, level, epsilon, options=None):
    """Return the share of intervals that hold the effect, and their mean width."""
    rng = np.random.default_rng([rows, len(family), len(selection)])
    covered, widths = 0, []
    for seed in range(DATA_SETS):
        frame, domain = draw(family, selection, rows, rng)
        release = estimate_ate(
            frame, domain=domain, level=level, epsilon=epsilon, seed=seed, options=options
        )
        low, high = release.interval
        covered += low <= EFFECT <= high
        widths.append(high - low)
    return covered / DATA_SETS, float(np.mean(widths))


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["1", "4"])
@pytest.mark.parametrize("selection", ["random", "confounded"])
@pytest.mark.parametrize("family", ["uniform", "binary", "heavy"])
def test_label_level_intervals_cover_the_effect(family, selection, epsilon):
    share, width = coverage(family, selection, rows=1000, level="label", epsilon=epsilon)
    report(f"label {family} {selection} ε={epsilon}: coverage {share:.3f}, width {width:.4f}")

    assert share >= LEAST_COVERAGE


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
@pytest.mark.parametrize("family", ["uniform", "binary", "heavy"])
def test_sample_level_intervals_cover_the_effect_of_a_random_treatment(family, epsilon):
    share, width = coverage(family, "random", rows=1000, level="sample", epsilon=epsilon)
    report(f"sample {family} random ε={epsilon}: coverage {share:.3f}, width {width:.4f}")

    assert share >= LEAST_COVERAGE


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["1", "4"])
@pytest.mark.parametrize("family", ["uniform", "binary", "heavy"])
def test_sample_level_intervals_cover_where_the_method_adjusts(family, epsilon):
    options = BlocksOptions(adjust=True, partitions=1)
    share, width = coverage(
        family, "confounded", rows=6000, level="sample", epsilon=epsilon, options=options
    )
    report(f"sample {family} confounded ε={epsilon}: coverage {share:.3f}, width {width:.4f}")

    assert share >= LEAST_COVERAGE


@pytest.mark.audit
@pytest.mark.parametrize(
    ("method", "options"),
    [("calibrated", None), ("calibrated", CalibratedOptions(means=True)), ("published", None)],
)
def test_the_noise_interval_covers_the_estimate_without_noise(method, options):
    frame, domain = draw("uniform", "random", 200, np.random.default_rng(1))
    study = LocalStudy.encode(read_table(frame), domain)
    request = Request("label", Fraction(1), confidence=None, options=options)
    unit = 1 / study.size / 2**54
    inside = 0
    for seed in range(1000):
        recording = Recording()
        release = estimate_study(study, request, METHODS[method], seed=seed, recorder=recording)
        exact = np.atleast_1d(recording.inputs[-1])
        truth = float(exact[0] - (exact[1] if exact.size > 1 else 0)) * unit
        low, high = release.noise_interval
        inside += low <= truth <= high

    assert inside / 1000 == pytest.approx(0.95, abs=0.02)
