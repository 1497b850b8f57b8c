"""Meta-analysis of a few numbers: inverse variances, REML, Hartung–Knapp, heterogeneity.

Functions of arrays: estimates ``y`` and their whole variances ``v``, one entry a site. Nothing here
knows where a variance comes from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, ndtri, stdtrit

from private_ate.arrays import Floats

_SCAN: Final = 400  # places at which the restricted likelihood is looked at


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """How much sites differ beyond what noise and sampling explain.

    Attributes
    ----------
    q : float
        Cochran's Q, the weighted squares of the estimates around their mean.
    degrees : int
        Its degrees of freedom, one less than the sites.
    p_value : float or None
        Chance of a larger Q if all sites had one effect; null for one site.
    i_squared : float
        Share of the variation between estimates that noise and sampling do not explain, from 0.
    tau_squared : float or None
        Variance of the effects between sites by REML; null in the fixed-effect model.
    hartung_knapp : float or None
        By how much the estimates vary around their mean, in units of what their variances say;
        below 1 it is counted as 1. Null in the fixed-effect model.
    """

    q: float
    degrees: int
    p_value: float | None
    i_squared: float
    tau_squared: float | None
    hartung_knapp: float | None


@dataclass(frozen=True, slots=True)
class Pooled:
    """A pooled effect, from which intervals of any coverage follow.

    ``weights`` add up to one. ``degrees`` are those of Student's t, none for a normal.
    """

    estimate: float
    standard_error: float
    weights: Floats
    degrees: int | None
    heterogeneity: Heterogeneity

    def half_width(self, coverage: float) -> float:
        """Return half the width of the interval for the mean effect."""
        return quantile(coverage, self.degrees) * self.standard_error

    def prediction_half_width(self, coverage: float) -> float | None:
        """Return half the width of the interval for the effect in another site.

        Student's t with k − 2 degrees, as the variance between sites is estimated too (Higgins,
        Thompson and Spiegelhalter 2009); none for fewer than three sites.
        """
        between = self.heterogeneity.tau_squared
        if between is None or self.degrees is None or self.degrees < 2:
            return None
        spread = math.hypot(math.sqrt(between), self.standard_error)
        return quantile(coverage, self.degrees - 1) * spread


def pool_fixed(y: Floats, v: Floats) -> Pooled:
    """Pool by inverse variances, as if all sites had one effect.

    Examples
    --------
    >>> pooled = pool_fixed(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    >>> pooled.estimate, round(pooled.standard_error, 4)
    (1.5, 0.7071)
    """
    weights = 1 / v
    mean = _weighted_mean(y, weights)
    error = 1 / math.sqrt(weights.sum())
    found = _heterogeneity(y, v, None, None)
    return Pooled(mean, error, weights / weights.sum(), None, found)


def pool_random(y: Floats, v: Floats) -> Pooled:
    """Pool with effects that vary between sites: REML, then Hartung and Knapp's standard error.

    The squared standard error ``1/Σw`` is multiplied by ``max(1, h)``, ``h`` how much the
    estimates vary around their mean, and read with Student's t of k − 1 degrees: the interval is
    never narrower than that of the fixed-effect model (Knapp and Hartung 2003; Röver, Knapp and
    Friede 2015). With one site it is the fixed-effect model.
    """
    if y.size == 1:
        return pool_fixed(y, v)
    between = reml_variance(y, v)
    weights = 1 / (v + between)
    mean = _weighted_mean(y, weights)
    spread = float(weights @ (y - mean) ** 2) / (y.size - 1)
    error = math.sqrt(max(1.0, spread) / weights.sum())
    found = _heterogeneity(y, v, between, spread)
    return Pooled(mean, error, weights / weights.sum(), y.size - 1, found)


def reml_variance(y: Floats, v: Floats) -> float:
    """Return the variance between sites that maximises the restricted likelihood.

    The likelihood may have several maxima: all sign changes of its derivative on a fine grid are
    solved and the best is taken, zero among them.
    """
    scale = float(v.max()) + float(np.ptp(y)) ** 2
    y, v = (y - y.mean()) / math.sqrt(scale), v / scale
    # Beyond the squared range of the estimates the derivative is negative.
    grid = np.concatenate([[0.0], np.geomspace(1e-9 * float(v.min()), 4.0, _SCAN)])
    slopes = _restricted_slopes(grid, y, v)

    def slope(between: float) -> float:
        return float(_restricted_slopes(np.array([between]), y, v)[0])

    rises = np.flatnonzero((slopes[:-1] > 0) & (slopes[1:] <= 0))
    peaks = [0.0]
    peaks += [float(brentq(slope, grid[i], grid[i + 1], xtol=1e-15, rtol=1e-14)) for i in rises]
    return scale * max(peaks, key=lambda place: _restricted_likelihood(place, y, v))


def quantile(coverage: float, degrees: int | None) -> float:
    """Return the two-sided quantile of the standard normal, or of Student's t."""
    level = (1 + coverage) / 2
    return float(ndtri(level) if degrees is None else stdtrit(degrees, level))


def _restricted_likelihood(between: float, y: Floats, v: Floats) -> float:
    whole = v + between
    weights = 1 / whole
    mean = _weighted_mean(y, weights)
    squares = float(weights @ (y - mean) ** 2)
    return -0.5 * (float(np.log(whole).sum()) + math.log(weights.sum()) + squares)


def _restricted_slopes(between: Floats, y: Floats, v: Floats) -> Floats:
    """Return the derivative of the restricted log-likelihood at several variances."""
    weights = 1 / (v + between[:, None])
    total = weights.sum(axis=1)
    away = y - (weights @ y / total)[:, None]
    trace = total - (weights**2).sum(axis=1) / total
    slopes: Floats = 0.5 * ((weights**2 * away**2).sum(axis=1) - trace)
    return slopes


def _heterogeneity(
    y: Floats, v: Floats, between: float | None, spread: float | None
) -> Heterogeneity:
    weights, degrees = 1 / v, y.size - 1
    q = float(weights @ (y - _weighted_mean(y, weights)) ** 2) if degrees else 0.0
    return Heterogeneity(
        q=q,
        degrees=degrees,
        p_value=float(chdtrc(degrees, q)) if degrees else None,
        i_squared=max(0.0, 1 - degrees / q) if q > 0 else 0.0,
        tau_squared=between,
        hartung_knapp=spread,
    )


def _weighted_mean(y: Floats, weights: Floats) -> float:
    return float(weights @ y / weights.sum())
