"""Plans for several arms: a row per ε and contrast, near what releases show."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from private_ate import (
    ArgumentError,
    BlocksOptions,
    StudySizes,
    Treatment,
    estimate_ate,
    plan_ate,
)
from private_ate.cli.app import app
from private_ate.datasets import SeveralArms
from private_ate.datasets.several_arms import generate_several_arms
from private_ate.release.intervals import expected_size
from private_ate.report.plots import draw_plan

SHARES = (0.5, 0.3, 0.2)
SIZES = StudySizes(4000, 5, 10.0)


def drawn(seed, size=1500):
    return generate_several_arms(SeveralArms(size=size, arms=3, shares=SHARES, strength=0.5), seed)


@pytest.mark.parametrize("level", ["label", "sample"])
@pytest.mark.parametrize("epsilon", [1, 4])
def test_expected_half_widths_are_near_those_of_releases(level, epsilon):
    study = drawn(0)
    asked = {"outcome_sd": 1.2} if level == "label" else {}
    shares = {} if level == "label" else {"arm_shares": SHARES, "outcome_sd": 1.2}
    plan = plan_ate(study.frame, domain=study.domain, level=level, epsilons=[epsilon],
                    **asked, **shares)  # fmt: skip
    releases = [
        estimate_ate(
            drawn(seed).frame, domain=study.domain, level=level, epsilon=epsilon, seed=seed,
            **asked,
        )
        for seed in range(1, 6)
    ]  # fmt: skip
    widths = [
        [max(row.interval[1] - row.effect, row.effect - row.interval[0]) for row in one.contrasts]
        for one in releases
    ]
    expected = np.array([row.half_width for row in plan.rows])
    # At sample level the spread of block effects is guessed, and flags are thought silent.
    near = 0.25 if level == "label" else 0.6
    assert expected / np.median(widths, axis=0) == pytest.approx(1, abs=near)
    noise = [expected_size([one.arms[1].noise, one.arms[0].noise], ()) for one in releases]
    assert plan.rows[0].noise_error / np.median(noise) == pytest.approx(1, abs=near)


def test_a_plan_has_a_row_for_every_epsilon_and_contrast():
    study = drawn(1, 300)
    plan = plan_ate(study.frame, domain=study.domain, level="label", epsilons=[1, 2])
    named = [(row.epsilon, row.arm, row.against) for row in plan.rows]
    pairs = [("B", "A"), ("C", "A"), ("C", "B")]
    assert named == [(epsilon, *pair) for epsilon in (1, 2) for pair in pairs]
    assert plan.rows[0].half_width > plan.rows[3].half_width
    for row in plan.rows:
        assert row.noise_error < row.expected_error < row.half_width < row.detectable_effect
    text = str(plan)
    assert "C against B" in text
    assert max(map(len, text.splitlines())) <= 80
    assert json.loads(json.dumps(plan.to_dict()))["rows"][0]["arm"] == "B"


def test_plans_of_two_arms_name_no_contrast():
    plan = plan_ate(SIZES, level="sample", epsilons=[1])
    assert "arm" not in plan.to_dict()["rows"][0]
    assert "against" not in str(plan)


def test_a_study_that_is_not_there_yet_has_as_many_arms_as_shares():
    plan = plan_ate(SIZES, level="label", epsilons=[1], arm_shares=SHARES)
    assert {row.arm for row in plan.rows} == {"arm 2", "arm 3"}
    assert {row.against for row in plan.rows} == {"arm 1", "arm 2"}
    declared = Treatment("t", arms=("none", "low", "high"), reference="low")
    named = plan_ate(SIZES, level="sample", epsilons=[1], treatment=declared, arm_shares=SHARES)
    assert {row.against for row in named.rows} == {"low", "none"}
    assert "low 0.3, none 0.5, high 0.2" in " ".join(str(named).split())
    equal = plan_ate(SIZES, level="sample", epsilons=[0.1], treatment=declared)
    widths = {round(row.half_width, 9) for row in equal.rows}
    assert len(widths) == 1


def test_small_arms_have_wider_intervals_and_decide_about_the_path():
    kept = {"level": "sample", "epsilons": [1, 8]}
    even = plan_ate(StudySizes(10_000, 3, 10.0), arm_shares=(0.34, 0.33, 0.33), **kept)
    uneven = plan_ate(StudySizes(10_000, 3, 10.0), arm_shares=(0.9, 0.07, 0.03), **kept)
    assert "blocks of" in even.rows[0].note
    tiny = plan_ate(StudySizes(10_000, 3, 10.0), arm_shares=(0.9, 0.097, 0.003), **kept)
    assert not tiny.rows[0].adjusted
    assert uneven.rows[1].half_width > even.rows[1].half_width


def test_a_wanted_half_width_is_reached_in_every_contrast_with_the_reference():
    asked = {"level": "label", "arm_shares": SHARES}
    plan = plan_ate(SIZES, epsilons=[1], half_width=0.4, **asked)
    reached = plan_ate(SIZES, epsilons=[plan.epsilon_needed], **asked)
    widths = [row.half_width for row in reached.rows if row.against == "arm 1"]
    assert max(widths) == pytest.approx(0.4, rel=0.02)
    assert "in every contrast with the reference" in plan.answer
    rows = plan_ate(StudySizes(None, 5, 10.0), epsilons=[1], half_width=0.4, **asked)
    assert 0 < rows.rows_needed[0] < 10**6
    assert {row.size for row in rows.rows} == {rows.rows_needed[0]}


def test_many_arms_are_planned_against_the_reference_alone():
    arms = Treatment("t", arms=tuple(range(8)))
    plan = plan_ate(SIZES, level="sample", epsilons=[1], treatment=arms)
    assert len(plan.rows) == 7


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"arm_shares": (0.5, 0.5)}, "treated share"),
        ({"arm_shares": (0.5, 0.3, 0.3)}, "add up to 1.1"),
        ({"arm_shares": "0.5"}, "list of numbers"),
        ({"arm_shares": (0.5, 0.5, 0.0)}, "share of an arm"),
        ({"arm_shares": SHARES, "treatment": Treatment("t", arms=["a", "b", "c", "d"])},
         "4 arms are declared and 3 shares"),
        ({"arm_shares": SHARES, "estimand": "att", "level": "label"}, "none is the treated"),
        ({"arm_shares": SHARES, "among": "arm 9", "level": "label"}, "among names one"),
    ],
)  # fmt: skip
def test_odd_shares_and_requests_are_refused(asked, message):
    with pytest.raises(ArgumentError, match=message):
        plan_ate(SIZES, **{"level": "sample", "epsilons": [1], **asked})


def test_shares_are_not_guessed_where_a_table_tells_them():
    study = drawn(2, 300)
    with pytest.raises(ArgumentError, match="leave out their guessed shares"):
        plan_ate(study.frame, domain=study.domain, level="label", arm_shares=SHARES)


def test_effects_among_one_arm_are_planned_at_label_level():
    study = drawn(3, 400)
    asked = {"domain": study.domain, "level": "label", "epsilons": [1]}
    among = plan_ate(study.frame, among="A", **asked)
    assert among.rows[0].half_width != plan_ate(study.frame, **asked).rows[0].half_width


def test_options_of_the_method_are_heard():
    forced = plan_ate(
        SIZES, level="sample", epsilons=[1], arm_shares=SHARES,
        options=BlocksOptions(adjust=False),
    )  # fmt: skip
    assert {row.note for row in forced.rows} == {"does not adjust"}


def test_the_command_line_plans_several_arms(tmp_path):
    runner = CliRunner()
    study = drawn(4, 300)
    study.frame.write_csv(tmp_path / "a.csv")
    study.domain.write(tmp_path / "a.toml")
    files = [str(tmp_path / "a.csv"), "--domain", str(tmp_path / "a.toml")]
    found = runner.invoke(app, ["plan", *files, "--level", "label", "--epsilons", "1"])
    assert "C against B" in found.output
    sizes = ["--level", "sample", "--epsilons", "1", "--rows", "5000", "--dimension", "3",
             "--outcome-bounds", "0", "10"]  # fmt: skip
    found = runner.invoke(app, ["plan", *sizes, "--arm-shares", "0.6,0.3,0.1"])
    assert "arm 3 against arm 2" in found.output
    found = runner.invoke(app, ["plan", *sizes, "--arms", "none,low,high"])
    assert "high against low" in found.output
    found = runner.invoke(app, ["plan", *sizes, "--arm-shares", "0.6,x"])
    assert "write a share for each arm" in str(found.exception)
    found = runner.invoke(app, ["plan", *files, "--level", "label", "--arm-shares", "0.6,0.3,0.1"])
    assert "leave out their guessed shares" in str(found.exception)


def test_a_plan_of_several_arms_is_drawn(tmp_path):
    plan = plan_ate(SIZES, level="sample", epsilons=[1, 2], arm_shares=SHARES)
    draw_plan(plan, tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").stat().st_size > 1000
