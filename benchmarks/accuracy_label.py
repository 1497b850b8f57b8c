"""Accuracy at label level: calibrated against published, beside the prototype's table.

Run: python benchmarks/accuracy_label.py [--draws 1000] [--sets lalonde,ihdp]

The public phase is run once per data set and ε (it is deterministic), then the noise is drawn
again and again through the same choke point as a release. Draws are seeded: nothing is private.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np

from private_ate.data.files import read_table
from private_ate.datasets import load, synth
from private_ate.engines.local import LocalStudy
from private_ate.methods.calibrated.clipping import outcomes_of, release_clip
from private_ate.methods.calibrated.design import pose
from private_ate.methods.calibrated.options import CalibratedOptions, outcome_share, plan_clip
from private_ate.methods.calibrated.private import add_outcomes
from private_ate.methods.calibrated.weights import choose_cap, settle, try_caps
from private_ate.methods.published import method as published
from private_ate.models.propensity import fit_propensity
from private_ate.privacy.distributions import staircase_variance
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.request import Request

EPSILONS = ("0.1", "0.5", "1", "2", "4")
# The prototype's tables (design of the label level); it coded ACIC's three letter columns as
# numbers, so `acic-codes` is what compares with it. Mean relative error, first against matching.
TRACK = {
    "lalonde": (1.70, 0.432, 0.236, 0.124, 0.044),
    "ihdp": (0.238, 0.062, 0.038, 0.024, 0.010),
    "acic-codes": (0.208, 0.112, 0.074, 0.092, 0.055),
    "synth": (0.285, 0.080, 0.049, 0.033, 0.020),
}
BALANCE = {
    "acic-codes": (0.376, 0.161, 0.125, 0.081, 0.074),
    "synth": (0.326, 0.092, 0.056, 0.043, 0.038),
}


def draws_calibrated(study, target, epsilon, draws, entropy):
    """Return noisy effects of the calibrated method for one public phase."""
    request = Request("label", Fraction(epsilon), target=target, confidence=None)
    public = study.public()
    design, points = _points(study, target)
    options, noise = CalibratedOptions(), Noise(entropy)
    spread = outcome_share(study.domain.bounds, options)
    point = choose_cap(design, points, staircase_variance(float(request.epsilon)), spread)
    weights = settle(public, design, [point])
    kept, _ = release_clip(study, plan_clip(study.domain.bounds, options), request, noise)
    (control,), (treated,) = add_outcomes(
        study, weights, lambda block: (kept.centre(outcomes_of(block)),)
    )
    largest = max(weights.largest) << 30
    value = treated - control
    unit = study.domain.bounds.width / study.size / 2**55
    width = study.domain.bounds.width
    noisy = [
        noise.staircase("outcome sum", value, sensitivity=largest, epsilon=request.epsilon) * unit
        for _ in range(draws)
    ]
    return np.clip(noisy, -width, width)


_CACHE: dict = {}


def _points(study, target):
    """Return the weight problems and all caps, once per data set."""
    key = (id(study), target)
    if key not in _CACHE:
        design = pose(study.public(), Request("label", Fraction(1), target=target))
        _CACHE[key] = design, list(try_caps(design, (0, 1)))
    return _CACHE[key]


def draws_published(study, epsilon, draws, entropy):
    """Return noisy effects of the published method for one public phase."""
    request = Request("label", Fraction(epsilon))
    options = published.PublishedOptions()
    key = (id(study), "pool")
    if key not in _CACHE:
        public = study.public()
        _CACHE[key] = public.pool(fit_propensity(public, 1 / study.size).coordinates)
    pool = _CACHE[key]
    plan = published.plan_for(pool, request, options)
    weights = pool.match(5, plan.limits)
    noise = Noise(entropy)
    unit = study.domain.bounds.width / study.size / 2**55
    control, treated = study.arm_sums(weights)
    sizes = [size << 30 for size in reversed(weights.largest)]
    noisy = []
    for _ in range(draws):
        pair = noise.laplace_disjoint(
            "sums", [treated, control], sensitivities=sizes, epsilon=request.epsilon
        )
        noisy.append((pair[0] - pair[1]) * unit)
    return np.array(noisy)


def errors(values, reference):
    return np.abs(values - reference) / abs(reference)


def studies_of(name):
    """Yield (study, matching estimate, truth) of a data set; Synth has twenty draws."""
    sets = [synth.draw(seed) for seed in range(20)] if name == "synth" else [load(name)]
    for data in sets:
        study = LocalStudy.encode(read_table(data.frame), data.domain)
        yield study, data.exact_effect(), data.true_effect


def table(title, names, target, draws, prototype, against):
    """Print one table and return the errors of ours and of the published method."""
    print(f"\n{title}\n{'set':12}{'method':22}" + "".join(f"{e:>9}" for e in EPSILONS))
    all_ours, all_published = [], []
    for name in names:
        ours, theirs = np.zeros(len(EPSILONS)), np.zeros(len(EPSILONS))
        squares, own, count = np.zeros(len(EPSILONS)), 0.0, 0
        for number, (study, matching, truth) in enumerate(studies_of(name)):
            reference = matching if against == "matching" else truth
            own += abs(matching - reference) / abs(reference)
            repeats = draws if name != "synth" else max(draws // 20, 25)
            for index, epsilon in enumerate(EPSILONS):
                entropy = SeededEntropy(1000 * number + index)
                sample = errors(
                    draws_calibrated(study, target, epsilon, repeats, entropy), reference
                )
                ours[index] += sample.mean()
                squares[index] += sample.var() / repeats
                theirs[index] += errors(
                    draws_published(study, epsilon, repeats, entropy), reference
                ).mean()
            count += 1
            _CACHE.clear()
        ours, theirs, spread = ours / count, theirs / count, np.sqrt(squares) / count
        rows = [("published", theirs), (f"ours, {target}", ours), ("  standard error", spread)]
        if name in prototype:
            rows.append(("prototype", np.array(prototype[name])))
            rows.append(("  ours/prototype", ours / np.array(prototype[name])))
        for label, values in rows:
            print(f"{name:12}{label:22}" + "".join(f"{value:9.3f}" for value in values))
        if name in prototype:
            ratio = np.exp(np.mean(np.log(ours / np.array(prototype[name]))))
            print(f"{name:12}geometric mean of ours/prototype {ratio:.3f}")
        if against == "truth":
            print(f"{name:12}matching's own error {own / count:.3f}")
        all_ours.append(ours)
        all_published.append(theirs)
    ratio = np.exp(np.mean(np.log(np.array(all_ours) / np.array(all_published))))
    print(f"geometric mean of ours/published over all cells: {ratio:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", choices=("track", "balance"))
    parser.add_argument("--sets", help="data sets by name, with commas, instead of all")
    asked = parser.parse_args()
    chosen = asked.sets.split(",") if asked.sets else None
    if asked.only != "balance":
        sets = chosen or ["lalonde", "ihdp", "acic-codes", "acic", "synth"]
        table("Against 5-NN matching, target track", sets, "track", asked.draws, TRACK, "matching")
    if asked.only != "track":
        sets = chosen or [
            "acic-codes", "acic", *(f"acic-{setting}" for setting in range(2, 11)), "synth"
        ]  # fmt: skip
        table("Against the truth, target balance", sets, "balance", asked.draws, BALANCE, "truth")


if __name__ == "__main__":
    main()
