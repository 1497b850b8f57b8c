"""Runs are reproducible: over jobs, over interruptions, and number by number."""

import csv
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from private_ate import estimate_ate
from private_ate.datasets import synth
from private_ate.errors import ArgumentError
from private_ate.experiments import references as sources
from private_ate.experiments.catalogue import EXPERIMENTS
from private_ate.experiments.execution import RunSettings, experiment_named, run_experiment
from private_ate.experiments.figures import require_plots
from private_ate.experiments.runner import Cell

ON_SYNTH = RunSettings(quick=True, datasets=("synth",))
SAME = ("results.csv", "summary.csv", "figure.svg", "figure.png", "page.md")
PATIENCE = 60.0  # seconds until a child process must have shown life


def small_plan(scale):
    for arm in scale.arms_named("published-label", "published-sample"):
        for epsilon in ("1", "4"):
            yield Cell("synth", arm.label, epsilon, repetitions=12)


SMALL = replace(EXPERIMENTS["end-to-end"], plan=small_plan)


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in SAME}


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A run on one process that nobody disturbed."""
    return run_experiment(SMALL, tmp_path_factory.mktemp("alone"), ON_SYNTH).folder


def test_the_number_of_jobs_changes_no_byte(alone, tmp_path):
    together = run_experiment(SMALL, tmp_path, replace(ON_SYNTH, jobs=2)).folder

    assert contents(together) == contents(alone)


def test_a_run_that_stopped_goes_on_where_it_was(alone, tmp_path):
    class Stop(Exception):  # noqa: N818  # a signal, not an error
        pass

    def stop_after_three(done, _):
        if done == 3:
            raise Stop

    with pytest.raises(Stop):
        run_experiment(SMALL, tmp_path, ON_SYNTH, stop_after_three)
    seen = []
    folder = run_experiment(SMALL, tmp_path, ON_SYNTH, lambda done, _: seen.append(done)).folder

    assert seen == [4, 5, 6]
    assert contents(folder) == contents(alone)


@pytest.mark.benchmark
def test_a_killed_process_loses_nothing_but_time(tmp_path):
    program = f"""
