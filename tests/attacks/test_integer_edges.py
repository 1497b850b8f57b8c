"""Integers at the edge of their words: what does not fit is exact or refused, and never wraps.

The limits are those of docs/proofs/integers.md. Studies of 2³¹ and more rows are simulated: the
sums of one block of the largest values are added to themselves until they are those of all rows.
"""

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_ate.api import METHODS, estimate_study
from private_ate.audit.replay import Recording, broken_promises
from private_ate.baselines.blocking import Strata, release_cells, release_strata
from private_ate.baselines.privsyn import dependence
from private_ate.baselines.smooth_matching import cell_kernel, cells_of
from private_ate.baselines.synthetic_records import RecordCoding
from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.errors import NumericRangeError
from private_ate.methods.blocks.compare import compare_arms_as_they_are
from private_ate.methods.blocks.plan import PlainShares
from private_ate.methods.blocks.run import Counts, Run, release_counts
from private_ate.methods.calibrated.clipping import release_range
from private_ate.models.private_score import Scaling, release_scaling
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import (
    MOST_ROWS,
    MOST_SORTED_ROWS,
    OUTCOME_STEPS,
    noise_bits,
    quantize_weights,
    require_rows,
    weighted_sum,
)
from private_ate.request import Request
from private_ate.study import Block
from replay import record

DOMAIN = Domain("t", ("y", Interval(0, 1)), {"x": Interval(0, 1)})
BLOCK_ROWS = 1 << 14
LARGE_EPSILON = Fraction(10**6)  # the largest that is allowed, hence the finest grids
SQUARE_STEPS = 1 << 44  # steps of a squared weight times a squared range


def rare_treatment(rows=1_500_000, treated=2):
    """Return a study in which each treated unit stands for rows/treated units."""
    rng = np.random.default_rng(0)
    treatment = np.zeros(rows, dtype=bool)
    treatment[:treated] = True
    outcome = rng.integers(0, OUTCOME_STEPS + 1, rows).astype(np.int32)
    return LocalStudy(DOMAIN, rng.random((1, rows)), treatment, outcome)


def with_outcome(study, row, outcome):
    changed = study.outcome.copy()
    changed[row] = outcome
    return replace(study, outcome=changed)


