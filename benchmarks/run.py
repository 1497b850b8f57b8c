"""Speed and memory as ratios within one run: noise, matching and whole estimates.

Run: make bench, or python benchmarks/run.py [--largest 10000000]. Several arms against two alone:
python benchmarks/run.py --arms 4 --rows 1000000. Both defaults at 10³, 10⁴ and 10⁶ rows alone:
python benchmarks/run.py --defaults. Growth starts at 10 000 rows, or at the largest;
the other parts have a million rows, or the largest if that is less.

The yardstick is one stable argsort of a million doubles, measured between the other measurements,
because machines are noisy. Times are CPU seconds of this process, all threads together.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

from private_ate import Domain, Interval, Treatment, estimate_ate
from private_ate.engines.local import LocalStudy
from private_ate.models.propensity import fit_propensity
from private_ate.privacy.entropy import SecureEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.samplers import Coin, flip_rows

DIMENSION = 20


def cpu(job, repeats=3):
    """Return the least CPU time of a few runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        job()
        best = min(best, time.process_time() - start)
    return best


def yardstick(rows):
    values = np.random.default_rng(1).random(rows)
    return cpu(lambda: np.argsort(values, kind="stable"))


METHODS = (
    ("published, label", {"level": "label", "method": "published"}),
    ("calibrated balance, label", {"level": "label", "method": "calibrated"}),
    ("calibrated track, label", {"level": "label", "method": "calibrated", "target": "track"}),
    ("published, sample", {"level": "sample", "method": "published"}),
    ("blocks, sample", {"level": "sample", "method": "blocks"}),
)


def draw_arms(rows, arms, seed=0):
    """Return a confounded study of twenty covariates and that many arms, and its domain."""
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=(arms, DIMENSION)) / np.sqrt(2)
    columns, scores = {}, np.zeros((arms, rows))
    for index in range(DIMENSION):
        columns[f"x{index}"] = rng.random(rows)
        scores += np.outer(slopes[:, index], columns[f"x{index}"] - 0.5)
    # The largest of scores with Gumbel noise: a draw from the multinomial logit.
    codes = (scores + rng.gumbel(size=(arms, rows))).argmax(axis=0)
    outcome = 0.3 * columns["x0"] + 0.2 * codes / (arms - 1) + rng.normal(0.2, 0.1, rows)
    labels = np.array([f"arm {code}" for code in range(arms)])
    frame = pl.DataFrame(columns | {"t": labels[codes], "y": np.clip(outcome, 0, 1)})
    treatment = Treatment("t", arms=labels.tolist())
    domain = Domain(treatment, ("y", Interval(0, 1)), dict.fromkeys(columns, Interval(0, 1)))
    return frame, domain


def arms_ratios(arms, rows):
    """Print the time of several arms over that of two, method by method, in one run."""
    studies = [draw_arms(rows, count) for count in (2, arms)]
    print(f"{rows} rows, {DIMENSION} covariates, ε = 1, {arms} arms against two")
    for name, request in METHODS:
        took = []
        for frame, domain in studies:
            estimate_ate(frame[:2000], domain=domain, epsilon=1, **request)  # compiles
            took.append(
                cpu(
                    lambda f=frame, d=domain, r=request: estimate_ate(f, domain=d, epsilon=1, **r),
                    2,
                )
            )
        print(
            f"{name:28}{took[0]:8.2f} s{took[1]:8.2f} s  ratio {took[1] / took[0]:5.2f}", flush=True
        )


def draw_frame(rows, seed=0):
    """Return a confounded study of twenty covariates as a frame, and its domain."""
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=DIMENSION)
    columns, score = {}, np.zeros(rows)
    for index in range(DIMENSION):
        columns[f"x{index}"] = rng.random(rows)
        score += slopes[index] * (columns[f"x{index}"] - 0.5)
    treated = rng.random(rows) < 1 / (1 + np.exp(-score))
    outcome = np.clip(0.3 * columns["x0"] + 0.2 * treated + rng.normal(0.2, 0.1, rows), 0, 1)
    domain = Domain(
        Treatment("t", 1, 0), ("y", Interval(0, 1)), {name: Interval(0, 1) for name in columns}
    )
    return pl.DataFrame(columns | {"t": treated, "y": outcome}), domain


