"""How much faster our matching is than scikit-learn's at its best, measured in turns.

``python benchmarks/matching.py --rows 1000000`` makes a confounded study of twenty covariates in
memory, then lets `exact_effect` and every configuration of the peer take turns in one process, so
that other work on the machine slows all alike. It prints the best and the median of wall and of
processor seconds, the configuration of the fastest peer, and the ratios to it. Both estimate the
same: a logistic score, the mean of five neighbours in the other arm for each unit, the average
difference.
"""

import argparse
import json
import os
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from scale_job import matched_effect  # noqa: E402  # stands beside this file

SOLVERS = ("lbfgs", "newton-cholesky")
CORES = (1, -1)
COVARIATES = 20


def make_study(rows, seed=0):
    """Return the covariates, arms and outcomes of the study that `scale.py` writes."""
    rng = np.random.default_rng(seed)
    slopes, effects = rng.normal(size=(2, COVARIATES))
    covariates = rng.random((rows, COVARIATES))
    treated = rng.random(rows) < 1 / (1 + np.exp(0.4 - 0.9 * (covariates - 0.5) @ slopes))
    outcome = 50 + 10 * (covariates - 0.5) @ effects + 5 * treated + 8 * rng.normal(size=rows)
    return covariates, treated, np.clip(outcome, 0, 100)


def peer(study, solver, cores):
    """Return scikit-learn's estimate: a logistic score, then a kd-tree on the score alone."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import NearestNeighbors

    covariates, treated, outcome = study

    def nearest(pool, units):
        model = NearestNeighbors(n_neighbors=5, algorithm="kd_tree", n_jobs=cores)
        return model.fit(pool[:, None]).kneighbors(units[:, None], return_distance=False)

    def run():
        model = LogisticRegression(solver=solver, max_iter=1000).fit(covariates, treated)
        score = model.predict_proba(covariates)[:, 1]
        return float(matched_effect(score, treated, outcome, nearest))

    return run


def ours(study):
    """Return our estimate on the same rows, from a data frame in memory."""
    import polars as pl

    from private_ate import exact_effect

    covariates, treated, outcome = study
    names = [f"x{place}" for place in range(COVARIATES)]
    columns = dict(zip(names, covariates.T.copy(), strict=True))
    frame = pl.DataFrame({**columns, "t": treated.astype(np.int8), "y": outcome})
    return lambda: float(exact_effect(frame, treatment="t", outcome="y"))


def contestants(study):
    jobs = {"private-ate exact_effect": ours(study)}
    for solver in SOLVERS:
        for cores in CORES:
            name = f"LogisticRegression(solver={solver!r}), NearestNeighbors(5, "
            jobs[name + f"algorithm='kd_tree', n_jobs={cores})"] = peer(study, solver, cores)
    return jobs


def take_turns(jobs, repeats):
    """Run every job once to load what it needs, then in turns; return all times and values."""
    found = {name: {"wall": [], "cpu": [], "value": run()} for name, run in jobs.items()}
    for _ in range(repeats):
        for name, run in jobs.items():
            start = time.perf_counter(), time.process_time()
            run()
            found[name]["wall"].append(time.perf_counter() - start[0])
            found[name]["cpu"].append(time.process_time() - start[1])
    return found


def report(found, rows):
    """Print the table and the ratios, and return them."""
    first, *peers = found
    lines = []
    for clock in ("wall", "cpu"):
        best = min(peers, key=lambda name: min(found[name][clock]))
        turns = list(zip(found[best][clock], found[first][clock], strict=True))
        ratios = [theirs / mine for theirs, mine in turns]
        line = {
            "rows": rows, "clock": clock, "fastest peer": best,
            "ours": min(found[first][clock]), "theirs": min(found[best][clock]),
            "ratio of the best": min(found[best][clock]) / min(found[first][clock]),
            "median ratio": statistics.median(ratios), "ratios": ratios,
        }  # fmt: skip
        lines.append(line)
    for name, times in found.items():
        told = ", ".join(
            f"{clock} {min(times[clock]):.3g} (median {statistics.median(times[clock]):.3g}) s"
            for clock in ("wall", "cpu")
        )
        print(f"{name}: {told}; effect {times['value']:.4f}")
    for line in lines:
        print(
            f"{rows:,} rows, {line['clock']}: {line['ratio of the best']:.1f} times as fast "
            f"(median of turns {line['median ratio']:.1f}) as {line['fastest peer']}"
        )
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--file", type=Path, help="also write the times as JSON")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning)
    study = make_study(arguments.rows)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    found = take_turns(contestants(study), arguments.repeats)
    lines = report(found, arguments.rows)
    print(f"load {os.getloadavg()[0]:.1f} at the end")
    if arguments.file:
        arguments.file.write_text(json.dumps({"times": found, "ratios": lines}, indent=1))


if __name__ == "__main__":
    main()
