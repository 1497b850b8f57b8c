"""Time and memory from 10³ to 10⁷ rows, ours beside what a user would pick instead.

Every measurement is a process of its own, one thread of BLAS each, so that processor seconds can
be compared on a machine with other work to do. ``python benchmarks/scale.py --peers PYTHON`` runs
all of them and writes ``scale.json`` in ``--folder`` (``benchmarks/results``); ``--page`` alone
turns that into the tables and plots of ``scale.md`` in ``--docs`` (``docs``). Our jobs are also
given in argsorts of a million doubles, measured between their repeats, which say more than seconds
where other work is about. Method `blocks` is "sample level".
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "scale.md"
OURS = ("private-ate exact_effect", "label level", "sample level")
LIMITS = ("reading the file", "gradient pass", "argsort")
R_SCRIPTS = {"MatchIt": "matchit.R", "Matching": "matching.R"}
PEERS = (
    "scikit-learn", "causallib", "CausalML", "DoWhy (1 neighbour)", "dense argsort", *R_SCRIPTS,
)  # fmt: skip
LARGEST = {
    "dense argsort": 4, "MatchIt": 4, "Matching": 4, "DoWhy (1 neighbour)": 4, "causallib": 4,
    "CausalML": 6, "private-ate exact_effect": 6, "scikit-learn": 6,
}  # fmt: skip
PATIENCE = 600  # seconds for one measurement


def make_data(folder, exponent):
    """Write a confounded study of twenty uniform covariates, in pieces of a million rows."""
    import numpy as np
    import polars as pl

    path = folder / f"n{exponent}.parquet"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    slopes, effects = rng.normal(size=(2, 20))
    pieces = []
    for first in range(0, 10**exponent, 10**6):
        rows = min(10**6, 10**exponent - first)
        x = rng.random((rows, 20))
        treated = rng.random(rows) < 1 / (1 + np.exp(0.4 - 0.9 * (x - 0.5) @ slopes))
        y = 50 + 10 * (x - 0.5) @ effects + 5 * treated + 8 * rng.normal(size=rows)
        piece = {f"x{index}": x[:, index] for index in range(20)}
        pieces.append(
            pl.DataFrame({**piece, "t": treated.astype(np.int8), "y": np.clip(y, 0, 100)})
        )
    pl.concat(pieces).write_parquet(path)
    if exponent <= LARGEST["MatchIt"]:
        pl.concat(pieces).write_csv(path.with_suffix(".csv"))
    return path


def measure(name, path, exponent, python, most):
    """Return the times of one job; a peer that fails is left out, a job of ours must not fail."""
    if name in R_SCRIPTS:
        command = ["Rscript", str(HERE / R_SCRIPTS[name]), str(path.with_suffix(".csv"))]
    else:
        repeats = min(20 if exponent == 3 else 3 if exponent < 7 else 1, most)
        command = [python, str(HERE / "scale_job.py"), name, str(path), str(repeats)]
    limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=True,
            env={**os.environ, **limits},
        )  # fmt: skip
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as cause:
        if name in (*LIMITS, *OURS):
            raise
        print(name, exponent, "does not cope:", type(cause).__name__, flush=True)
        return None
    found = {"job": name, "rows": 10**exponent, **json.loads(done.stdout.splitlines()[-1])}
    if "argsort" in found:
        found["argsorts"] = found["cpu"] / found["argsort"]
    print(found, flush=True)
    return found


def run(peers, exponents, folder, most):
    found = []
    make_data(folder / "data", 3)
    for exponent in exponents:
        path = make_data(folder / "data", exponent)
        for name in (*LIMITS, *OURS, *PEERS):
            python = sys.executable if name in (*LIMITS, *OURS) else peers
            able = exponent <= LARGEST.get(name, 7)
            if able and (shutil.which("Rscript") if name in R_SCRIPTS else python):
                found.append(measure(name, path, exponent, python, most))
        keep([one for one in found if one], folder / "scale.json")


def keep(found, results):
    """Add to the results of earlier runs, or replace what was measured again."""
    earlier = json.loads(results.read_text()) if results.exists() else []
    fresh = {(one["job"], one["rows"]) for one in found}
    merged = [one for one in earlier if (one["job"], one["rows"]) not in fresh] + found
    results.write_text(json.dumps(merged, indent=1))


def table(found, jobs, key, form):
    rows = sorted({one["rows"] for one in found})
    lines = ["| | " + " | ".join(f"{n:,}" for n in rows) + " |", "|---|" + "---|" * len(rows)]
    for job in jobs:
        cells = {
            one["rows"]: form.format(one[key]) for one in found if one["job"] == job and key in one
        }
        if cells:
            lines.append(f"| {job} | " + " | ".join(cells.get(n, "–") for n in rows) + " |")
    return "\n".join(lines)


def plot(found, key, label, path):
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 4.5))
    for index, job in enumerate((*OURS, *PEERS, *LIMITS)):
        points = sorted((one["rows"], one[key]) for one in found if one["job"] == job)
        if not points:
            continue
        style = "-" if job in OURS else "--" if job in PEERS else ":"
        marker = "osD^vP*XhdpH<>8"[index]
        axes.loglog(*zip(*points, strict=True), style, marker=marker, markersize=4, label=job)
    axes.set(xlabel="rows", ylabel=label)
    axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def page(folder, docs):
    found = json.loads((folder / "scale.json").read_text())
    jobs = (*OURS, *PEERS, *LIMITS)
    parts = [
        "Processor seconds, best of the repeats:", table(found, jobs, "cpu", "{:.3g}"),
        "Processor seconds in argsorts of a million doubles, measured between the repeats:",
        table(found, OURS, "argsorts", "{:.3g}"),
        "Wall seconds of the same runs:", table(found, jobs, "seconds", "{:.3g}"),
        "Peak memory in megabytes:", table(found, jobs, "megabytes", "{:.0f}"),
    ]  # fmt: skip
    before, start, rest = PAGE.read_text().partition("<!-- measured -->\n")
    _, end, after = rest.partition("<!-- /measured -->")
    (docs / PAGE.name).write_text(before + start + "\n" + "\n\n".join(parts) + "\n\n" + end + after)
    plot(found, "cpu", "processor seconds", docs / "scale-time.svg")
    plot(found, "megabytes", "peak memory, MB", docs / "scale-memory.svg")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="Python of the peers' environment")
    parser.add_argument("--exponents", default="3,4,5,6,7")
    parser.add_argument("--repeats", type=int, default=20, help="at most that many of each job")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--folder", type=Path, default=HERE / "results", help="of measurements")
    parser.add_argument("--docs", type=Path, default=PAGE.parent, help="where the page is written")
    arguments = parser.parse_args()
    if not arguments.page:
        exponents = [int(text) for text in arguments.exponents.split(",")]
        run(arguments.peers, exponents, arguments.folder, arguments.repeats)
    page(arguments.folder, arguments.docs)


if __name__ == "__main__":
    main()
