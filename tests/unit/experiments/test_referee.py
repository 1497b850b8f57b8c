"""The referee: families whose truth is what it says, fair pairs, and verdicts that can be lost."""

import csv
import json
import math
from dataclasses import asdict, replace
from statistics import fmean

import numpy as np
import pytest

from private_ate.errors import ArgumentError
from private_ate.experiments.arms import ALL_ARMS, arm_named
from private_ate.experiments.catalogue import EXPERIMENTS
from private_ate.experiments.execution import RunSettings, run_experiment
from private_ate.experiments.referee import draws, page, tables
from private_ate.experiments.referee import run as referee_run
from private_ate.experiments.referee.draws import Draw, Outing, read_draws, run_tasks
from private_ate.experiments.referee.families import (
    FAMILIES,
    SETTINGS,
    Setting,
    generate_study,
    setting_named,
)
from private_ate.experiments.referee.outcomes import OUTCOME_BOUNDS, draw_outcome, mean_outcome
from private_ate.experiments.referee.plan import FULL, LEAST_DRAWS, QUICK, Extent
from private_ate.experiments.referee.verdicts import (
    cells_of,
    counts,
    default_arm,
    explain_loss,
    lost_to,
    verdict_of,
)
from private_ate.methods.registry import METHODS

LINEAR, TRIAL = SETTINGS[0], setting_named("trial-n1000-d20-t0.5-uniform")
FEW = tuple(
    map(arm_named, ("published-label", "calibrated-balance", "difference-in-means", "blocks"))
)
SMALL = Extent(
    {1000: LEAST_DRAWS}, slow_size=0, slow_draws=0, epsilons=("1", "4"), audit_runs=20,
    settings=(LINEAR, TRIAL), arms=FEW,
)  # fmt: skip


def draws_of(errors, setting=LINEAR, truth=2.0, interval=None):
    """Draws in which each arm misses the truth by the errors given, draw by draw."""
    count = max(map(len, errors.values()))
    return [
        Draw(
            setting.name, place, truth, 3.0, 2.0,
            tuple(
                Outing(arm, "1", 0, None if gap is None else truth + gap, interval, 0.1)
                for arm, gaps in errors.items()
                for gap in gaps[place : place + 1]
            ),
        )
        for place in range(count)
    ]  # fmt: skip


def only_cell(errors, level="sample"):
    (cell,) = (cell for cell in cells_of(draws_of(errors)) if cell.level == level)
    return cell


@pytest.mark.parametrize("law", OUTCOME_BOUNDS)
@pytest.mark.parametrize("arm", [0, 1])
def test_expected_outcomes_are_the_means_of_drawn_ones(law, arm):
    rng = np.random.default_rng(5)
    index = np.repeat([-3.0, -0.7, 0.4, 2.1], 400_000)
    effects = np.repeat([0.3, 1.0, 1.8, 1.0], 400_000)
    drawn = draw_outcome(law, index, np.full(index.size, arm == 1), effects, rng)
    low, high = OUTCOME_BOUNDS[law]

    found = drawn.reshape(4, -1)
    expected = mean_outcome(law, index, arm, effects).reshape(4, -1)[:, 0]

    errors = found.std(axis=1) / np.sqrt(found.shape[1])
    np.testing.assert_array_less(np.abs(found.mean(axis=1) - expected), 4.5 * errors)
    assert low <= drawn.min() <= drawn.max() <= high


def test_a_uniform_outcome_is_never_clipped():
    ends = [
        mean_outcome("uniform", np.array([index]), arm, np.array([2.0]))[0]
        for index, arm in ((-9.0, 0), (9.0, 1))
    ]

    assert ends[0] - 0.75 > 0
    assert ends[1] + 0.75 < 10


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_study_has_the_size_shares_and_bounds_of_its_setting(setting):
    small = replace(setting, size=4000)
    dataset = generate_study(small, 0)
    outcome = dataset.frame["y"].to_numpy()

    chance = math.sqrt(small.share * (1 - small.share) / small.size)
    assert dataset.treated / small.size == pytest.approx(small.share, abs=5 * chance)
    assert len(dataset.domain.covariates) == small.dimension
    for name, kind in dataset.domain.covariates.items():
        column = dataset.frame[name]
        assert kind.low <= column.min() <= column.max() <= kind.high
    assert dataset.domain.bounds.low <= outcome.min() <= outcome.max() <= dataset.domain.bounds.high
    assert dataset.true_effect > 0


