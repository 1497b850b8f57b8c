"""What a plan predicts is what an estimate then does: caps, noise, widths and the ε it names."""

from fractions import Fraction

import numpy as np
import pytest

from oracles import draw_staircase
from private_ate import BlocksOptions, CalibratedOptions, StudySizes, plan_ate
from private_ate.api import METHODS
from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.release.intervals import expected_size
from private_ate.request import Request
from replay import record

WIDTH = 5.0
DOMAIN = Domain("t", ("y", Interval(-1, 4)), {f"x{j}": Interval(0, 1) for j in range(3)})
DRAWS = 200_000
# Blocks have noise of no simple distribution; what is drawn here is that of arms as they are.
AS_THEY_ARE = {"label": {}, "sample": {"options": BlocksOptions(adjust=False)}}


def make_study(rows, *, confounded=True):
    rng = np.random.default_rng(rows)
    covariates = rng.random((3, rows))
    score = 0.15 + 0.7 * covariates[0] if confounded else 0.5
    treatment = rng.random(rows) < score
    outcome = rng.integers(0, OUTCOME_STEPS + 1, rows).astype(np.int32)
    return LocalStudy(DOMAIN, covariates, treatment, outcome)


def used_epsilon(study, level, **asked):
    """Return the ε of the last step of an estimate that compares arms as they are, or weighs."""
    step = {"label": "outcome sum", "sample": "effect"}[level]
    method = {"label": "calibrated", "sample": "blocks"}[level]
    run = record(METHODS[method].run, study, Request(level, Fraction(1), **asked))
    (used,) = [float(call.spend.epsilon) for call in run.calls if call.spend.step == step]
    return used


def draw_errors(row, epsilon, *, seed=1):
    """Draw noise and sampling error of the sizes that a row of a plan tells."""
    rng = np.random.default_rng(seed)
    noise = draw_staircase(epsilon, DRAWS, rng)
    scale = row.noise_error / np.abs(noise).mean()
    return scale * noise + row.sampling_error * rng.standard_normal(DRAWS)


def share_within(row, epsilon):
    """Return how often noise and sampling error together stay within a plan's half-width."""
    error = draw_errors(row, epsilon)
    return float((np.abs(error) <= row.half_width).mean()), float(np.abs(error).mean())


@pytest.mark.parametrize("rows_per_person", [1, 3])
@pytest.mark.parametrize("epsilon", ["1", "3"])
def test_a_label_plan_names_the_cap_and_the_noise_of_the_estimate(epsilon, rows_per_person):
    study = make_study(400)
    # A guess that fits the outcomes, which the released variance therefore leaves alone.
    asked = {"rows_per_person": rows_per_person, "options": CalibratedOptions(outcome_sd=1.7)}
    request = Request("label", Fraction(epsilon), **asked)

    run = record(METHODS["calibrated"].run, study, request)
    (row,) = plan_ate(study, level="label", epsilons=[epsilon], **asked).rows

    (spend,) = [call.spend for call in run.calls if call.spend.step == "outcome sum"]
    unit = WIDTH / study.size * float(Fraction(spend.sensitivity[0], 1 << 54))
    noise = draw_staircase(float(spend.epsilon), DRAWS, np.random.default_rng(1))
    assert row.note == f"cap {run.estimate.settings.weight_cap:.3g}"
    assert row.noise_error == pytest.approx(unit * np.abs(noise).mean(), rel=0.01)


@pytest.mark.parametrize("rows_per_person", [1, 4])
@pytest.mark.parametrize("adjust", [True, False])
def test_a_sample_plan_expects_the_noise_of_the_estimate(adjust, rows_per_person):
    study = make_study(20_000, confounded=False)
    options = BlocksOptions(adjust=adjust, partitions=1)
    request = Request("sample", Fraction(2), rows_per_person=rows_per_person, options=options)

    run = record(METHODS["blocks"].run, study, request)
    (row,) = plan_ate(
        study, level="sample", epsilons=["2"], rows_per_person=rows_per_person, options=options
    ).rows

    (quantity,) = run.estimate.quantities
    expected = expected_size(quantity.noise, ())
    least = 0.2 if adjust else 0.5  # the spread of blocks is guessed
    assert least < row.noise_error / expected < 1 / least