import time
from pathlib import Path
from private_ate.experiments.execution import RunSettings, experiment_named, run_experiment
settings = RunSettings(quick=True, datasets=("synth",))
run_experiment(
    experiment_named("limit-label"), Path({str(tmp_path / "killed")!r}), settings,
    lambda done, total: time.sleep(0.5),
)
"""
    chunks = tmp_path / "killed" / "limit-label" / ".chunks"
    child = subprocess.Popen([sys.executable, "-c", program], env=dict(os.environ))
    deadline = time.monotonic() + PATIENCE
    while len(list(chunks.glob("[0-9a-f]*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    left_behind = len(list(chunks.glob("[0-9a-f]*")))
    experiment = experiment_named("limit-label")
    resumed = run_experiment(experiment, tmp_path / "killed", ON_SYNTH).folder
    whole = run_experiment(experiment, tmp_path / "whole", ON_SYNTH).folder

    assert 2 <= left_behind < 16
    assert contents(resumed) == contents(whole)


def test_half_a_chunk_left_by_a_crash_is_not_taken_for_a_result(alone, tmp_path):
    chunks = tmp_path / "end-to-end" / ".chunks"
    chunks.mkdir(parents=True)
    name = next(path.name for path in (alone / ".chunks").glob("[0-9a-f]*"))
    (chunks / f"{name}.999.part").write_text("{", encoding="utf-8")

    folder = run_experiment(SMALL, tmp_path, ON_SYNTH).folder

    assert contents(folder) == contents(alone)


@pytest.mark.benchmark
def test_a_fresh_run_computes_everything_anew(tmp_path):
    folder = run_experiment(SMALL, tmp_path, ON_SYNTH).folder
    before = contents(folder)
    victim = next((folder / ".chunks").glob("[0-9a-f]*"))
    victim.write_text(victim.read_text().replace('"effects": [0.', '"effects": [7.'))

    resumed = contents(run_experiment(SMALL, tmp_path, ON_SYNTH).folder)
    fresh = contents(run_experiment(SMALL, tmp_path, replace(ON_SYNTH, resume=False)).folder)

    assert resumed["results.csv"] != before["results.csv"]
    assert fresh == before


def test_another_base_seed_gives_other_numbers(alone, tmp_path):
    other = run_experiment(SMALL, tmp_path, replace(ON_SYNTH, seed=2)).folder

    ours, theirs = (read_rows(folder / "results.csv") for folder in (alone, other))
    assert not {row["estimate"] for row in ours} & {row["estimate"] for row in theirs}


def test_every_row_can_be_had_again_from_its_seed(alone):
    dataset = synth.load()
    rows = read_rows(alone / "results.csv")
    truth, exact = 0.5, dataset.exact_effect()

    for row in (rows[0], rows[13], rows[-1]):
        release = estimate_ate(
            dataset.frame, domain=dataset.domain, level=row["level"], epsilon=row["epsilon"],
            method="published", confidence=None, seed=int(row["seed"]),
        )  # fmt: skip
        assert release.guarantee == row["guarantee"] == "none (seeded)"
        # Another number of threads may round a product of matrices differently.
        assert release.ate == pytest.approx(float(row["estimate"]), rel=1e-9)
        assert float(row["relative_error"]) == pytest.approx(abs(release.ate - exact) / abs(exact))
        assert float(row["error_against_truth"]) == pytest.approx(abs(release.ate - truth) / truth)


def test_the_summary_is_the_mean_and_deviation_of_the_rows(alone):
    import statistics

    rows, summary = (read_rows(alone / f"{name}.csv") for name in ("results", "summary"))
    first = summary[0]
    errors = [
        float(row["relative_error"])
        for row in rows
        if (row["method"], row["epsilon"]) == (first["method"], first["epsilon"])
    ]

    assert int(first["n"]) == len(errors) == 12
    assert float(first["relative_error_mean"]) == pytest.approx(statistics.fmean(errors))
    assert float(first["relative_error_sd"]) == pytest.approx(statistics.stdev(errors))


@pytest.mark.benchmark
def test_a_quick_end_to_end_run_on_synth_leaves_a_complete_directory(tmp_path):
    fast = replace(
        EXPERIMENTS["end-to-end"],
        plan=lambda scale: EXPERIMENTS["end-to-end"].plan(
            replace(scale, arms=tuple(arm for arm in scale.arms if not arm.slow))
        ),
    )

    report = run_experiment(fast, tmp_path, ON_SYNTH)

    page = (report.folder / "page.md").read_text(encoding="utf-8")
    assert "Nothing on this page is private" in page
    assert "none (seeded)" in page
    assert (report.folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (report.folder / "figure.svg").read_text(encoding="utf-8")
    assert (report.folder / "figure.png").stat().st_size > 10_000
    timings, rows = (read_rows(report.folder / f"{n}.csv") for n in ("timings", "results"))
    assert len(timings) == len(rows)
    assert all(float(timing["seconds"]) > 0 for timing in timings)
    for claim in report.claims:
        assert claim.measured.replace("|", "\\|") in page


def test_a_refused_release_is_counted_and_explained(tmp_path):
    def plan(_):
        yield Cell("synth", "published-label", "1", repetitions=2)
        yield Cell("synth", "published-label", "4", repetitions=2)
        yield Cell("synth", "published-sample", "1e7", repetitions=2)

    report = run_experiment(replace(SMALL, plan=plan), tmp_path, ON_SYNTH)

    summary = read_rows(report.folder / "summary.csv")
    assert [(row["n"], row["failed"]) for row in summary] == [("2", "0"), ("2", "0"), ("0", "2")]
    assert "2 releases were refused: published-sample: ArgumentError" in (
        report.folder / "page.md"
    ).read_text(encoding="utf-8")


def test_memory_is_measured_in_a_process_of_its_own(tmp_path):
    experiment = replace(
        EXPERIMENTS["time-memory"],
        plan=lambda _: [Cell("synth", "published-label", "1", repetitions=2, isolated=True)],
    )

    report = run_experiment(experiment, tmp_path, ON_SYNTH)

    timings = read_rows(report.folder / "timings.csv")
    assert len(timings) == 2
    if Path("/proc/self/status").exists():
        assert float(timings[0]["peak_megabytes"]) > 30
    assert "(0.04)" in (report.folder / "page.md").read_text(encoding="utf-8")


@pytest.mark.benchmark
def test_data_that_are_not_here_are_named_on_the_page(tmp_path, monkeypatch):
    from private_ate.experiments import execution as page

    monkeypatch.setattr(page, "is_installed", lambda family: family != "acic")

    folder = run_experiment(SMALL, tmp_path, ON_SYNTH).folder

    text = (folder / "page.md").read_text(encoding="utf-8")
    assert "the data are not installed (`make data`): ACIC." in text


def test_a_data_set_that_is_not_installed_is_left_out_of_the_scale(monkeypatch):
    from private_ate import datasets
    from private_ate.errors import DatasetError

    def missing():
        raise DatasetError

    monkeypatch.setitem(datasets.registry, "ihdp", missing)

    assert not sources.is_installed("ihdp")
    assert RunSettings(datasets=("ihdp", "synth")).scale.datasets == ("synth",)


def test_figures_without_matplotlib_are_refused_before_anything_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(ArgumentError, match=r"pip install private-ate\[plots\]"):
        require_plots()


@pytest.mark.parametrize("wrong", [{"jobs": 0}, {"jobs": 10_000}, {"seed": -1}])
def test_settings_that_cannot_be_run_are_refused(wrong):
    with pytest.raises(ArgumentError):
        RunSettings(**wrong)


def test_an_unknown_experiment_is_answered_with_the_known_ones():
    with pytest.raises(ArgumentError, match="choose all, end-to-end"):
        experiment_named("figure-3")


def test_families_give_different_draws_and_refuse_nonsense():
    first, second = (sources.open_source("confounded-300", draw).dataset for draw in (1, 2))

    assert first.size == 300
    assert not first.frame.equals(second.frame)
    with pytest.raises(ArgumentError, match="confounded-SIZE"):
        sources.open_source("confounded-many", 1)
