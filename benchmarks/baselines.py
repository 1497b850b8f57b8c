"""Time and memory of the baselines on data like the paper's Synth.

Run as ``python benchmarks/baselines.py [rows covariates epsilon]``; each method has a process of
its own, so that its peak memory is its own. Times are processor seconds of the estimate alone.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

from private_ate.methods.registry import METHODS


def main() -> None:
    rows, covariates, epsilon = sys.argv[1:4] or ("1000", "20", "1")
    print(f"{rows} rows, {covariates} covariates, epsilon {epsilon}")
    print(f"{'method':22} {'seconds':>8} {'peak MB':>8} {'added MB':>9}")
    for method in (record.name for record in METHODS.values() if record.is_baseline):
        command = [sys.executable, __file__, "one", method, rows, covariates, epsilon]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="")


def measure(method: str, rows: int, covariates: int, epsilon: str) -> None:
    """Run one method twice (the first run compiles) and print what the second cost."""
    from private_ate import estimate_ate

    estimate_ate(make_study(200, 2), level="sample", epsilon=1, method=method, seed=1)
    study = make_study(rows, covariates)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    estimate_ate(study, level="sample", epsilon=epsilon, method=method, seed=1)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{method:22} {seconds:8.2f} {peak / 1024:8.0f} {(peak - before) / 1024:9.1f}")


def make_study(rows: int, dimension: int) -> object:
    """Return uniform covariates with a linear outcome, as the paper's Synth."""
    import numpy as np

    from private_ate import Domain, Interval, Treatment
    from private_ate.engines.local import LocalStudy

    rng = np.random.default_rng(89)
    covariates = rng.uniform(size=(dimension, rows))
    slopes, effects = rng.uniform(-0.5, 0.5, dimension), rng.uniform(size=dimension)
    treatment = rng.random(rows) < 1 / (1 + np.exp(-slopes @ (2 * covariates - 1)))
    outcome = effects @ covariates + 0.5 * treatment + rng.uniform(-0.5, 0.5, rows)
    share = (outcome - outcome.min()) / np.ptp(outcome)
    names = {f"x{column}": Interval(0, 1) for column in range(dimension)}
    bounds = Interval(float(outcome.min()), float(outcome.max()))
    domain = Domain(Treatment("t", treated=1, control=0), ("y", bounds), names)
    return LocalStudy(domain, covariates, treatment, np.rint(share * 2**30).astype(np.int32))


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        main()
