"""Neighbours of several arms, earlier outputs replayed: no input moves further than declared.

Records change arm, or come and go, beside moving from one end of everything declared to another.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import replay
from private_ate.domain import Categories, Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.methods.blocks import compare
from private_ate.methods.blocks.method import estimate_blocks
from private_ate.methods.blocks.plan import BlocksOptions
from private_ate.methods.published.matching import ScoreNoise
from private_ate.methods.published.method import PublishedOptions, estimate_published
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request

ROWS = 240
PATHS = {
    "plain": BlocksOptions(adjust=False),
    "blocks": BlocksOptions(adjust=True, partitions=2),
}
TOP = OUTCOME_STEPS
# Two records as (arm, place of all covariates, outcome, takes part).
PAIRS = [
    ((1, 0.0, 0, True), (1, 1.0, TOP, True)),
    ((0, 1.0, TOP, True), (2, 1.0, TOP, True)),
    ((2, 0.0, TOP, True), (1, 1.0, 0, True)),
    ((2, 1.0, TOP, True), (0, 0.5, 0, False)),
    ((0, 0.0, 0, False), (1, 1.0, TOP, True)),
]


def domain_of(arms):
    kinds = {"x0": Interval(0, 1), "x1": Categories("u", "v"), "x2": Interval(0, 1)}
    labels = tuple("abcdefghijklmnopqrst"[:arms])
    return Domain(Treatment("t", arms=labels), ("y", Interval(0, 1)), kinds)


def random_study(arms, rows=ROWS, seed=0, *, masked=True):
    rng = np.random.default_rng(seed)
    covariates = rng.beta(2, 5, (4, rows))
    arm = rng.integers(0, arms, rows).astype(np.uint8)
    outcome = rng.integers(0, OUTCOME_STEPS + 1, rows).astype(np.int32)
    takes_part = rng.random(rows) < 0.9 if masked else None
    return LocalStudy(domain_of(arms), covariates, arm, outcome, takes_part=takes_part)


def with_record(study, rows, record):
    arm, place, outcome, takes_part = record
    covariates, codes, outcomes = study.covariates.copy(), study.arm.copy(), study.outcome.copy()
    covariates[:, rows], codes[rows], outcomes[rows] = place, arm, outcome
    mask = None if study.takes_part is None else study.takes_part.copy()
    if mask is not None:
        mask[rows] = takes_part
    return replace(study, covariates=covariates, treatment=codes, outcome=outcomes, takes_part=mask)


def neighbours(study, rows=slice(0, 1)):
    for pair in PAIRS:
        yield tuple(with_record(study, rows, record) for record in pair)


def steps_of(study, request, seed=0):
    return [call.spend.step for call in replay.record(
        estimate_blocks, study, request, seed=seed
    ).calls]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("arms", "epsilon"), [(3, "0.3"), (4, "20")])
def test_no_step_of_several_arms_moves_further_than_it_declares(path, arms, epsilon):
    request = Request("sample", Fraction(epsilon), options=PATHS[path])

    for number, (one, other) in enumerate(neighbours(random_study(arms))):
        assert not replay.replay_findings(estimate_blocks, one, other, request, seed=number)


@pytest.mark.parametrize("path", PATHS)
def test_rows_of_one_person_may_be_in_several_arms(path):
    request = Request("sample", Fraction(6), options=PATHS[path], rows_per_person=3)
    study = random_study(3)
    first = with_record(with_record(study, [0], (0, 1.0, TOP, True)), [1, 2], (1, 0.0, 0, True))
    second = with_record(with_record(study, [0, 1], (2, 0.0, 0, True)), [2], (1, 0, 0, False))

    assert not replay.replay_findings(estimate_blocks, first, second, request)
    single = replace(request, rows_per_person=1)
    assert replay.replay_findings(estimate_blocks, first, second, single)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("confidence", [0.95, None])
def test_each_path_takes_its_own_steps_whoever_takes_part(path, confidence):
    request = Request("sample", Fraction(4), options=PATHS[path], confidence=confidence)

    masked = steps_of(random_study(3), request)
    whole = steps_of(random_study(3, masked=False), request)

    assert masked == whole
    assert ("mean outcome" in masked) == (path == "plain")
    assert ("variance" in masked) == (path == "plain" and confidence is not None)


@pytest.mark.parametrize("path", PATHS)
def test_a_study_of_which_everyone_takes_part_keeps_the_promise_too(path):
    request = Request("sample", Fraction(2), options=PATHS[path])
    study = random_study(4, masked=False)
    one, other = (with_record(study, slice(0, 1), record) for record in PAIRS[2])

    assert not replay.replay_findings(estimate_blocks, one, other, request)


@pytest.mark.parametrize(("arms", "epsilon"), [(3, "0.3"), (4, "8")])
def test_no_step_of_the_published_method_moves_further_than_it_declares(arms, epsilon):
    request = Request("sample", Fraction(epsilon), options=PublishedOptions(ridge=0.1))

    for number, (one, other) in enumerate(neighbours(random_study(arms))):
        assert not replay.replay_findings(estimate_published, one, other, request, seed=number)


def test_the_published_method_protects_people_with_rows_in_several_arms():
    request = Request("sample", Fraction(3), options=PublishedOptions(ridge=0.1), rows_per_person=2)
    first = with_record(random_study(3), [0, 1], (0, 1.0, TOP, True))
    second = with_record(with_record(first, [0], (1, 0.0, 0, True)), [1], (2, 0.5, 0, True))

    assert not replay.replay_findings(estimate_published, first, second, request)
    single = replace(request, rows_per_person=1)
    assert replay.replay_findings(estimate_published, first, second, single)


def test_all_scores_of_a_row_share_one_sensitivity(monkeypatch):
    """A simplex moves by 2 in L1 whatever K is; declared as one score it would be too little."""
    monkeypatch.setattr(
        ScoreNoise, "sensitivity", property(lambda self: self.rows_per_person << self.bits)
    )
    request = Request("sample", Fraction(400), options=PublishedOptions(ridge=1e-4))
    one, other = (with_record(random_study(3), slice(0, 1), record) for record in PAIRS[2])

    found = replay.replay_findings(estimate_published, one, other, request)

    assert any("'scores'" in finding for finding in found)


def findings_on_neighbours(path):
    request = Request("sample", Fraction(3), options=PATHS[path])
    one, other = (with_record(random_study(3), slice(0, 1), record) for record in PAIRS[2])
    return replay.replay_findings(estimate_blocks, one, other, request)


def test_a_staircase_of_twice_the_sensitivity_for_all_of_epsilon_is_found(monkeypatch):
    """A row that changes arm moves two sums: disjointness does not hold at sample level."""

    def as_if_disjoint(self, step, values, *, sensitivities, moves, epsilon):
        wide = [moves * size for size in sensitivities]
        return self.staircase_disjoint(step, values, sensitivities=wide, epsilon=epsilon)

    monkeypatch.setattr(Noise, "staircase_by_arm", as_if_disjoint)

    assert any("'effect'" in finding for finding in findings_on_neighbours("plain"))


def test_sums_of_twice_the_size_are_found(monkeypatch):
    monkeypatch.setattr(compare, "_sum_forms", doubled(compare._sum_forms))

    assert any("'effect" in finding for finding in findings_on_neighbours("plain"))


def doubled(honest):
    """Return a function whose sums are twice what the declared sensitivity bounds."""

    def faulty(*arguments):
        return [2 * total for total in honest(*arguments)]

    return faulty
