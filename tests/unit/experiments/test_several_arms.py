"""The experiment on several arms compares all contrasts, in whatever order a release has them."""

import csv
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from private_ate.datasets import SeveralArms, generate
from private_ate.errors import ArgumentError
from private_ate.experiments import references as sources
from private_ate.experiments import runner as worker
from private_ate.experiments.arms import ARMS
from private_ate.experiments.catalogue import EXPERIMENTS
from private_ate.experiments.execution import RunSettings, run_experiment
from private_ate.experiments.references import REFERENCES, contrast_error, contrasts_of, records_of
from private_ate.experiments.runner import Cell, Scale, chunks_of

FAMILY = "several-arms-3-400"
SETTINGS = RunSettings(quick=True, datasets=())


def small_plan(scale):
    for arm in scale.arms_named("published-label", "blocks"):
        for epsilon in ("1", "4"):
            yield Cell(FAMILY, arm.label, epsilon, draw=3, repetitions=2)


SMALL = replace(EXPERIMENTS["several-arms"], plan=small_plan)


@pytest.fixture
def shifted(monkeypatch):
    """Answer every request with true contrasts that are off by 1/ε, the first pair last."""

    def release(study, *, epsilon, **_):
        truth = generate(SeveralArms(400, 3), seed=3).true_contrasts
        assert study.domain.treatment.size == 3
        contrasts = [
            SimpleNamespace(
                arm=arm, against=against, effect=effect + 1 / float(epsilon), interval=None
            )
            for (arm, against), effect in truth.items()
        ]
        return SimpleNamespace(contrasts=contrasts[1:] + contrasts[:1])

    monkeypatch.setattr(worker, "estimate_ate", release)


def read_rows(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_plan_has_three_and_four_arms_at_both_levels_published_and_ours():
    cells = list(EXPERIMENTS["several-arms"].plan(Scale(quick=False, datasets=(), arms=ARMS)))

    assert {cell.dataset for cell in cells} == {"several-arms-3-10000", "several-arms-4-10000"}
    assert {cell.arm for cell in cells} == {
        "published-label", "calibrated-track", "calibrated-balance", "published-sample",
        "blocks",
    }  # fmt: skip
    assert {cell.epsilon for cell in cells} == {"0.5", "1", "2", "4"}


@pytest.mark.usefixtures("shifted")
def test_errors_are_those_of_all_contrasts_pair_by_pair(tmp_path):
    folder = run_experiment(SMALL, tmp_path, SETTINGS).folder

    rows = read_rows(folder / "results.csv")
    # The true contrasts are 0.75, 1.5 and 0.75, so that an error of one is one as well.
    errors = {row["epsilon"]: float(row["error_against_truth"]) for row in rows}
    assert errors == {"1": pytest.approx(1.0), "4": pytest.approx(0.25)}
    assert float(rows[0]["estimate"]) == pytest.approx(2.5)  # the last arm against the reference
    assert float(rows[0]["true_effect"]) == pytest.approx(1.5)


@pytest.mark.usefixtures("shifted")
def test_the_summary_holds_the_errors_of_both_estimates_without_privacy(tmp_path):
    folder = run_experiment(SMALL, tmp_path, SETTINGS).folder

    dataset = generate(SeveralArms(400, 3), seed=3)
    truth = np.array(list(dataset.true_contrasts.values()))
    matching, aipw = (
        contrast_error(contrasts_of(REFERENCES[name](records_of(dataset))), truth)
        for name in ("matching", "aipw")
    )
    for row in read_rows(folder / "summary.csv"):
        assert float(row["matching_against_truth"]) == pytest.approx(matching, rel=1e-9)
        assert float(row["aipw_against_truth"]) == pytest.approx(aipw, rel=1e-9)


@pytest.mark.usefixtures("shifted")
def test_the_page_has_a_panel_per_level_with_both_lines(tmp_path):
    report = run_experiment(SMALL, tmp_path, SETTINGS)

    drawn = (report.folder / "figure.svg").read_text(encoding="utf-8")
    for text in ("3 arms, n = 400, label level", "3 arms, n = 400, sample level",
                 "matching without limits and noise", "AIPW without noise"):  # fmt: skip
        assert text in drawn
    assert [claim.verdict for claim in report.claims] == ["measured", "measured"]
    assert "1.00 (ε = 1), 0.25 (ε = 4)" in report.claims[0].measured


@pytest.mark.usefixtures("shifted")
def test_findings_leave_out_a_level_that_was_not_run(tmp_path):
    one = replace(SMALL, plan=lambda scale: [c for c in small_plan(scale) if c.arm != "blocks"])

    claims = run_experiment(one, tmp_path, SETTINGS).claims

    assert [claim.words for claim in claims] == [
        "How far are the contrasts of 3 arms, n = 400 at label level?"
    ]


def test_two_arms_keep_the_one_effect_of_their_release(monkeypatch, tmp_path):
    monkeypatch.setattr(
        worker, "estimate_ate", lambda *_, **__: SimpleNamespace(ate=0.25, interval=None)
    )

    cell = Cell("synth", "published-label", "1", repetitions=1)
    (chunk,) = chunks_of("x", [cell], seed=1)
    worker.run_chunk(chunk, tmp_path)

    result = worker.read_chunk(chunk, tmp_path)
    assert [run.effects for run in result["runs"]] == [[0.25]]
    assert result["references"]["truth"] == [0.5]
    assert "aipw" not in result["references"]


@pytest.mark.parametrize("name", ["several-arms-3", "several-arms-x-100", "several-arms-3-many"])
def test_a_family_that_names_no_study_is_refused(name):
    with pytest.raises(ArgumentError, match="several-arms-ARMS-SIZE"):
        sources.open_source(name, 1)
