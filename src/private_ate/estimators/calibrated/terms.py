"""Terms of covariates that calibration may balance: covariates, squares, hinges and products.

Which hinges and products there are is chosen from public columns: with few rows those on which
treatment leans beyond the linear score, with many rows all, up to a number that time allows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats, Indices
from private_ate.estimators.calibrated.features import FeatureMap

__all__ = ["LearningRows", "Terms", "choose_terms"]


_MOST_HINGES: Final = 70
_MOST_PRODUCTS: Final = 80
_KNOTS: Final = (
    0.05,
    0.2,
    0.35,
    0.5,
    0.65,
    0.8,
    0.95,
)  # quantiles of a covariate at which its effect may bend
_LEAN: Final = 3.0  # deviations by which treatment must lean on a term, with few rows
_FEW_ROWS: Final = 20_000  # beyond so many rows ever weaker terms are taken


@dataclass(frozen=True, slots=True)
class LearningRows:
    """Public rows from which terms and a score are learnt; those held out judge them."""

    covariates: Floats  # shape (m, d)
    treatment: Bits
    held_out: Bits


@dataclass(frozen=True, slots=True)
class Terms:
    """Functions of standardised covariates, in this order.

    Attributes
    ----------
    center, deviation : arrays, shape (d,)
        What standardises the covariates.
    linear, squares, hinged : arrays of indices
        Covariates that enter as they are, squared, and as hinges.
    knots : array
        Where each hinge begins, as long as ``hinged``.
    left, right : arrays of indices
        Both factors of each product.
    """

    center: Floats
    deviation: Floats
    linear: Indices
    squares: Indices
    hinged: Indices
    knots: Floats
    left: Indices
    right: Indices

    @property
    def size(self) -> int:
        """How many terms there are."""
        return self.linear.size + self.squares.size + self.hinged.size + self.left.size

    def without_bends(self) -> Terms:
        """Return covariates and squares alone."""
        none = self.hinged[:0]
        return replace(self, hinged=none, knots=self.knots[:0], left=none, right=none)

    def of(self, covariates: Floats, more: int = 0) -> Floats:
        """Return the terms of some rows, and as many empty rows more, shape (terms + more, m)."""
        columns = (covariates.T - self.center[:, None]) / self.deviation[:, None]
        first = self.linear.size
        second = first + self.squares.size
        third = second + self.hinged.size
        last = third + self.left.size
        terms = np.empty((last + more, covariates.shape[0]))
        np.take(columns, self.linear, axis=0, out=terms[:first], mode="clip")
        np.take(columns, self.squares, axis=0, out=terms[first:second], mode="clip")
        np.square(terms[first:second], out=terms[first:second])
        hinges = terms[second:third]
        np.take(columns, self.hinged, axis=0, out=hinges, mode="clip")
        # Without the knot taken off again: terms are centred, so a constant makes no difference.
        np.maximum(hinges, self.knots[:, None], out=hinges)
        for row, left, right in zip(range(third, last), self.left, self.right, strict=True):
            np.multiply(columns[left], columns[right], out=terms[row])
        return terms


def choose_terms(plain: FeatureMap, learning: LearningRows, rows: int) -> Terms:
    """Choose hinges and products by how far treatment leans on them beyond the linear score.

    ``rows`` is the size of the whole study, of which some rows are given. Those held out do not
    choose, so that they can tell what the choice is worth.
    """
    covariates, chosen = learning.covariates, ~learning.held_out
    deviation = covariates.std(axis=0)
    deviation[deviation < 1e-6] = 1.0
    columns = ((covariates - plain.center) / deviation)[chosen]
    score = covariates[chosen] @ plain.coefficients[1:] + plain.coefficients[0]
    residual = learning.treatment[chosen] - 1.0 / (1.0 + np.exp(-np.clip(score, -30.0, 30.0)))
    least = _LEAN * min(1.0, _FEW_ROWS / rows)
    hinged, knots = _choose_hinges(columns, residual, plain.squares, least)
    left, right = _choose_products(columns, residual, plain.linear, least)
    return Terms(plain.center, deviation, plain.linear, plain.squares, hinged, knots, left, right)


def _choose_hinges(
    columns: Floats, residual: Floats, squares: Indices, least: float
) -> tuple[Indices, Floats]:
    """Return covariates and knots of all hinges of covariates on which treatment leans most."""
    knots = np.quantile(columns[:, squares], _KNOTS, axis=0)
    noise = float((residual**2).mean())
    lean = np.zeros(squares.size)
    for index, column in enumerate(squares):
        hinges = np.maximum(columns[:, [column]] - knots[:, index], 0.0)
        hinges -= hinges.mean(axis=0)
        spread = np.sqrt((hinges**2).sum(axis=0) * noise)
        leans = np.abs(residual @ hinges) / np.where(spread > 1e-6, spread, np.inf)
        lean[index] = leans.max()
    best = _strongest(lean, least, _MOST_HINGES // len(_KNOTS))
    return np.repeat(squares[best], len(_KNOTS)), knots[:, best].T.ravel()


def _choose_products(
    columns: Floats, residual: Floats, linear: Indices, least: float
) -> tuple[Indices, Indices]:
    """Return both factors of the products on which treatment leans most."""
    kept = columns[:, linear]
    rows = kept.shape[0]
    mean = kept.T @ kept / rows
    slant = kept.T @ (kept * residual[:, None]) - mean * residual.sum()
    variance = (kept**2).T @ (kept**2) / rows - mean**2
    first, second = np.triu_indices(linear.size, 1)
    varies = variance[first, second] > 1e-6
    first, second = first[varies], second[varies]
    size = np.sqrt(rows * variance[first, second] * float((residual**2).mean()))
    best = _strongest(np.abs(slant[first, second]) / size, least, _MOST_PRODUCTS)
    return linear[first[best]], linear[second[best]]


def _strongest(lean: Floats, least: float, most: int) -> Indices:
    """Return in their own order the strongest terms that lean at least so much."""
    strongest = np.argsort(lean, kind="stable")[::-1][:most]
    return np.sort(strongest[lean[strongest] >= least]).astype(np.intp)
