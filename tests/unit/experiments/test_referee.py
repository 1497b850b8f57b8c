"""The referee: fair pairs, verdicts that can be lost, and coverage beside boosted AIPW."""

import csv
import json
from dataclasses import asdict, replace
from statistics import fmean

import polars as pl
import pytest

from private_ate.errors import ArgumentError
from private_ate.experiments import referee, referee_page, runner
from private_ate.experiments.arms import ALL_ARMS, ARMS, arm_named
from private_ate.experiments.catalogue import EXPERIMENTS
from private_ate.experiments.execution import RunSettings, run_experiment
from private_ate.experiments.families import SETTINGS
from private_ate.experiments.referee import (
    LEAST_DRAWS,
    Audited,
    counts,
    default_arm,
    explain_loss,
    judge_cells,
)
from private_ate.experiments.references import open_source
from private_ate.experiments.runner import Cell, Scale, ask, chunks_of, offers_interval
from private_ate.methods.registry import METHODS

LINEAR, TRIAL, THREE = "linear-n1000-d20", "trial-n1000-d20", "three-arms-n1000-d5"
FEW = ("published-label", "calibrated-balance", "difference-in-means", "blocks")
FULL, QUICK = (Scale(quick=quick, datasets=(), arms=ARMS) for quick in (False, True))


