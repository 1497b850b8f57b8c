"""Neighbouring studies through the blocks method: how far every step's input may move."""

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.estimators.blocks import method, models
from private_ate.estimators.blocks.method import BlocksOptions, estimate_blocks
from private_ate.estimators.request import Request
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.ranks import CentreRule
from private_ate.privacy.sums import OUTCOME_STEPS

BOUND = 1000


@dataclass(slots=True)
class Tape(Noise):
    """The choke point with a tape; answers from another tape where one is given."""

    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    answers: list | None = None

    def _release(self, spend, values, draw):
        self.spends.append(spend)
        self.inputs.append(np.array(values, copy=True))
        output = draw() if self.answers is None else self.answers[len(self.outputs)]
        self.outputs.append(output)
        return output


def study(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    covariates = rng.beta(2, 5, (3, rows))
    treatment = rng.random(rows) < covariates[0] + 0.3
    outcome = rng.integers(0, OUTCOME_STEPS + 1, rows).astype(np.int32)
    domain = Domain("t", ("y", Interval(0, 1)), {f"x{j}": Interval(0, 1) for j in range(3)})
    return LocalStudy(domain, covariates, treatment, outcome)


def replaced(one, rows, covariates, treated, outcome):
    x, t, y = one.covariates.copy(), one.treatment.copy(), one.outcome.copy()
    x[:, rows], t[rows], y[rows] = covariates, treated, outcome
    return LocalStudy(one.domain, x, t, y)


def tapes(first, second, request):
    one = Tape(SeededEntropy(3))
    estimate = estimate_blocks(first, request, one)
    other = Tape(SeededEntropy(3), answers=one.outputs)
    again = estimate_blocks(second, request, other)
    assert one.spends == other.spends
    assert estimate == again
    return one, other


def shares(one, other):
    """Return for every step how far its input moved, as a share of what it declares."""
    found = {}
    for spend, a, b in zip(one.spends, one.inputs, other.inputs, strict=True):
        moved = np.abs(np.ravel(a).astype(object) - np.ravel(b).astype(object))
        sizes = {
            "trimmed_centre": sum(bool(step) for step in moved),
            "cube": max(int(step) for step in moved),
        }
        size = sizes.get(spend.mechanism, sum(int(step) for step in moved))
        found[spend.step] = size / spend.sensitivity[0]
    return found


CORNERS = [
    ((0.0, True, 0), (1.0, True, OUTCOME_STEPS)),
    ((0.0, True, 0), (1.0, False, OUTCOME_STEPS)),
    ((1.0, True, OUTCOME_STEPS), (0.0, False, OUTCOME_STEPS)),
    ((0.5, False, 0), (0.0, True, 0)),
]


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("options", [BlocksOptions(adjust=True), BlocksOptions(adjust=False)])
@pytest.mark.parametrize(("epsilon", "confidence"), [("0.5", 0.95), ("8", None), ("40", 0.9)])
def test_no_step_moves_further_than_it_declares(corner, options, epsilon, confidence):
    request = Request(
        "sample", Fraction(epsilon), options=options, confidence=confidence, design="observational"
    )
    first, second = (replaced(study(), slice(7, 8), *record) for record in corner)

    moved = shares(*tapes(first, second, request))

    assert max(moved.values()) <= 1


@pytest.mark.parametrize("estimand", ["ate", "att", "atc", "ato"])
@pytest.mark.parametrize("model", ["linear", "overlap", "doubly_robust"])
def test_a_replaced_row_changes_one_block_of_each_partition(model, estimand):
    options = BlocksOptions(adjust=True, partitions=4, model=model)
    request = Request(
        "sample", Fraction(20), options=options, design="observational", estimand=estimand
    )
    first, second = (replaced(study(), slice(7, 8), *record) for record in CORNERS[1])

    moved = shares(*tapes(first, second, request))

    assert moved["effect"] == 1  # four of the block effects, no more and no less


def test_a_person_with_three_rows_is_covered_when_declared_and_found_when_not():
    pair = [replaced(study(), slice(0, 3), *record) for record in CORNERS[1]]
    asked = {"options": BlocksOptions(adjust=True), "design": "observational"}

    declared = tapes(*pair, Request("sample", Fraction(60), rows_per_person=3, **asked))
    undeclared = tapes(*pair, Request("sample", Fraction(60), **asked))

    assert max(shares(*declared).values()) <= 1
    assert shares(*undeclared)["effect"] > 1


def test_a_block_effect_that_looks_at_other_blocks_is_found(monkeypatch):
    honest = models.linear_effects

    def leaking(groups, **asked):
        effects = honest(groups, **asked)
        mean = effects.effect.mean()
        return models.BlockEffects(effects.effect - mean, effects.variance, effects.usable)

    monkeypatch.setitem(method.MODELS, "linear", leaking)
    options = BlocksOptions(adjust=True, model="linear")
    request = Request("sample", Fraction(8), options=options, design="observational")
    first, second = (replaced(study(), slice(7, 8), *record) for record in CORNERS[1])

    moved = shares(*tapes(first, second, request))

    assert moved["effect"] > 1


numbers = st.integers(-BOUND, BOUND)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(numbers, min_size=1, max_size=40),
    st.lists(st.tuples(st.integers(0, 39), numbers), max_size=5),
    st.integers(0, 25),
)
def test_levels_move_by_no_more_than_the_numbers_that_change(values, changes, trim):
    rule = CentreRule(np.arange(-BOUND, BOUND + 1, 13), BOUND, trim)
    first = np.array(values)
    second = first.copy()
    for place, value in changes:
        second[place % first.size] = value

    moved = np.abs(rule.levels(first) - rule.levels(second)).max()

    assert moved <= np.count_nonzero(first != second)


@settings(max_examples=100, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=40), st.integers(0, 25))
def test_the_trimmed_mean_itself_has_level_zero(values, trim):
    ordered = np.sort(np.array(values))
    probe = CentreRule(np.array([0]), BOUND, trim)
    window = probe.window(ordered.size)
    low = (ordered.size - window) // 2
    mean = Fraction(int(ordered[low : low + window].sum()), window)
    near = np.array([mean.__floor__(), mean.__ceil__()])

    levels = CentreRule(near, BOUND, trim).levels(np.array(values))

    assert levels.min() <= 1
    if mean.denominator == 1:
        assert levels[0] == 0


@pytest.mark.parametrize("options", [BlocksOptions(adjust=True), BlocksOptions(adjust=False)])
@pytest.mark.parametrize("corner", CORNERS)
def test_a_row_that_ceases_to_take_part_is_covered_too(corner, options):
    request = Request("sample", Fraction(8), options=options, design="observational")
    base = study()
    everyone, but_one = np.ones(400, dtype=bool), np.arange(400) != 7
    first = replace(replaced(base, slice(7, 8), *corner[0]), takes_part=everyone)
    second = replace(replaced(base, slice(7, 8), *corner[1]), takes_part=but_one)

    moved = shares(*tapes(first, second, request))

    assert max(moved.values()) <= 1
