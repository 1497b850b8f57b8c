"""Slow and obvious versions of what the package computes, written without looking at it."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np


def bernoulli_exp(exponent: Fraction, rng: random.Random) -> bool:
    """Canonne, Kamath and Steinke, Algorithm 1: heads with probability exp(−exponent)."""
    while exponent > 1:
        if not _bernoulli_exp_below_one(Fraction(1), rng):
            return False
        exponent -= 1
    return _bernoulli_exp_below_one(exponent, rng)


def _bernoulli_exp_below_one(exponent: Fraction, rng: random.Random) -> bool:
    turn = 1
    while rng.randrange(exponent.denominator * turn) < exponent.numerator:
        turn += 1
    return turn % 2 == 1


def discrete_laplace(scale: Fraction, rng: random.Random) -> int:
    """Canonne, Kamath and Steinke, Algorithm 2: P(z) proportional to exp(−|z|/scale)."""
    while True:
        fine = rng.randrange(scale.numerator)
        if not bernoulli_exp(Fraction(fine, scale.numerator), rng):
            continue
        coarse = 0
        while bernoulli_exp(Fraction(1), rng):
            coarse += 1
        size = (fine + scale.numerator * coarse) // scale.denominator
        negative = rng.randrange(2) == 1
        if not (negative and size == 0):
            return -size if negative else size


def fit_propensity(covariates: np.ndarray, treatment: np.ndarray, ridge: float) -> np.ndarray:
    """Newton's method on the whole design matrix; intercept first and penalised too."""
    design = np.column_stack([np.ones(len(covariates)), covariates])
    weights = np.zeros(design.shape[1])
    for _ in range(60):
        scores = 1 / (1 + np.exp(-design @ weights))
        gradient = design.T @ (scores - treatment) / len(design) + ridge * weights
        curvature = design.T @ (design * (scores * (1 - scores))[:, None]) / len(design)
        weights = weights - np.linalg.solve(curvature + ridge * np.eye(len(weights)), gradient)
    assert np.linalg.norm(gradient) < 1e-12
    return weights


def match_within_limits(
    scores: list[int],
    treatment: list[bool],
    neighbors: int,
    limits: dict[bool, float],
) -> tuple[list[int], list[Fraction], list[int]]:
    """Match every unit in row order to its nearest opposite units below their limit.

    Returns how often each unit was used, the mass it received, and how many matches it found.
    """
    rows = range(len(scores))
    uses, mass, found = [0] * len(scores), [Fraction(0)] * len(scores), [0] * len(scores)
    for unit in rows:
        open_rows = [
            row
            for row in rows
            if treatment[row] != treatment[unit] and uses[row] < limits[treatment[row]]
        ]
        open_rows.sort(key=lambda row: (abs(scores[row] - scores[unit]), row))
        chosen = open_rows[:neighbors]
        found[unit] = len(chosen)
        for row in chosen:
            uses[row] += 1
            mass[row] += Fraction(1, len(chosen))
    return uses, mass, found


def share_ties(
    scores: np.ndarray, treatment: np.ndarray, neighbors: int, same: float
) -> np.ndarray:
    """Return the mass received without limits; distances closer than ``same`` are equal."""
    mass = np.zeros(len(scores))
    for unit in range(len(scores)):
        others = np.flatnonzero(treatment != treatment[unit])
        distance = np.abs(scores[others] - scores[unit])
        wanted = min(neighbors, others.size)
        reach = np.sort(distance)[wanted - 1]
        surely = others[distance < reach - same]
        tied = others[np.abs(distance - reach) <= same]
        mass[surely] += 1 / wanted
        mass[tied] += (wanted - surely.size) / (wanted * tied.size)
    return mass


def half_step_laplace_probabilities(rate: float, reach: int) -> dict[int, float]:
    """Return P(noise = ±(2g + 1)) for g below ``reach``: half of a geometric law on each side."""
    law = {}
    for size in range(reach):
        share = -math.expm1(-rate) * math.exp(-rate * size) / 2
        law[2 * size + 1] = law[-2 * size - 1] = share
    return law


def staircase_probabilities(
    sensitivity: int, epsilon: float, inner: int, reach: int
) -> dict[int, float]:
    """Return P(noise = ±(2m + 1)): level drops by exp(ε) at inner, inner + Δ, inner + 2Δ, …"""
    stair = inner + (sensitivity - inner) * math.exp(-epsilon)
    top = -math.expm1(-epsilon) / (2 * stair)
    law = {}
    for size in range(reach):
        level = (size + sensitivity - inner) // sensitivity
        law[2 * size + 1] = law[-2 * size - 1] = top * math.exp(-epsilon * level)
    return law


def draw_staircase(epsilon: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return draws of the continuous staircase law of unit sensitivity and least expected size."""
    inner = 1 / (1 + math.exp(epsilon / 2))
    whole = rng.geometric(-math.expm1(-epsilon), count) - 1
    beyond = rng.random(count) < (1 - inner) / (1 - inner + inner * math.exp(epsilon))
    place = rng.random(count)
    part = np.where(beyond, inner + (1 - inner) * place, inner * place)
    return rng.choice([-1.0, 1.0], count) * (whole + part)
