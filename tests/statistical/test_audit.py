"""The audit: it bounds ε from below, stays below the truth, and finds a planted flaw."""

import json
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from private_ate.api import METHODS, Method
from private_ate.audit import run, run_audit
from private_ate.audit.bounds import epsilon_bound, joint_evidence, largest_gap
from private_ate.audit.neighbours import EPSILON, arm_neighbours, neighbours_for, noisy_steps
from private_ate.audit.replay import Recording
from private_ate.audit.run import Finding, audit_release, audit_steps, plot_findings
from private_ate.audit.samplers import check_samplers
from private_ate.cli.app import app
from private_ate.methods.blocks.plan import BlocksOptions
from private_ate.methods.composition import takes
from private_ate.privacy import noise, samplers
from private_ate.privacy.entropy import SeededEntropy
from private_ate.request import Request

PUBLISHED = METHODS["published"]
LABEL_ONLY = {"published": Method("published", ("label",), PUBLISHED.options, PUBLISHED.run)}


SLOW = {"aim", "privsyn"}  # synthesizers take seconds a run
every_method = pytest.mark.parametrize(
    ("method", "level"),
    [
        pytest.param(
            method, level, marks=[pytest.mark.audit] if method.name in SLOW else [],
            id=f"{method.name}-{level}",
        )
        for method in METHODS.values()
        for level in method.levels
    ],
)  # fmt: skip


@pytest.fixture
def half_the_noise(monkeypatch):
    """Plant a Laplace scale of half the size."""
    honest = noise._rate
    monkeypatch.setattr(noise, "_rate", lambda epsilon, size: honest(epsilon, size) * 2)


@pytest.fixture
def smaller_noise(monkeypatch):
    """Plant a Laplace scale that is ten per cent too small."""
    honest = noise._rate
    monkeypatch.setattr(noise, "_rate", lambda epsilon, size: honest(epsilon, size) * 10 / 9)


def test_the_bound_comes_close_to_the_truth_and_stays_below_it():
    rng = np.random.default_rng(0)
    bounds = [
        epsilon_bound(rng.laplace(0, 1, 40_000), rng.laplace(1, 1, 40_000)) for _ in range(30)
    ]
    assert max(bounds) <= 1.0
    assert min(bounds) > 0.85


def test_the_bound_finds_a_law_that_is_ten_per_cent_too_narrow():
    rng = np.random.default_rng(1)
    assert epsilon_bound(rng.laplace(0, 0.9, 60_000), rng.laplace(1, 0.9, 60_000)) > 1.0


def test_the_bound_allows_for_delta():
    rng = np.random.default_rng(2)
    first = rng.laplace(0, 1, 50_000)
    second = np.where(rng.random(50_000) < 0.01, 1e9, rng.laplace(0, 1, 50_000))
    assert epsilon_bound(first, second) > 2
    assert epsilon_bound(first, second, delta=0.011) < 0.1


def test_an_event_that_one_study_never_shows_is_a_finding():
    zeros, ones = np.zeros(4000), np.ones(4000)
    assert epsilon_bound(zeros, ones) > 5
    assert epsilon_bound(zeros, zeros) == 0
    assert largest_gap(zeros, ones) == 1


def test_the_samplers_of_this_installation_pass():
    tests = list(check_samplers(20_000, SeededEntropy(5)))
    assert len(tests) > 100
    assert [test.name for test in tests if not test.passed] == []


@pytest.mark.usefixtures("smaller_noise")
def test_the_sampler_tests_find_a_scale_ten_per_cent_too_small():
    failed = [test for test in check_samplers(40_000, SeededEntropy(5)) if not test.passed]
    assert len(failed) > 15


@pytest.mark.usefixtures("half_the_noise")
def test_the_steps_of_a_method_show_half_the_noise():
    (line,) = audit_steps(PUBLISHED, "label", 2_500)
    assert not line.passed


@pytest.mark.audit
@pytest.mark.usefixtures("smaller_noise")
def test_the_steps_of_a_method_show_a_scale_ten_per_cent_too_small():
    (line,) = audit_steps(PUBLISHED, "label", 60_000)
    assert not line.passed
    assert line.claimed == "ε = 1"


