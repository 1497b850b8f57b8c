"""Survival against the truth: RMST or risk, intervals and bands, beside IPW-KM without noise.

``python benchmarks/accuracy_survival.py --rows 2000 --epsilon 1 --draws 60 --seed 1000`` prints a
row of CSV for each family. Families ``opposite`` and ``same`` have censoring that follows a
confounder, in opposite directions in the arms or in the same; ``--strata`` declares its strata.
"""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import dataclass

import numpy as np
import polars as pl

from private_ate import Categories, Domain, Interval, Survival, Treatment, estimate_ate

HORIZON = 365.0
FAMILIES = (
    "exponential", "weibull", "crossing", "heavy", "rare", "dependent", "same", "opposite",
)  # fmt: skip
GRID = 240  # times at which the true curves are known
TRUTH_ROWS = 1_000_000
STRATA = 5


@dataclass(frozen=True)
class Drawn:
    """Covariates, treatment, times in horizons and whether they ended in an event."""

    covariates: np.ndarray
    treated: np.ndarray
    times: np.ndarray
    ended: np.ndarray


def potential_times(family, x, treated, rng):
    """Draw times to the event in horizons."""
    base, effect, shapes = 0.9, -0.5, (1.0, 1.0)
    risk = 0.5 * x[:, 0] + 0.4 * x[:, 1] + 0.3 * x[:, 3] + 0.4 * (x[:, 4] - 0.5)
    if family == "weibull":
        shapes = (1.6, 1.6)
    if family == "crossing":
        effect, shapes = -0.2, (0.7, 1.9)
    if family == "rare":
        base, effect, risk = 0.027, -0.7, 1.2 * risk
    if family in ("same", "opposite"):
        risk = 0.8 * x[:, 0] + 0.4 * x[:, 1]
    rate = base * np.exp(risk + effect * treated)
    return (rng.exponential(size=len(x)) / rate) ** (1 / np.where(treated, shapes[1], shapes[0]))


def draw_covariates(rows, rng):
    """Draw four normal and two binary covariates."""
    x = rng.normal(size=(rows, 6))
    x[:, 4], x[:, 5] = x[:, 4] > 0, x[:, 5] > 0.7
    return x


def draw(family, rows, rng):
    """Draw an observed study."""
    x = draw_covariates(rows, rng)
    score = 0.6 * x[:, 0] + 0.4 * x[:, 1] - 0.3 * x[:, 2] + 0.5 * (x[:, 4] - 0.5)
    treated = rng.random(rows) < 1 / (1 + np.exp(-score))
    event = potential_times(family, x, treated, rng)
    lean = np.zeros(rows)
    if family == "dependent":
        lean = 0.6 * x[:, 0] + 0.5 * treated - 0.25
    if family in ("same", "opposite"):
        sign = np.where(treated, 1.0, -1.0) if family == "opposite" else 1.0
        lean = 1.2 * sign * x[:, 0]
    rate = {"heavy": 1.15, "same": 0.45, "opposite": 0.45}.get(family, 0.35)
    exits = rng.exponential(size=rows) / (rate * np.exp(lean))
    end = rng.uniform(0.7, 2.0, rows) if family == "rare" else rng.uniform(0.8, 1.6, rows)
    seen = np.minimum(exits, end)
    return Drawn(x, treated, np.minimum(event, seen), event <= seen)


def truth(family):
    """Return the true difference of RMST, of risks, and both curves on a grid."""
    rng = np.random.default_rng(99)
    x = draw_covariates(TRUTH_ROWS, rng)
    times = [potential_times(family, x, np.full(len(x), arm), rng) for arm in (False, True)]
    areas = [np.minimum(one, 1).mean() for one in times]
    grid = np.arange(GRID + 1) / GRID
    curves = [1 - np.searchsorted(np.sort(one), grid, side="right") / one.size for one in times]
    return areas[1] - areas[0], curves[0][-1] - curves[1][-1], curves


