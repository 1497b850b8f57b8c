"""The public rows of a plan at label level: those of a table, others like them, or made-up ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.special import ndtri, softmax

from private_ate.arrays import Codes, Floats
from private_ate.domain import Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError
from private_ate.methods.assumptions import MOST_ROWS, PlannedRows, PopulationGuess
from private_ate.models.folds import scatter
from private_ate.planning.assumptions import StudySizes

__all__ = ["describe_weights", "made_up_rows", "rows_like"]

_MOST_COVARIATES: Final = 200  # of made-up rows
_REACH: Final = 4.0  # deviations of a made-up covariate that its range holds on either side
_ROUNDS: Final = 60  # of the intercepts of the arms


def made_up_rows(
    sizes: StudySizes, guess: PopulationGuess, treatment: Treatment, shares: Sequence[float]
) -> PlannedRows:
    """Return made-up rows: normal covariates, and arms that one direction of these selects.

    ``shares`` are those of the arms, in the order of their codes. The same guess makes up the same
    rows, as nothing is drawn: numbers are scattered like random ones.
    """
    dimension, arms = sizes.covariates, len(shares)
    if dimension > _MOST_COVARIATES:
        msg = (
            f"people are made up with at most {_MOST_COVARIATES} covariates; plan from the table "
            "of public covariates and treatment instead"
        )
        raise ArgumentError(msg)
    if sizes.rows is not None and sizes.rows < arms:
        each = "two rows" if arms == 2 else f"{arms} rows"
        msg = f"a study has at least {each}, one in each arm"
        raise ArgumentError(msg)
    names = [f"x{place}" for place in range(1, dimension + 1)]
    domain = Domain(treatment, ("y", sizes.bounds), dict.fromkeys(names, Interval(0, 1)))

    def draw(rows: int) -> LocalStudy:
        numbers = scatter(0, rows * (dimension + 1)).reshape(dimension + 1, rows)
        normal = ndtri(np.clip(numbers[:dimension], 1e-12, 1 - 1e-12))
        score = guess.selection * normal.sum(axis=0) / np.sqrt(max(dimension, 1))
        arm = _make_up_arms(score, shares, numbers[dimension])
        covariates = np.clip(normal / (2 * _REACH) + 0.5, 0.0, 1.0)
        return LocalStudy(domain, covariates, arm.view(np.bool_) if arms == 2 else arm, None)

    return PlannedRows(sizes.rows, False, draw)


def _make_up_arms(score: Floats, shares: Sequence[float], uniform: Floats) -> Codes:
    """Make arms up: the score leads from the first arm to the last, whose log odds it is."""
    logits = np.outer(score, np.linspace(-0.5, 0.5, len(shares)))
    wanted = np.asarray(shares) / np.sum(shares)
    intercepts = np.log(wanted)
    for _ in range(_ROUNDS):
        chances = softmax(logits + intercepts, axis=1)
        intercepts += np.log(wanted) - np.log(chances.mean(axis=0))
    passed = chances.cumsum(axis=1) < 1 - uniform[:, None]
    arm: Codes = np.minimum(passed.sum(axis=1), len(shares) - 1).astype(np.uint8)
    missing = np.setdiff1d(np.arange(len(shares)), arm)
    arm[: missing.size] = missing  # every arm has a row, however few there are
    return arm


def rows_like(study: LocalStudy) -> PlannedRows:
    """Return the public rows of a study, or others like them, drawn with replacement."""
    stride = max(study.size // (2 * MOST_ROWS), 1)

    def draw(rows: int) -> LocalStudy:
        if rows == study.size:
            return study
        with study.thinned(stride) as known:
            drawn = np.floor(scatter(0, rows) * known.size).astype(np.int64)
            missing = np.setdiff1d(known.arm, known.arm[drawn])  # a row of every arm is kept
            drawn[: missing.size] = [np.argmax(known.arm == code) for code in missing]
            return known.reordered(drawn)

    return PlannedRows(study.size, True, draw)


def describe_weights(study: LocalStudy) -> str:
    """Say by how much sampling weights make sensitivity grow, if there are any."""
    if study.weights is None:
        return ""
    mean = float(study.weights.mean())
    largest = float(study.weights.max(initial=0.0)) / mean if mean > 0 else 1.0
    return (
        f", on sampling weights whose largest is {largest:.3g} times the mean, which "
        "is how much more one outcome can move the estimate unless a cap binds"
    )