def test_a_first_release_that_compiles_does_not_shorten_an_audit(monkeypatch):
    clock = [0.0]
    estimate = run.estimate_study

    def timed(study, request, method):
        clock[0] += 0.01 if clock[0] else 5.0
        return estimate(study, request, method)

    monkeypatch.setattr(run, "estimate_study", timed)
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    line = audit_release(METHODS["difference_in_means"], "sample", None, patience=0.6)

    assert line.runs == 30


def test_the_steps_of_the_real_method_show_nothing():
    (line,) = audit_steps(PUBLISHED, "label", 4_000)
    assert line.passed
    assert float(line.measured.removeprefix("ε ≥ ")) > 0.2


def test_steps_are_audited_whatever_their_share_of_the_budget():
    """Nine tenths of ε: a total of 10/9 is no decimal number, and an ε has few digits."""
    lines = {line.what: line for line in audit_steps(METHODS["calibrated"], "label", 800)}

    steps = {title.partition(": ")[2] for title in lines}
    assert steps == {"outcome sum", "observed sums", "variance"}
    assert all(line.passed for line in lines.values())


def test_whole_releases_of_the_real_method_show_nothing():
    line = audit_release(PUBLISHED, "label", 100)
    assert line.passed
    assert line.runs == 100


def test_whole_releases_without_noise_are_found(monkeypatch):
    monkeypatch.setattr(samplers, "geometric", lambda *_, **__: 0)
    line = audit_release(PUBLISHED, "label", 100)
    assert not line.passed


@pytest.mark.parametrize("level", ["label", "sample"])
def test_neighbours_differ_in_one_record_only(level):
    for pair in neighbours_for(level):
        differs = np.flatnonzero(
            (pair.first.outcome != pair.second.outcome)
            | (pair.first.treatment != pair.second.treatment)
            | (pair.first.covariates != pair.second.covariates).any(axis=0)
        )
        assert differs.size == 1
        if level == "label":
            assert (pair.first.treatment == pair.second.treatment).all()
            assert (pair.first.covariates == pair.second.covariates).all()


@pytest.mark.parametrize("level", ["label", "sample"])
def test_neighbours_of_several_arms_differ_in_one_record_only(level):
    changed_arm = 0
    for pair in arm_neighbours(level):
        absent = [
            np.zeros(study.size, bool) if study.takes_part is None else ~study.takes_part
            for study in (pair.first, pair.second)
        ]
        differs = np.flatnonzero(
            (pair.first.outcome != pair.second.outcome)
            | (pair.first.arm != pair.second.arm)
            | (absent[0] != absent[1])
            | (pair.first.covariates != pair.second.covariates).any(axis=0)
        )
        assert differs.size == 1
        changed_arm += int((pair.first.arm != pair.second.arm).sum())

    assert (changed_arm > 0) == (level == "sample")


def levels_bound(runs=1_500):
    """Return the claimed ε and a bound for a unit that moves two levels as far as it can."""
    pairs = {pair.title: pair for pair in arm_neighbours("sample")}
    pair = pairs["a unit of one rare arm becomes one of another"]
    exact = {"treated count", "mean outcome"}  # without noise: the unit lies at the levels' bounds
    options = BlocksOptions(adjust=False)
    request = Request("sample", 3 * EPSILON, confidence=None, options=options)
    method = METHODS["blocks"].run

    def steer(spend, values):
        return [2 * int(value) for value in values] if spend.step in exact else None

    first = Recording(steer=steer)
    method(pair.first, request, noise.Noise(SeededEntropy(1), first))
    second = Recording(source=first)
    method(pair.second, request, noise.Noise(SeededEntropy(2), second))
    calls = next(calls for calls in zip(first.calls, second.calls, strict=True)
                 if calls[0].spend.step == "effect")  # fmt: skip
    samples = [np.array([call.draw() for _ in range(runs)], dtype=np.float64) for call in calls]
    seen = runs // 5
    bound = epsilon_bound(*(part[seen:] for part in joint_evidence(*samples, seen)))
    return float(calls[0].spend.epsilon), bound


def test_the_levels_of_several_arms_show_nothing():
    claimed, bound = levels_bound()

    assert 0.3 < bound <= claimed