def weighted_kaplan_meier(study, quantity):
    """Return IPW-KM without noise, by a logistic model with squares."""
    x, treated = study.covariates, study.treated
    z = np.column_stack([np.ones(len(x)), x, x[:, :4] ** 2])
    slopes = np.zeros(z.shape[1])
    for _ in range(25):
        chance = 1 / (1 + np.exp(-z @ slopes))
        curved = z.T @ (z * (chance * (1 - chance))[:, None]) + 0.01 * np.eye(slopes.size)
        slopes += np.linalg.solve(curved, z.T @ (treated - chance) - 0.01 * slopes)
    chance = 1 / (1 + np.exp(-z @ slopes))
    found = []
    for arm, share in ((False, 1 - chance), (True, chance)):
        rows = np.flatnonzero(treated == arm)
        rows = rows[np.argsort(study.times[rows])]
        weights, times, ended = 1 / share[rows], study.times[rows], study.ended[rows]
        at_risk = weights[::-1].cumsum()[::-1]
        steps = np.cumprod(1 - weights * ended / at_risk)
        held = np.minimum(times, 1.0)
        area = held[0] + (steps[:-1] * np.diff(held)).sum() + steps[-1] * (1 - held[-1])
        within = times <= 1
        found.append(area if quantity == "rmst" else 1 - steps[within][-1] if within.any() else 0)
    return found[1] - found[0]


def domain(*, strata):
    """Declare the study; with strata of the confounder that censoring may follow."""
    covariates = {f"x{k}": Interval(-4, 4) if k < 4 else Interval(0, 1) for k in range(6)}
    if strata:
        covariates["fifth"] = Categories(*map(str, range(STRATA)))
    outcome = Survival(
        "days", "status", event_label=1, horizon=HORIZON,
        censoring_by="fifth" if strata else None,
    )  # fmt: skip
    return Domain(Treatment("t", 1, 0), outcome, covariates)


def frame(study):
    """Return the study as a table."""
    edges = np.array([-0.842, -0.253, 0.253, 0.842])  # fifths of a normal
    return pl.DataFrame(
        {f"x{k}": study.covariates[:, k] for k in range(6)}
        | {"fifth": np.searchsorted(edges, study.covariates[:, 0]).astype(str)}
        | {"t": study.treated.astype(int), "days": HORIZON * study.times}
        | {"status": study.ended.astype(int)}
    )


def one_family(family, asked):
    """Return a row of results: errors in horizons or in risk, coverages, half-width."""
    rmst, risk, curves = truth(family)
    goal = rmst if asked.quantity == "rmst" else risk
    unit = HORIZON if asked.quantity == "rmst" else 1.0
    errors, plain, held, halves, bands, points = [], [], [], [], [], []
    for seed in range(asked.seed, asked.seed + asked.draws):
        study = draw(family, asked.rows, np.random.default_rng([seed, asked.rows]))
        made = estimate_ate(
            frame(study), domain=domain(strata=asked.strata), level=asked.level,
            epsilon=asked.epsilon, quantity=asked.quantity, design="observational", seed=seed,
        )  # fmt: skip
        low, high = made.interval
        errors.append(made.ate / unit - goal)
        held.append(low / unit <= goal <= high / unit)
        halves.append((high - low) / 2 / unit)
        plain.append(weighted_kaplan_meier(study, asked.quantity) - goal)
        for label, curve in zip(("0", "1"), curves, strict=True):
            shown = made.curves[label]
            true = np.interp(np.array(shown.time) / HORIZON, np.arange(GRID + 1) / GRID, curve)
            within = (np.array(shown.low) - 1e-9 <= true) & (true <= np.array(shown.high) + 1e-9)
            each = (np.array(shown.low_each) <= true) & (true <= np.array(shown.high_each))
            bands.append(within.all())
            points.append(each[1:].mean())
    rmse, other = (float(np.sqrt(np.mean(np.square(one)))) for one in (errors, plain))
    return {
        "family": family, "n": asked.rows, "epsilon": asked.epsilon, "level": asked.level,
        "quantity": asked.quantity, "strata": STRATA if asked.strata else 1,
        "draws": asked.draws, "first seed": asked.seed, "truth": f"{goal:.4f}",
        "RMSE": f"{rmse:.4f}", "IPW-KM": f"{other:.4f}", "ratio": f"{rmse / other:.2f}",
        "bias": f"{np.mean(errors):+.4f}", "IPW-KM bias": f"{np.mean(plain):+.4f}",
        "coverage": f"{np.mean(held):.2f}", "half-width": f"{np.mean(halves):.4f}",
        "band": f"{np.mean(bands):.2f}", "single times": f"{np.mean(points):.2f}",
    }  # fmt: skip


def main() -> int:
    """Print a row for each family."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=FAMILIES)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--level", default="label", choices=("label", "sample"))
    parser.add_argument("--quantity", default="rmst", choices=("rmst", "risk"))
    parser.add_argument("--strata", action="store_true")
    asked = parser.parse_args()
    writer = None
    for family in asked.families:
        row = one_family(family, asked)
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(row))
            writer.writeheader()
        writer.writerow(row)
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