@pytest.mark.parametrize(("rows", "treated"), [(1_500_000, 2), (1_000_000, 1), (2_000_000, 2)])
def test_the_variance_step_declares_what_two_units_that_stand_for_a_million_can_move(rows, treated):
    study = rare_treatment(rows, treated)
    ends = [with_outcome(study, 0, outcome) for outcome in (0, OUTCOME_STEPS)]

    request = Request("label", Fraction(1))
    recorded = record(METHODS["calibrated"].run, ends[0], request).recording
    replayed = record(METHODS["calibrated"].run, ends[1], request, source=recorded).recording

    assert broken_promises(recorded, replayed) == []
    place = [spend.step for spend in recorded.spends].index("variance")
    declared = recorded.spends[place].sensitivity[0]
    if treated == 2:
        assert declared == (rows // treated) ** 2 * SQUARE_STEPS
        assert abs(int(recorded.inputs[place][0]) - int(replayed.inputs[place][0])) > 0
    assert declared > 0


def test_the_interval_of_rare_treatments_is_drawn_afresh_each_time():
    study = rare_treatment()
    released = []
    for seed in range(3):
        heard = record(METHODS["calibrated"].run, study, Request("label", Fraction(1)), seed=seed)
        (call,) = [call for call in heard.calls if call.spend.step == "variance"]
        released.append(call.output[0] - 2 * int(call.values[0]))

    sizes = [abs(value) / (2 * SQUARE_STEPS * 750_000**2) for value in released]
    assert min(sizes) > 1e-3, "noise of scale ten is this small once in ten thousand draws"


@pytest.mark.parametrize("weight", [2.0**38, 1e300, np.inf, -(2.0**38), np.nan])
def test_a_weight_that_does_not_fit_is_refused(weight):
    with pytest.raises(NumericRangeError, match="range of exact sums"):
        quantize_weights(np.array([1.0, weight]))


def test_the_largest_weight_that_fits_is_exact():
    weight = np.nextafter(2.0**38, 0)

    assert quantize_weights(np.array([weight, -weight])).tolist() == [
        int(Fraction(weight) * 2**24), -int(Fraction(weight) * 2**24)
    ]  # fmt: skip


@given(
    weights=st.lists(st.integers(-(2**62) + 1, 2**62 - 1), min_size=1, max_size=8),
    seed=st.integers(0, 99),
)
def test_weighted_sums_are_those_of_python_integers(weights, seed):
    rng = np.random.default_rng(seed)
    values = rng.choice([0, 1, 2**30, -(2**30), 2**31, 2**62], len(weights))

    total = weighted_sum(np.array(weights, dtype=np.int64), values)

    assert total == sum(w * int(v) for w, v in zip(weights, values, strict=True))


@dataclass
class HugeStudy:
    """A study of the same block of rows over and over: its sums are doubled, not added up."""

    block: Block
    doublings: int
    domain: Domain = DOMAIN
    titles: list = field(default_factory=list)
    everyone_takes_part: bool = True
    rules: None = None

    @property
    def size(self):
        return self.block.treatment.size << self.doublings

    @property
    def dimension(self):
        return self.block.covariates.shape[1]

    def public(self):
        return replace(self, block=replace(self.block, outcome=None))

    @contextmanager
    def thinned(self, stride):  # noqa: ARG002  # one block stands for all
        yield replace(self, doublings=0)

    def fold(self, kernel, *, title=""):
        self.titles.append(title)
        total = kernel(self.block)
        for _ in range(self.doublings):
            total = total + total
        return total


def block_of_ends(outcome=OUTCOME_STEPS, place=1.0, treated=1):
    """Return a whole block of rows at one end of everything that is declared."""
    return Block(
        np.full((BLOCK_ROWS, 1), place),
        np.full(BLOCK_ROWS, bool(treated)),
        np.full(BLOCK_ROWS, outcome, dtype=np.int32),
    )


SCALING = Scaling(np.array([2.0]), np.array([-1.0]))
STRATA = Strata(SCALING, np.array([1.0]), 4)


def blocks_run(study, noise):
    return Run.of(study, Request("sample", Fraction(3)), noise)


STEPS = {
    "standardisation": lambda study, noise: release_scaling(
        study, noise, epsilon=LARGE_EPSILON, changes=1, stretch=4.0
    ),
    "cells": lambda study, noise: release_cells(
        study, STRATA, noise, count_epsilon=Fraction(1), sum_epsilon=Fraction(1)
    ),
    "arms": lambda study, noise: release_counts(blocks_run(study, noise), Fraction(1)),
    "compared": lambda study, noise: compare_arms_as_they_are(
        blocks_run(study, noise),
        Counts(np.array([[5e8, 5e8]]), 1.0),
        PlainShares(Fraction(0), Fraction(1, 3), Fraction(1, 3)),
    ),
    "strata": lambda study, noise: release_strata(study, STRATA, noise, epsilon=LARGE_EPSILON),
}


@pytest.mark.parametrize("doublings", [17, 18], ids=["2^31 rows", "2^32 rows"])
@pytest.mark.parametrize("ends", [(OUTCOME_STEPS, 1.0, 1), (0, 0.0, 0)], ids=["high", "low"])
@pytest.mark.parametrize("name", STEPS)
def test_the_sums_of_billions_of_rows_are_so_many_times_those_of_a_block(name, ends, doublings):
    one = Recording()
    all_rows = Recording(source=one)
    STEPS[name](HugeStudy(block_of_ends(*ends), 0), Noise(SeededEntropy(1), one))

    STEPS[name](HugeStudy(block_of_ends(*ends), doublings), Noise(SeededEntropy(1), all_rows))

    steps = 2 if name == "cells" else 1  # later ones rest on what was released
    for step in range(steps):
        expected = [int(value) << doublings for value in one.inputs[step].flat]
        assert [int(value) for value in all_rows.inputs[step].flat] == expected
    # Of two arms that all rows are in, one is counted.
    assert any(expected) or name == "arms", "a block of ends must have a sum to double"
    if steps == 2:
        assert max(map(abs, expected)) >= 2**60


def test_counts_of_billions_of_outcomes_are_exact_where_bounds_are_chosen():
    recording = Recording()

    release_range(
        HugeStudy(block_of_ends(), 18), Fraction(1), 1, Noise(SeededEntropy(1), recording)
    )

    assert min(recording.inputs[0].flat) == 26 * 2 - MOST_ROWS
    assert max(recording.inputs[0].flat) == -26 * 2


def test_cells_of_the_baselines_add_up_over_billions_of_rows():
    study = HugeStudy(block_of_ends(), 18)

    cells = study.fold(cell_kernel(cells_of(DOMAIN, ("x",))))
    pairs = study.fold(RecordCoding.of(DOMAIN, 4, 8).count_pairs)

    assert int(cells.counts.max()) == MOST_ROWS
    assert int(cells.sums.max()) == MOST_ROWS * OUTCOME_STEPS
    assert int(pairs.max()) == MOST_ROWS


def test_dependence_is_exact_at_the_largest_size_it_is_asked_for():
    half = MOST_SORTED_ROWS // 2
    counts = np.array([[half, 0], [0, MOST_SORTED_ROWS - half]])
    alone = counts.sum(axis=0)

    found = dependence(counts, alone, alone)

    total = int(alone.sum())
    exact = sum(
        abs(int(counts[i, j]) * total - int(alone[i]) * int(alone[j]))
        for i in (0, 1)
        for j in (0, 1)
    )
    assert found == (exact << 10) // total


@dataclass
class Untouchable(HugeStudy):
    """A study whose rows nobody may read."""

    rows: int = 0

    @property
    def size(self):
        return self.rows

    def fold(self, *_, **__):
        msg = "rows were read before their number was checked"
        raise AssertionError(msg)


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_more_rows_than_add_up_exactly_are_refused_before_one_is_read(method):
    study = Untouchable(block_of_ends(), 0, rows=MOST_ROWS + 1)

    with pytest.raises(NumericRangeError, match="add up exactly"):
        estimate_study(study, Request(method.levels[0], Fraction(1)), method, seed=1)


@pytest.mark.parametrize("name", ["published", "privsyn"])
def test_more_rows_than_can_be_put_in_order_are_refused_before_one_is_read(name):
    method = METHODS[name]
    study = Untouchable(block_of_ends(), 0, rows=MOST_SORTED_ROWS + 1)

    for level in method.levels:
        with pytest.raises(NumericRangeError, match="add up exactly"):
            estimate_study(study, Request(level, Fraction(1)), method, seed=1)


def test_the_limits_themselves_are_accepted():
    require_rows(MOST_ROWS)
    require_rows(MOST_SORTED_ROWS, MOST_SORTED_ROWS)


def test_gaussian_noise_wider_than_a_machine_word_is_exact():
    noise = Noise(SeededEntropy(3))

    noisy = noise.gaussian_cells(
        "cells", np.array([2**62, 0, -(2**62)]), squared_sensitivity=10**44, rho=Fraction(1, 2)
    )

    assert all(isinstance(value, int) for value in noisy.tolist())
    assert max(abs(value) for value in noisy.tolist()) > 2**64


def test_grids_too_fine_for_a_blocks_sums_are_refused():
    assert noise_bits(1, LARGE_EPSILON) == 40
    with pytest.raises(NumericRangeError, match="finer than"):
        noise_bits(1, Fraction(10**9))