def rows_of(errors, setting=LINEAR, truth=2.0, interval=None):
    """Releases in which each arm misses the truth by the errors given, draw by draw."""
    rows = [
        {
            "dataset": setting, "level": arm_named(arm).level, "epsilon": "1", "method": arm,
            "draw": draw, "error_against_truth": None if gap is None else abs(gap) / truth,
            "signed_error": None if gap is None else gap / truth,
            "toward_plain": None if gap is None else gap / truth, "plain": 0.5,
            "covered": None if interval is None else float(interval[0] <= truth <= interval[1]),
            "width": None if interval is None else (interval[1] - interval[0]) / truth,
            "cpu": 0.1, "aipw_against_truth": 0.0, "boosted_against_truth": 0.1,
            "boosted_covered": 1.0, "boosted_width": 0.3, "isolated": False,
            "peak_megabytes": None,
        }
        for arm, gaps in errors.items()
        for draw, gap in enumerate(gaps)
    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(
        pl.col("covered", "width", "peak_megabytes").cast(pl.Float64)
    )


def only_cell(errors, **more):
    (cell,) = judge_cells(rows_of(errors, **more))
    return cell


def only_standing(arm, gaps):
    (one,) = only_cell({arm: gaps}).standings
    return one


def test_all_methods_see_the_same_studies_at_all_budgets():
    cells = [cell for cell in referee.plan(FULL) if not cell.isolated]
    seen = {}
    for cell in cells:
        seen.setdefault((cell.dataset, cell.draw), set()).add((cell.arm, cell.epsilon))

    assert {cell.epsilon for cell in cells} == {"0.5", "1", "2", "4"}
    assert {arm_named(cell.arm).method for cell in cells} == set(METHODS)
    fast = {(arm.label, epsilon) for arm in ALL_ARMS if not arm.slow
            for epsilon in ("0.5", "1", "2", "4")}  # fmt: skip
    assert all(fast <= found for (name, _), found in seen.items() if name != THREE
               and not name.startswith("three"))  # fmt: skip
    assert len({cell.draw for cell in cells if cell.dataset == LINEAR}) == 100


def test_methods_for_two_arms_sit_out_studies_of_three():
    arms = {cell.arm for cell in referee.plan(FULL) if cell.dataset == THREE}

    assert arms >= {"calibrated-balance", "blocks", "published-label", "published-sample"}
    assert not {"ipw", "difference-in-means", "aim"} & arms


def test_studies_of_another_base_seed_are_new():
    first, second = (
        {cell.draw for cell in referee.plan(replace(QUICK, seed=seed))} for seed in (1, 2)
    )

    assert not first & second


def test_a_run_that_is_cut_has_the_draws_of_a_verdict_first():
    studies = {(cell.dataset, cell.draw): referee.stage(cell) for cell in referee.plan(FULL)
               if cell.arm == "blocks"}  # fmt: skip
    order = sorted(studies, key=studies.__getitem__)
    small = {name for name, setting in SETTINGS.items() if setting.size <= 10_000}
    first, then = order[: LEAST_DRAWS * len(small)], order[: LEAST_DRAWS * len(SETTINGS)]

    assert {name for name, _ in first} == small
    assert all(sum(one == name for one, _ in then) == LEAST_DRAWS for name in SETTINGS)


def test_slow_arms_come_last_and_see_a_few_small_studies():
    slow = [cell for cell in referee.plan(FULL) if arm_named(cell.arm).slow and not cell.isolated]

    assert {referee.stage(cell)[0] for cell in slow} == {2}
    assert {SETTINGS[cell.dataset].size for cell in slow} == {300, 700, 1000}
    assert len({cell.draw for cell in slow}) == 5
    assert not any(arm_named(cell.arm).slow for cell in referee.plan(QUICK))


def test_the_default_wins_ties_or_is_beaten_by_paired_draws():
    ours = [0.4, 0.6, 0.5, 0.7, 0.3, 0.5]
    best = only_cell({"blocks": ours, "ipw": [gap + 1 for gap in ours]})
    tie = only_cell({"blocks": ours, "ipw": [0.3, 0.7, 0.3, 0.8, 0.2, 0.6]})
    beaten = only_cell({"blocks": ours, "ipw": [gap - 0.1 for gap in ours]})

    assert [cell.verdict for cell in (best, tie, beaten)] == ["best", "tie", "beaten"]
    assert tie.winner["method"] == "ipw"
    assert tie.ahead is None
    assert beaten.ahead["method"] == "ipw"
    assert beaten.winner["method"] == "ipw"
    assert counts([best, tie, beaten, beaten])["beaten"] == 2


def test_a_smaller_mean_that_is_noise_hides_nobody_who_is_surely_ahead():
    ours = [1.0, 1.1, 0.9, 1.0, 1.1, 0.9]
    cell = only_cell({"blocks": ours, "ipw": [0.0, 0.0, 4.0, 0.0, 0.0, 0.0], "grouped": [0.9] * 6})

    assert cell.winner["method"] == "ipw"
    assert cell.verdict == "beaten"
    assert cell.ahead["method"] == "grouped"


def test_verdicts_need_draws_and_refusals_lose():
    few = only_cell({"blocks": [1.0] * 4, "ipw": [0.0] * 4})
    short_rival = only_cell({"blocks": [1.0] * 6, "ipw": [0.0] * 4})
    refused = only_cell({"blocks": [None, *[0.1] * 6], "ipw": [1.0] * 7})

    assert few.verdict == "too few draws"
    assert short_rival.verdict == "tie"
    assert refused.verdict == "beaten"
    assert "refused in 1" in explain_loss(refused.default, refused.ahead)


def test_errors_bias_and_intervals_are_relative_to_the_truth():
    ours = only_cell({"blocks": [0.5, -1.5]}, interval=(1.0, 2.4)).default

    assert ours["error"] == pytest.approx(0.5)
    assert ours["bias"] == pytest.approx(-0.25)
    assert ours["coverage"] == 1.0
    assert ours["width"] == pytest.approx(0.7)
    assert ours["bias_left"] == pytest.approx(-0.5)  # −0.25 where the plain difference has 0.5
    missed = only_cell({"blocks": [0.5]}, truth=2.5, interval=(1.0, 2.4)).default
    assert missed["coverage"] == 0.0


def test_reasons_tell_silence_bias_and_spread_apart():
    loud = only_standing("blocks", [-3.0, 3.0, -2.0, 2.0, 2.5])
    biased = only_standing("blocks", [1.0, 1.1, 0.9, 1.0, 1.05])
    silent = only_standing("aim", [-2.0, -1.9, -2.0, -1.9, -2.0])
    good = only_standing("ipw", [0.1, -0.1, 0.0, 0.1, 0.0])

    assert "near zero" in explain_loss(loud, silent)
    assert "one side" in explain_loss(biased, good)
    assert "spreads more" in explain_loss(loud, good)


def test_defaults_are_what_auto_chooses():
    assert default_arm("label").label == "calibrated-balance"
    assert default_arm("sample").label == "blocks"


def small_plan(scale):
    return [
        replace(cell, epsilon=epsilon)
        for cell in referee.plan(replace(scale, quick=False))
        if cell.dataset in (LINEAR, THREE) and cell.arm in FEW and not cell.isolated
        and cell.draw % 100_000 < LEAST_DRAWS and cell.epsilon == "1"
        for epsilon in ("1", "4")
    ]  # fmt: skip


def audit(folder, _):
    folder.mkdir()
    one = Audited("blocks", "1", "ε = 1, δ = 1e-06", 0.5, 20, passed=True)
    (folder / "blocks-1.json").write_text(json.dumps(asdict(one)), encoding="utf-8")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small run: its folder, its claims and its figures."""
    experiment = replace(EXPERIMENTS["referee"], plan=small_plan, audit=audit)
    return run_experiment(experiment, tmp_path_factory.mktemp("referee"), RunSettings(quick=True))


def read_rows(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.benchmark
def test_a_small_referee_leaves_a_page_with_every_part(finished):
    text = (finished.folder / "page.md").read_text(encoding="utf-8")

    assert [path.name for path in finished.figures] == [
        "figure-overview", "figure-linear-confounding", "figure-three-arms",
    ]  # fmt: skip
    for path in finished.figures:
        assert path.with_suffix(".svg").exists()
        assert f"]({path.name}.svg)" in text
    for claim in finished.claims:
        assert claim.measured in text
    for part in (
        "Intervals, and the bias that is left",
        "boosted AIPW, no privacy",
        "| ours (sample) | (ε, δ), δ = 1e-06 | ≥ 0.50 (20) |",
        "pull request",
        "three arms, n = 1000",
    ):
        assert part in text


@pytest.mark.benchmark
def test_the_summary_has_coverage_beside_boosted_aipw_and_the_bias_left(finished):
    summary, results = (read_rows(finished.folder / f"{n}.csv") for n in ("summary", "results"))

    assert len(summary) == 2 * (4 + 3)  # the difference in means knows two arms
    assert len([row for row in summary if row["verdict_of_default"]]) == 2 * 2 * 2
    for row in summary:
        assert 0 <= float(row["boosted_coverage"]) <= 1
        assert float(row["boosted_width"]) > 0
        if row["method"] in ("calibrated-balance", "blocks"):
            assert 0 <= float(row["coverage"]) <= 1
    left = {row["method"]: float(row["bias_left"]) for row in summary
            if row["setting"] == LINEAR and row["epsilon"] == "4"}  # fmt: skip
    assert left["difference-in-means"] == pytest.approx(1.0, abs=0.3)
    assert left["calibrated-balance"] < 0.4
    first = next(row for row in summary if row["method"] == "blocks")
    errors = [
        abs(float(row["estimate"]) - float(row["true_effect"])) / float(row["true_effect"])
        for row in results
        if (row["method"], row["epsilon"], row["dataset"]) == ("blocks", "1", first["setting"])
    ]
    assert len(errors) == LEAST_DRAWS
    assert float(first["error"]) == pytest.approx(fmean(errors), rel=1e-9)
    assert first["audited_epsilon"] == "0.5"


@pytest.mark.benchmark
def test_a_new_arm_joins_what_is_there(finished):
    scale = RunSettings(quick=True).scale
    before = {path.name for path in (finished.folder / ".chunks").iterdir()}
    more = [*small_plan(scale), Cell(LINEAR, "ipw", "1", 100_000, repetitions=1)]

    names = {chunk.name for chunk in chunks_of("referee", more, seed=1)}

    assert len(names - before) == 1


def test_a_trials_probability_reaches_the_methods_that_use_it(monkeypatch):
    asked = []

    def record(_, **words):
        asked.append((words["method"], words["design"], words["probability"]))
        msg = "enough"
        raise ArgumentError(msg)

    monkeypatch.setattr(runner, "estimate_ate", record)
    source = open_source(TRIAL, 100_000)
    for label in ("calibrated-balance", "blocks", "ipw"):
        with pytest.raises(ArgumentError):
            ask(source, arm_named(label), Cell(TRIAL, label, "1"), 0, with_interval=True)

    known = ("randomized", 0.5)
    assert asked == [("calibrated", *known), ("blocks", *known), ("ipw", "unknown", None)]


def test_who_offers_an_interval_is_found_out():
    offering = {arm.label for arm in ALL_ARMS if not arm.slow and offers_interval(arm)}

    assert {"calibrated-balance", "blocks", "grouped", "doubly-robust"} <= offering
    assert not {"ipw", "published-sample", "difference-in-means"} & offering


def test_lost_cells_are_listed_and_none_is_claimed_before_there_are_verdicts():
    won = judge_cells(rows_of({"blocks": [0.1] * 5, "ipw": [1.0] * 5}))
    lost = judge_cells(rows_of({"blocks": [1.0] * 5, "ipw": [0.1] * 5}))
    few = judge_cells(rows_of({"blocks": [1.0] * 3, "ipw": [0.1] * 3}))

    assert referee_page.table_of_lost_cells(won) == "There is none."
    assert referee_page.table_of_lost_cells(few) == "No cell has a verdict yet."
    assert "IPW-PP 0.05" in referee_page.table_of_lost_cells(lost)


def test_nine_cells_in_ten_is_counted_and_said():
    won = rows_of({"blocks": [0.1] * 5, "ipw": [1.0] * 5})
    lost = rows_of({"blocks": [1.0] * 5, "ipw": [0.1] * 5}, setting=TRIAL)

    def said(rows):
        found = referee_page.claims_of_referee(judge_cells(rows))
        return next(claim.measured for claim in found if "sample" in claim.words)

    assert said(won) == "holds: 1 of 1 cells (100%), best in 1, tied in 0, beaten in 0"
    assert said(pl.concat([won, lost])).startswith("does not hold: 1 of 2 cells (50%)")
    assert "too few" in said(won.filter(pl.col("draw") < 2))


@pytest.mark.benchmark
def test_audits_are_made_once(tmp_path):
    arm = arm_named("difference-in-means")
    scale = Scale(quick=False, datasets=(), arms=())

    referee.audit_arms(tmp_path, scale, [arm], 40)
    audits = referee.read_audits(tmp_path)

    assert [(one.epsilon, one.runs, one.passed) for one in audits] == [
        (epsilon, 40, True) for epsilon in ("0.5", "1", "2", "4")
    ]
    assert audits[1].claimed.startswith("ε = 1,")
    assert audits[3].claimed.startswith("ε = 4,")
    referee.audit_arms(tmp_path, scale, [arm], 40)
    assert referee.read_audits(tmp_path) == audits  # chance gives other digits


def test_an_audit_above_the_claim_is_said_so():
    audit = Audited("blocks", "1", "ε = 1", 1.25, 300, passed=False)

    assert "| ours (sample) | ε | ≥ 1.25 (300), **above its claim** |" in (
        referee_page.table_of_audits([audit])
    )
