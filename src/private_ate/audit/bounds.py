"""Lower bounds on ε from two samples of outputs: Clopper–Pearson on a held-out tail event."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Floats, Integers

CONFIDENCE = 0.999
_CANDIDATES = 200
_BINS = 16  # of each number, of equal counts


def epsilon_bound(first: Floats, second: Floats, delta: float = 0.0) -> float:
    """Return an ε that the two samples contradict with 99.9 % confidence, at least 0.

    If the outputs came from an (ε, δ)-private mechanism on neighbours, the returned bound exceeds
    ε with probability at most 0.001: the event is chosen on a quarter of the draws and its two
    probabilities are bounded on the others, each at 0.0005.
    """
    seen = first.size // 4
    pooled = np.unique(np.concatenate((first[:seen], second[:seen])))
    thresholds = pooled[np.linspace(0, pooled.size - 1, _CANDIDATES).astype(np.int64)]
    tails = [_tails(sample[:seen], thresholds) for sample in (first, second)]
    # Every event as one that the first sample favours, and as one that the second does.
    common, rare = np.stack(tails, axis=-1), np.stack(tails[::-1], axis=-1)
    event = np.argmax(_bound(common, rare, seen, delta))
    place, tail, favoured = np.unravel_index(event, common.shape)
    at = thresholds[place : place + 1]
    hits = [int(_tails(sample[seen:], at)[0, tail]) for sample in (first, second)]
    bound = _bound(hits[favoured], hits[1 - favoured], first.size - seen, delta)
    return max(0.0, float(bound))


def _tails(sample: Floats, thresholds: Floats) -> Integers:
    """Count draws at or above each threshold and at or below it, shape (thresholds, 2)."""
    ordered = np.sort(sample)
    above = sample.size - np.searchsorted(ordered, thresholds, "left")
    return np.column_stack((above, np.searchsorted(ordered, thresholds, "right")))


def largest_gap(first: Floats, second: Floats) -> float:
    """Return the largest difference of the two distribution functions (Kolmogorov–Smirnov)."""
    values = np.concatenate((first, second))
    values.sort()
    shares = [
        np.searchsorted(np.sort(part), values, "right") / part.size for part in (first, second)
    ]
    return float(np.abs(shares[0] - shares[1]).max())


def joint_evidence(first: Floats, second: Floats, seen: int) -> tuple[Floats, Floats]:
    """Return by how much all numbers of a run together speak for the first sample.

    Numbers with noise of their own may each stay within ε and lose more together, as where a
    record moves two of them. Their log ratios add up; each is read off a histogram of the first
    ``seen`` runs, so that a bound on the other runs holds.
    """
    totals = [np.zeros(len(first)), np.zeros(len(second))]
    for one, other in zip(first.T, second.T, strict=True):
        pooled = np.concatenate((one[:seen], other[:seen]))
        edges = np.unique(np.quantile(pooled, np.linspace(0, 1, _BINS + 1)[1:-1]))
        places = [np.searchsorted(edges, sample, "left") for sample in (one, other)]
        counts = [np.bincount(place[:seen], minlength=edges.size + 1) for place in places]
        ratio = np.log((counts[0] + 0.5) / (counts[1] + 0.5))
        totals = [total + ratio[place] for total, place in zip(totals, places, strict=True)]
    return totals[0], totals[1]


def _bound(
    common: npt.ArrayLike, rare: npt.ArrayLike, size: int, delta: float
) -> npt.NDArray[np.float64]:
    """Return ``ln((p − δ)/q)`` for the lowest p and the highest q that the counts allow."""
    from scipy.special import betaincinv

    error = (1 - CONFIDENCE) / 2
    hits, others = np.asarray(common, dtype=np.float64), np.asarray(rare, dtype=np.float64)
    lowest = np.where(hits > 0, betaincinv(np.maximum(hits, 1), size - hits + 1, error), 0.0)
    full = np.minimum(others, size - 1)
    highest = np.where(others < size, betaincinv(full + 1, size - full, 1 - error), 1.0)
    ratio = np.maximum(lowest - delta, math.exp(-700)) / highest
    return np.asarray(np.log(ratio))