def test_levels_that_share_no_budget_where_a_unit_changes_arm_are_found(monkeypatch):
    """Twice the sensitivity at ε is right within an arm, and loses 2ε between two."""

    def planted(self, step, values, *, sensitivities, moves, epsilon):
        assert step == "effect"
        spend = noise.Spend(
            step, "staircase_by_arm", epsilon, tuple(sensitivities), len(values),
            metric=noise.Metric.MOVES, moves=moves,
        )  # fmt: skip
        pairs = list(zip(values, sensitivities, strict=True))
        return self._release(
            spend, list(values),
            lambda: [2 * value + self._stair(moves * size, epsilon) for value, size in pairs],
        )  # fmt: skip

    monkeypatch.setattr(noise.Noise, "staircase_by_arm", planted)

    claimed, bound = levels_bound()
    assert bound > claimed


@pytest.mark.audit  # their replay, which is exact, is in tests/properties/test_subgroups_replay.py
def test_tables_of_private_subgroups_show_no_more_than_they_promise():
    line = audit_release(METHODS["blocks"], "sample", 200, by=("x<0.5",))

    assert line.passed
    assert "tables of subgroups" in line.what


def test_numbers_that_lose_little_each_are_weighed_together():
    rng = np.random.default_rng(3)
    first, second = (rng.laplace(mean, 2, (20_000, 4)) for mean in (0, 1))

    alone = max(epsilon_bound(first[2000:, k], second[2000:, k]) for k in range(4))
    together = joint_evidence(first, second, 2000)

    assert alone <= 0.5
    assert 1.0 < epsilon_bound(*(part[2000:] for part in together)) <= 2.0


several_arms = pytest.mark.parametrize(
    ("method", "level"),
    [
        pytest.param(method, level, id=f"{method.name}-{level}")
        for method in METHODS.values()
        for level in method.levels
        if takes(method.name, level, "arms")
    ],
)


@several_arms
def test_some_neighbours_of_several_arms_move_the_steps_of_every_method(method, level):
    moved = {
        step.spend.step
        for pair in arm_neighbours(level)
        for step in noisy_steps(method, level, pair)
        if step.moved
    }
    assert moved


@pytest.mark.audit
@several_arms
def test_no_step_of_several_arms_claims_too_little(method, level):
    for line in audit_steps(method, level, 20_000, several_arms=True):
        assert line.passed, line


@every_method
def test_some_neighbours_move_the_steps_of_every_method(method, level):
    moved = [
        step.spend.epsilon
        for pair in neighbours_for(level)
        for step in noisy_steps(method, level, pair)
        if step.moved
    ]
    assert moved
    assert all(0 <= epsilon <= EPSILON for epsilon in moved)


def test_the_command_prints_a_table_and_pictures_and_passes(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "METHODS", LABEL_ONLY)
    folder = tmp_path / "pictures"
    done = CliRunner().invoke(app, ["audit", "--runs", "100", "--out", str(folder)])
    assert done.exit_code == 0
    assert "no finding" in done.stdout
    assert len(list(folder.glob("*.svg"))) == 4


@pytest.mark.usefixtures("half_the_noise")
def test_the_command_exits_with_one_on_a_finding(monkeypatch):
    monkeypatch.setattr(run, "METHODS", LABEL_ONLY)
    done = CliRunner().invoke(app, ["audit", "--runs", "100", "--json"])
    assert done.exit_code == 1
    lines = json.loads(done.stdout)
    assert not lines[0]["passed"]


def test_a_picture_needs_two_samples(tmp_path):
    same = np.ones(50)
    lines = [
        Finding("samplers", "p", "p", 1, True),
        Finding("flat", "ε = 1", "ε ≥ 0", 50, True, (same, same)),
    ]
    assert [path.name for path in plot_findings(lines, tmp_path)] == ["flat.svg"]


def test_a_rate_of_the_audit_is_tested_beyond_the_grid_of_floats():
    assert min(run.RATES) < Fraction(1, 10**12)
    assert math.log2(1 / min(run.RATES)) == 40


@pytest.mark.audit
def test_the_whole_audit_passes_on_this_installation():
    lines = list(run_audit(20_000))
    assert [line for line in lines if not line.passed] == []


@pytest.mark.audit
@every_method
def test_no_step_of_any_method_claims_too_little(method, level):
    for line in audit_steps(method, level, 100_000):
        assert line.passed, line