def test_the_truth_is_what_randomising_the_same_units_would_show():
    setting = Setting("any", "none", 400_000, 5, outcome="zeros")
    dataset = generate_study(setting, 3)
    treated, outcome = dataset.frame["t"].to_numpy() == 1, dataset.frame["y"].to_numpy()

    gap = outcome[treated].mean() - outcome[~treated].mean()

    assert gap == pytest.approx(dataset.true_effect, abs=4.5 * 2 * outcome.std() / 400_000**0.5)


def test_effects_that_vary_with_the_score_average_to_the_fixed_one():
    setting = Setting("any", size=40_000, dimension=5, varying=True)
    fixed = replace(setting, varying=False)

    studies = [generate_study(one, 1) for one in (setting, fixed)]

    assert studies[0].true_effect == pytest.approx(0.6, abs=0.01)
    assert studies[0].true_effect != studies[1].true_effect
    assert studies[1].true_effect == pytest.approx(0.6, abs=1e-9)


def test_confounding_misleads_a_plain_difference_and_a_trial_does_not():
    kinds = ("linear", "nonlinear", "rules", "tree2", "tree3", "count", "threefold", "classes")
    confounded = [Setting("any", kind) for kind in kinds]
    confounded += [Setting("any", opposite=True), Setting("any", overlap="poor")]
    for setting, misses in (*((one, True) for one in confounded), (TRIAL, False)):
        dataset = generate_study(replace(setting, size=20_000), 2)
        treated = dataset.frame["t"].to_numpy() == 1
        outcome = dataset.frame["y"].to_numpy()
        gap = outcome[treated].mean() - outcome[~treated].mean()
        assert (abs(gap / dataset.true_effect - 1) > 0.3) == misses


def test_opposite_confounding_hides_the_effect():
    gaps = []
    for opposite in (False, True):
        frame = generate_study(Setting("any", size=20_000, opposite=opposite), 2).frame
        treated, outcome = frame["t"].to_numpy() == 1, frame["y"].to_numpy()
        gaps.append(outcome[treated].mean() - outcome[~treated].mean())

    assert gaps[0] > 0.6 + 0.2
    assert gaps[1] < 0.6 - 0.2


def test_nobody_is_treated_in_a_closed_stratum_of_a_fifth():
    frame = generate_study(Setting("any", size=20_000, overlap="never"), 2).frame
    closed = frame["x1"].to_numpy() > 0.8

    assert closed.mean() == pytest.approx(0.2, abs=0.02)
    assert frame["t"].to_numpy()[closed].sum() == 0
    assert frame["t"].to_numpy().mean() == pytest.approx(0.5, abs=0.02)


def test_wide_bounds_change_the_declaration_alone():
    narrow, wide = (generate_study(Setting("any", size=500, wider=wider), 2) for wider in (1, 20))

    assert (wide.domain.bounds.low, wide.domain.bounds.high) == (-95.0, 105.0)
    assert narrow.domain.bounds.width == 10.0
    assert wide.frame["y"].max() < 10.0


def test_a_study_is_decided_by_its_setting_draw_and_seed():
    first, again = (generate_study(LINEAR, 1, 7) for _ in range(2))

    assert first.frame.equals(again.frame)
    for other in (generate_study(LINEAR, 2, 7), generate_study(LINEAR, 1, 8)):
        assert not first.frame["x1"].equals(other.frame["x1"])


def test_settings_have_names_of_their_own_and_impossible_ones_are_refused():
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)
    assert sum(map(len, FAMILIES.values())) == len(SETTINGS)
    with pytest.raises(ArgumentError, match="share"):
        Setting("any", share=1.0)


