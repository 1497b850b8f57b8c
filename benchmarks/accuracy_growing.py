"""Label level on confounded families: error and coverage with plain and with growing features.

Run: python benchmarks/accuracy_growing.py [--families tuned,fresh,studies] [--sizes 2000,10000]

Every draw is a fresh data set with a known average effect; estimates are real releases with their
interval, seeded, so nothing is private. ``tuned`` families were looked at while the features were
designed (with other seeds), ``fresh`` ones were not; ``studies`` look like those people have: the
bundled clinic, bootstrapped covariates of Lalonde, IHDP and ACIC with new treatments and outcomes,
a binary and a zero-inflated outcome, bounds five times too wide. The width ratio is the mean
half-width over what noise, sampling and bias need: the normal quantile times the root mean square
error over data sets and noise. A second table has the data sets of the paper.
"""

from __future__ import annotations

import argparse
import math
from fractions import Fraction
from functools import cache

import numpy as np
from scipy.special import ndtr

from private_ate import CalibratedOptions, Domain, Interval, Treatment, exact_effect
from private_ate.data.tables import read_table
from private_ate.datasets import acic, load, synth
from private_ate.datasets.clinic import draw_clinic
from private_ate.engines.local import LocalStudy
from private_ate.estimation import METHODS, estimate_study
from private_ate.estimators.request import Request
from private_ate.privacy.quantization import OUTCOME_STEPS

NORMAL = 1.959964  # covers 95 %
TUNED = {
    "phi-5": (5, "phi"), "phi-20": (20, "phi"), "linear-5": (5, "linear"),
    "linear-20": (20, "linear"), "product": (20, "product"), "sine": (8, "sine"),
}  # fmt: skip
FRESH = {
    "network": (6, "network"), "saddle": (10, "saddle"), "bumps": (5, "bumps"),
    "skewed-5": (5, "skewed"), "skewed-20": (20, "skewed"),
}  # fmt: skip
STUDIES = {
    "clinic": (5000, "clinic"), "lalonde-like": (2000, "earnings"), "ihdp-like": (747, "ihdp"),
    "acic-like": (4802, "acic"), "binary": (5000, "binary"), "zero-inflated": (5000, "zero"),
    "straight": (5000, "straight"), "5 x too wide": (5000, "wide"),
}  # fmt: skip
BOUNDS = {
    "phi": (0.0, 1.2), "linear": (-7.0, 8.0), "product": (-8.0, 10.0), "sine": (-5.0, 6.0),
    "network": (-5.0, 6.0), "saddle": (-8.0, 10.0), "bumps": (-5.0, 6.0), "skewed": (-3.0, 15.0),
}  # fmt: skip


def logistic(score):
    """Return the probability at a score."""
    return 1 / (1 + np.exp(-score))


def along(z, rng, shared=None):
    """Return a linear index of unit deviation, partly along another one's direction."""
    direction = rng.standard_normal(z.shape[1])
    if shared is not None:
        direction = 0.7 * shared / np.linalg.norm(shared) + 0.3 * direction / math.sqrt(z.shape[1])
    index = z @ direction
    return index / index.std(), direction