def test_a_sample_plan_decides_about_adjusting_as_the_estimate_does():
    study = make_study(4000)
    for rows_per_person, adjusts in ((1, True), (1000, False)):
        request = Request("sample", Fraction(8), rows_per_person=rows_per_person)

        settings = record(METHODS["blocks"].run, study, request).estimate.settings
        (row,) = plan_ate(
            study, level="sample", epsilons=["8"], rows_per_person=rows_per_person
        ).rows

        assert settings.adjusted is adjusts
        assert row.note.startswith("adjusts" if adjusts else "does not adjust")


def test_rows_of_one_person_multiply_the_noise_and_spread_the_sample():
    sizes = StudySizes(20_000, 3, WIDTH)
    asked = {"level": "sample", "epsilons": ["2"], "options": BlocksOptions(adjust=False)}

    (one,), (four,) = (plan_ate(sizes, rows_per_person=m, **asked).rows for m in (1, 4))

    assert four.noise_error == pytest.approx(4 * one.noise_error, rel=0.1)
    assert four.sampling_error == pytest.approx(2 * one.sampling_error)


@pytest.mark.parametrize("rows_per_person", [1, 3])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("level", ["label", "sample"])
def test_half_widths_cover_noise_and_sampling_about_as_often_as_they_say(
    level, confidence, rows_per_person
):
    study = make_study(600)
    asked = {"confidence": confidence, "rows_per_person": rows_per_person, **AS_THEY_ARE[level]}
    (row,) = plan_ate(study, level=level, epsilons=["1"], **asked).rows

    share, error = share_within(row, used_epsilon(study, level, **asked))

    # At label level the variance behind the interval is noisy, and few rows leave it to a guess.
    assert share > confidence - (0.08 if level == "label" else 0.006)
    assert share < 1 - (1 - confidence) / 20
    assert row.expected_error == pytest.approx(error, rel=0.01)


@pytest.mark.parametrize("level", ["label", "sample"])
def test_half_widths_without_an_interval_cover_exactly(level):
    study = make_study(600)
    asked = {"confidence": None, **AS_THEY_ARE[level]}
    (row,) = plan_ate(study, level=level, epsilons=["1"], **asked).rows

    share, _ = share_within(row, used_epsilon(study, level, **asked))

    assert share == pytest.approx(0.95, abs=0.006)


@pytest.mark.parametrize("level", ["label", "sample"])
def test_the_detectable_effect_is_detected_four_times_of_five(level):
    study = make_study(600)
    asked = AS_THEY_ARE[level]
    (row,) = plan_ate(study, level=level, epsilons=["1"], **asked).rows

    error = draw_errors(row, used_epsilon(study, level, **asked))

    assert (row.detectable_effect + error > row.half_width).mean() == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("rows_per_person", [1, 3])
@pytest.mark.parametrize("level", ["label", "sample"])
def test_the_recommended_epsilon_reaches_the_wanted_half_width_and_no_less(level, rows_per_person):
    study = make_study(2000)
    asked = {"level": level, "rows_per_person": rows_per_person}
    middle = plan_ate(study, epsilons=["1"], **asked).rows[0].half_width

    plan = plan_ate(study, half_width=middle, **asked)
    (reached,) = plan_ate(study, epsilons=[plan.epsilon_needed], **asked).rows
    (before,) = plan_ate(study, epsilons=[round(0.97 * plan.epsilon_needed, 9)], **asked).rows

    assert reached.half_width == pytest.approx(middle, rel=0.01)
    assert before.half_width > middle
    assert plan.epsilon_needed == pytest.approx(1, rel=0.01)
    assert plan.answer.endswith(f"ε = {plan.epsilon_needed:g}")


def test_a_plan_never_answers_with_an_unadjusted_number_without_saying_so_first():
    sizes = StudySizes(2000, 3, 1.0)
    wanted = plan_ate(sizes, level="sample", epsilons=["0.05"]).rows[0].half_width

    plan = plan_ate(sizes, level="sample", half_width=wanted)
    trial = plan_ate(sizes, level="sample", half_width=wanted, design="randomized")
    (row,) = plan_ate(sizes, level="sample", epsilons=[plan.epsilon_needed]).rows

    assert plan.answer.startswith("ε = ")
    assert "without adjusting for covariates" in plan.answer
    assert row.note.startswith("adjusts")
    assert trial.epsilon_needed < plan.epsilon_needed
    assert trial.answer.startswith("a half-width")


def test_a_width_that_only_an_unadjusted_number_has_is_answered_with_that_said_first():
    sizes = StudySizes(60, 3, 1.0)  # too few rows to adjust

    plan = plan_ate(sizes, level="sample", half_width=0.2)

    assert plan.answer.startswith("not adjusted for covariates")