def test_the_design_covers_what_it_promises():
    for confounding in ("linear", "nonlinear", "rules"):
        chosen = [setting for setting in SETTINGS if setting.confounding == confounding]
        assert {setting.size for setting in chosen} == {1000, 10_000, 100_000}
    assert {setting.dimension for setting in SETTINGS} == {5, 20, 60}
    assert {setting.share for setting in SETTINGS} == {0.5, 0.1, 0.02}
    assert {setting.outcome for setting in SETTINGS} == set(OUTCOME_BOUNDS)
    assert FULL.epsilons == ("0.5", "1", "2", "4")
    assert {arm.method for arm in FULL.arms} == set(METHODS)
    assert {arm.options for arm in FULL.arms if arm.method == "ipw"} == {(), (("split", False),)}


def test_a_run_that_is_cut_has_the_draws_of_a_verdict_first():
    tasks = FULL.tasks()
    small = [setting for setting in SETTINGS if setting.size <= 10_000]
    first, then = tasks[: LEAST_DRAWS * len(small)], tasks[: LEAST_DRAWS * len(SETTINGS)]

    assert {task.setting for task in first} == set(small)
    assert {(task.setting, task.draw) for task in then} == {
        (setting, draw) for setting in SETTINGS for draw in range(LEAST_DRAWS)
    }
    assert not any(arm.slow for task in then for arm in task.arms)


def test_slow_arms_see_a_few_small_studies_which_are_counted_once():
    slow = [task for task in FULL.tasks() if any(arm.slow for arm in task.arms)]

    assert {(task.setting.size, task.draw) for task in slow} == {
        (size, draw) for size in (300, 700, 1000) for draw in range(5)
    }
    assert len({task.name for task in FULL.studies}) == len(FULL.studies)
    assert {task.name for task in FULL.studies} == {task.name for task in FULL.tasks()}
    assert not any(arm.slow for task in QUICK.tasks() for arm in task.arms)


def test_the_default_wins_ties_or_is_beaten_by_paired_draws():
    ours = [0.4, 0.6, 0.5, 0.7, 0.3, 0.5]
    best = only_cell({"blocks": ours, "ipw": [gap + 1 for gap in ours]})
    tie = only_cell({"blocks": ours, "ipw": [0.3, 0.7, 0.3, 0.8, 0.2, 0.6]})
    beaten = only_cell({"blocks": ours, "ipw": [gap - 0.1 for gap in ours]})

    assert [verdict_of(cell) for cell in (best, tie, beaten)] == ["best", "tie", "beaten"]
    assert tie.winner.arm == "ipw"
    assert lost_to(tie) is None
    assert lost_to(beaten).arm == "ipw"
    assert beaten.winner.arm == "ipw"
    assert counts([best, tie, beaten, beaten])["beaten"] == 2


def test_a_smaller_mean_that_is_noise_hides_nobody_who_is_surely_ahead():
    ours = [1.0, 1.1, 0.9, 1.0, 1.1, 0.9]
    cell = only_cell({"blocks": ours, "ipw": [0.0, 0.0, 4.0, 0.0, 0.0, 0.0], "grouped": [0.9] * 6})

    assert cell.winner.arm == "ipw"
    assert verdict_of(cell) == "beaten"
    assert lost_to(cell).arm == "grouped"


def test_verdicts_need_draws_and_refusals_lose():
    few = only_cell({"blocks": [1.0] * 4, "ipw": [0.0] * 4})
    short_rival = only_cell({"blocks": [1.0] * 6, "ipw": [0.0] * 4})
    refused = only_cell({"blocks": [None, *[0.1] * 6], "ipw": [1.0] * 7})

    assert verdict_of(few) == "too few draws"
    assert verdict_of(short_rival) == "tie"
    assert verdict_of(refused) == "beaten"
    assert "refused in 1" in explain_loss(refused.default, lost_to(refused))


def test_errors_bias_and_intervals_are_relative_to_the_truth():
    draws = draws_of({"blocks": [0.5, -1.5]}, interval=(1.0, 2.4))
    (cell,) = cells_of(draws)

    assert cell.default.mean == pytest.approx(0.5)
    assert cell.default.bias == pytest.approx(-0.25)
    assert cell.default.coverage == 1.0
    assert cell.default.width == pytest.approx(0.7)
    assert (cell.plain, cell.adjusted) == (0.5, 0.0)
    missed = cells_of(draws_of({"blocks": [0.5]}, truth=2.5, interval=(1.0, 2.4)))[0]
    assert missed.default.coverage == 0.0