def surfaces(kind, z, rng):  # noqa: PLR0911  # one return per family
    """Return score, outcome without treatment (and its noise's size), and effects of some units."""
    if kind in ("phi", "linear", "skewed"):
        score, direction = along(z, rng)
        prognosis, _ = along(z, rng, direction)
        if kind == "phi":
            return 1.6 * score, 0.05 + 0.5 * ndtr(prognosis), 0.1, 0.1 * (1 + 0.6 * np.tanh(score))
        if kind == "linear":
            return 1.6 * score, prognosis, 0.7, 1 + 0.6 * np.tanh(score)
        return 1.6 * score, np.exp(0.6 * prognosis), 0.5, 1 + 0.6 * np.tanh(score)
    if kind == "product":
        shape = z[:, 0] * z[:, 1] + np.abs(z[:, 2])
        score = 1.6 * ((shape - 0.8) / 1.2 + 0.3 * z[:, 3])
        return score, shape + 0.5 * z[:, 3], 0.7, 1 + 0.3 * np.tanh(z[:, 0])
    if kind == "sine":
        score = 1.2 * (np.sin(1.5 * z[:, 0]) + 0.5 * z[:, 1] + 0.4 * np.cos(2 * z[:, 2]))
        level = np.sin(1.5 * z[:, 0]) + 0.5 * np.exp(-(z[:, 2] ** 2)) + 0.3 * z[:, 1]
        return score, level, 0.7, 1 + 0.5 * np.tanh(z[:, 0])
    if kind == "network":
        hidden = np.tanh(z @ rng.standard_normal((z.shape[1], 6)) * 0.7)
        out = rng.standard_normal(6)
        score = hidden @ out
        level = hidden @ (out + 0.5 * rng.standard_normal(6))
        level = (level - level.mean()) / level.std()
        return 1.2 * (score - score.mean()) / score.std(), level, 0.7, 1 + 0.4 * hidden[:, 0]
    if kind == "saddle":
        shape = 0.6 * (z[:, 0] ** 2 - z[:, 1] ** 2) + 0.5 * z[:, 2] * z[:, 3]
        return 1.2 * shape + 0.4 * z[:, 4], shape + 0.4 * z[:, 4], 0.7, 1 + 0.3 * np.tanh(shape)
    near = np.exp(-((z[:, 0] - 0.7) ** 2)) - np.exp(-((z[:, 1] + 0.7) ** 2))
    return 2.0 * near + 0.3 * z[:, 2], near + 0.3 * z[:, 2], 0.7, 1 + 0.4 * near


def draw(kind, rows, columns, rng):
    """Return an encoded study and the average of its units' effects."""
    correlation = 0.3 ** np.abs(np.subtract.outer(np.arange(columns), np.arange(columns)))
    root = np.linalg.cholesky(correlation) if kind == "phi" else np.eye(columns)
    z = rng.standard_normal((rows, columns)) @ root.T
    score, level, deviation, effect = surfaces(kind, z, rng)
    treated = rng.random(rows) < logistic(score)
    noise = rng.uniform(0, 0.3, rows) if kind == "phi" else deviation * rng.standard_normal(rows)
    low, high = BOUNDS[kind]
    outcome = np.clip(level + effect * treated + noise, low, high)
    share = (outcome - low) / (high - low)
    domain = Domain(
        Treatment("t", treated=1, control=0),
        ("y", Interval(low, high)),
        {f"x{index}": Interval(-4, 4) for index in range(columns)},
    )
    covariates = np.ascontiguousarray(np.clip((z.T + 4) / 8, 0, 1))
    steps = np.rint(share * OUTCOME_STEPS).astype(np.int32)
    return LocalStudy(domain, covariates, treated, steps), float(effect.mean())


def encode(shares, treated, outcome, bounds, means):
    """Return a study of covariates in [0, 1] and the average of its units' effects."""
    low, high = bounds
    domain = Domain(
        Treatment("t", treated=1, control=0),
        ("y", Interval(low, high)),
        {f"x{index}": Interval(0, 1) for index in range(shares.shape[1])},
    )
    steps = np.rint((np.clip(outcome, low, high) - low) / (high - low) * OUTCOME_STEPS)
    study = LocalStudy(domain, np.ascontiguousarray(shares.T), treated, steps.astype(np.int32))
    return study, float((means[1] - means[0]).mean())


@cache
def known_covariates(kind):
    """Return the encoded covariates of a data set of the paper."""
    data = {"earnings": lambda: load("lalonde"), "ihdp": lambda: load("ihdp"), "acic": acic.load}
    found = data[kind]()
    return LocalStudy.encode(read_table(found.frame), found.domain).covariates.T


