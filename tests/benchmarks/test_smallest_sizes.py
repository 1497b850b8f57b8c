"""Every benchmark and every experiment runs through at its smallest size."""

import ast
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from private_ate.experiments.catalogue import EXPERIMENTS
from private_ate.experiments.execution import RunSettings, run_experiment
from private_ate.experiments.families import SETTINGS

pytestmark = pytest.mark.benchmark

SCRIPTS = Path(__file__).parents[2] / "benchmarks"
ONE = " --sizes 800 --studies 1 --draws 1"
# The arguments of each script that make it small; `{}` is a folder for what it writes.
SMALLEST = {
    "ablation.py": (
        "--families rules-1,three-arms --size 1500 --epsilons 2 --partitions 1",
        "--level label --families linear,three-arms --size 300 --dimension 5 --epsilons 1",
    ),
    "accuracy.py": ("--families linear,three-arms,quiet-binary --epsilons 2 --dimension 5" + ONE,),
    "accuracy_arms.py": (
        "--table errors --rows 3x1000 --epsilons 1 --studies 1 --file {}/arms.jsonl",
        "--table intervals --rows 3x1000 --epsilons 1 --studies 1 --file {}/arms.jsonl",
    ),
    "accuracy_label.py": ("--draws 2 --sets ihdp",),
    "accuracy_subgroups.py": (
        "--sizes 500 --epsilons 1 --studies 1 --file {}/subgroups.jsonl",
        "--table overall --sizes 500 --epsilons 1 --draws 2",
    ),
    "accuracy_survival.py": (
        "--families opposite --rows 300 --draws 1 --strata",
        "--families rare --rows 600 --draws 1 --level sample --quantity risk",
    ),
    "baselines.py": ("200 2 1",),
    "ledger.py": ("3",),
    "matching.py": ("--rows 1000 --repeats 1 --cores 1 --file {}/matching.json",),
    "planning.py": ("--draws 1 --epsilons 2 --only 300,tenth",),
    "run.py": ("--largest 3000", "--largest 1000 --defaults"),
    "scale.py": ("--exponents 3 --repeats 1 --folder {} --docs {}",),
    "service.py": ("--seconds 0.2",),
}
RUNS = [(script, arguments) for script, many in SMALLEST.items() for arguments in many]
REFEREE_ARMS = ("published-label", "calibrated-balance", "difference-in-means", "blocks")


def is_script(path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.If) and "__main__" in ast.dump(node) for node in tree.body)


def test_every_script_has_a_smallest_size():
    scripts = {path.name for path in SCRIPTS.glob("*.py") if is_script(path)}

    assert scripts == SMALLEST.keys() | {"scale_job.py"}  # which scale.py starts


@pytest.mark.parametrize(("script", "arguments"), RUNS)
def test_a_benchmark_runs_through(script, arguments, tmp_path):
    words = arguments.replace("{}", str(tmp_path)).split()
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

    done = subprocess.run(
        [sys.executable, SCRIPTS / script, *words],
        env=os.environ | threads, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_an_experiment_runs_from_its_plan_to_its_page(name, tmp_path):
    def smallest(scale):
        """Keep a cell of each arm and data set, and one repetition of it."""
        plan = EXPERIMENTS[name].plan(scale)
        if name == "referee":  # every family, at its smallest
            plan = [cell for cell in plan if cell.arm in REFEREE_ARMS and is_smallest(cell)]
        cells = {(cell.dataset, cell.arm): cell for cell in plan}
        return [replace(cell, repetitions=1, isolated=False) for cell in cells.values()]

    experiment = replace(EXPERIMENTS[name], plan=smallest, audit=None)
    settings = RunSettings(quick=True, datasets=("synth",))

    report = run_experiment(experiment, tmp_path, settings)

    assert report.claims
    assert (report.folder / "page.md").read_text(encoding="utf-8").startswith("#")


def is_smallest(cell):
    setting = SETTINGS[cell.dataset]
    sizes = [one.size for one in SETTINGS.values() if one.family == setting.family]
    return setting.size == min(sizes) and setting.dimension <= 20