def test_reasons_tell_silence_bias_and_spread_apart():
    def standing(arm, gaps):
        return next(one for one in only_cell({arm: gaps}).standings)

    loud = standing("blocks", [-3.0, 3.0, -2.0, 2.0, 2.5])
    biased = standing("blocks", [1.0, 1.1, 0.9, 1.0, 1.05])
    silent = standing("aim", [-2.0, -1.9, -2.0, -1.9, -2.0])
    good = standing("ipw", [0.1, -0.1, 0.0, 0.1, 0.0])

    assert "near zero" in explain_loss(loud, silent)
    assert "one side" in explain_loss(biased, good)
    assert "spreads more" in explain_loss(loud, good)


def test_defaults_are_what_auto_chooses():
    assert default_arm("label").label == "calibrated-balance"
    assert default_arm("sample").label == "blocks"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The draws of a small run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("referee")
    run_tasks(SMALL.tasks(), folder / ".draws", epsilons=SMALL.epsilons, seed=1)
    return folder


def keep(folder, found):
    folder.mkdir()
    for name, one in found.items():
        (folder / f"{name}.json").write_text(json.dumps(asdict(one)), encoding="utf-8")


def without_times(draws):
    return [
        replace(draw, outings=tuple(replace(one, cpu=0.0) for one in draw.outings))
        for draw in draws
    ]


def test_a_new_arm_joins_the_draws_that_are_there(finished, tmp_path):
    before = replace(SMALL, arms=FEW[:2], settings=(LINEAR,)).tasks()[:1]
    after = replace(SMALL, settings=(LINEAR,)).tasks()[:1]
    run_tasks(before, tmp_path, epsilons=SMALL.epsilons, seed=1)
    kept = read_draws(before, tmp_path, 1)[0].outings
    run_tasks(after, tmp_path, epsilons=SMALL.epsilons, seed=1)

    (joined,) = read_draws(after, tmp_path, 1)
    whole = next(
        draw for draw in read_draws(SMALL.tasks(), finished / ".draws", 1)
        if (draw.setting, draw.draw) == (joined.setting, joined.draw)
    )  # fmt: skip

    assert joined.outings[: len(kept)] == kept
    assert len(joined.outings) == 2 * len(kept)
    assert without_times([joined]) == without_times([whole])
    assert read_draws(after, tmp_path, seed=2) == []


def test_a_trials_probability_reaches_the_methods_that_use_it(monkeypatch):
    asked = []

    def record(_, **words):
        asked.append((words["method"], words["design"], words["probability"]))
        msg = "enough"
        raise ArgumentError(msg)

    monkeypatch.setattr(draws, "estimate_ate", record)
    for label in ("calibrated-balance", "blocks", "ipw"):
        with pytest.raises(ArgumentError):
            draws.ask(None, TRIAL, arm_named(label), "1", 0, with_interval=True)

    known = ("randomized", 0.5)
    assert asked == [
        ("calibrated", *known), ("blocks", *known),
        ("ipw", "unknown", None),
    ]  # fmt: skip


def test_who_offers_an_interval_is_found_out():
    offering = {arm.label for arm in ALL_ARMS if not arm.slow and draws.offers_interval(arm)}

    assert {"calibrated-balance", "blocks", "grouped", "doubly-robust"} <= offering
    assert not {"ipw", "published-sample", "difference-in-means"} & offering


