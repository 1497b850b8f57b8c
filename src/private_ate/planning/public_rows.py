"""Public rows behind a plan at label level: those of a table, others like them, or made-up ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Codes, Floats
from private_ate.domain import Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError
from private_ate.methods.assumptions import (
    MOST_ROWS,
    PeopleGuess,
    PublicRows,
    make_up_arms,
    make_up_rows,
)
from private_ate.models.folds import scatter
from private_ate.planning.assumptions import StudySizes
from private_ate.study import Block

__all__ = ["describe_weights", "made_up_rows", "rows_like"]

_MOST_COVARIATES: Final = 200  # of made-up rows
_REACH: Final = 4.0  # deviations of a made-up covariate that its range holds on either side


def made_up_rows(
    sizes: StudySizes, guess: PeopleGuess, treatment: Treatment | None, shares: Sequence[float]
) -> PublicRows:
    """Return made-up rows for these sizes and guesses.

    Three arms or more are those of the treatment, with these shares in the order of their codes.
    """
    if sizes.covariates > _MOST_COVARIATES:
        msg = (
            f"people are made up with at most {_MOST_COVARIATES} covariates; plan from the table "
            "of public covariates and treatment instead"
        )
        raise ArgumentError(msg)
    arms = 2 if treatment is None else treatment.size
    if sizes.rows is not None and sizes.rows < arms:
        each = "two rows" if arms == 2 else f"{arms} rows"
        msg = f"a study has at least {each}, one in each arm"
        raise ArgumentError(msg)
    names = [f"x{place}" for place in range(1, sizes.covariates + 1)]
    domain = Domain(
        "t" if treatment is None else treatment,
        ("y", sizes.bounds),
        dict.fromkeys(names, Interval(0, 1)),
    )

    def draw(rows: int) -> LocalStudy:
        made = make_up_rows(guess, rows, sizes.covariates)
        covariates = np.clip(made.covariates / (2 * _REACH) + 0.5, 0.0, 1.0)
        encoded = np.ascontiguousarray(covariates.T)
        if arms > 2:
            arm = make_up_arms(made.covariates, shares, guess.selection)
            return LocalStudy(domain, encoded, arm, None)
        treated = made.treatment
        if treated.all() or not treated.any():  # both arms are there, however few rows
            treated = np.arange(rows) < max(round(guess.share * rows), 1)
        return LocalStudy(domain, encoded, treated, None)

    return PublicRows(sizes.rows, False, draw)


def rows_like(study: LocalStudy) -> PublicRows:
    """Return the public rows of a study, or others like them, drawn with replacement."""

    def draw(rows: int) -> LocalStudy:
        if rows == study.size:
            return study
        known = _gathered(study)
        drawn = np.floor(scatter(0, rows) * known.arm.size).astype(np.int64)
        missing = np.setdiff1d(known.arm, known.arm[drawn])
        if study.arms == 2 and missing.size:
            drawn[0], drawn[-1] = np.argmax(known.arm), np.argmin(known.arm)
        elif missing.size:  # a row of every arm, however few rows
            drawn[: missing.size] = [np.argmax(known.arm == code) for code in missing]
        covariates = np.ascontiguousarray(known.covariates[drawn].T)
        arm = known.arm[drawn]
        kept = arm.view(np.bool_) if study.arms == 2 else arm
        weights = None if known.weights is None else known.weights[drawn]
        return LocalStudy(study.domain, covariates, kept, None, weights=weights)

    return PublicRows(study.size, True, draw)


@dataclass(frozen=True, slots=True)
class _PublicSample:
    """Public rows gathered from blocks."""

    covariates: Floats  # shape (m, d)
    arm: Codes
    weights: Floats | None  # sampling weights over their bound, if there are any

    def __add__(self, other: _PublicSample) -> _PublicSample:
        return _PublicSample(
            np.concatenate([self.covariates, other.covariates]),
            np.concatenate([self.arm, other.arm]),
            None
            if self.weights is None or other.weights is None
            else np.concatenate([self.weights, other.weights]),
        )


def _gathered(study: LocalStudy) -> _PublicSample:
    """Return some of the public rows, by their places."""
    stride = max(study.size // (2 * MOST_ROWS), 1)

    def kernel(block: Block) -> _PublicSample:
        kept = np.arange(-block.first % stride, block.arm.size, stride)
        weights = None if block.weights is None else block.weights[kept]
        return _PublicSample(block.covariates[kept], block.arm[kept], weights)

    return study.fold(kernel, title="people")


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
