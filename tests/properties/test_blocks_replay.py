"""Neighbouring studies through the blocks method: how far every step's input may move."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay import replay_findings

from private_ate.audit.replay import Recording, moved_share
from private_ate.domain import Domain, Interval, SamplingWeights, Treatment
from private_ate.engines.grouping import groups_of
from private_ate.engines.local import FurtherOutcome, LocalStudy
from private_ate.methods.blocks import method
from private_ate.methods.blocks.method import estimate_blocks
from private_ate.methods.blocks.plan import BlocksOptions
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.privacy.trimmed_mean import CentreRule
from private_ate.request import Request

BOUND = 1000
ADJUST = BlocksOptions(adjust=True, partitions=2)
PLAIN = BlocksOptions(adjust=False)


def study(rows=400, seed=0, *, arms=2, outcomes=1, weighted=False, masked=False):
    rng = np.random.default_rng(seed)
    covariates = rng.beta(2, 5, (3, rows))
    arm = (rng.random(rows) < covariates[0] + 0.3).astype(np.uint8) * rng.integers(
        1, arms, rows, dtype=np.uint8
    )
    y = [rng.integers(0, OUTCOME_STEPS + 1, rows).astype(np.int32) for _ in range(outcomes)]
    treatment = Treatment("t", arms=list("abcd"[:arms])) if arms > 2 else Treatment("t", 1, 0)
    names = [("y", Interval(0, 1)), ("z", Interval(0, 1))][:outcomes]
    domain = Domain(
        treatment, names if outcomes > 1 else names[0],
        {f"x{j}": Interval(0, 1) for j in range(3)},
        weights=SamplingWeights("w", 3) if weighted else None,
    )  # fmt: skip
    return LocalStudy(
        domain, covariates, arm.view(np.bool_) if arms == 2 else arm, y[0],
        takes_part=rng.random(rows) < 0.9 if masked else None,
        weights=rng.random(rows) if weighted else None,
        further=tuple(FurtherOutcome(one, None) for one in y[1:]),
    )  # fmt: skip


def replaced(one, rows, covariates, arm, outcome):
    x, t, y = one.covariates.copy(), one.treatment.copy(), one.outcome.copy()
    x[:, rows], t[rows], y[rows] = covariates, arm, outcome
    further = []
    for each in one.further:
        moved = each.steps.copy()
        moved[rows] = OUTCOME_STEPS - outcome
        further.append(replace(each, steps=moved))
    weights = one.weights
    if weights is not None:
        weights = weights.copy()
        weights[rows] = float(covariates)
    return replace(one, covariates=x, treatment=t, outcome=y, weights=weights,
                   further=tuple(further))  # fmt: skip


CORNERS = [
    ((0.0, 1, 0), (1.0, 1, OUTCOME_STEPS)),
    ((0.0, 1, 0), (1.0, 0, OUTCOME_STEPS)),
    ((1.0, 1, OUTCOME_STEPS), (0.0, 0, OUTCOME_STEPS)),
    ((0.5, 0, 0), (0.0, 1, 0)),
]
# What composes: the study, and what is asked of it.
AXES = {
    "two arms": ({}, {}),
    "att": ({}, {"estimand": "att"}),
    "ato": ({}, {"estimand": "ato"}),
    "no interval": ({}, {"confidence": None}),
    "three arms": ({"arms": 3}, {}),
    "weights": ({"weighted": True}, {}),
    "three arms with weights": ({"arms": 3, "weighted": True}, {}),
    "missing rows": ({"masked": True}, {}),
    "two outcomes": ({"outcomes": 2}, {}),
    "two outcomes of three arms": ({"outcomes": 2, "arms": 3}, {}),
    "subgroups": ({}, {"by": ("x1<0.25",)}),
    "subgroups and all": ({}, {"by": ("x1<0.25",), "overall": True}),
    "subgroups of three arms": ({"arms": 3}, {"by": ("x1<0.25",)}),
    "subgroups with weights": ({"weighted": True}, {"by": ("x1<0.25",)}),
    "subgroups of two outcomes": ({"outcomes": 2}, {"by": ("x1<0.25",)}),
}


@pytest.mark.parametrize("options", [ADJUST, PLAIN], ids=["adjusted", "plain"])
@pytest.mark.parametrize(("rows", "asked"), AXES.values(), ids=AXES)
def test_no_step_moves_further_than_it_declares(rows, asked, options):
    base = study(**rows)
    for place, corner in enumerate(CORNERS):
        epsilon = Fraction(("0.5", "8", "40", "2")[place])
        request = Request(
            "sample", epsilon, options=options, design="observational",
            outcomes=1, **asked,
        )  # fmt: skip
        first, second = (replaced(base, slice(7, 8), *record) for record in corner)

        assert replay_findings(estimate_blocks, first, second, request, seed=3) == []


def moved_in(first, second, request):
    """Return for every step how far its input moved, as a share of what it declares."""
    recording = Recording()
    estimate_blocks(first, request, Noise(SeededEntropy(3), recording))
    again = Recording(source=recording)
    estimate_blocks(second, request, Noise(SeededEntropy(3), again))
    return {
        one.spend.step: moved_share(one, other)
        for one, other in zip(recording.calls, again.calls, strict=True)
    }


@pytest.mark.parametrize("estimand", ["ate", "att", "atc", "ato"])
def test_a_replaced_row_changes_one_block_of_each_partition(estimand):
    options = BlocksOptions(adjust=True, partitions=4)
    request = Request(
        "sample", Fraction(20), options=options, design="observational", estimand=estimand
    )
    first, second = (replaced(study(), slice(7, 8), *record) for record in CORNERS[1])

    assert moved_in(first, second, request)["effect"] == 1  # four of the blocks, no more, no less


def test_a_person_with_three_rows_is_covered_when_declared_and_found_when_not():
    pair = [replaced(study(), slice(0, 3), *record) for record in CORNERS[1]]
    asked = {"options": ADJUST, "design": "observational"}

    declared = moved_in(*pair, Request("sample", Fraction(60), rows_per_person=3, **asked))
    undeclared = moved_in(*pair, Request("sample", Fraction(60), **asked))

    assert max(declared.values()) <= 1
    assert undeclared["effect"] > 1


def test_a_block_that_looks_at_other_blocks_is_found(monkeypatch):
    honest = method.block_kernel

    def leaking(*given):
        kernel = honest(*given)

        def leak(groups):
            table = kernel(groups)
            table[:, 0] -= int(table[:, 0].mean())
            return table

        return leak

    monkeypatch.setattr(method, "block_kernel", leaking)
    request = Request("sample", Fraction(8), options=ADJUST, design="observational")
    first, second = (replaced(study(), slice(7, 8), *record) for record in CORNERS[1])

    assert moved_in(first, second, request)["effect"] > 1


def noise_but(base, kept, seed=11):
    """The study with records drawn anew, except for those of some rows."""
    rng = np.random.default_rng(seed)
    fresh = ~kept
    x, t, y = base.covariates.copy(), base.treatment.copy(), base.outcome.copy()
    order = rng.permutation(np.flatnonzero(fresh))
    x[:, fresh] = rng.random((x.shape[0], order.size))
    t[fresh], y[fresh] = t[order], rng.integers(0, OUTCOME_STEPS + 1, order.size)
    further = []
    for each in base.further:
        moved = each.steps.copy()
        moved[fresh] = rng.integers(0, OUTCOME_STEPS + 1, order.size)
        further.append(replace(each, steps=moved))
    weights, takes_part = base.weights, base.takes_part
    if weights is not None:
        weights = np.where(kept, weights, rng.random(base.size))
    if takes_part is not None:
        takes_part = np.where(kept, takes_part, rng.random(base.size) < 0.7)
    return replace(base, covariates=x, treatment=t, outcome=y, weights=weights,
                   takes_part=takes_part, further=tuple(further))  # fmt: skip


ISOLATED = ("two arms", "three arms with weights", "missing rows", "subgroups with weights",
            "two outcomes of three arms")  # fmt: skip


@pytest.mark.parametrize("axis", ISOLATED)
def test_a_block_hands_over_the_same_bits_if_all_other_rows_are_noise(axis, monkeypatch):
    """Through the engine: cutting, stacking, padding and masks included."""
    rows, asked = AXES[axis]
    base = study(1501, **rows)
    shuffles = []
    cut = method.draw_shuffles
    monkeypatch.setattr(
        method, "draw_shuffles", lambda *given: shuffles.append(cut(*given)) or shuffles[-1]
    )
    request = Request("sample", Fraction(2), options=ADJUST, design="observational", **asked)
    recording = Recording()
    estimate_blocks(base, request, Noise(SeededEntropy(3), recording))
    first = np.array(recording.inputs[-1], dtype=np.int64)
    blocks = shuffles[0][0].count

    for part, block in ((0, 5), (1, blocks - 1)):
        kept = groups_of(shuffles[0][part], shuffles[0][part].places(0, base.size)) == block
        again = Recording(source=recording)
        estimate_blocks(noise_but(base, kept), request, Noise(SeededEntropy(3), again))
        second = np.array(again.inputs[-1], dtype=np.int64)

        place = part * blocks + block
        assert np.array_equal(first[place], second[place])
        others = np.arange(len(first)) != place
        assert (first[others, 0] != second[others, 0]).mean() > 0.9


@pytest.mark.parametrize("fault", ["constant outcome", "outcome is the arm", "infinite"])
def test_no_block_makes_a_run_raise_or_look_different(fault, recwarn):
    """A block that cannot be learnt from ends in integers like any other: no error, no word."""
    base = study(800)
    outcome = {
        "constant outcome": np.full(800, 7, dtype=np.int32),
        "outcome is the arm": base.treatment.astype(np.int32) * np.int32(OUTCOME_STEPS),
        "infinite": base.outcome,
    }[fault]
    covariates = base.covariates * (np.inf if fault == "infinite" else 1.0)
    request = Request("sample", Fraction(8), options=ADJUST, design="observational")

    ordinary = estimate_blocks(base, request, Noise(SeededEntropy(1)))
    with np.errstate(invalid="ignore"):
        odd = replace(base, outcome=outcome, covariates=covariates)
    estimate = estimate_blocks(odd, request, Noise(SeededEntropy(1)))

    assert np.isfinite(estimate.ate)
    assert type(estimate.settings) is type(ordinary.settings)
    assert len(recwarn) == 0


def test_deviations_of_blocks_are_clipped_to_public_bounds():
    """A deviation without bounds would let one block decide which spreads are possible."""
    recording = Recording()
    base = study(800)
    steep = base.treatment.astype(np.int32) * np.int32(OUTCOME_STEPS)
    request = Request("sample", Fraction(8), options=ADJUST, design="observational")
    estimate_blocks(replace(base, outcome=steep), request, Noise(SeededEntropy(1), recording))
    table = np.array(recording.inputs[-1], dtype=np.int64)

    spread = float(table[:, 1].min()) * 2**12.5  # the floor is the smallest spread
    assert table[:, 1].min() > 0
    assert table[:, 1].max() <= 4 * spread + 1


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


@pytest.mark.parametrize("options", [ADJUST, PLAIN])
@pytest.mark.parametrize("corner", CORNERS)
def test_a_row_that_ceases_to_take_part_is_covered_too(corner, options):
    request = Request("sample", Fraction(8), options=options, design="observational")
    base = study()
    everyone, but_one = np.ones(400, dtype=bool), np.arange(400) != 7
    first = replace(replaced(base, slice(7, 8), *corner[0]), takes_part=everyone)
    second = replace(replaced(base, slice(7, 8), *corner[1]), takes_part=but_one)

    assert replay_findings(estimate_blocks, first, second, request, seed=3) == []