def test_a_small_referee_leaves_a_page_with_every_part(finished, tmp_path, monkeypatch):
    monkeypatch.setattr(referee_run, "QUICK", SMALL)

    def remember(arms, _, folder, __):
        keep(folder, {arm.label: draws.Memory(arm.label, 1000, 20, 123.0) for arm in arms})

    def audit(arms, epsilons, folder, runs):
        label, claimed = arms[-1].label, "ε = 1, δ = 1e-06"
        one = draws.Audited(label, epsilons[0], claimed, 0.5, runs, passed=True)
        keep(folder, {f"{label}-{epsilons[0]}": one})

    monkeypatch.setattr(referee_run, "measure_memory", remember)
    monkeypatch.setattr(referee_run, "audit_arms", audit)
    finished.rename(tmp_path / "referee")

    report = run_experiment(EXPERIMENTS["referee"], tmp_path, RunSettings(quick=True))

    text = (report.folder / "page.md").read_text(encoding="utf-8")
    with (report.folder / "summary.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * 2 * len(FEW)
    assert len([row for row in rows if row["verdict_of_default"]]) == 2 * 2 * 2
    assert f"{2 * LEAST_DRAWS} of {2 * LEAST_DRAWS} planned studies" in text
    for claim in report.claims:
        assert claim.measured in text
    assert report.figures[0].name == "figure-overview"
    assert len(report.figures) == 3
    for path in report.figures:
        assert path.with_suffix(".svg").exists()
        assert f"]({path.name}.svg)" in text
    for part in (
        "The verdict",
        "Intervals",
        "123 MB",
        "| ours (sample) | (ε, δ), δ = 1e-06 | ≥ 0.50 (20) |",
        "pull request",
        "trial, n = 1000",
    ):
        assert part in text
    first = next(row for row in rows if row["method"] == "blocks" and row["epsilon"] == "1")
    other = next(row for row in rows if row["method"] == "blocks" and row["epsilon"] == "4")
    assert (first["megabytes"], first["audited_epsilon"]) == ("123", "0.5")
    assert (other["megabytes"], other["audited_epsilon"]) == ("123", "")
    with (report.folder / "results.csv").open(encoding="utf-8", newline="") as stream:
        errors = [
            abs(float(row["estimate"]) - float(row["truth"])) / float(row["truth"])
            for row in csv.DictReader(stream)
            if (row["method"], row["epsilon"], row["setting"]) == ("blocks", "1", first["setting"])
        ]
    assert float(first["error"]) == pytest.approx(fmean(errors), rel=1e-4)


def test_lost_cells_are_listed_and_none_is_claimed_before_there_are_verdicts():
    won = cells_of(draws_of({"blocks": [0.1] * 5, "ipw": [1.0] * 5}))
    lost = cells_of(draws_of({"blocks": [1.0] * 5, "ipw": [0.1] * 5}))
    few = cells_of(draws_of({"blocks": [1.0] * 3, "ipw": [0.1] * 3}))

    assert tables.table_of_lost_cells(won) == "There is none."
    assert tables.table_of_lost_cells(few) == "No cell has a verdict yet."
    assert "IPW-PP 0.05" in tables.table_of_lost_cells(lost)


def test_nine_cells_in_ten_is_counted_and_said():
    won = draws_of({"blocks": [0.1] * 5, "ipw": [1.0] * 5})
    lost = draws_of({"blocks": [1.0] * 5, "ipw": [0.1] * 5}, setting=TRIAL)

    def told(draws):
        return next(
            c.measured for c in page.claims_of_referee(cells_of(draws)) if "sample" in c.words
        )

    assert told(won) == "holds: 1 of 1 cells (100%), best in 1, tied in 0, beaten in 0"
    assert told(won + lost).startswith("does not hold: 1 of 2 cells (50%)")
    assert "too few" in told(won[:2])


def test_memory_and_audit_are_measured_once(tmp_path):
    arm = arm_named("difference-in-means")

    assert draws.peak_of(arm.label, LINEAR) > 20
    draws.audit_arms([arm], ["1", "4"], tmp_path, 40)
    audits = draws.read_audits([arm], ["1", "4"], tmp_path)
    assert [(one.epsilon, one.runs, one.passed) for one in audits] == [
        ("1", 40, True), ("4", 40, True),
    ]  # fmt: skip
    assert audits[0].claimed.startswith("ε = 1,")
    assert audits[1].claimed.startswith("ε = 4,")
    draws.audit_arms([arm], ["1", "4"], tmp_path, 40)
    assert draws.read_audits([arm], ["1", "4"], tmp_path) == audits  # chance gives other digits


def test_an_audit_above_the_claim_is_said_so():
    audit = draws.Audited("blocks", "1", "ε = 1", 1.25, 300, passed=False)

    assert "| ours (sample) | ε | ≥ 1.25 (300), **above its claim** |" in tables.table_of_audits(
        [audit]
    )
