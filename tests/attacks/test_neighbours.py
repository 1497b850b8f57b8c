"""Neighbouring data sets through every mechanism of the published method."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_ate.api import METHODS, estimate_study
from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.methods.published.matching import ScoreNoise
from private_ate.methods.published.method import PublishedOptions
from private_ate.models.propensity import fit_propensity_obliviously
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from replay import Recording, check_releases, moved_share

OUTCOME = ("y", Interval(-3, 5))


def draw_study(rng: np.random.Generator, rows: int, dimension: int) -> LocalStudy:
    treatment = rng.random(rows) < rng.uniform(0.05, 0.95)
    if rows > 1:
        treatment[:2] = True, False
    covariates = rng.random((dimension, rows))
    if rng.random() < 0.3:
        covariates = covariates.round()
    outcome = rng.integers(0, OUTCOME_STEPS, rows, endpoint=True).astype(np.int32)
    domain = Domain("t", OUTCOME, {f"x{place}": Interval(0, 1) for place in range(dimension)})
    return LocalStudy(domain, covariates, treatment, outcome)


def replace_rows(study: LocalStudy, rows: np.ndarray, rng: np.random.Generator, level: str):
    outcome = study.outcome.copy()
    ends = rng.random() < 0.5
    outcome[rows] = rng.choice([0, OUTCOME_STEPS], rows.size) if ends else OUTCOME_STEPS // 3
    if level == "label":
        return replace(study, outcome=outcome)
    covariates, treatment = study.covariates.copy(), study.treatment.copy()
    covariates[:, rows] = rng.integers(0, 2, (study.dimension, rows.size))
    treatment[rows] = rng.random(rows.size) < 0.5
    return replace(study, outcome=outcome, covariates=covariates, treatment=treatment)


def runner(level: str, epsilon: str, **kwargs: object):
    request = Request(level, Fraction(epsilon), **kwargs)

    def run(study: LocalStudy, recording: Recording):
        return estimate_study(study, request, METHODS["published"], seed=1, recorder=recording)

    return run


@pytest.mark.parametrize("level", ["label", "sample"])
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(2, 60),
    dimension=st.integers(0, 4),
    neighbors=st.integers(1, 6),
    persons_rows=st.integers(1, 3),
    k=st.one_of(st.just("adaptive"), st.none(), st.integers(1, 5)),
)
@settings(max_examples=25)
def test_neighbours_differ_at_the_choke_point_by_no_more_than_declared(
    level, seed, rows, dimension, neighbors, persons_rows, k
):
    rng = np.random.default_rng(seed)
    study = draw_study(rng, rows, dimension)
    changed = rng.choice(rows, min(persons_rows, rows), replace=False)
    neighbour = replace_rows(study, changed, rng, level)
    run = runner(
        level, "0.7", neighbors=neighbors, rows_per_person=persons_rows,
        options=PublishedOptions(k=k),
    )  # fmt: skip

    first, _ = check_releases(run, study, neighbour)

    steps = ["outcome sums"]
    if level == "sample":
        steps = ["weights", "scores", "treatments", *steps]
    assert [spend.step for spend in first.spends] == steps


def steep(spend, _values):
    """Answer the release of the weights with a slope so steep that scores are 0 or 1."""
    return [-(10**12), 2 * 10**12] if spend.step == "weights" else None


def test_the_worst_neighbour_uses_up_all_that_is_declared_for_scores_and_treatments():
    study = replace(
        draw_study(np.random.default_rng(5), 30, 1),
        covariates=np.zeros((1, 30)), treatment=np.zeros(30, dtype=bool),
    )  # fmt: skip
    covariates, treatment = study.covariates.copy(), study.treatment.copy()
    covariates[0, :2], treatment[:2] = 1.0, True
    neighbour = replace(study, covariates=covariates, treatment=treatment)
    first = Recording(steer=steep)
    run = runner("sample", "1", rows_per_person=2)

    run(study, first)
    second = Recording(source=first)
    run(neighbour, second)

    shares = {
        one.spend.step: moved_share(one, other)
        for one, other in zip(first.calls, second.calls, strict=True)
    }
    assert shares["scores"] == 1
    assert shares["treatments"] == 1


def test_a_bad_neighbour_uses_up_half_of_what_is_declared_for_the_weights():
    """With a strong penalty scores stay near one half and a flip moves the weights by d/(nλ)."""
    options = PublishedOptions(ridge=1000.0)
    ones = replace(
        draw_study(np.random.default_rng(6), 8, 3),
        covariates=np.ones((3, 8)), treatment=np.arange(8) < 4,
    )  # fmt: skip
    neighbour = replace(ones, treatment=np.arange(8) < 5)

    first, second = check_releases(runner("sample", "1", options=options), ones, neighbour)

    share = moved_share(first.calls[0], second.calls[0])
    assert 0.49 < share < 0.51


@pytest.mark.parametrize("level", ["label", "sample"])
def test_the_replay_finds_a_person_with_more_rows_than_declared(level):
    rng = np.random.default_rng(1)
    study = replace(draw_study(rng, 40, 2), outcome=np.zeros(40, dtype=np.int32))
    neighbour = replace(study, outcome=np.full(40, OUTCOME_STEPS, dtype=np.int32))

    with pytest.raises(AssertionError, match="'outcome sums' moves"):
        check_releases(runner(level, "1"), study, neighbour)


def test_the_replay_finds_a_change_of_a_public_column():
    rng = np.random.default_rng(2)
    study = draw_study(rng, 40, 2)
    neighbour = replace(study, covariates=1 - study.covariates, treatment=~study.treatment)

    with pytest.raises(AssertionError):
        check_releases(runner("label", "1"), study, neighbour)


def test_rows_per_person_multiply_every_sensitivity_at_label_level():
    study = draw_study(np.random.default_rng(3), 50, 2)
    alone, several = Recording(), Recording()

    runner("label", "1")(study, alone)
    runner("label", "1", rows_per_person=4)(study, several)

    assert several.spends[0].sensitivity == tuple(4 * s for s in alone.spends[0].sensitivity)


def test_rows_per_person_multiply_every_sensitivity_at_sample_level():
    """The grids of weights and scores follow their noise, so both are compared in real units."""
    study = draw_study(np.random.default_rng(3), 50, 2)
    fitted = fit_propensity_obliviously(study, 0.01, 2).coordinates
    declared = {}
    for rows in (1, 4):
        recording = Recording()
        release = runner("sample", "1", rows_per_person=rows)(study, recording)
        weights, scores, treatments, sums = recording.spends
        grid = float(np.median(fitted / recording.inputs[0].astype(float)))
        declared[rows] = (
            weights.sensitivity[0] * grid,
            scores.sensitivity[0] / 2 ** ScoreNoise(Fraction(1, 20), rows).bits,
            treatments.sensitivity[0],
            sums.sensitivity[0] / release.settings["largest_weight"]["treated"],
        )

    ratios = [four / one for one, four in zip(declared[1], declared[4], strict=True)]
    assert ratios == pytest.approx([4, 4, 4, 4], rel=1e-4)


@pytest.mark.parametrize("level", ["label", "sample"])
def test_the_budget_at_the_choke_point_is_what_the_release_says(level):
    study = draw_study(np.random.default_rng(4), 50, 2)
    recording = Recording()

    release = runner(level, "0.3")(study, recording)

    budget = {spend.step: float(spend.epsilon) for spend in recording.spends}
    assert release.settings["budget"] == budget
    assert sum(spend.epsilon for spend in recording.spends) == Fraction("0.3") == release.epsilon
    if level == "sample":
        shares = [spend.epsilon / Fraction("0.3") for spend in recording.spends]
        assert shares == [Fraction(s) for s in ("0.05", "0.05", "0.7", "0.2")]