def noise_speeds(rows):
    noise, entropy = Noise(SecureEntropy()), SecureEntropy()
    values = np.zeros(rows, dtype=np.int64)
    laplace = cpu(lambda: noise.laplace_rows("b", values, sensitivity=1 << 20, epsilon=Fraction(1)))
    flips = cpu(lambda: flip_rows(Coin.logistic(Fraction(7, 10)), 10 * rows, entropy))
    unsafe = cpu(lambda: np.random.default_rng().laplace(size=rows))
    print(f"discrete Laplace, grid scale/2^20  {rows / laplace / 1e6:8.1f} million draws a second")
    print(
        f"randomised response                {10 * rows / flips / 1e6:8.1f} million bits a second"
    )
    print(f"numpy's unsafe Laplace             {rows / unsafe / 1e6:8.1f} million draws a second")
    scores = np.random.default_rng(0).random(2 * rows)

    def noisy_scores():
        steps = np.rint(np.clip(scores, 0, 1) * 2**16).astype(np.int64)
        noise.laplace_rows("b", steps, sensitivity=1 << 16, epsilon=Fraction(1, 20))

    took = cpu(noisy_scores, 1)
    print(f"{scores.size} scores clipped, quantised and noised in {took:.2f} s of CPU")


def matching_ratios(rows):
    frame, domain = draw_frame(rows)
    estimate_ate(frame[:2000], domain=domain, level="label", epsilon=1, method="published")
    covariates = np.stack([frame[f"x{index}"].to_numpy() for index in range(DIMENSION)])
    study = LocalStudy(domain, covariates, frame["t"].to_numpy(), None)
    coefficients = fit_propensity(study, 1e-6).coordinates
    sort = yardstick(rows)
    print(f"\nyardstick: stable argsort of {rows} doubles {sort:.3g} s")

    def match():
        pool = study.pool(coefficients)
        pool.match(5, (10, 10))

    print(f"matching, both ways, N = 5, limited: {cpu(match) / sort:5.1f} argsorts")
    for name, request in (
        ("published, label", {"level": "label", "method": "published"}),
        ("calibrated balance, label", {"level": "label"}),
        ("calibrated track, label", {"level": "label", "target": "track"}),
        ("blocks, sample", {"level": "sample"}),
    ):
        took = cpu(lambda r=request: estimate_ate(frame, domain=domain, epsilon=1, **r), 2)
        print(f"{name + f', {rows} rows':36} {took / sort:5.1f} argsorts ({took:.2f} s)")


def defaults(largest):
    """Print processor seconds of both defaults beside an argsort of as many doubles."""
    print("n,level,processor seconds,argsorts of n doubles,argsorts of a million doubles")
    million = yardstick(10**6)
    for rows in (rows for rows in (10**3, 10**4, 10**6) if rows <= largest):
        frame, domain = draw_frame(rows)
        sort, repeats = yardstick(rows), 1 if rows > 10**5 else 3
        for level in ("label", "sample"):
            estimate_ate(frame[:2000], domain=domain, level=level, epsilon=1)  # compiles
            took = cpu(lambda at=level: estimate_ate(frame, domain=domain, level=at, epsilon=1),  # noqa: B023
                       repeats)  # fmt: skip
            print(f"{rows},{level},{took:.3g},{took / sort:.3g},{took / million:.3g}", flush=True)


def growth(largest):
    """Measure each size in a process of its own, so that peak memory is its own too."""
    print(f"\n{'method':28}{'rows':>10}{'CPU s':>9}{'peak GB':>9}")
    for name in ("published", "calibrated", "blocks"):
        rows = min(10**4, largest)
        while rows <= largest:
            command = [sys.executable, __file__, "--one", name, "--rows", str(rows)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            print(f"{name:28}{rows:>10}{done.stdout.rstrip()}", flush=True)
            rows *= 10


def one(name, rows):
    frame, domain = draw_frame(rows)
    level = "sample" if name == "blocks" else "label"
    estimate_ate(frame[:1000], domain=domain, level=level, epsilon=1, method=name)
    start = time.process_time()
    estimate_ate(frame, domain=domain, level=level, epsilon=1, method=name)
    took = time.process_time() - start
    print(f"{took:9.2f}{peak_memory():9.2f}")


def peak_memory():
    """Return the peak of this process alone in GB; rusage would start from its parent's."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--largest", type=int, default=10**7)
    parser.add_argument("--one")
    parser.add_argument("--rows", type=int, default=10**4)
    parser.add_argument("--defaults", action="store_true", help="both defaults, and no more")
    parser.add_argument("--arms", type=int, help="compare that many arms with two, and no more")
    arguments = parser.parse_args()
    if arguments.arms:
        arms_ratios(arguments.arms, arguments.rows)
        return
    if arguments.defaults:
        defaults(arguments.largest)
        return
    if arguments.one:
        one(arguments.one, arguments.rows)
        return
    rows = min(10**6, arguments.largest)
    noise_speeds(4 * rows)
    matching_ratios(rows)
    print()
    arms_ratios(4, rows)
    growth(arguments.largest)


if __name__ == "__main__":
    main()
