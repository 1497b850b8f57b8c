"""Smooth noisy values along cells of equal probability; released numbers only.

Arrays hold one entry per cell on their last axis.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Floats

__all__ = ["blend", "score_basis", "weighted_fit"]


def score_basis(cells: int) -> Floats:
    """Return a constant, the normal score of each cell and its square; shape (cells, 3)."""
    normal = ndtri((np.arange(cells) + 0.5) / cells)
    return np.column_stack([np.ones(cells), normal, normal**2])


def weighted_fit(basis: Floats, weight: Floats, response: Floats, ridge: Floats) -> Floats:
    """Return the fitted values of a ridge regression on the basis."""
    gram = np.einsum("...g,gi,gj->...ij", weight, basis, basis) + ridge
    moment = np.einsum("...g,gi->...i", weight * response, basis)
    fitted: Floats = (np.linalg.solve(gram, moment[..., None])[..., 0]) @ basis.T
    return fitted


def blend(smooth: Floats, raw: Floats, variance: Floats) -> Floats:
    """Move each smooth value towards the raw one as far as the excess spread warrants."""
    excess = (((raw - smooth) ** 2 - variance) / variance).sum(axis=-1, keepdims=True)
    spread = np.maximum(excess / (1 / variance).sum(axis=-1, keepdims=True), 0.0)
    blended: Floats = smooth + spread / (spread + variance) * (raw - smooth)
    return blended
