"""One measurement in a process of its own: a job's name, a Parquet file, and how often.

Prints one line of JSON: the best wall and processor time of some repeats, the peak of memory, the
value that came out, and the processor time of an argsort of a million doubles, taken between the
repeats because other work slows both alike. Runs in our environment or in that of the peers;
imports only what its job needs.
"""

import json
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np

COVARIATES = 20
_ENOUGH = 5.0  # seconds after which a job is not repeated


def columns(path):
    import polars as pl

    frame = pl.read_parquet(path)
    names = [f"x{index}" for index in range(COVARIATES)]
    treated = frame["t"].to_numpy().astype(bool)
    return frame.select(names).to_numpy(), treated, frame["y"].to_numpy()


def matched_effect(score, treated, outcome, nearest):
    """Average the difference to the mean of five neighbours, for all units."""
    effect = np.empty(score.size)
    for units, others, sign in ((treated, ~treated, 1), (~treated, treated, -1)):
        index = nearest(score[others], score[units])
        effect[units] = sign * (outcome[units] - outcome[others][index].mean(axis=1))
    return effect.mean()


def scikit_score(covariates, treated):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=1000).fit(covariates, treated)
    return model.predict_proba(covariates)[:, 1]


def exact(path):
    import polars as pl

    from private_ate import exact_effect

    frame = pl.read_parquet(path)
    return lambda: exact_effect(frame, treatment="t", outcome="y")


def scikit_neighbours(path):
    from sklearn.neighbors import NearestNeighbors

    covariates, treated, outcome = columns(path)

    def nearest(pool, units):
        model = NearestNeighbors(n_neighbors=5).fit(pool[:, None])
        return model.kneighbors(units[:, None], return_distance=False)

    return lambda: matched_effect(scikit_score(covariates, treated), treated, outcome, nearest)


def dense_argsort(path):
    covariates, treated, outcome = columns(path)

    def nearest(pool, units):
        return np.argpartition(np.abs(units[:, None] - pool[None, :]), 5, axis=1)[:, :5]

    return lambda: matched_effect(scikit_score(covariates, treated), treated, outcome, nearest)


def causallib_matching(path):
    import pandas as pd
    from causallib.estimation import PropensityMatching
    from sklearn.linear_model import LogisticRegression

    covariates, treated, outcome = columns(path)
    table = pd.DataFrame(covariates)
    arm, result = pd.Series(treated.astype(int)), pd.Series(outcome)

    def run():
        learner = LogisticRegression(max_iter=1000)
        model = PropensityMatching(learner, n_neighbors=5, caliper=None).fit(table, arm, result)
        levels = model.estimate_population_outcome(table, arm)
        return float(levels[1] - levels[0])

    return run


def causalml_matching(path):
    import pandas as pd
    from causalml.match import NearestNeighborMatch

    covariates, treated, outcome = columns(path)

    def run():
        # It matches controls to treated; the other direction swaps the arms.
        score = scikit_score(covariates, treated)
        totals = 0.0
        for arm, sign in ((treated, 1), (~treated, -1)):
            table = pd.DataFrame({"score": score, "arm": arm.astype(int), "y": outcome})
            matcher = NearestNeighborMatch(caliper=10, replace=True, ratio=5, shuffle=False)
            matched = matcher.match(table, treatment_col="arm", score_cols=["score"])
            means = matched.groupby("arm")["y"].mean()
            totals += sign * (means[1] - means[0]) * arm.sum()
        return totals / score.size

    return run


def dowhy_matching(path):
    import pandas as pd
    from dowhy import CausalModel

    covariates, treated, outcome = columns(path)
    names = [f"x{index}" for index in range(COVARIATES)]
    table = pd.DataFrame(covariates, columns=names).assign(t=treated, y=outcome)

    def run():
        model = CausalModel(table, treatment="t", outcome="y", common_causes=names)
        estimand = model.identify_effect(proceed_when_unidentifiable=True)
        found = model.estimate_effect(
            estimand, method_name="backdoor.propensity_score_matching", target_units="ate"
        )
        return float(found.value)

    return run


def private(level, method="auto"):
    def job(path):
        from private_ate import Domain, Interval, Treatment, estimate_ate

        known = {f"x{index}": Interval(0, 1) for index in range(COVARIATES)}
        domain = Domain(Treatment("t", treated=1, control=0), ("y", Interval(0, 100)), known)
        return lambda: (
            estimate_ate(path, domain=domain, level=level, epsilon="1.0", method=method).ate
        )

    return job


def reading(path):
    import polars as pl

    return lambda: float(pl.read_parquet(path).height)


def gradient_pass(path):
    """One pass of the logistic gradient over rows in memory."""
    from private_ate.engines.local import LocalStudy
    from private_ate.engines.threads import single_threaded_blas
    from private_ate.models.propensity import _Loss

    covariates, treated, _ = columns(path)
    study = LocalStudy(None, np.ascontiguousarray(covariates.T), treated, None)
    loss = _Loss(study.fold, 0.01, 2)

    def run():
        with single_threaded_blas():
            return float(loss.gradient(np.zeros(COVARIATES + 1))[0])

    return run


def sorting(path):
    covariates, _, _ = columns(path)
    score = covariates.sum(axis=1)
    return lambda: float(np.argsort(score)[0])


JOBS = {
    "private-ate exact_effect": exact,
    "scikit-learn": scikit_neighbours,
    "causallib": causallib_matching,
    "CausalML": causalml_matching,
    "DoWhy (1 neighbour)": dowhy_matching,
    "dense argsort": dense_argsort,
    "label level": private("label"),
    "sample level": private("sample"),
    "reading the file": reading,
    "gradient pass": gradient_pass,
    "argsort": sorting,
}


def peak_memory():
    """Return this process's own peak in MB; getrusage would hand down that of its parent."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def yardstick(values):
    """Return the least processor time of a few argsorts."""
    best = float("inf")
    for _ in range(3):
        begun = time.process_time()
        np.argsort(values)
        best = min(best, time.process_time() - begun)
    return best


def main():
    warnings.simplefilter("ignore")
    name, path, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3])
    warm = Path(path).with_name("n3.parquet")
    JOBS[name](warm)()
    run = JOBS[name](path)
    best = {"seconds": float("inf"), "cpu": float("inf")}
    values = np.random.default_rng(1).random(10**6)
    argsort = yardstick(values)
    begun = time.perf_counter()
    for _ in range(repeats):
        if best["cpu"] < float("inf") and time.perf_counter() - begun > _ENOUGH:
            break
        wall, cpu = time.perf_counter(), time.process_time()
        value = run()
        best["seconds"] = min(best["seconds"], time.perf_counter() - wall)
        best["cpu"] = min(best["cpu"], time.process_time() - cpu)
        argsort = min(argsort, yardstick(values))
    print(json.dumps({**best, "argsort": argsort, "megabytes": peak_memory(), "value": value}))


if __name__ == "__main__":
    main()