def draw_study(kind, rows, rng):
    """Return one of the studies that look like real ones, and its average effect."""
    if kind == "clinic":
        data = draw_clinic(rows, seed=int(rng.integers(2**31)))
        return LocalStudy.encode(read_table(data.frame), data.domain), data.true_effect
    if kind in ("earnings", "ihdp", "acic"):
        known = known_covariates(kind)
        shares = known[rng.integers(0, known.shape[0], rows)]
        deviation = known.std(axis=0)
        z = (shares - known.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    else:
        z = rng.standard_normal((rows, 8))
        shares = np.clip((z + 4) / 8, 0, 1)
    directions = np.random.default_rng(z.shape[1]).standard_normal((2, z.shape[1]))
    score, other = (z @ directions.T / math.sqrt(z.shape[1])).T
    prognosis = 0.6 * score + 0.8 * other
    level = {"earnings": -0.35, "ihdp": -1.4}.get(kind, 0.0)
    treated = rng.random(rows) < logistic(level + 0.8 * score)
    return encode(shares, treated, *outcomes_of(kind, treated, score, prognosis, rng))


def outcomes_of(kind, treated, score, prognosis, rng):
    """Return outcomes, their bounds and both means of every unit."""
    noise = rng.standard_normal(treated.size)
    if kind in ("earnings", "zero"):  # zero, or an exponential of something normal
        size, most = (3000.0, 60_000.0) if kind == "earnings" else (2.7, 40.0)
        log = np.log(size) + 0.35 * np.tanh(prognosis)
        chances = logistic(0.7 + 0.3 * prognosis), logistic(1.1 + 0.3 * prognosis)
        draws = np.exp(0.8 * rng.standard_normal(2000))
        capped = np.array([np.minimum(np.exp(at) * draws, most).mean() for at in np.unique(log)])
        mean = capped[np.unique(log, return_inverse=True)[1]]
        paid = rng.random(treated.size) < np.where(treated, chances[1], chances[0])
        return paid * np.exp(log + 0.8 * noise), (0.0, most), (chances[0] * mean, chances[1] * mean)
    if kind == "binary":
        chances = logistic(-0.6 + 0.8 * prognosis), logistic(-0.1 + 0.8 * prognosis)
        drawn = rng.random(treated.size) < np.where(treated, chances[1], chances[0])
        return drawn * 1.0, (0.0, 1.0), chances
    means = prognosis, prognosis + 1 + 0.3 * np.tanh(score)
    bounds = {"ihdp": (-4.0, 10.0), "acic": (-10.0, 14.0), "wide": (-24.5, 25.5)}
    if kind == "ihdp":
        means = np.exp(0.4 * prognosis), 4 + 0.6 * prognosis
    elif kind == "acic":
        means = 1.5 * prognosis + 0.4 * score**2, 1.5 * prognosis + 0.4 * score**2 + 2
    return np.where(treated, means[1], means[0]) + noise, bounds.get(kind, (-5.0, 6.0)), means


def cell(make, epsilon, repeats, seed, wanted=("plain", "growing"), **options):
    """Return error, bias, coverage, half-width and width ratio for plain and growing features."""
    found = {terms: [] for terms in wanted}
    for number in range(repeats):
        study, truth = make(np.random.default_rng([seed, number]))
        for terms, values in found.items():
            chosen = CalibratedOptions(terms=terms, **options)
            request = Request("label", Fraction(epsilon), options=chosen)
            release = estimate_study(study, request, METHODS["calibrated"], seed=number + 1)
            low, high = release.interval
            miss = (release.ate - truth) / abs(truth)
            values.append((abs(miss), miss, low <= truth <= high, (high - low) / 2 / abs(truth)))
    return {terms: summarize(np.array(values)) for terms, values in found.items()}


def summarize(values):
    """Return the means, and the mean half-width over what the errors need."""
    needed = NORMAL * math.sqrt((values[:, 1] ** 2).mean())
    return [*values.mean(axis=0), values[:, 3].mean() / needed]


def print_line(name, rows, epsilon, count, means):
    """Print a line of the table: plain → growing, or one alone."""
    pairs = zip(*means.values(), strict=True)
    text = " | ".join(" → ".join(f"{value:.3f}" for value in pair) for pair in pairs)
    print(f"| {name} | {rows} | {epsilon} | {count} | {text} |", flush=True)


def print_families(families, sizes, epsilons, repeats, seed, wanted):
    """Print one line per cell."""
    print("| family | n | ε | draws | error | bias | coverage | half-width | width ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for rows, count in zip(sizes, repeats, strict=True):
        for name, (columns, kind) in families.items():

            def make(rng, kind=kind, rows=rows, columns=columns):
                return draw(kind, rows, columns, rng)

            for epsilon in epsilons:
                means = cell(make, epsilon, count, seed + rows, wanted)
                print_line(name, rows, epsilon, count, means)


def print_studies(epsilons, count, seed, wanted):
    """Print one line per study and ε; wide bounds also with a guessed spread."""
    print("| study | n | ε | draws | error | bias | coverage | half-width | width ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (rows, kind) in STUDIES.items():

        def make(rng, kind=kind, rows=rows):
            return draw_study(kind, rows, rng)

        for epsilon in epsilons:
            print_line(name, rows, epsilon, count, cell(make, epsilon, count, seed, wanted))
            if kind == "wide":
                means = cell(make, epsilon, count, seed, wanted, outcome_sd=1.4)
                print_line(f"{name}, `outcome_sd`", rows, epsilon, count, means)


def expected_error(study, terms, epsilon, reference, draws=400):
    """Return the mean relative error of releases without an interval."""
    options = CalibratedOptions(terms=terms)
    request = Request("label", Fraction(epsilon), confidence=None, options=options)
    # The public phase is the same every time: one release tells the noise, the rest are its draws.
    values = [
        estimate_study(study, request, METHODS["calibrated"], seed=seed).ate
        for seed in range(draws)
    ]
    return float(np.abs(np.array(values) - reference).mean() / abs(reference))


def print_sets(epsilons, draws):
    """Print the ratio of errors, growing over plain, on the paper's sets and ACIC 1 to 10."""
    sets = {name: load(name) for name in ("lalonde", "ihdp")}
    sets |= {f"acic-{number}": acic.load(number) for number in range(1, 11)}
    sets |= {f"synth-{seed}": synth.draw(seed) for seed in range(20, 24)}
    print("| set | plain, mean over ε | growing | ratio |\n|---|---|---|---|")
    logs = []
    for name, data in sets.items():
        study = LocalStudy.encode(read_table(data.frame), data.domain)
        truth = data.true_effect or exact_effect(data.frame, domain=data.domain)
        plain, grown = (
            np.mean([expected_error(study, terms, epsilon, truth, draws) for epsilon in epsilons])
            for terms in ("plain", "growing")
        )
        logs.append(math.log(grown / plain))
        print(f"| {name} | {plain:.4f} | {grown:.4f} | {grown / plain:.3f} |", flush=True)
    print(f"geometric mean of the ratios: {math.exp(np.mean(logs)):.3f}")


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", default="tuned,fresh")
    parser.add_argument("--sizes", default="2000,10000,50000,200000")
    parser.add_argument("--repeats", default="60,40,20,10")
    parser.add_argument("--epsilons", default="1,4")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--terms", default="plain,growing")
    parser.add_argument("--sets", action="store_true", help="the paper's data sets instead")
    parser.add_argument("--draws", type=int, default=20)
    asked = parser.parse_args()
    epsilons = asked.epsilons.split(",")
    if asked.sets:
        print_sets(epsilons, asked.draws)
        return
    known = {"tuned": TUNED, "fresh": FRESH} | {n: {n: v} for n, v in (TUNED | FRESH).items()}
    sizes, repeats = (
        [int(text) for text in item.split(",")] for item in (asked.sizes, asked.repeats)
    )
    wanted = asked.terms.split(",")
    for group in asked.families.split(","):
        if group == "studies":
            print_studies(epsilons, repeats[0], asked.seed, wanted)
        else:
            print_families(known[group], sizes, epsilons, repeats, asked.seed, wanted)


if __name__ == "__main__":
    main()
